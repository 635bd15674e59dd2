"""The body of an entry as HTML, made once and kept by what it says, not by when it was asked for."""

import hashlib
import uuid

import msgspec
import orjson
from django.core.cache import cache
from django.utils.safestring import SafeString, mark_safe

from sessions_app.engine.entries import Part
from sessions_app.rendering.entry_parts import part_views
from sessions_app.rendering.templates import rendered
from sessions_app.selectors.history_window import Detail, HistoryItem

RENDERER_VERSION = 6
"""Part of every key: raise it when the markup of an entry changes."""

KEEP_S = 24 * 3600
_ENCODER = msgspec.json.Encoder()


def bodies(session_id: uuid.UUID, items: tuple[HistoryItem, ...], detail: Detail) -> dict[int, SafeString]:
    """The bodies of some entries by index. What is in the cache is not rendered again."""
    keys = {item.index: _key(session_id, item, detail) for item in items}
    known = cache.get_many(keys.values())
    made: dict[str, str] = {}
    found: dict[int, SafeString] = {}
    for item in items:
        html = known.get(keys[item.index])
        if html is None:
            html = made[keys[item.index]] = str(_body(session_id, item, detail))
        found[item.index] = mark_safe(html)  # noqa: S308  a template rendered it, with escaping
    if made:
        cache.set_many(made, KEEP_S)
    return found


def _body(session_id: uuid.UUID, item: HistoryItem, detail: Detail) -> SafeString:
    return rendered("components/entry_body.html", body_context(session_id, item, detail))


def body_context(session_id: uuid.UUID, item: HistoryItem, detail: Detail, start: int = 0) -> dict[str, object]:
    """What the template of a body is filled with, from the part `start` on."""
    views, more = part_views(session_id, item, detail, start)
    return {"views": views, "more": more, "item": item, "shows_output": detail is Detail.EVERYTHING}


def _key(session_id: uuid.UUID, item: HistoryItem, detail: Detail) -> str:
    """Names everything that the body depends on: what the entry and its results say, where they stand, how much is shown."""
    said = hashlib.blake2b(digest_size=20)
    said.update(_ENCODER.encode([_said(item), *(_said(result) for result in item.results)]))
    said.update(orjson.dumps([[str(agent.id), agent.title, agent.entry_count, agent.tokens] for agent in item.sub_agents]))
    return f"entry:{RENDERER_VERSION}:{session_id}:{detail.value}:{said.hexdigest()}"


def _said(item: HistoryItem) -> tuple[int, str, str, bool, bool, bool, int, tuple[Part, ...], dict[str, object]]:
    entry = item.entry
    return (entry.index, entry.role, entry.kind, entry.meta, item.is_error, item.has_record, entry.tokens, entry.parts, item.annex)
