"""JSON that others wrote: every text is read or refused in one way, and no fact is lost to what stands beside it."""

import contextlib
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sessions_app.engine.extractors import call_facts, decode_arguments, result_facts
from sessions_app.engine.flush_model import UnreadableAnswer, read_answer
from sessions_app.engine.foreign_json import NotJson, decode

DEEP = 100_000
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_what_is_json_is_read_as_it_stands(value):
    text = json.dumps(value, ensure_ascii=False)
    assert decode(text) == decode(text.encode()) == decode(json.dumps(value)) == value


@given(st.text(st.characters(codec=None)) | st.binary())
@example(b"\xed")
@example(b'{"a": "\xed')
def test_any_other_text_is_refused_in_one_way(text):
    with contextlib.suppress(NotJson):
        decode(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": "\ud83d"}', {"a": "\ufffd"}),
        (r'{"a": "\ud83d"}', {"a": "\ufffd"}),
        (r'{"a": "\ud83d\ude00"}', {"a": "😀"}),
        ('{"a": "\ud83d\ude00"}', {"a": "😀"}),
        (b'{"a": "\xed\xa0\xbd"}', {"a": "\ufffd"}),
        (b'{"a": "\xed\x95\x9c"}', {"a": "한"}),
    ],
)
def test_half_a_character_is_read_as_what_can_be_stored(text, value):
    assert decode(text) == value


@pytest.mark.parametrize("text", ['{"a":' * DEEP, "[" * DEEP + "]" * DEEP, '{"\ud83d":' * DEEP])
def test_what_is_nested_too_deeply_is_refused(text):
    with pytest.raises(NotJson):
        decode(text)


@pytest.mark.parametrize("text", ['{"a":' * DEEP, '{"command": "\ud83d"}', '{"command": "\ud83d", x', "{", "\ud83d", ""])
def test_facts_of_a_call_and_of_its_result_are_taken_from_any_text(text):
    for name in ("Bash", "exec_command", "shell", "apply_patch", "somebody_elses"):
        call_facts(name, text)
        result_facts(name, text, is_error=True)
    decode_arguments(text)


def test_a_command_with_half_a_character_is_still_a_command():
    assert call_facts("Bash", r'{"command": "echo \ud83d > out.txt"}').command == "echo \ufffd > out.txt"


def test_an_answer_that_is_nested_too_deeply_is_unreadable():
    with pytest.raises(UnreadableAnswer):
        read_answer("[" * DEEP + "]" * DEEP, None)
