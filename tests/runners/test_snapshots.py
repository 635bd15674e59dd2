"""A reported context without the bytes of its images and files."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.runners.snapshots import TooDeep, without_payloads

BYTES = "iVBORw0KGgo" * 50
PNG = "[image/png content omitted from the compaction snapshot]"
PDF = PNG.replace("image/png", "application/pdf")
BINARY = "[binary content omitted from the compaction snapshot]"


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": BYTES}}, ("source", "data", PNG)),
        ({"type": "document", "source": {"type": "base64", "data": BYTES}}, ("source", "data", BINARY)),
        ({"type": "image", "data": BYTES, "mimeType": "image/png"}, (None, "data", PNG)),
        ({"type": "image", "data": BYTES}, (None, "data", BINARY)),
        ({"type": "input_image", "image_url": f"data:image/png;base64,{BYTES}"}, (None, "image_url", PNG)),
        ({"type": "image_url", "image_url": {"url": f"data:image/png;charset=x;base64,{BYTES}"}}, ("image_url", "url", PNG)),
        ({"type": "file", "file": {"file_data": f"data:application/pdf;base64,{BYTES}"}}, ("file", "file_data", PDF)),
        ({"inlineData": {"mimeType": "image/png", "data": BYTES}}, ("inlineData", "data", PNG)),
        ({"type": "input_audio", "input_audio": {"data": BYTES, "format": "wav"}}, ("input_audio", "data", BINARY)),
        ({"type": "image", "source": {"media_type": "x[y]\n", "data": BYTES}}, ("source", "data", BINARY)),
    ],
)  # fmt: skip
def test_payloads_of_every_shape_give_way_to_a_marker_with_their_type(told, kept):
    before = copy.deepcopy(told)
    made = without_payloads({"role": "user", "content": [{"type": "tool_result", "content": [told]}]})
    block = made["content"][0]["content"][0]
    place, name, marker = kept
    assert (block[place] if place else block)[name] == marker
    assert told == before
    assert without_payloads(made) == made
    assert BYTES not in str(made)


def test_texts_and_all_else_stay_as_they_are():
    told = {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "data:image/png;base64,AAAA is how it begins"},
            {"type": "tool_use", "id": "t1", "input": {"data": "name,age\nana,7", "path": "a.csv"}},
            {"type": "image", "source": {"type": "file", "file_id": "file_1", "filename": "a.png", "media_type": "image/png"}},
            {"type": "image", "data": ""},
        ],
    }
    assert without_payloads(told) == told


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["type", "data", "source", "text", "media_type", "url", "x"]) | st.text(max_size=3), inner, max_size=4
        )
    ),
    max_leaves=20,
)


@given(JSON)
def test_done_twice_it_changes_nothing_more(value):
    before = copy.deepcopy(value)
    made = without_payloads(value)
    assert value == before
    assert without_payloads(made) == made


def test_what_is_nested_beyond_sense_is_refused():
    value: object = "x"
    for _ in range(500):
        value = [value]
    with pytest.raises(TooDeep):
        without_payloads(value)
