"""Measures planning: the choice of a boundary beside the plain rule, and what a view costs from the store.

    python -m tests.bench.bench_planning [--entries 90214] [--rounds 5] [--messages chat.json] [--generator make_sessions.py]

`plan`: 90,214 parsed messages, from their texts alone to the whole plan of a compaction: sizes, cut and chunks, the
state that code records, the user's messages and what the summariser is given to read; beside one `json.dumps` over
the same messages. The same with stored sizes is the preview of a session from the store. `boundary`: 9,019 chat
messages (or those of a JSON file in the chat form), cut by the plain rule, which serialises the suffix of every
candidate, and by the engine, cold (sizes are measured first) and with stored sizes. Both must give the same cut.
`view`: a session of so many entries and one of 1,000 in SQLite, each with the same tail after its compaction. Prints
one JSON line per measurement, in milliseconds of the processor and the clock; medians of all rounds. Nothing here is
asserted on time: machines are shared.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from sessions_app.engine import boundary, counting, mechanical, prompts, view
from sessions_app.engine import plan as planning
from sessions_app.engine.entries import Checkpoint, Entry, Part, Segment, SyntheticMessage
from sessions_app.engine.policy import Policy
from sessions_app.engine.shapes import EntryShape, shape_of
from sessions_app.engine.steps import SummaryRequest
from sessions_app.engine.terms import Kind, Lineage, PartKind, Role, SegmentKind

CHAT_MESSAGES = 9_019
KEEP_CHARS = 400_000
TAIL_ENTRIES = 200
Message = dict[str, Any]


def chat(count: int, seed: int = 4) -> Iterator[Message]:
    """Turns of a request and about ten steps with a tool, of the sizes that agents write."""
    rng = random.Random(seed)
    serial = 0
    yield {"role": "user", "content": "Begin."}
    made = 1
    while made < count:
        steps = rng.randrange(1, 20)
        turn: list[Message] = []
        for _ in range(steps):
            serial += 1
            call = {"id": f"call_{serial}", "type": "function", "function": {"name": "read", "arguments": '{"path": "a/b/c.py"}'}}
            turn.append({"role": "assistant", "content": "", "tool_calls": [call]})
            turn.append({"role": "tool", "tool_call_id": f"call_{serial}", "content": "é x" * int(rng.lognormvariate(5, 1.2))})
        turn.append({"role": "assistant", "content": "word " * rng.randrange(1, 200)})
        turn.append({"role": "user", "content": "please " * rng.randrange(1, 40)})
        yield from turn[: count - made]
        made += len(turn)


def plain_boundary(messages: list[Message], keep_chars: int) -> int | None:
    """The earliest user message whose suffix fits; else the earliest step after the last one; else the latest of these."""

    def size(start: int) -> int:
        return len(json.dumps(messages[start:]))

    users = [place for place, message in enumerate(messages) if message["role"] == "user"]
    for place in users:
        if size(place) <= keep_chars:
            return place or None
    last_user = users[-1] if users else -1
    steps = [place for place, message in enumerate(messages) if message["role"] == "assistant" and place > last_user]
    return next((place for place in steps if size(place) <= keep_chars), (steps or users or [None])[-1]) or None


ROLES = {role.value: role for role in Role}


def shapes_of(messages: list[Message]) -> list[EntryShape]:
    """Shapes whose `tokens` are characters of JSON, so that their sums are what the plain rule measures."""
    encode = json.JSONEncoder().encode
    shapes = []
    for place, message in enumerate(messages):
        calls, answered = message.get("tool_calls"), message.get("tool_call_id")
        shapes.append(
            EntryShape(
                index=place,
                role=ROLES[message["role"]],
                kind=Kind.CALL if calls else Kind.RESULT if answered else Kind.MESSAGE,
                tokens=len(encode(message)) + 2,
                call_ids=tuple([call["id"] for call in calls]) if calls else (answered,) if answered else (),
            )
        )
    return shapes


def engine_boundary(shapes: list[EntryShape], keep_chars: int) -> int | None:
    chosen = boundary.choose(shapes, keep_tokens=keep_chars)
    return chosen.index if isinstance(chosen, boundary.Boundary) else None


def timed(work: Callable[[], Any]) -> tuple[float, float]:
    """Milliseconds of the processor and of the clock."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return (time.process_time() - cpu) * 1e3, (time.perf_counter() - wall) * 1e3


def compare(rounds: int, **works: Callable[[], Any]) -> dict[str, list[tuple[float, float]]]:
    """Runs the works in turns, so that what else the machine does hits all of them."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            found[name].append(timed(work))
    return found


def report(measurement: str, found: dict[str, list[tuple[float, float]]], **facts: object) -> None:
    for name, times in found.items():
        cpu, wall = (round(statistics.median(column), 3) for column in zip(*times, strict=True))
        print(json.dumps({"measurement": measurement, "what": name, "cpu_ms": cpu, "wall_ms": wall, "rounds": len(times), **facts}))


def ratio(found: dict[str, list[tuple[float, float]]], slow: str, fast: str) -> float:
    """Median of the paired ratios of processor time."""
    return round(statistics.median(one[0] / other[0] for one, other in zip(found[slow], found[fast], strict=True)), 1)


def measure_boundary(messages: list[Message], rounds: int) -> None:
    shapes = shapes_of(messages)
    for keep in (10_000, KEEP_CHARS, 1_000_000):
        assert engine_boundary(shapes, keep) == plain_boundary(messages, keep), keep
    found = compare(
        rounds,
        plain=lambda: plain_boundary(messages, KEEP_CHARS),
        engine_cold=lambda: engine_boundary(shapes_of(messages), KEEP_CHARS),
        engine_stored_sizes=lambda: engine_boundary(shapes, KEEP_CHARS),
    )
    report("boundary", found, messages=len(messages))
    print(
        json.dumps(
            {
                "measurement": "boundary",
                "plain/engine_cold": ratio(found, "plain", "engine_cold"),
                "plain/engine_stored_sizes": ratio(found, "plain", "engine_stored_sizes"),
            }
        )
    )
    ten_times = shapes_of(list(chat(10 * len(messages))))
    growth = compare(rounds, ten=lambda: engine_boundary(ten_times, KEEP_CHARS), one=lambda: engine_boundary(shapes, KEEP_CHARS))
    print(json.dumps({"measurement": "boundary", "10 x messages / time": ratio(growth, "ten", "one")}))


def entries_of(messages: list[Message]) -> Iterator[Entry]:
    for shape, message in zip(shapes_of(messages), messages, strict=True):
        kind = {Kind.CALL: PartKind.CALL, Kind.RESULT: PartKind.RESULT}.get(shape.kind, PartKind.TEXT)
        made = (message.get("tool_calls") or [{}])[0].get("function", {})
        text = message["content"] or made.get("arguments", "{}")
        part = Part(kind=kind, text=text, name=made.get("name", ""), call_id=next(iter(shape.call_ids), ""))
        tokens = counting.estimate_parts((part,))
        yield Entry(index=shape.index, role=shape.role, kind=shape.kind, parts=(part,), tokens=tokens, source_id=f"e{shape.index}")


def plan_cold(entries: list[Entry]) -> int:
    """Everything that an attempt knows before it asks its summariser; answers the characters that it would give to read."""
    sized = [msgspec.structs.replace(entry, tokens=counting.estimate_parts(entry.parts)) for entry in entries]
    shapes = [shape_of(entry) for entry in sized]
    signal = sum(shape.tokens for shape in shapes)
    asked = {"window": 200_000, "summariser_window": 200_000, "signal_tokens": signal, "manual": True, "force": False}
    plan = planning.make(shapes, previous=None, policy=Policy(), **asked)
    assert isinstance(plan, planning.Plan)
    state = mechanical.collect(sized[: plan.boundary_index])
    given, alone = 0, len(plan.chunks) == 1
    for number, chunk in enumerate((chunk for chunk in plan.chunks if not chunk.is_surplus), start=1):
        read = tuple(sized[index] for index in range(chunk.first, chunk.last + 1) if index in plan.span)
        given += _asked(plan, entries=read, state=state if alone else None, chunk_index=number)
    # What the chunks give is not known yet, but the call that folds it is told what code knows.
    return given if alone else given + _asked(plan, partial_summaries=("",) * len(plan.chunks), state=state)


def _asked(plan: planning.Plan, **request: Any) -> int:
    """Characters of one call of a summariser."""
    return len(prompts.user_prompt(SummaryRequest(chunk_count=len(plan.chunks), **request)))


def made_by(generator: Path, count: int) -> list[Message]:
    """One long chat, in the sizes and with the texts of real sessions."""
    with tempfile.TemporaryDirectory(prefix="bench-planning-") as name:
        out = Path(name) / "chat"
        command = (sys.executable, str(generator), "--out", str(out), "--format", "openai", "--sessions", "1", "--entries", str(count))
        kind = ("--entries-dist", "fixed", "--mean-bytes", "1200", "--seed", "4", "--sidechain", "0", "--compact-every", "0")
        subprocess.run([*command, *kind], check=True, stdout=subprocess.DEVNULL)
        messages: list[Message] = json.loads(out.read_text() if out.is_file() else next(out.rglob("*.json")).read_text())
        return messages


def measure_plan(messages: list[Message], rounds: int) -> None:
    entries = list(entries_of(messages))
    found = compare(rounds, json_dumps=lambda: json.dumps(messages), plan_cold=lambda: plan_cold(entries))
    report("plan", found, messages=len(messages), megabytes=round(len(json.dumps(messages)) / 1e6, 1))
    print(json.dumps({"measurement": "plan", "plan/json.dumps": ratio(found, "plan_cold", "json_dumps")}))


def plan_for(entries: list[Entry]) -> Checkpoint:
    chosen = next(entry.index for entry in entries[-TAIL_ENTRIES:] if entry.role is Role.USER)
    block = SyntheticMessage(role=Role.USER, text="What was done so far. " * 500)
    segments = (Segment(kind=SegmentKind.SYNTHETIC, payload=block), Segment(kind=SegmentKind.RANGE, first=chosen))
    return Checkpoint(generation=1, lineage=Lineage.CONSOLE, segments=segments, boundary_index=chosen)


def measure_view(count: int, rounds: int) -> None:
    from sessions_app.selectors import plans
    from sessions_app.selectors.compact_preview import compact_preview
    from sessions_app.services import signals
    from tests.stored import store_checkpoint, store_session

    end = list(chat(1_000))
    long = list(entries_of([*chat(count - len(end)), *end]))
    short = list(entries_of(end))
    long_session, short_session = store_session(long), store_session(short)
    plan = plan_for(long)
    in_view = [entry for entry in long if plan.holds(entry.index)]
    signals_before = compare(rounds, refresh_signal_uncompacted=lambda: signals.refresh(long_session.pk))
    report("view", signals_before, entries=count, entries_in_view=count)
    for session, entries in ((long_session, long), (short_session, short)):
        store_checkpoint(session, plan_for(entries))
    found = compare(
        rounds,
        view_in_memory=lambda: view.build(in_view, plan),
        view_from_store_long=lambda: plans.load_view(long_session),
        view_from_store_short=lambda: plans.load_view(short_session),
        tokens_of_view=lambda: plans.view_tokens(long_session, plan),
        tokens_of_session=lambda: plans.view_tokens(long_session, None),
        refresh_signal_long=lambda: signals.refresh(long_session.pk),
        refresh_signal_short=lambda: signals.refresh(short_session.pk),
        load_all_shapes=lambda: plans.load_shapes(long_session.pk),
        preview_from_store_long=lambda: compact_preview(long_session),
    )
    report("view", found, entries=count, entries_in_view=len(in_view))
    print(json.dumps({"measurement": "view", "long/short": ratio(found, "view_from_store_long", "view_from_store_short")}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=90_214)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--messages", type=Path)
    parser.add_argument("--generator", type=Path, help="makes the messages that are planned from; without it they are made here")
    options = parser.parse_args()
    measure_boundary(json.loads(options.messages.read_text()) if options.messages else list(chat(CHAT_MESSAGES)), options.rounds)
    measure_plan(made_by(options.generator, options.entries) if options.generator else list(chat(options.entries)), options.rounds)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings.test")
    import django
    from django.db import connection

    django.setup()
    connection.creation.create_test_db(verbosity=0)
    try:
        measure_view(options.entries, options.rounds)
    finally:
        connection.creation.destroy_test_db(connection.settings_dict["NAME"], verbosity=0)


if __name__ == "__main__":
    main()
