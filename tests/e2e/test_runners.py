"""A session whose runner never answered, in a browser: what follows is chosen on its page."""

import pytest
from django.urls import reverse

from sessions_app.engine.terms import Status
from sessions_app.models import Compaction
from sessions_app.services.runners import table
from tests.fakes.runner_server import Reply, RunnerServer
from tests.runners.scenes import TESTS, bound_session, compacted
from tests.services.compaction_scenes import wait_until


@pytest.fixture
def undecided(in_thread):
    def make():
        with RunnerServer(Reply(breaks=True)) as server:
            session = bound_session(server, external_id="conv-7")
            compacted(session)
            table.test(actor=TESTS, runner=session.runner)
            return session

    return in_thread(make)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_tells_what_is_not_known_and_the_choice_is_carried_out(open_as, support, in_thread, check_access, undecided, scheme):
    page = open_as(support, scheme=scheme)
    page.goto(reverse("session-detail", args=[undecided.pk]))
    page.get_by_text("carried out compaction a1 is not known").wait_for()
    assert page.get_by_text("Cannot compact").first.is_visible()
    check_access(page)
    page.get_by_role("button", name="Compact this console's view").click()
    in_thread(lambda: wait_until(lambda: Compaction.objects.filter(session=undecided, status=Status.COMPLETED).exists()))
    page.get_by_text("entries folded").first.wait_for()
    assert page.get_by_text("carried out compaction").count() == 0


def test_the_pages_of_runners_are_usable_on_a_phone(open_as, admin, check_access, undecided):
    page = open_as(admin)
    page.set_viewport_size({"width": 390, "height": 844})
    for address in (
        reverse("runner-list"),
        reverse("runner-detail", args=[undecided.runner_id]),
        reverse("session-bind", args=[undecided.pk]),
    ):
        page.goto(address)
        check_access(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_label("Runner").select_option("")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("bind to a runner").first.wait_for(state="attached")
