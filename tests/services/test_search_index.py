"""The search index: whatever came in by any way is found, nothing twice, and what is taken out is gone."""

import itertools
import threading

import pytest
from django.db import connection

from sessions_app.engine.entries import Entry, Part
from sessions_app.engine.terms import Kind, PartKind, Role
from sessions_app.models import SearchBlock, Session
from sessions_app.selectors.search import search_page
from sessions_app.selectors.search_query import parse_query
from sessions_app.selectors.search_sql import SearchFilters
from sessions_app.selectors.search_state import index_state, lagging_sessions
from sessions_app.services import search_index
from sessions_app.services.sweeper import sweep
from tests.services.compaction_scenes import PATIENCE_S
from tests.stored import append_entries, store_session

pytestmark = pytest.mark.django_db


def entry(index: int, text: str, **values) -> Entry:
    return Entry(index=index, role=Role.USER, kind=Kind.MESSAGE, parts=(Part(kind=PartKind.TEXT, text=text),), **values)


def found(text: str) -> list[int]:
    return sorted(hit.index for hit in search_page(parse_query(text), SearchFilters()).hits)


def test_what_was_stored_before_there_was_an_index_is_found_once_it_is_swept():
    store_session([entry(0, "the oldest carrier"), entry(1, "another one")])
    assert found("carrier") == []
    assert index_state().missing == 2
    assert sweep().indexed == 2
    assert found("carrier") == [0]
    assert sweep().indexed == 0


def test_entries_that_come_later_are_indexed_behind_those_that_are():
    session = store_session([entry(0, "first carrier")])
    search_index.index_sessions([session.pk])
    append_entries(session, [entry(1, "second carrier")])
    assert lagging_sessions() == [(session.pk, 1)]
    assert search_index.index_sessions([session.pk]) == 1
    assert found("carrier") == [0, 1]


def test_an_interrupted_run_goes_on_where_it_was():
    for name in "ab":
        store_session([entry(index, f"carrier {name} {index} " + "word " * 2_000) for index in range(100)])
    done = search_index.index_lagging(for_s=0)
    assert 0 < done < 200
    assert done + search_index.index_lagging() == 200
    assert index_held() == 200


def index_held() -> int:
    return sum(block.last_index - block.first_index + 1 for block in SearchBlock.objects.all())


def test_blocks_of_a_session_follow_each_other_without_a_gap():
    session = store_session([entry(index, f"carrier {index}") for index in range(150)])
    search_index.index_lagging()
    append_entries(session, [entry(index, f"carrier {index}") for index in range(150, 180)])
    search_index.index_lagging()
    blocks = list(SearchBlock.objects.filter(session=session).order_by("first_index").values_list("first_index", "last_index"))
    assert blocks[0][0] == 0
    assert blocks[-1][1] == 179
    assert all(before[1] + 1 == after[0] for before, after in itertools.pairwise(blocks))


def test_a_session_whose_import_did_not_end_is_neither_indexed_nor_found():
    session = store_session([entry(0, "half a carrier")], is_complete=False)
    assert search_index.index_lagging() == 0
    Session.objects.filter(pk=session.pk).update(is_complete=True)
    assert search_index.index_lagging() == 1


@pytest.mark.parametrize(
    "delete",
    [Session.delete, lambda session: Session.objects.filter(pk=session.pk).delete()],
    ids=["by itself", "by a query"],
)
def test_a_session_that_is_deleted_leaves_no_word_in_the_index(delete):
    kept = store_session([entry(0, "a shared carrier")])
    gone = store_session([entry(0, "the secret carrier"), entry(1, "x" * 40 + " of it")])
    search_index.index_lagging()
    delete(gone)
    assert [hit.session_id for hit in search_page(parse_query("carrier"), SearchFilters()).hits] == [kept.pk]
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            for table in ("search_words", "search_grams"):
                cursor.execute(f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")
            cursor.execute("SELECT count(*) FROM search_words WHERE search_words MATCH 'secret'")
        else:
            cursor.execute("SELECT count(*) FROM search_words WHERE words @@ to_tsquery('simple', 'secret')")
        assert cursor.fetchone() == (0,)


def test_filling_anew_gives_the_same_hits():
    store_session([entry(index, f"carrier {index}") for index in range(70)])
    search_index.index_lagging()
    before = found("carrier 6*")
    search_index.empty_index()
    assert found("carrier") == []
    search_index.index_lagging()
    assert found("carrier 6*") == before != []


@pytest.mark.django_db(transaction=True)
def test_two_that_index_at_once_index_each_entry_once():
    for name in range(6):
        store_session([entry(index, f"carrier {name} " + "word " * 500) for index in range(80)])
    done: list[int] = []

    def work() -> None:
        try:
            done.append(search_index.index_lagging())
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert len(done) == 2
    assert sum(done) + search_index.index_lagging() == 480
    assert index_held() == 480


def test_a_session_outlives_its_parent_and_is_still_found():
    parent = store_session([entry(0, "the parent's carrier")])
    child = store_session([entry(0, "the child's carrier")], parent=parent)
    search_index.index_lagging()
    parent.delete()
    child.refresh_from_db()
    assert child.parent is None
    assert [hit.session_id for hit in search_page(parse_query("carrier"), SearchFilters()).hits] == [child.pk]
