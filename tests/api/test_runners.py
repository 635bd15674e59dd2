"""Runners over the API."""

import pytest

from sessions_app.models import Runner
from tests.api.conftest import error_of
from tests.fakes.runner_server import RunnerServer

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_runner_is_added_once_listed_tested_changed_and_removed(as_admin):
    with RunnerServer() as server:
        told = {"name": "box", "base_url": server.url}
        first, second = (as_admin.post("/runners", told, Idempotency_Key="k") for _ in range(2))
        added = first.json()
        assert (first.status_code, second.json(), first["Location"]) == (201, added, f"/v1/runners/{added['id']}")
        assert (added["name"], added["health"], added["credential_variable"]) == ("box", "unknown", None)
        assert [row["id"] for row in as_admin.get("/runners").json()["data"]] == [added["id"]]
        assert as_admin.post("/runners/box/test").json()["health"] == "up"
        changed = as_admin.patch(f"/runners/{added['id']}", {"credential_variable": "RUNNER_TOKEN_BOX"}).json()
        assert (changed["credential_variable"], changed["name"], changed["health"]) == ("RUNNER_TOKEN_BOX", "box", "unknown")
    removed = as_admin.call("DELETE", "/runners/box")
    assert (removed.status_code, removed.json()["unbound"], Runner.objects.count()) == (200, 0, 0)
    assert as_admin.get("/runners/box").status_code == 404


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "a b"}, "name"),
        ({"base_url": "http://169.254.169.254"}, "base_url"),
        ({"base_url": "http://u:p@127.0.0.1"}, "base_url"),
        ({"credential_variable": "PALIMPSEST_SECRET_KEY"}, "credential_variable"),
    ],
)
def test_what_can_t_be_is_refused_by_its_field(as_admin, change, field):
    answer = as_admin.post("/runners", {"name": "box", "base_url": "http://127.0.0.1"} | change)
    assert (answer.status_code, error_of(answer)["field"], Runner.objects.count()) == (400, field, 0)


def test_only_admins_and_only_with_their_scope(as_support, admin):
    from tests.api.conftest import Api, token_of

    steering = Api(token_of(admin, "read", "ingest", "steer"))
    for api in (as_support, steering):
        for method, address, body in (
            ("GET", "/runners", None),
            ("POST", "/runners", {"name": "x", "base_url": "http://127.0.0.1"}),
            ("POST", "/runners/x/test", None),
            ("DELETE", "/runners/x", None),
        ):
            assert api.call(method, address, body).status_code == 403
    assert not Runner.objects.exists()
