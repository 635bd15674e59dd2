"""Rows of a source: what can't be taken apart is told so, and stays as it was read."""

import msgspec
import pytest

from sessions_app.writers.json_rows import fields_of, value_of

DEEP = 100_000


@pytest.mark.parametrize("raw", [b'{"a":' * DEEP, b'{"a":' + b"[" * DEEP, b'{"\xed\xa0\xbd":' * DEEP, b"[1]", b"", b'{"a":1'])
def test_bytes_that_are_no_object_are_no_fields(raw):
    assert fields_of(raw) is None


def test_a_value_that_is_nested_too_deeply_is_none():
    assert value_of({"a": msgspec.Raw(b"[" * DEEP + b"]" * DEEP)}, "a") is None
