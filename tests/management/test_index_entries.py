"""`manage.py index_entries`: what no index holds yet is found afterwards, and an index can be made anew."""

import pytest

from sessions_app.models import SearchBlock
from sessions_app.selectors.search import search_page
from sessions_app.selectors.search_query import parse_query
from sessions_app.selectors.search_sql import SearchFilters
from sessions_app.services import search_index
from tests.management.commands import run
from tests.services.compaction_scenes import long_session

pytestmark = pytest.mark.django_db(transaction=True)


def found(text: str) -> int:
    return len(search_page(parse_query(text), SearchFilters()).hits)


def test_what_is_not_indexed_is_indexed_and_the_second_time_there_is_nothing_left():
    search_index.empty_index()  # a database that is emptied for the next test keeps it
    session = long_session()
    assert not SearchBlock.objects.exists()
    assert not found("build")
    out, _, _ = run("index_entries")
    assert out == f"{session.entry_count} entries of 1 sessions were indexed; nothing is left to do.\n"
    before = found("build")
    assert before
    assert run("index_entries")[0] == "0 entries of 0 sessions were indexed; nothing is left to do.\n"
    assert run("index_entries", anew=True)[0] == out
    assert found("build") == before
