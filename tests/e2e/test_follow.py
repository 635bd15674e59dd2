"""A page that is told often: its parts fetch themselves at most four times a second, and the last news is on them."""

from itertools import pairwise

from sessions_app.events import log
from sessions_app.events.actors import system_actor
from sessions_app.events.types import EventType
from tests.e2e.watching import comes_true
from tests.services.compaction_scenes import long_session

TELLS = """
window.tells = [];
document.body.addEventListener("palimpsest:changed", () => window.tells.push(performance.now()));
"""
GAP_MS = 240  # 250 by a clock of whole milliseconds, as a timer keeps it that may be late and never early


def test_parts_of_a_page_fetch_themselves_four_times_a_second_at_most_and_show_the_last_news(open_as, in_thread, operator):
    session = in_thread(long_session)
    page = open_as(operator)
    page.goto(f"/sessions/{session.pk}/events/")
    page.get_by_text("Live", exact=True).wait_for()
    page.evaluate(TELLS)

    def say() -> int:
        return log.append(log.session_stream(session.pk), EventType.BREAKER_RESET, actor=system_actor("test")).seq

    for _ in range(12):
        last = in_thread(say)
        comes_true(page, f"Number(document.getElementById('live-cursor').dataset.seq) >= {last}")
    comes_true(page, f"document.querySelectorAll('#events tbody tr').length === {last}")
    tells = page.evaluate("window.tells")
    assert len(tells) >= 2
    assert all(later - earlier >= GAP_MS for earlier, later in pairwise(tells))
