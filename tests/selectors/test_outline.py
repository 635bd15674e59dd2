"""Where one is in a long history: turns near the window, and a map that stays small."""

import pytest

from sessions_app.selectors.history import HistoryOptions, history_page
from sessions_app.selectors.outline import MAP_HEIGHT, MAX_MARKS, TURNS_EACH_WAY, minimap, outline
from tests.engine.histories import Story
from tests.selectors.test_history import plan, told
from tests.stored import store_checkpoint, store_session

pytestmark = pytest.mark.django_db


def test_the_outline_names_the_turns_around_the_window_and_says_when_there_are_more():
    session = store_session(told(150).entries)
    shown = outline(session.pk, history_page(session, HistoryOptions(at=450)))
    assert len(shown.turns) == 2 * TURNS_EACH_WAY
    assert shown.is_part
    assert next(turn for turn in shown.turns if turn.is_here).text == "Question 75"


def test_the_outline_marks_where_folded_turns_begin_and_end():
    session = store_session(told(20).entries)
    store_checkpoint(session, plan(60))
    shown = outline(session.pk, history_page(session, HistoryOptions()))
    assert [(turn.index, turn.mark) for turn in shown.turns if turn.mark] == [(0, "summarised #1"), (60, "boundary")]


def test_a_turn_is_named_by_what_was_said_whatever_signs_it_holds():
    session = store_session(Story().user('She said "no" \\ and\nleft: é 😀').user("x" * 5_000).entries)
    texts = [turn.text for turn in outline(session.pk, history_page(session, HistoryOptions())).turns]
    assert texts[0] == 'She said "no" \\ and left: é 😀'
    assert texts[1].startswith("xxx")
    assert texts[1].endswith("…")


def test_the_map_covers_the_whole_history_and_stays_small():
    session = store_session(told(300).entries)
    shown = minimap(session, history_page(session, HistoryOptions(at=900)))
    assert len(shown.marks) <= MAX_MARKS
    assert shown.marks[0].y == 0
    assert shown.marks[-1].y + shown.marks[-1].height == pytest.approx(MAP_HEIGHT, abs=5)
    assert 0 < shown.here_y < MAP_HEIGHT


def test_a_history_that_fits_the_window_needs_no_map():
    session = store_session(told(2).entries)
    assert minimap(session, history_page(session, HistoryOptions())) is None
