"""The coding stories: long and short, with compactions of the agent's own, a rewind, a file that went wrong."""

import random
from collections.abc import Iterable

from sessions_app.demo import work
from sessions_app.demo.material import IMPORTER, PAYMENTS, SHOP, Place, coloured_run, listing
from sessions_app.demo.transcript import Transcript

FORBIDDEN = "You must never run the migration against the shared database; use the copy on port 5433."


def started(key: str, place: Place, *, seed: int, model: str = "claude-sonnet-4-5") -> tuple[Transcript, random.Random]:
    """An empty file of that place, and the generator of its story."""
    return Transcript(key=key, cwd=place.root, branch=place.branch, model=model), random.Random(seed)  # noqa: S311  a story, not a secret


def summary(
    goal: str, *, done: Iterable[str], constraints: Iterable[str], files: Iterable[str], pending: Iterable[str], current: str
) -> str:
    """An agent's own summary, as it writes them."""

    def points(lines: Iterable[str]) -> str:
        return "\n".join(f"- {line}" for line in lines)

    return (
        f"## Goal\n{goal}\n\n## Constraints\n{points(constraints)}\n\n## Done\n{points(done)}\n\n"
        f"## Files\n{points(files)}\n\n## Pending\n{points(pending)}\n\n## Current work\n{current}\n"
    )


def flaky_retry() -> Transcript:
    """A day's bug hunt in a large window: calm, nothing compacted."""
    session, rng = started("flaky-retry", PAYMENTS, seed=11)
    session.title("Fix the flaky retry test in the payments worker")
    session.ask(
        "`test_retry_is_bounded` fails about once in twenty runs on the build machine, never here. "
        "Find out why. Don't add a sleep and don't mark it as flaky."
    )
    session.think("Once in twenty smells of a clock or of an order. The build machine has two cores, this one eight.")
    session.say("I run the test a hundred times first, on one core.", ends_message=False)
    session.call(
        "Bash",
        {"command": "taskset -c 0 pytest -q tests/test_retry.py -k bounded --count 100", "description": "Run the test a hundred times"},
        coloured_run(rng, PAYMENTS, 30),
        seconds=48,
    )
    session.say(
        "On one core it fails 6 times of 100. The retry delay is computed from the wall clock, and the test freezes only the monotonic one."
    )
    for _ in range(7):
        work.turn(session, rng, PAYMENTS, size=9)
    session.ask("Thank you. Write the commit message, please: what was wrong and how one would notice it again.")
    session.say(
        "```text\nCompute retry delays from the monotonic clock\n\nThe delay came from the wall clock, so a clock step between two attempts made it\n"
        "negative and the attempt ran at once. Seen as one failure in twenty runs on slow\nmachines. The test now moves both clocks.\n```"
    )
    return session


def session_store() -> Transcript:
    """Over its trigger in a small window, after one automatic compaction by the agent."""
    session, rng = started("session-store", SHOP, seed=23)
    session.title("Move the session store from memcached to Redis")
    session.ask(f"Move the shop's session store to Redis, with no visitor losing a cart. {FORBIDDEN} Keep the cookie format.")
    for _ in range(5):
        work.turn(session, rng, SHOP, size=14)
    session.ask("Go on with the dual writes.")
    session.say("I write to both stores behind a switch and compare what comes back.", ends_message=False)
    call = session.open_call("Read", {"file_path": f"{SHOP.root}/sessions/store.py"})
    call_row = session.last_row
    result_row = session.answer(call, listing(rng, SHOP, 6), seconds=1)
    session.compact(
        summary(
            "Move the session store of the shop from memcached to Redis without losing a cart.",
            constraints=(FORBIDDEN, "The cookie format stays as it is."),
            done=(
                "The codec round-trips every session of the sample (14,202 of 14,202).",
                "`store.py` has a Redis back end behind `SESSION_STORE`.",
            ),
            files=("sessions/store.py", "sessions/codec.py", "settings/cache.py", "tests/test_store.py"),
            pending=("Dual writes with comparison", "Switch reads per 5 % of visitors", "Remove memcached from the settings"),
            current="Adding dual writes to `sessions/store.py`; the file was just read again.",
        ),
        automatic=True,
        keep=(call_row, result_row),
    )
    session.say("Both stores are written now; differences are counted, not raised.", ends_message=False)
    work.change(session, rng, SHOP)
    work.run_tests(session, rng, SHOP)
    session.say("Dual writes are in and tested. Next is the comparison report.")
    while session.context_tokens < 43_500:
        work.turn(session, rng, SHOP, size=18)
    return session


def slow_partials() -> Transcript:
    """Much to fold, for the slow summariser: live progress and cancel can be watched on it."""
    session, rng = started("slow-partials", SHOP, seed=31, model="claude-opus-4-5")
    session.title("Split the checkout page into partials")
    session.ask(
        "The checkout template has 1,900 lines. Split it into partials, one per step, so that the page works without JavaScript. "
        "The texts must not change: they are approved by legal."
    )
    while session.context_tokens < 46_000:
        work.turn(session, rng, SHOP, size=12)
    return session


def streaming_importer() -> Transcript:
    """A week's work in one file of about 3,000 entries, compacted by the agent three times."""
    session, rng = started("streaming-importer", IMPORTER, seed=47)
    session.title("Rewrite the importer so that it streams")
    session.ask("The importer reads whole archives into memory: 4.1 GB for the June file. It must stay under 200 MB for any file.")
    for phase, target in enumerate((760, 1_520, 2_280, 3_020), 1):
        while session.record_count < target:
            work.turn(session, rng, IMPORTER, size=3)
        if phase == 4:
            break
        session.ask("/compact keep the memory numbers" if phase == 2 else "Let us stop here for today.")
        kept = session.say(f"Noted. Phase {phase} is complete; {rng.randint(120, 190)} MB at the highest on the June file.")
        session.compact(
            summary(
                "Make the importer stream: under 200 MB for any archive.",
                constraints=("Offsets are in bytes and must survive a restart.", "No line may be dropped in silence."),
                done=(
                    f"Phase {phase} of 4: {('lines', 'archives', 'batches')[phase - 1]} stream.",
                    f"Peak {rng.randint(120, 190)} MB on the June file.",
                ),
                files=IMPORTER.modules[: phase + 2],
                pending=("archives", "batches", "the problem report")[phase - 1 :],
                current="Nothing is open; the tests pass.",
            ),
            automatic=phase != 2,
            keep=(kept,),
            instructions="keep the memory numbers" if phase == 2 else "",
        )
    return session


def doubled_rows() -> Transcript:
    """Failing commands, and enough text that this console can fold it twice."""
    session, rng = started("doubled-rows", PAYMENTS, seed=59)
    session.title("Why does the nightly export double its rows?")
    session.ask(
        "Since 14 March the nightly export has every posting twice. Nothing may be deleted: the auditors need both copies. See ticket FIN-2207."
    )
    session.call(
        "Bash",
        {"command": "psql -p 5432 -c 'select count(*) from postings'", "description": "Count the rows"},
        "psql: error: connection refused",
        error=True,
    )
    session.say("The shared database refuses connections from here, as it should. I use the copy.", ends_message=False)
    session.call(
        "Bash",
        {"command": "psql -p 5433 -c 'select count(*) from postings'", "description": "Count the rows"},
        " count\n--------\n 884210\n(1 row)",
    )
    session.say("884,210 rows, against 442,105 in the ledger: exactly double.")
    for _ in range(4):
        work.turn(session, rng, PAYMENTS, size=12)
    session.call(
        "Bash",
        {"command": "make export DATE=2026-03-14", "description": "Run the export"},
        "make: *** [export] Error 137\nKilled",
        error=True,
        seconds=95,
    )
    session.say("The export was killed for its memory. I run it for one hour instead of one day.")
    while session.context_tokens < 29_500:
        work.turn(session, rng, PAYMENTS, size=12)
    return session


def two_checkpoints() -> Transcript:
    """Compacted twice in this console and set back once, so that all generations can be looked at."""
    session, rng = started("two-checkpoints", IMPORTER, seed=61)
    session.title("Resume an interrupted archive where it stopped")
    session.ask(
        "When the machine restarts in the middle of an archive, the importer starts again at zero. It must resume at the last whole batch."
    )
    while session.context_tokens < 31_000:
        work.turn(session, rng, IMPORTER, size=11)
    return session


def rewound() -> Transcript:
    """A person went back and asked differently: one branch is abandoned."""
    session, rng = started("dark-tokens", SHOP, seed=67)
    session.title("Add dark colours to the design tokens")
    session.ask("Add a dark scheme to the tokens. Contrast of text at least 4.5 : 1.")
    work.look(session, rng, SHOP, size=4)
    fork = session.say("There are 34 tokens, 11 of them used once. I would derive the dark ones by lightness.")
    session.ask("Then invert all of them.")
    session.say("I invert the lightness of all 34.", ends_message=False)
    work.change(session, rng, SHOP)
    session.say("Done, but 9 pairs fall below 4.5 : 1.")
    session.rewind(fork)
    session.ask("Choose the dark values by hand, and check each pair.")
    work.change(session, rng, SHOP)
    work.run_tests(session, rng, SHOP)
    session.say("All 21 pairs that occur on a page reach 4.5 : 1; the lowest is 4.62 : 1 (muted text on a raised surface).")
    return session


def damaged_file() -> Transcript:
    """A file that its disk and its writer treated badly: every problem is counted and kept."""
    session, rng = started("damaged-log", IMPORTER, seed=71)
    session.title("Index the problem report (recovered file)")
    session.ask("Make the problem report searchable by line and by kind.")
    work.turn(session, rng, IMPORTER, size=4)
    session.raw(b'{"type":"user","uuid":"broken-1","message":{"role":"user","content":"this line ends in the mid')
    session.raw(b"\0" * 64 + b'{"type":"tag","tag":"recovered","sessionId":"' + session.session_id.encode() + b'"}')
    session.plain({"type": "hologram-state", "frames": 12, "note": "a kind of record that nobody has documented"})
    session.raw(b'{"type":"mode","mode":"plan","sessionId":"a"}{"type":"mode","mode":"default","sessionId":"a"}')
    work.turn(session, rng, IMPORTER, size=4)
    session.raw(b"\xff\xfe not text at all")
    session.open_call("Bash", {"command": "make index", "description": "Build the index"})
    session.rewind("00000000-0000-4000-8000-00000000dead")
    session.ask("The machine went down. Are you still there?")
    session.say("I am. The index was not finished; the call before has no result, so I start it again.", ends_message=False)
    work.run_tests(session, rng, IMPORTER)
    session.say("The index is complete: 1,204 problems in 12 kinds.")
    return session
