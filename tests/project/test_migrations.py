"""Every migration can be taken back and made again, on data that it concerns, and nothing of it is lost that was there before."""

import pytest
from django.core.management import call_command

from sessions_app.engine.terms import Status
from sessions_app.events.verify import verify_all
from sessions_app.models import Entry, Event, Session
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from sessions_app.services.doctor.examination import examine
from tests.services.compaction_scenes import fresh, history_digest, long_session, view_hash

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("queue_of_nobody")]

OLDEST = "0005"
"""The oldest form that was ever in use."""


@pytest.fixture
def newest_again():
    """Whatever happens: the next tests need all tables."""
    yield
    call_command("migrate", verbosity=0)


def test_a_filled_database_goes_back_to_the_oldest_form_and_comes_again(newest_again, support_actor):
    session = long_session()
    compaction = request(actor=support_actor, session=session).compaction
    run_compaction(compaction.pk)
    assert fresh(compaction).status == Status.COMPLETED
    before = (history_digest(session), view_hash(fresh(session)), Event.objects.count(), Entry.objects.count())
    call_command("migrate", "sessions_app", OLDEST, verbosity=0)
    call_command("migrate", verbosity=0)
    session = Session.objects.get(pk=session.pk)
    assert (history_digest(session), view_hash(session), Event.objects.count(), Entry.objects.count()) == before
    assert verify_all()[1] == []
    examined = examine(session.pk)
    assert examined is not None
    assert [finding for finding in examined.findings if not finding.is_note] == []
