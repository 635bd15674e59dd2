"""The ledger: one page of attempts, and sums over all of them that compare like with like."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.engine.terms import Lineage
from sessions_app.selectors.compactions_page import attempt_detail, ledger_page
from tests.selectors.test_history import plan, told
from tests.stored import store_checkpoint, store_session

pytestmark = pytest.mark.django_db


def test_what_was_folded_away_is_summed_where_both_sizes_are_known_and_of_one_scope():
    session = store_session(told(20).entries)
    sizes = [
        (900, "view", 300, "view"),
        (900, "whole_request", 300, "view"),
        (900, "view", None, ""),
        (700, "view", 600, "view"),
        (5, "", 4, ""),
    ]
    for generation, (before, before_scope, after, after_scope) in enumerate(sizes, 1):
        scopes = {"tokens_before_scope": before_scope, "tokens_after_scope": after_scope}
        store_checkpoint(session, plan(generation * 6, generation), tokens_before=before, tokens_after=after, **scopes)
    page = ledger_page(session)
    assert (page.committed, page.saved) == (5, 700)


def test_a_session_without_sizes_says_nothing_of_them():
    session = store_session(told(2).entries)
    assert (ledger_page(session).committed, ledger_page(session).saved) == (0, None)
    store_checkpoint(session, plan(6, lineage=Lineage.AGENT))
    assert (ledger_page(session).committed, ledger_page(session).saved) == (1, None)


def test_the_ledger_and_an_attempt_cost_as_many_queries_whatever_came_before():
    counts = []
    for generations in (2, 30):
        session = store_session(told(40).entries)
        parent = None
        for generation in range(1, generations + 1):
            parent = store_checkpoint(session, plan(generation * 6, generation), parent=parent)
        with CaptureQueriesContext(connection) as queries:
            ledger_page(session)
            detail = attempt_detail(session, parent.pk)
        counts.append(len(queries))
        assert detail.revert_to == generations - 1
    assert counts[0] == counts[1] <= 6
