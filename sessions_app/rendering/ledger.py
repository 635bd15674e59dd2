"""An attempt of the ledger, opened: its summary by section and what an event says in one line."""

import uuid
from dataclasses import dataclass

from django.utils.safestring import SafeString

from sessions_app.events.types import label_of
from sessions_app.models import Event, EventResult
from sessions_app.rendering.block_html import SectionView, section_views
from sessions_app.rendering.diffs import diff_html, diff_of
from sessions_app.rendering.plain import first_line
from sessions_app.selectors.compactions_page import AttemptDetail, Comparison

MAX_SECTION_CHARS = 60_000
_NOTHING: tuple[object, ...] = (None, "", 0, False, [], {})
_SAID_ELSEWHERE = ("event", "event_chain", "user_visible")
_TONES: dict[str, str] = {EventResult.ALLOWED: "good", EventResult.REFUSED: "warn", EventResult.FAILED: "bad"}


@dataclass(frozen=True)
class EventLine:
    """One event in a log: when, what, and the facts of its payload."""

    seq: int
    at: str
    type: str
    label: str
    actor: str
    role: str
    result: str
    tone: str
    facts: str
    compaction_id: uuid.UUID | None


@dataclass(frozen=True)
class DetailView:
    """`block`: the sections that the block adds to the summary; `summary` those of the summary itself."""

    summary: tuple[SectionView, ...]
    block: tuple[SectionView, ...]
    diff: SafeString  # the summary against that of the checkpoint that it was built on; empty without one
    added: int
    removed: int
    events: tuple[EventLine, ...]


def detail_view(detail: AttemptDetail) -> DetailView:
    """The attempt's texts as sections that fold."""
    summary = section_views(detail.summary, limit=MAX_SECTION_CHARS) if detail.summary else ()
    titles = {section.title for section in summary}
    block = section_views(detail.block, limit=MAX_SECTION_CHARS) if detail.block else ()
    diff = diff_of(detail.parent_summary, detail.summary) if detail.parent_summary and detail.summary else None
    return DetailView(
        diff=diff_html(diff, label="The summary against the one before") if diff and diff.lines else SafeString(""),
        added=diff.added if diff else 0,
        removed=diff.removed if diff else 0,
        summary=summary,
        block=tuple(section for section in block if section.title not in titles),
        events=tuple(event_line(event) for event in detail.events),
    )


def compared_summaries(comparison: Comparison) -> tuple[SafeString, int, int]:
    """What the second summary says otherwise than the first, with the lines added and removed; empty where they are the same."""
    diff = diff_of(comparison.one.summary, comparison.other.summary)
    return (diff_html(diff, label="The two summaries") if diff.lines else SafeString(""), diff.added, diff.removed)


def event_line(event: Event) -> EventLine:
    """Facts of the payload in the order in which they were written down; empty ones are left out."""
    facts = [fact for fact in (facts_of(event), event.reason) if fact]
    return EventLine(
        seq=event.seq,
        at=event.at,
        type=event.type,
        label=label_of(event.type),
        actor=event.actor_name or event.actor_kind,
        role=event.actor_role,
        result=event.result,
        tone=_TONES.get(event.result, ""),
        facts=first_line(" · ".join(facts), 400),
        compaction_id=event.compaction_id,
    )


def facts_of(event: Event) -> str:
    """What the payload says, in the order in which it was written down; what is empty or said elsewhere is left out."""
    payload = event.payload if isinstance(event.payload, dict) else {}
    facts = [
        f"{key.replace('_', ' ')} {_words_of(value)}"
        for key, value in _chunks_as_one(payload).items()
        if value not in _NOTHING and key not in _SAID_ELSEWHERE
    ]
    return " · ".join(facts)


def _chunks_as_one(payload: dict[str, object]) -> dict[str, object]:
    """A payload with how many chunks were done, of how many, as one fact: pages count the chunk that is under way."""
    done, total = payload.get("chunk_index"), payload.get("chunk_count")
    if not done or not total:
        return {key: value for key, value in payload.items() if key != "chunk_count"}
    words = {"chunk_index": ("chunks done", f"{done} of {total}")}
    return dict(words.get(key, (key, value)) for key, value in payload.items() if key != "chunk_count")


def _words_of(value: object) -> str:
    """A value of a payload as a person would write it, not as a program does."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{str(key).replace('_', ' ')} {_words_of(inner)}" for key, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_words_of, value))
    return "none" if value is None else str(value)
