"""Every migration can be taken back and made again, on data that it concerns, and nothing of it is lost that was there before."""

import pytest
from django.core.management import call_command
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import AddField

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

FIRST_SO = "0018"
"""From here on an upgrade may go on beside processes of the version before."""


def test_a_process_of_the_version_before_can_leave_out_what_a_migration_adds():
    """While an upgrade goes on, it still writes: a column must be null or be filled by the database."""
    added = [
        (f"{name}: {operation.model_name}.{operation.name}", operation.field)
        for (app, name), migration in MigrationLoader(None).disk_migrations.items()
        if app == "sessions_app" and name > FIRST_SO
        for operation in migration.operations
        if isinstance(operation, AddField)
    ]
    assert added
    assert [name for name, field in added if not (field.null or field.has_db_default())] == []


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
