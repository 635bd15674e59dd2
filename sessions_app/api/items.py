"""`GET /v1/sessions/{id}/items`: the canonical history as flat items."""

import uuid
from collections.abc import Iterator
from itertools import islice
from typing import Any

from django.http import HttpRequest
from ninja import Query, Router

from sessions_app.api.auth import actor_of
from sessions_app.api.pagination import ListOut, PageQuery, list_of, unknown_cursor
from sessions_app.engine.entries import Entry, Part
from sessions_app.engine.terms import Fate, Kind, Lineage, PartKind, Role
from sessions_app.models import Session
from sessions_app.permissions import Action, access_session
from sessions_app.selectors.item_ids import UnknownItem, item_id, place_of_item
from sessions_app.selectors.items import Divider, ItemFilters, ItemType, JudgedEntry, dividers, walk
from sessions_app.services.access import record_view
from sessions_app.shapes import Shape

router = Router()

LEAST_READ, MOST_READ = 20, 200
"""Entries that one query reads."""


class ItemsQuery(PageQuery):
    """Filters, and whose view the fates are of. `whole`: long texts in full instead of their beginnings."""

    role: Role | None = None
    kind: Kind | None = None
    type: ItemType | None = None
    fate: Fate | None = None
    context: Lineage | None = None
    whole: bool = False


@router.get("/{uuid:session_id}/items", response=ListOut)
def list_items(request: HttpRequest, session_id: uuid.UUID, asked: Query[ItemsQuery]) -> dict[str, Any]:
    """All that was ever said, as items in their order; base64 payloads are named, not sent."""
    actor = actor_of(request)
    session = access_session(actor, session_id, Action.READ)
    found, has_more = _page(session, asked)
    record_view(actor=actor, session=session)
    return list_of(_with_dividers(session, found), has_more=has_more)


def _page(session: Session, asked: ItemsQuery) -> tuple[list[Shape], bool]:
    """The items of a page in the order that was asked for, and whether more lie beyond it."""
    named, is_before = asked.cursor()
    is_descending = asked.order == "desc"
    backwards = is_descending != is_before
    place: tuple[int, int] | None = None
    if named:
        try:
            place = place_of_item(session, named)
        except UnknownItem as error:
            raise unknown_cursor("before" if is_before else "after") from error
    start = place[0] if place else session.entry_count if backwards else 0
    filters = ItemFilters(role=asked.role, kind=asked.kind, type=asked.type, fate=asked.fate)
    at_once = max(LEAST_READ, min(asked.limit + 1, MOST_READ))
    entries = walk(session, filters, asked.context, start=start, backwards=backwards, at_once=at_once, whole=asked.whole)
    found = list(islice(_beyond(session.pk, entries, asked.type, place, backwards=backwards), asked.limit + 1))
    has_more = len(found) > asked.limit
    found = found[: asked.limit]
    return (found[::-1] if is_before else found), has_more


def _beyond(
    session_id: uuid.UUID, entries: Iterator[JudgedEntry], wanted: ItemType | None, place: tuple[int, int] | None, *, backwards: bool
) -> Iterator[Shape]:
    """The items of the entries on the far side of a place."""
    for judged in entries:
        items = [(number, item) for number, item in enumerate(items_of(session_id, judged)) if wanted is None or item["type"] == wanted]
        for number, item in reversed(items) if backwards else items:
            here = (judged.entry.index, number)
            if place is None or (here < place if backwards else here > place):
                yield item


def items_of(session_id: uuid.UUID, judged: JudgedEntry) -> list[Shape]:
    """An entry as one item, or as several where it holds calls, results or thoughts beside a text."""
    return [
        {"id": item_id(session_id, judged.entry.index, number), "object": "item"} | said | _shared(judged)
        for number, said in enumerate(list(_said(judged.entry)))  # whole: an image may still join the result before it
    ]


def _shared(judged: JudgedEntry) -> Shape:
    entry = judged.entry
    shape: Shape = {
        "status": "completed",
        "created_at": entry.timestamp or None,
        "entry": entry.index,
        "entry_role": entry.role.value,
        "entry_kind": entry.kind.value,
        "tokens": entry.tokens,
        "fate": judged.fate.fate.value if judged.fate else None,
        "generation": judged.fate.generation if judged.fate else None,
    }
    more = {"response_id": entry.message_key, "model": entry.model, "is_meta": entry.meta, "source_id": entry.source_id}
    return shape | {name: value for name, value in more.items() if value}


def _said(entry: Entry) -> Iterator[Shape]:
    """What is of the items' own, in the order of the entry's parts. Always one at least."""
    if entry.role is Role.NOTICE:
        yield _notice(entry)
        return
    content: list[Shape] = []
    output: Shape | None = None
    is_told = False
    for part in entry.parts:
        if output is not None and part.kind in (PartKind.IMAGE, PartKind.DOCUMENT) and part.call_id == output["call_id"]:
            output.setdefault("content", []).append(_content(entry, part))
        elif part.kind in (PartKind.TEXT, PartKind.IMAGE, PartKind.DOCUMENT):
            content.append(_content(entry, part))
        else:
            if content:
                yield _message(entry, content)
                content = []
            said = _of_part(part)
            output = said if part.kind is PartKind.RESULT else output
            is_told = True
            yield said
    if content or not is_told:
        yield _message(entry, content)


def _notice(entry: Entry) -> Shape:
    text = "\n\n".join(part.text for part in entry.parts)
    if entry.kind is Kind.COMPACTED:
        return {"type": ItemType.COMPACTION, "summary": text}
    if entry.kind is Kind.ERROR:
        return {"type": ItemType.ERROR, "source": "execution", "message": text}
    return {"type": ItemType.NOTICE, "text": text}


def _message(entry: Entry, content: list[Shape]) -> Shape:
    return {"type": ItemType.MESSAGE, "role": entry.role.value, "content": content}


def _of_part(part: Part) -> Shape:
    if part.kind is PartKind.CALL:
        return {"type": ItemType.FUNCTION_CALL, "name": part.name, "arguments": part.text, "call_id": part.call_id} | _cut(part)
    if part.kind is PartKind.RESULT:
        error = {"is_error": True} if part.is_error else {}
        return {"type": ItemType.FUNCTION_CALL_OUTPUT, "call_id": part.call_id, "output": part.text} | error | _cut(part)
    if part.encrypted:
        return {"type": ItemType.REASONING, "summary": [], "encrypted": True}
    return {"type": ItemType.REASONING, "summary": [], "content": [{"type": "reasoning_text", "text": part.text}]} | _cut(part)


def _content(entry: Entry, part: Part) -> Shape:
    if part.kind is PartKind.TEXT:
        return {"type": "output_text" if entry.role is Role.ASSISTANT else "input_text", "text": part.text} | _cut(part)
    kind = "input_image" if part.kind is PartKind.IMAGE else "input_file"
    size = {"bytes": part.size_bytes, "width": part.width, "height": part.height}
    said = {"type": kind, "media_type": part.media_type or None, "data": f"[{part.media_type or 'binary'} content omitted]"}
    return said | {name: value for name, value in size.items() if value}


def _cut(part: Part) -> Shape:
    """What tells that a text is only the beginning of a longer one."""
    return {"truncated": True, "chars": part.chars} if part.chars and part.blob else {}


def _with_dividers(session: Session, items: list[Shape]) -> list[Shape]:
    """Items of compactions with what each came to; one query, where there are any."""
    places = [item["entry"] for item in items if item["type"] == ItemType.COMPACTION]
    found = dividers(session, places) if places else {}
    return [item | _compaction(session, found[item["entry"]]) if item["entry"] in found else item for item in items]


def _compaction(session: Session, divider: Divider) -> Shape:
    last = divider.boundary_index - 1 if divider.boundary_index else None
    reported = divider.reported if isinstance(divider.reported, dict) else {}
    return reported | {
        "summary": divider.summary or reported.get("summary", ""),
        "last_item_id": reported.get("last_item_id") or (item_id(session.pk, last) if last is not None else None),
        "token_count": reported.get("token_count", divider.tokens_after),
        "tokens_before": divider.tokens_before,
        "model": reported.get("model") or divider.model or None,
        "compaction_id": divider.id,
        "compaction_generation": divider.generation,
        "lineage": divider.lineage,
    }
