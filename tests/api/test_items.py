"""The list of items: all that was ever said, whole, in order, however it is paged and filtered."""

import json
from pathlib import Path

import pytest

from sessions_app.engine.fates import fate_of
from sessions_app.engine.shapes import shape_of
from sessions_app.engine.terms import Fate, Kind, Role
from sessions_app.events import deferred
from sessions_app.models import Compaction, Event
from sessions_app.selectors import plans
from sessions_app.selectors.item_ids import item_id, place_of_item
from sessions_app.selectors.items import ItemType
from sessions_app.services import overrides
from sessions_app.services.turns.appending import Draft, append, text_part
from tests.api.conftest import TESTS, Api, error_of
from tests.api.scenes import compact, compacted_session, imported_file
from tests.services.compaction_scenes import grow, long_session

QUERY_COUNTS = json.loads((Path(__file__).resolve().parents[1] / "query_counts.json").read_text())


def items(api: Api, session, **query: object) -> list[dict]:
    address = f"/sessions/{session.pk}/items?" + "&".join(f"{name}={value}" for name, value in query.items())
    answer = api.get(address)
    assert answer.status_code == 200, answer.content
    return answer.json()["data"]


def paged(api: Api, session, limit: int, **query: object) -> list[dict]:
    """All items, page by page, by the cursors that the pages themselves name."""
    found: list[dict] = []
    cursor: dict[str, str] = {}
    while True:
        query_text = "&".join(f"{name}={value}" for name, value in (query | cursor | {"limit": limit}).items())
        page = api.get(f"/sessions/{session.pk}/items?{query_text}").json()
        assert len(page["data"]) <= limit
        if page["data"]:
            assert (page["first_id"], page["last_id"]) == (page["data"][0]["id"], page["data"][-1]["id"])
        found += page["data"]
        if not page["has_more"]:
            return found
        cursor = {"after": page["last_id"]}


def test_items_say_what_the_entries_say_in_their_order(as_operator):
    session, _ = compacted_session()
    chain = plans.load_chain(session)
    told = items(as_operator, session, limit=1000)
    assert [item["id"] for item in told] == list(dict.fromkeys(item["id"] for item in told))
    by_entry = {item["entry"]: item for item in told}
    entries = list(plans.load_entries(session.pk, whole=True))
    assert sorted(by_entry) == [entry.index for entry in entries]
    for entry in entries:
        item, fate = by_entry[entry.index], fate_of(shape_of(entry), chain)
        assert (item["fate"], item["generation"], item["tokens"]) == (fate.fate, fate.generation, entry.tokens)
        said = item.get("output") or item.get("arguments") or item.get("summary") or item["content"][0]["text"]
        assert said in {part.text for part in entry.parts} or item["type"] == "compaction"


@pytest.mark.parametrize("limit", [1, 7, 40])
@pytest.mark.parametrize("order", ["asc", "desc"])
def test_pages_together_are_the_whole_list(as_operator, limit, order):
    session = imported_file("anthropic_request.json")
    whole = items(as_operator, session, limit=1000)
    assert len(whole) > len({item["entry"] for item in whole}), "some entry should be several items"
    assert paged(as_operator, session, limit, order=order) == (whole if order == "asc" else whole[::-1])


def test_a_page_before_an_item_ends_with_the_one_in_front_of_it(as_operator):
    session = imported_file("anthropic_request.json")
    whole = items(as_operator, session, limit=1000)
    for place in range(1, len(whole)):
        assert items(as_operator, session, before=whole[place]["id"], limit=2) == whole[max(0, place - 2) : place]


def test_filters_leave_what_the_whole_list_has_of_it(as_operator):
    session, attempt = compacted_session(20)
    overrides.pin(actor=TESTS, session=session, index=4)
    overrides.exclude(actor=TESTS, session=session, index=session.entry_count - 3)
    whole = items(as_operator, session, limit=1000)
    for name, field, values in (
        ("type", "type", [*ItemType]), ("fate", "fate", [*Fate]), ("kind", "entry_kind", [*Kind]), ("role", "entry_role", [*Role]),
    ):  # fmt: skip
        for value in values:
            wanted = [item for item in whole if item[field] == value]
            assert paged(as_operator, session, 5, **{name: value}) == wanted, (name, value)
    assert {item["fate"] for item in whole} >= {"summarised", "verbatim", "display_only", "pinned", "excluded"}
    assert attempt.generation == 1


def test_every_type_of_item_can_be_asked_for_alone(as_operator):
    session = imported_file("anthropic_request.json")
    whole = items(as_operator, session, limit=1000)
    assert {item["type"] for item in whole} >= {"message", "function_call", "function_call_output", "reasoning"}
    for wanted in ItemType:
        assert items(as_operator, session, type=wanted) == [item for item in whole if item["type"] == wanted]


def test_a_history_is_read_also_where_its_view_is_broken(as_operator):
    session, attempt = compacted_session()
    attempt.segments.all().delete()
    assert {item["fate"] for item in items(as_operator, session)} == {None}
    answer = as_operator.get(f"/sessions/{session.pk}/items?fate=verbatim")
    assert (answer.status_code, error_of(answer)["code"]) == (409, "conflict")


def test_trims_and_summaries_are_told_apart(as_operator):
    session, _ = compacted_session()
    grow(session, 10)
    second = compact(session)
    Compaction.objects.filter(pk=second.pk).update(outcome="trimmed")
    whole = items(as_operator, session, limit=1000)
    assert {item["fate"] for item in whole} >= {"summarised", "trimmed"}
    for fate in ("summarised", "trimmed"):
        assert paged(as_operator, session, 7, fate=fate) == [item for item in whole if item["fate"] == fate]


def test_a_compaction_is_an_item_that_says_what_it_stands_for(as_operator):
    session, attempt = compacted_session()
    [item] = items(as_operator, session, type="compaction")
    assert (item["compaction_id"], item["compaction_generation"], item["lineage"]) == (str(attempt.pk), 1, "console")
    assert item["summary"] == attempt.summary
    assert item["token_count"] == attempt.tokens_after
    assert place_of_item(session, item["last_item_id"]) == (attempt.boundary_index - 1, 0)


@pytest.mark.parametrize("cursor", ["after", "before"])
def test_an_unknown_cursor_is_an_error_and_no_empty_page(as_operator, session, cursor):
    other = long_session(1, source_key="test:other")
    for named in ("nonsense", "item_" + "9" * 90, item_id(other.pk, 0), item_id(session.pk, 0)):
        answer = as_operator.get(f"/sessions/{session.pk}/items?{cursor}={named}")
        assert (answer.status_code, error_of(answer)["field"]) == (400, cursor)
    answer = as_operator.get(f"/sessions/{other.pk}/items?{cursor}={item_id(other.pk, other.entry_count)}")
    assert answer.status_code == 400


@pytest.mark.parametrize(
    ("name", "value"),
    [("limit", 0), ("limit", 1001), ("limit", "x"), ("order", "up"), ("fate", "gone"), ("type", "%00"), ("after", "x" * 201)],
)
def test_what_a_list_does_not_know_is_named(as_operator, session, name, value):
    answer = as_operator.get(f"/sessions/{session.pk}/items?{name}={value}")
    assert (answer.status_code, error_of(answer)["field"]) == (400, name)


def test_both_ends_at_once_are_refused(as_operator, session):
    answer = as_operator.get(f"/sessions/{session.pk}/items?after=a&before=b")
    assert (answer.status_code, error_of(answer)["field"]) == (400, "before")


def test_a_long_text_is_cut_unless_it_is_asked_for_whole(as_operator):
    session = long_session(1)
    text = "á long text; " * 2_000
    append(session, [Draft(role=Role.USER, kind=Kind.MESSAGE, parts=(text_part(text),), source_id="long")], actor=TESTS)
    [cut] = items(as_operator, session, order="desc", limit=1)
    [whole] = items(as_operator, session, order="desc", limit=1, whole="true")
    assert cut["content"][0]["truncated"] is True
    assert cut["content"][0]["chars"] == len(text)
    assert text.startswith(cut["content"][0]["text"])
    assert whole["content"][0] == {"type": "input_text", "text": text}


def test_a_read_is_written_down_as_a_page_does(as_operator, session):
    as_operator.get(f"/sessions/{session.pk}/items")
    deferred.flush()
    assert Event.objects.filter(type="session.viewed", target_id=str(session.pk)).count() == 1


def test_the_cost_of_a_page_does_not_grow_with_the_history(as_operator, django_assert_num_queries):
    for turns in (12, 120):
        session, _ = compacted_session(turns)
        as_operator.get(f"/sessions/{session.pk}/items")
        with django_assert_num_queries(QUERY_COUNTS["api items"]):
            as_operator.get(f"/sessions/{session.pk}/items?order=desc&limit=50")
