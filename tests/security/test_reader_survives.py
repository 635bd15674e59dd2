"""Whatever stands in a row, the reader goes on: it yields every byte, and never an error."""

import copy
import io
import json
import random
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessions_app.demo import other_stories
from sessions_app.readers.detect import reader_for

ROWS = [
    json.loads(line)
    for story in (other_stories.pricing_pictures(), other_stories.vector_index(), other_stories.permissions_review()[0])
    for line in story.render(datetime(2026, 11, 30, tzinfo=UTC)).splitlines()
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20) | st.just("\ud800"),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["type", "text", "id", "content", "uuids", "x"]), inner, max_size=4)
    ),
    max_leaves=8,
)


def places(value: object, at: tuple = ()) -> list[tuple]:
    found = [at] if at else []
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        found += places(child, (*at, key))
    return found


def put(row: dict, place: tuple, value: object) -> None:
    target = row
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = value


def read(source: bytes) -> list:
    reader = reader_for(source[:4096])
    assert reader is not None
    reading = reader.read(io.BytesIO(source), path="x.jsonl", cancelled=lambda: False)
    records = list(reading)
    reading.facts(), reading.child_sessions(), reading.checkpoints(), reading.off_branch(), reading.report()
    return records


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32), values=st.lists(JSON, min_size=1, max_size=12))
def test_any_value_in_any_field_is_survived_and_no_byte_is_lost(seed, values):
    rng = random.Random(seed)
    rows = copy.deepcopy(ROWS)
    for value in values:
        row = rng.choice(rows[2:])
        put(row, rng.choice(places(row) or [("type",)]), value)
    source = b"\n".join(json.dumps(row).encode() for row in rows) + b"\n"
    records = read(source)
    assert b"".join(record.raw for record in records) == source


@pytest.mark.parametrize("kind", [[], {}, None, 7])
def test_a_type_that_is_no_word_makes_a_file_neither_fail_nor_ours(kind):
    rows = [{**row, "type": kind} for row in ROWS]
    assert reader_for(b"\n".join(json.dumps(row).encode() for row in rows[:6])) is None
    assert len(read(b"\n".join(json.dumps(row).encode() for row in [*ROWS, *rows]) + b"\n")) == 2 * len(ROWS)


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32), cuts=st.lists(st.integers(0, 200_000), max_size=8), noise=st.binary(max_size=40))
def test_damage_at_any_byte_is_survived_and_no_byte_is_lost(seed, cuts, noise):
    rng = random.Random(seed)
    head = b"\n".join(json.dumps(row).encode() for row in ROWS[:6]) + b"\n"
    tail = bytearray(b"\n".join(json.dumps(row).encode() for row in ROWS[6:20]) + b"\n")
    for cut in cuts:
        at = cut % len(tail)
        tail[at : at + rng.randint(0, 30)] = noise
    source = head + bytes(tail)
    assert b"".join(record.raw for record in read(source)) == source
