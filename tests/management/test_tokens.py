"""`create_token`, `tokens` and `revoke_token`."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.models import AccessToken, Event
from tests.api.conftest import Api
from tests.management.commands import run
from tests.views.conftest import make_session

__all__ = ["make_session"]


def test_a_token_is_made_shown_once_listed_and_revoked(support, make_session):
    out, err, _ = run("create_token", "ci", "--user", "ana", "--scope", "read,steer", "--expires", "90d")
    secret = out.strip()
    assert "shown only now" in err
    assert Api(secret).get(f"/sessions/{make_session().pk}").status_code == 200
    token = AccessToken.objects.get()
    assert token.scopes == ["read", "steer"]
    assert timedelta(days=89) < token.expires_at - datetime.now(UTC) < timedelta(days=91)
    listed, _, _ = run("tokens")
    assert "read,steer" in listed
    assert secret not in listed + str(run("tokens", "--json"))
    run("revoke_token", "ci")
    assert Api(secret).get("/sessions").status_code == 401
    assert json.loads(run("tokens", "--json")[0])["data"][0]["state"] == "revoked"
    assert list(Event.objects.filter(type__startswith="token.").order_by("pk").values_list("type", flat=True)) == [
        "token.created", "token.revoked",
    ]  # fmt: skip


def test_json_holds_the_token(support):
    made = json.loads(run("create_token", "ci", "--user", "ana", "--scope", "read", "--scope", "ingest", "--json")[0])
    assert (made["scopes"], made["user"], made["expires_at"]) == (["read", "ingest"], "ana", None)
    assert made["token"].startswith("plm_")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"--user": "nobody"}, "user"),
        ({"--scope": "all"}, "scopes"),
        ({"--expires": "2020-01-01"}, "expires"),
        ({"--scope": ","}, "scopes"),
    ],
)
def test_what_makes_no_token_is_named(support, change, field):
    options = {"--user": "ana", "--scope": "read"} | change
    with pytest.raises(CommandFailure, match="No token was made") as failure:
        run("create_token", "ci", *(word for pair in options.items() for word in pair))
    assert (failure.value.end, failure.value.field) == (Exit.USAGE, field)
    assert not AccessToken.objects.exists()


def test_a_token_that_is_not_there_is_not_found(db):
    with pytest.raises(CommandFailure, match="Nothing was changed") as failure:
        run("revoke_token", "ci")
    assert failure.value.end == Exit.NOT_FOUND


@pytest.mark.parametrize("call", [("create_token", "ci", "--user", "ana", "--scope", "read"), ("tokens",), ("revoke_token", "ci")])
def test_tokens_are_for_admins(support, call):
    with pytest.raises(CommandFailure) as failure:
        run(*call, "--as", "ana")
    assert failure.value.end == Exit.REFUSED
