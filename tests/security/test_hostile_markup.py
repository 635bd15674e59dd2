"""Hostile transcripts, imported for real: nothing of them becomes markup, on any page, whole or in part."""

import pytest
from django.conf import settings
from django.urls import reverse

from sessions_app.models import Entry, Session
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from tests.importing import ACTOR, imported
from tests.security import hostile
from tests.security.markup import violations
from tests.security.pages import pages_of, pages_of_entries

FRAGMENT = {"HX-Request": "true"}


def inspect(client, path: str, *, headers: dict[str, str] | None = None) -> str:
    answer = client.get(path, headers=headers or {})
    assert answer.status_code in {200, 404, 302}, f"{path} answered {answer.status_code}"
    if not answer.get("Content-Type", "").startswith("text/html"):
        assert answer["X-Content-Type-Options"] == "nosniff"
        return ""
    html = answer.content.decode()
    assert violations(html) == [], path
    assert settings.SECRET_KEY == "test" or settings.SECRET_KEY not in html
    return html


def fold(session: Session) -> None:
    """Compacts by force, so that the summary and the block are made of hostile text too."""
    run_compaction(request(actor=ACTOR, session=session, force=True, instructions=hostile.PAYLOADS["script tag"]).compaction.pk)


@pytest.mark.parametrize("names", hostile.groups(6), ids=lambda names: names[0])
def test_entries_are_inert_on_every_page_and_in_every_fragment(admin, client, names):
    session = imported(hostile.session_with(names, key=names[0]), window=12_000)
    fold(session)
    client.force_login(admin)
    for path in pages_of(session):
        inspect(client, path)
        inspect(client, path, headers=FRAGMENT)
    for path in pages_of_entries(session, limit=60):
        inspect(client, path, headers=FRAGMENT)


def test_titles_models_folders_and_branches_are_inert_in_the_list_and_on_the_page(admin, client):
    sessions = [imported(hostile.session_named(name)) for name in hostile.PAYLOADS]
    client.force_login(admin)
    for path in ("/", "/?q=owned", "/?sort=title"):
        inspect(client, path)
        inspect(client, path, headers=FRAGMENT)
    for session in sessions:
        inspect(client, reverse("session-detail", args=[session.pk]))
        inspect(client, reverse("session-raw", args=[session.pk]))


def test_what_a_person_types_into_a_filter_comes_back_as_text(admin, client):
    client.force_login(admin)
    for text in hostile.PAYLOADS.values():
        answer = client.get("/", {"q": text.encode("utf-8", "replace").decode()[:150]})
        assert violations(answer.content.decode()) == []


def test_pictures_are_served_only_as_pictures(admin, client):
    session = imported(hostile.session_with_pictures())
    client.force_login(admin)
    for path in pages_of(session):
        inspect(client, path)
    for entry in Entry.objects.filter(session=session):
        for position in range(4):
            answer = client.get(reverse("part-image", args=[session.pk, entry.index, position]))
            assert answer.status_code in {200, 404}
            if answer.status_code == 200:
                assert answer["Content-Type"] in {"image/png", "image/jpeg", "image/gif", "image/webp", "application/octet-stream"}
                assert answer["X-Content-Type-Options"] == "nosniff"


def test_deep_nesting_and_malformed_rows_are_survived_and_shown(admin, client):
    session = imported(hostile.session_that_nests())
    client.force_login(admin)
    for path in (*pages_of(session), *pages_of_entries(session, limit=20)):
        inspect(client, path)
    assert "Done." in client.get(reverse("session-detail", args=[session.pk])).content.decode()


def test_a_false_end_of_the_block_stays_inside_the_block(admin):
    session = imported(hostile.session_with(["false compaction", "false summary"], key="false"), window=12_000)
    fold(session)
    session.refresh_from_db()
    assert session.active_console is not None
    payload = session.active_console.segments.exclude(payload=None).get().payload["text"]
    assert payload.count("<compacted-history") == 1
    assert payload.count("</compacted-history>") == 1


def test_an_export_is_a_download_and_never_a_page(admin, client):
    session = imported(hostile.session_with(["script tag"], key="export"))
    client.force_login(admin)
    answer = client.get(reverse("session-export", args=[session.pk]))
    assert answer.status_code == 200
    assert answer["Content-Disposition"].startswith("attachment")
    assert not answer["Content-Type"].startswith("text/html")
