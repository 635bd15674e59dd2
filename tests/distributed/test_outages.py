"""Whatever is killed in the middle of a compaction: nothing is lost, doubled or stuck, and the page tells the true state."""

import json
import signal
import uuid
from collections.abc import Callable, Iterator

import pytest

from tests.distributed.deployment import POSTGRES, RABBITMQ, REDIS, Deployment, Person, until
from tests.readers.rows import encode, prompt

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not (POSTGRES and REDIS), reason="PostgreSQL's and Redis' servers are not installed here."),
]
needs_rabbitmq = pytest.mark.skipif(not RABBITMQ.exists(), reason="RabbitMQ is not installed here.")
OTHER = "Move the session store from memcached to Redis"
POOLS = ["prefork", "threads"]
ENTRIES = 30_000
ENTRIES_OF = """SELECT 1 FROM sessions_app_entry AS entry JOIN sessions_app_session AS session ON session.id = entry.session_id
WHERE session.source_key LIKE %s"""


@pytest.fixture(scope="module")
def filled() -> Iterator[Deployment]:
    """PostgreSQL and Redis with the demo in them, for the tests of this module one after the other."""
    made = Deployment()
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture
def deployment(filled) -> Iterator[Deployment]:
    """No process runs yet."""
    yield filled
    filled.end_processes()


def is_over(deployment: Deployment, session: str) -> Callable[[], bool]:
    return lambda: deployment.attempts(session)[0][0] in {"completed", "failed", "cancelled", "skipped"}


def assert_whole(deployment: Deployment, session: str) -> None:
    """Each generation is one, with a divider of its own; nobody holds the session; every chain of events verifies."""
    made = "SELECT generation FROM sessions_app_compaction WHERE session_id = %s AND lineage = 'console' AND generation IS NOT NULL"
    generations = [row[0] for row in deployment.query(made, session)]
    assert len(generations) == len(set(generations)) > 0
    dividers = """SELECT count(DISTINCT entry.index) FROM sessions_app_compaction AS made JOIN sessions_app_entry AS entry
    ON entry.session_id = made.session_id AND entry.index = made.divider_index AND entry.kind = 'compacted'
    WHERE made.session_id = %s AND made.lineage = 'console' AND made.generation IS NOT NULL"""
    assert deployment.query(dividers, session) == [(len(generations),)]
    assert deployment.query("SELECT count(*) FROM sessions_app_lease WHERE session_id = %s AND token IS NOT NULL", session) == [(0,)]
    indexes = "SELECT count(*), count(DISTINCT index), max(index) FROM sessions_app_entry WHERE session_id = %s"
    count, distinct, last = deployment.query(indexes, session)[0]
    assert count == distinct == last + 1
    deployment.run("verify_events")  # fails where a chain is broken


def ask(deployment: Deployment, ana: Person, session: str) -> None:
    """Asks for a compaction of the whole history."""
    in_force = "SELECT 1 FROM sessions_app_session WHERE id = %s AND active_console_id IS NOT NULL"
    if deployment.query(in_force, session):
        ana.post(f"/sessions/{session}/revert/", generation="0")
    ana.post(f"/sessions/{session}/compact/")


def begin(deployment: Deployment, ana: Person, session: str) -> None:
    """The same, and waits until a summary is being made."""
    ask(deployment, ana, session)
    until(lambda: deployment.attempts(session)[0] == ("running", "", "summarise"))


def page_of(session: str) -> str:
    return f"/sessions/{session}/panel/"


def test_a_killed_web_process_leaves_the_run_alone_and_another_one_shows_it(deployment):
    session = deployment.held_session()
    first, second = deployment.web(), deployment.web()
    deployment.worker()
    ana = deployment.person(first)
    begin(deployment, ana, session)
    first.kill()
    ana.turn_to(second)
    assert "summarise</span>" in ana.get(page_of(session))
    deployment.model.let()
    until(is_over(deployment, session))
    assert deployment.attempts(session)[0][0] == "completed"
    assert "ended: committed" in ana.get(page_of(session))
    assert_whole(deployment, session)


def test_a_killed_worker_s_attempt_ends_with_a_sentence_and_the_next_one_succeeds(deployment):
    session = deployment.held_session()
    web, first = deployment.web(), deployment.worker()
    ana = deployment.person(web)
    begin(deployment, ana, session)
    first.kill()
    deployment.lapse()
    deployment.worker()
    until(is_over(deployment, session))
    assert deployment.attempts(session)[0][:2] == ("failed", "worker_lost")
    assert "The process that ran it stopped. Nothing was changed." in ana.get(page_of(session))
    deployment.model.let()
    ask(deployment, ana, session)
    until(is_over(deployment, session))
    assert deployment.attempts(session)[0][0] == "completed"
    assert_whole(deployment, session)


def outlives_its_broker(deployment: Deployment) -> None:
    """What runs is not disturbed; what is asked for meanwhile is stored, said to be so, and done when the broker is back."""
    session = deployment.held_session()
    other = str(deployment.query("SELECT id FROM sessions_app_session WHERE title = %s", OTHER)[0][0])
    web = deployment.web()
    deployment.worker()
    ana = deployment.person(web)
    begin(deployment, ana, session)
    deployment.broker.kill()
    assert "summarise</span>" in ana.get(page_of(session))
    ana.post(f"/sessions/{other}/compact/")
    assert deployment.attempts(other)[0][0] == "requested"
    assert "requested</span>" in ana.get(page_of(other))
    deployment.model.let()
    until(is_over(deployment, session))
    assert deployment.attempts(session)[0][0] == "completed"
    assert "ended: committed" in ana.get(page_of(session))
    deployment.broker.start()
    # Half a minute in which nobody took it, shortened.
    deployment.change("UPDATE sessions_app_compaction SET heartbeat_at = now() - interval '1 minute' WHERE status = 'requested'")
    until(is_over(deployment, other))
    assert deployment.attempts(other)[0][0] in {"completed", "skipped"}
    until(lambda: json.loads(ana.get("/healthz"))["status"] == "ok")
    for each in (session, other):
        assert_whole(deployment, each)


def test_redis_may_go_away_and_come_back_empty(deployment):
    outlives_its_broker(deployment)


@needs_rabbitmq
def test_rabbitmq_may_be_killed_and_started_again():
    made = Deployment(has_rabbitmq=True)
    try:
        outlives_its_broker(made.start())
    finally:
        made.stop()


@pytest.mark.parametrize("pool", POOLS)
def test_postgresql_may_end_at_once_and_come_back(deployment, pool):
    session = deployment.held_session()
    web = deployment.web()
    deployment.worker(pool)
    ana = deployment.person(web)
    begin(deployment, ana, session)
    deployment.postgres.kill(signal.SIGQUIT)
    deployment.postgres.start()
    deployment.model.let()
    until(is_over(deployment, session))
    status, reason, _ = deployment.attempts(session)[0]
    assert (status, reason) == ("completed", "") or status == "failed"
    page = ana.get(page_of(session))
    assert ("ended: committed" in page) if status == "completed" else ("Nothing was changed" in page)
    ask(deployment, ana, session)
    until(is_over(deployment, session))
    assert deployment.attempts(session)[0][0] == "completed"
    assert_whole(deployment, session)


def upload(deployment: Deployment, ana: Person, own: str = "") -> tuple[str, str]:
    """Uploads a long transcript and waits until some of it is stored. Returns the run, and the transcript's own name."""
    own = own or str(uuid.uuid4())
    rows = [prompt(f"p{number}", f"p{number - 1}" if number else None, f"{number} " + "x" * 3_000) for number in range(ENTRIES)]
    ana.upload("/imports/", "transcripts", f"{own}.jsonl", encode([row | {"sessionId": own} for row in rows]))
    run = str(deployment.query("SELECT id FROM sessions_app_importrun ORDER BY requested_at DESC LIMIT 1")[0][0])
    until(lambda: deployment.query(f"{ENTRIES_OF} AND index > 100 LIMIT 1", f"%{own}%"))
    return run, own


def import_of(deployment: Deployment, run: str) -> str:
    return str(deployment.query("SELECT state FROM sessions_app_importrun WHERE id = %s", run)[0][0])


def assert_imported_once(deployment: Deployment, own: str) -> None:
    columns = "count(*), count(DISTINCT entry.index), max(entry.index), bool_and(session.is_complete)"
    assert deployment.query(ENTRIES_OF.replace("1", columns, 1), f"%{own}%") == [(ENTRIES, ENTRIES, ENTRIES - 1, True)]
    deployment.run("verify_events")


def test_a_killed_worker_s_import_is_taken_up_again_and_only_the_rest_is_read(deployment):
    web, first = deployment.web(), deployment.worker()
    ana = deployment.person(web)
    run, own = upload(deployment, ana)
    first.kill()
    assert import_of(deployment, run) == "running"
    kept = deployment.query(ENTRIES_OF.replace("1", "count(*)", 1), f"%{own}%")[0][0]
    # Two minutes of silence, shortened.
    deployment.change("UPDATE sessions_app_importrun SET heartbeat_at = heartbeat_at - interval '3 minutes' WHERE id = %s", run)
    deployment.run("sweep")
    assert import_of(deployment, run) == "queued"
    deployment.worker()
    until(lambda: import_of(deployment, run) == "completed")
    assert_imported_once(deployment, own)
    assert deployment.query("SELECT counts->>'entries' FROM sessions_app_importrun WHERE id = %s", run) == [(str(ENTRIES - kept),)]


def test_an_import_goes_on_when_postgresql_ended_at_once_and_came_back(deployment):
    web = deployment.web()
    deployment.worker()
    ana = deployment.person(web)
    run, own = upload(deployment, ana)
    deployment.postgres.kill(signal.SIGQUIT)
    deployment.postgres.start()
    until(lambda: import_of(deployment, run) == "completed")
    assert_imported_once(deployment, own)
    assert "30,000" in ana.get(f"/imports/{run}/")
