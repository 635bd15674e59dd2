"""Formats beside each other: each fixture is read by one reader alone."""

from pathlib import Path

import pytest

from sessions_app.readers.detect import HEAD_BYTES, READERS

FIXTURES = sorted(path for path in (Path(__file__).resolve().parents[1] / "data").rglob("*") if path.is_file())


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.name[:60])
def test_each_fixture_is_known_to_one_reader_alone(path):
    head = path.read_bytes()[:HEAD_BYTES]
    assert len([reader.name for reader in READERS if reader.sniff(head)]) == 1
