"""The session page: two histories side by side, at addresses that can be kept, for those who may read."""

import uuid

import msgspec
import pytest
from django.urls import reverse

from sessions_app.engine.entries import Checkpoint, Part, Segment, SyntheticMessage
from sessions_app.engine.terms import Kind, Lineage, PartKind, Role, SegmentKind
from sessions_app.models import Blob, Event, Session, SessionRelation
from sessions_app.models import Entry as EntryRow
from sessions_app.rendering.entry_parts import MOST_PARTS
from sessions_app.rendering.model_view import MOST_PARTS as MOST_SENT
from sessions_app.services.compactions.request import request
from sessions_app.services.compactions.run import run_compaction
from tests.engine.histories import Story, entry, text
from tests.services.compaction_scenes import fresh, long_session
from tests.stored import store_checkpoint, store_session

pytestmark = pytest.mark.django_db

FRAGMENT = {"HX-Request": "true"}
PNG = b"\x89PNG\r\n\x1a\nrest"


@pytest.fixture
def folded(monkeypatch, support_actor) -> Session:
    """A session that was compacted once by ana."""
    monkeypatch.setattr("sessions_app.queue.enqueue", lambda *task: None)
    session = long_session()
    run_compaction(request(actor=support_actor, session=session).compaction.pk)
    return fresh(session)


def page(client, session, query: str = "", **headers: str) -> str:
    answer = client.get(f"{reverse('session-detail', args=[session.pk])}{query}", headers=headers)
    assert answer.status_code == 200
    return answer.content.decode()


def test_the_page_shows_what_was_said_and_whose_context_compacting_changes(operator_page):
    html = page(operator_page, store_session(Story().user("How many moons?").says("Two *moons*.").entries, title="Moons of Mars"))
    assert "How many moons?" in html
    assert "<em>moons</em>" in html
    assert "imported: compacting changes this console&#x27;s view only" in html


def test_split_shows_folded_entries_as_lines_beside_the_block_and_the_boundary(operator_page, folded):
    html = page(operator_page, folded)
    assert "split--split" in html
    assert "Compacted block, generation 1" in html
    assert "Boundary of #1" in html
    assert "summarised #1" in html
    assert "Next step" in html
    assert "same text" in html


def test_canonical_shows_the_divider_with_who_and_how_much_and_a_way_back(operator_page, folded):
    html = page(operator_page, folded, "?layout=canonical")
    assert "Compacted #1" in html
    assert "manual by ana" in html
    assert f'href="{reverse("compaction-revert", args=[folded.pk])}?generation=0">Revert' in html


def test_the_model_view_holds_the_block_and_is_legal(operator_page, folded):
    html = page(operator_page, folded, "?layout=view")
    assert "synthetic" in html
    assert "what is shown is legal for a provider" in html


def test_the_view_before_the_compaction_can_still_be_seen(operator_page, folded):
    html = page(operator_page, folded, "?layout=split&generation=0")
    assert "summarised" not in html.partition('id="history"')[2]
    assert "as if nothing were folded" in html


@pytest.mark.parametrize(
    "query", ["?layout=sideways", "?detail=some", "?at=-1", "?at=x", "?generation=9", "?context=mine", "?start=99999999999999"]
)
def test_an_address_that_means_nothing_is_400_in_words(operator_page, folded, query):
    answer = operator_page.get(f"{reverse('session-detail', args=[folded.pk])}{query}")
    assert answer.status_code == 400


def test_a_place_beyond_the_end_says_that_nothing_is_there(operator_page, folded):
    assert "No entry here" in page(operator_page, folded, "?layout=canonical&start=100000")


def test_a_permalink_leads_to_the_entry_in_the_canonical_history(operator_page, folded):
    answer = operator_page.get(reverse("entry-detail", args=[folded.pk, 7]))
    assert answer.status_code == 302
    assert answer["Location"].endswith("?layout=canonical&at=7#e7")
    assert 'id="e7"' in operator_page.get(answer["Location"].partition("#")[0]).content.decode()


def test_a_part_is_a_part_for_htmx_and_a_page_for_everybody_else(operator_page, folded):
    url = reverse("session-entries", args=[folded.pk])
    part = operator_page.get(url, headers=FRAGMENT).content.decode()
    assert "<html" not in part
    assert 'id="history"' in part
    assert 'id="session-tabs"' in part
    assert "<html" in operator_page.get(url).content.decode()


def test_a_loader_gets_one_more_window_and_nothing_else(operator_page):
    session = store_session(Story().extend(entry(n, Role.USER, Kind.MESSAGE, text(f"Message {n}")) for n in range(150)).entries)
    url = f"{reverse('session-entries', args=[session.pk])}?layout=canonical&before=90"
    part = operator_page.get(url, headers=FRAGMENT | {"HX-Target": "load-earlier"}).content.decode()
    assert "Message 89" in part
    assert "Message 30" in part
    assert "Message 90" not in part
    assert 'id="history"' not in part
    assert "before=30" in part
    assert "load-later" not in part


def test_long_output_is_cut_with_its_size_and_readable_in_place(operator_page):
    lines = "\n".join(f"line {number}" for number in range(500))
    session = store_session(Story().user().calls("c").result("c", words=lines).entries)
    html = page(operator_page, session)
    assert "Show all 500 lines" in html
    assert "line 499" not in html
    whole = operator_page.get(reverse("part-text", args=[session.pk, 2, 0]), headers=FRAGMENT).content.decode()
    assert "line 499" in whole


def test_a_text_in_a_blob_is_read_in_stretches(operator_page):
    whole = "abcdefghi\n" * 30_000
    Blob.objects.create(sha256="f" * 64, media_type="text/plain", size=len(whole), data=whole.encode())
    part = Part(kind=PartKind.RESULT, text=whole[:100], blob="f" * 64, chars=len(whole), call_id="c")
    session = store_session([entry(0, Role.USER, Kind.RESULT, part)])
    url = reverse("part-text", args=[session.pk, 0, 0])
    assert "start=200000" in operator_page.get(url).content.decode()
    assert "start=" not in operator_page.get(f"{url}?start=200000", headers=FRAGMENT).content.decode()
    assert operator_page.get(f"{url}?start=x").status_code == 400
    assert operator_page.get(reverse("part-text", args=[session.pk, 0, 5])).status_code == 404


@pytest.mark.parametrize(("media_type", "status"), [("image/png", 200), ("image/svg+xml", 404), ("text/html", 404)])
def test_only_plain_pictures_are_served_and_they_can_do_nothing(operator_page, media_type, status):
    Blob.objects.create(sha256="a" * 64, media_type=media_type, size=len(PNG), data=PNG)
    image = Part(kind=PartKind.IMAGE, blob="a" * 64, media_type=media_type, size_bytes=len(PNG))
    session = store_session([entry(0, Role.USER, Kind.MESSAGE, image)])
    answer = operator_page.get(reverse("part-image", args=[session.pk, 0, 0]))
    assert answer.status_code == status
    if status == 200:
        assert answer["Content-Type"] == media_type
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert "sandbox" in answer["Content-Security-Policy"]
        assert answer["Content-Disposition"].startswith("inline")
    else:
        assert "<img" not in page(operator_page, session)


def test_a_call_leads_to_the_entries_of_its_sub_agent(operator_page):
    session = store_session(Story().user().calls("c").result("c").entries)
    child_entries = Story().user("Look into it").says("Found it").entries
    store_session(child_entries, title="Scout", parent=session, relation=SessionRelation.SUB_AGENT, parent_call_id="c")
    assert "2 entries of the sub-agent" in page(operator_page, session)
    part = operator_page.get(reverse("session-children", args=[session.pk, "c"]), headers=FRAGMENT).content.decode()
    assert "Look into it" in part
    assert operator_page.get(reverse("session-children", args=[session.pk, "d"])).status_code == 404


def test_reading_is_written_down_once(operator_page, folded):
    page(operator_page, folded)
    page(operator_page, folded)
    assert Event.objects.filter(type="session.viewed", target_id=str(folded.pk)).count() == 1


def test_the_page_names_a_cursor_that_is_not_newer_than_what_it_shows(operator_page, folded):
    newest = Event.objects.filter(stream=f"session:{folded.pk}").order_by("-seq").first().seq
    html = page(operator_page, folded)
    assert f"/ws/sessions/{folded.pk}/?after={newest}" in html
    assert f'data-seq="{newest}"' in html


def test_what_a_socket_sends_does_not_depend_on_who_looks(client, operator, support, folded):
    parts = []
    for user in (operator, support):
        client.force_login(user)
        html = page(client, folded)
        parts.append(html[html.index('<div id="gauge"') : html.index('<div id="compaction-panel"')])
        assert ("may-not-steer" in html) == (user == operator)
    assert parts[0] == parts[1]


def test_who_is_in_no_group_finds_nothing(client, outsider, folded):
    client.force_login(outsider)
    assert client.get(reverse("session-detail", args=[folded.pk])).status_code == 404


def test_a_session_that_is_not_there_is_404(operator_page):
    assert operator_page.get(reverse("session-detail", args=[uuid.uuid4()])).status_code == 404


def test_a_turn_of_the_outline_leads_to_its_place_in_the_same_layout(operator_page, folded):
    html = page(operator_page, folded, "?layout=split&generation=1&start=4")
    assert f'href="{reverse("session-detail", args=[folded.pk])}?layout=split&amp;generation=1&amp;at=0#e0"' in html


def test_a_page_whose_address_names_no_layout_follows_the_default_when_it_fetches_itself_anew(operator_page, folded):
    html = page(operator_page, folded)
    assert f'hx-get="{reverse("session-entries", args=[folded.pk])}" data-follows="history"' in html
    named = page(operator_page, folded, "?layout=canonical")
    assert f'hx-get="{reverse("session-entries", args=[folded.pk])}?layout=canonical" data-follows="history"' in named


def test_a_further_window_has_the_layout_of_the_page_that_asks_for_it(operator_page, folded):
    assert "?layout=split&amp;before=" in page(operator_page, folded, "?at=40")


@pytest.mark.parametrize("query", ["", "?layout=canonical", "?layout=view"])
def test_a_page_costs_fourteen_queries_at_the_most_whatever_it_shows(operator_page, folded, query, django_assert_max_num_queries):
    page(operator_page, folded, query)  # the first look at a session is written down
    with django_assert_max_num_queries(14):
        page(operator_page, folded, query)


def test_what_an_agent_says_along_with_a_call_is_text_on_both_sides(operator_page):
    parts = (Part(kind=PartKind.TEXT, text="I *list* them."), Part(kind=PartKind.CALL, text='{"command":"ls"}', name="Bash", call_id="c1"))
    session = store_session(Story().user("List.").add(Role.ASSISTANT, Kind.CALL, *parts).result("c1").entries)
    html = page(operator_page, session, "?layout=split")
    assert "I <em>list</em> them." in html
    assert "I *list* them.\nBash" in html


def test_a_session_of_no_project_stands_below_the_list_alone(operator_page):
    html = page(operator_page, store_session(Story().user().entries))
    assert f'<a class="crumb" href="{reverse("session-list")}">Sessions</a>' in html
    assert "unfiled" not in html


def test_a_page_writes_its_numbers_by_filters_alone(operator_page, folded, monkeypatch):
    monkeypatch.setattr("django.utils.formats.number_format", lambda *_, **__: 1 / 0)
    assert "Compacted block, generation 1" in page(operator_page, folded)


def test_lines_that_nobody_counted_are_not_told(operator_page):
    blob = Blob.objects.create(sha256="b" * 64, data=b"x\n" * 60_000, size=120_000)
    part = Part(kind=PartKind.RESULT, text="x\n" * 20, call_id="c", blob=blob.pk, chars=120_000)
    story = Story().user().calls("c").add(Role.TOOL, Kind.RESULT, part)
    html = page(operator_page, store_session(story.entries))
    assert "Show the whole output" in html
    assert "120,000 characters" in html
    assert "all 21 lines" not in html


def test_beside_a_system_prompt_that_stays_what_follows_it_is_folded_all_the_same(operator_page):
    session = store_session(Story().add(Role.SYSTEM, Kind.MESSAGE, text("Be brief.")).user("First").says("One").user("Last").entries)
    block = Segment(kind=SegmentKind.SYNTHETIC, payload=SyntheticMessage(role=Role.USER, text="## Next step\nGo on."))
    ranges = (Segment(kind=SegmentKind.RANGE, first=0, last=0), block, Segment(kind=SegmentKind.RANGE, first=3))
    store_checkpoint(session, Checkpoint(generation=1, lineage=Lineage.CONSOLE, segments=ranges, boundary_index=3))
    html = page(operator_page, session)
    assert html.count("entry--line") == 2
    assert html.count("same text") == 2
    assert "Compacted block, generation 1" in html


def test_the_block_in_the_model_view_leads_to_the_entries_that_it_names(operator_page, folded):
    html = page(operator_page, folded, "?layout=view")
    assert f'<a class="ref" href="{reverse("entry-detail", args=[folded.pk, 0])}">#0</a>' in html


def test_a_call_that_is_carried_with_its_result_is_shown_once(operator_page):
    session = store_session(Story().user().calls("c").result("c", words="the only result").says().user("Last").says().entries)
    block = Segment(kind=SegmentKind.SYNTHETIC, payload=SyntheticMessage(role=Role.USER, text="## Next step\nGo on."))
    carried = tuple(Segment(kind=SegmentKind.ENTRY, first=index) for index in (1, 2))
    plan = (block, *carried, Segment(kind=SegmentKind.RANGE, first=4))
    store_checkpoint(session, Checkpoint(generation=1, lineage=Lineage.CONSOLE, segments=plan, boundary_index=4))
    html = page(operator_page, session)
    assert (html.count("carried, from 1"), html.count("carried, from 2")) == (1, 1)


MANY = 3_000


@pytest.fixture
def many_calls() -> Session:
    """A session in which one message makes thousands of calls, whose results are one row; of them number 7 is an error."""
    calls = [Part(kind=PartKind.CALL, name="Bash", call_id=f"c{number}", text=f'{{"command": "echo {number}"}}') for number in range(MANY)]
    results = [Part(kind=PartKind.RESULT, call_id=f"c{number}", text=f"out {number}", is_error=number == 7) for number in range(MANY)]
    story = Story().user("Many at once").add(Role.ASSISTANT, Kind.CALL, *calls).add(Role.TOOL, Kind.RESULT, *results).says("Done.")
    return store_session(story.entries)


@pytest.mark.parametrize("layout", ["canonical", "split"])
def test_of_thousands_of_calls_in_one_message_a_page_shows_the_first_and_leads_to_the_rest(operator_page, many_calls, layout):
    html = page(operator_page, many_calls, f"?layout={layout}")
    assert html.count('class="call__head"') == MOST_PARTS
    assert html.count("out 7<") == 1
    assert html.count("is-failed") == 1
    assert f"{MANY - MOST_PARTS:,} more parts of this entry" in html
    rest = operator_page.get(f"{reverse('entry-parts', args=[many_calls.pk, 1])}?start={MANY - 3}", headers=FRAGMENT).content.decode()
    assert rest.count('class="call__head"') == 3
    assert f"out {MANY - 1}<" in rest
    assert "more part" not in rest
    assert "<html" in operator_page.get(f"{reverse('entry-parts', args=[many_calls.pk, 1])}?start=50").content.decode()
    assert operator_page.get(reverse("entry-parts", args=[many_calls.pk, 99])).status_code == 404


def test_the_model_view_says_how_many_parts_of_a_message_it_leaves_out(operator_page, many_calls):
    html = page(operator_page, many_calls, "?layout=view")
    assert html.count(f"{MANY - MOST_SENT:,} more parts, sent but not shown here") == 2
    assert "synthetic" not in html


def test_a_time_that_cant_be_true_is_shown_and_said_so(operator_page):
    entries = Story().user("When?").says("Now.").entries
    session = store_session([msgspec.structs.replace(one, timestamp="9999-12-31T23:59:59Z") for one in entries])
    assert "can't be true" not in page(operator_page, session)
    EntryRow.objects.filter(session=session, index=0).update(annex={"time_in_doubt": True})
    html = page(operator_page, session)
    assert html.count("9999-12-31T23:59:59Z: this time can't be true") == 1
    assert "23:59:59 ?" in html
