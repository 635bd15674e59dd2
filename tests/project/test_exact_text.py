"""What PostgreSQL refuses is stored in an encoding that loses nothing and mixes nothing up."""

import json

from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from project.postgresql import exact_text
from sessions_app.models import Compaction, Session
from tests.stored import store_session

HARD = st.sampled_from(["\0", "\\", "\\u0000", "\ud800", "\udfff", exact_text.ZERO, exact_text.ESCAPE, "\U00100000", "é", "u0000"])
TEXTS = st.lists(st.one_of(HARD, st.text(max_size=4)), max_size=8).map("".join)


@given(TEXTS)
def test_every_text_comes_back_and_what_is_stored_is_text(text):
    stored = exact_text.encode(text)
    assert b"\0" not in stored
    stored.decode()  # else the server refuses it
    assert exact_text.decode(stored) == text


def test_an_empty_text_and_an_ordinary_one_are_stored_as_they_are():
    assert [exact_text.encode(text) for text in ("", "naïve \N{ROCKET}")] == [b"", "naïve \N{ROCKET}".encode()]


@given(TEXTS, TEXTS)
def test_two_texts_are_equal_where_their_encodings_are(one, other):
    assert (one == other) == (exact_text.encode(one) == exact_text.encode(other))


@given(TEXTS)
def test_every_document_comes_back_and_holds_nothing_that_a_look_into_it_fails_on(text):
    document = json.dumps({"text": text})
    stored = exact_text.encode_json(document)
    assert "\\u0000" not in stored.decode().replace("\\\\", "")
    assert exact_text.decode_json(stored) == document


def test_hard_texts_survive_the_database_in_columns_and_documents_and_are_found_again(db):
    hard = 'a\0b\\u0000 "\U0010fffe\U0010ffff'
    session = store_session(title=hard, labels=[hard, 1e16, -0.0, {"b": 1, "a": 2}])
    found = Session.objects.get(title=hard)
    assert (found.pk, found.title, found.labels) == (session.pk, hard, [hard, 1e16, 0.0, {"b": 1, "a": 2}])
    assert json.dumps(found.labels) == json.dumps([hard, 1e16, -0.0, {"b": 1, "a": 2}])


def test_a_look_into_a_document_finds_what_it_holds(db):
    session = store_session()
    common = {"session": session, "lineage": "console", "trigger": "manual", "requested_at": session.last_activity_at, "status": "failed"}
    Compaction.objects.create(attempt=1, detail={"word": "a\0b"}, **common)
    Compaction.objects.create(attempt=2, detail={"word": "other"}, **common)
    assert [row.attempt for row in Compaction.objects.filter(detail__word="other")] == [2]


def test_titles_are_in_the_order_of_their_bytes_and_no_database_cuts_or_refuses_a_long_one(db):
    titles = ["Zebra", "apple", "Äpfel", "_", "x" * 400]
    for title in titles:
        store_session(title=title)
    assert list(Session.objects.order_by("title").values_list("title", flat=True)) == sorted(titles), connection.vendor
