"""Sessions to read: imported, compacted, pinned, with all kinds of parts."""

from pathlib import Path

from sessions_app.models import Compaction, Session
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from sessions_app.services.imports import import_paths
from tests.api.conftest import TESTS
from tests.services.compaction_scenes import long_session

DATA = Path(__file__).resolve().parents[1] / "data"


def compact(session: Session, **options: object) -> Compaction:
    """Compacts at once, in this thread."""
    session.refresh_from_db()
    attempt = request(actor=TESTS, session=session, **options).compaction
    run_compaction(attempt.pk)
    attempt.refresh_from_db()
    session.refresh_from_db()
    return attempt


def compacted_session(turns: int = 12) -> tuple[Session, Compaction]:
    session = long_session(turns)
    return session, compact(session)


def imported_file(name: str) -> Session:
    import_paths(actor=TESTS, paths=[DATA / name])
    return Session.objects.latest("created_at")
