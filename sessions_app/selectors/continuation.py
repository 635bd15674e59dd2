"""Whether a session can go on in its agent with our view of it, and the rows from which the agent's new file is made."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sessions_app.engine.terms import Kind, Role
from sessions_app.models import Compaction, Entry, Record, Session, SessionKind, SessionRelation, SourceFile
from sessions_app.selectors.agents import agent_name
from sessions_app.selectors.raw_page import source_bytes, source_of
from sessions_app.writers.base import Place, Row, Writer
from sessions_app.writers.registry import writer_for

PAGE = 2_000
"""Records that one query reads."""


@dataclass(frozen=True)
class Offer:
    """A continuation that can be had, or in `reason` why there is none: a sentence that says what to do."""

    agent: str  # for people
    reason: str = ""
    generation: int | None = None
    boundary_index: int = 0
    entries_folded: int = 0
    tokens_before: int | None = None
    tokens_after: int | None = None
    working_directory: str = ""

    @property
    def is_possible(self) -> bool:
        return not self.reason


def offer_of(session: Session) -> Offer:
    """Whether this session can be continued. At most two queries."""
    agent = agent_name(session.agent)
    if session.kind not in (SessionKind.IMPORTED, SessionKind.OBSERVED):
        return Offer(agent, "The agent's real context is compacted here already; there is nothing to carry over.")
    if writer_for(session.agent) is None:
        return Offer(agent, f"Sessions of {agent} can't be written in a form with which it goes on. The other exports give the whole.")
    if session.relation == SessionRelation.SUB_AGENT:
        return Offer(agent, "A sub-agent is not resumed by itself: it answers a call of its parent. Continue the parent's session.")
    if session.active_console_id is None:
        return Offer(
            agent, "No compaction of this console is in force. Compact the session first; then the agent can go on with that view."
        )
    if source_of(session) is None:
        return Offer(agent, "This session was not read from a file, so there are no rows to carry over.")
    compaction = Compaction.objects.get(pk=session.active_console_id)
    return Offer(
        agent,
        generation=compaction.generation,
        boundary_index=compaction.boundary_index or 0,
        entries_folded=compaction.entries_folded,
        tokens_before=compaction.tokens_before,
        tokens_after=compaction.tokens_after,
        working_directory=session.working_directory,
    )


def place_of(session: Session) -> Place | None:
    """Where a continuation of this session has to lie, and how it is resumed, with `NEW-ID` for its id; `None` where there is none.

    What depends on the day is that of today.
    """
    writer = writer_for(session.agent)
    if writer is None:
        return None
    return writer.place_of("NEW-ID", working_directory=session.working_directory, at=datetime.now().astimezone())


class _Place(NamedTuple):
    """What is known of the entry that a record became."""

    number: int
    role: str
    kind: str
    off_branch: bool


_COLUMNS = ("index", "role", "kind", "off_branch")


def source_rows(session: Session, source: SourceFile, writer: Writer, *, records: int) -> Iterator[Row]:
    """The first `records` records of a source with their bytes and the entries that were made of them, in order.

    Entries that came with an earlier version of a source that was rewritten are found again by their id.
    """
    earlier = _earlier(session, source)
    read = _Bytes(source)
    for first in range(0, records, PAGE):
        last = min(first + PAGE, records) - 1
        here = {
            place: _Place(*rest)
            for place, *rest in Entry.objects.filter(session=session, source_file=source, record_ordinal__range=(first, last)).values_list(
                "record_ordinal", *_COLUMNS
            )
        }
        page = Record.objects.filter(source_file=source, ordinal__range=(first, last)).order_by("ordinal")
        for ordinal, offset, length, word in page.values_list("ordinal", "offset", "length", "kind"):
            raw = read.slice(offset, length)
            place = here.get(ordinal)
            if place is None and earlier:
                place = earlier.pop(writer.source_id_of(raw), None)
            yield _row(raw, word, place)


def _earlier(session: Session, source: SourceFile) -> dict[str, _Place]:
    if source.version == 1:
        return {}
    rows = Entry.objects.filter(session=session).exclude(source_file=source).exclude(source_id="").values_list("source_id", *_COLUMNS)
    return {source_id: _Place(*rest) for source_id, *rest in rows}


def _row(raw: bytes, word: str, place: _Place | None) -> Row:
    if place is None:
        return Row(raw=raw, word=word)
    return Row(raw=raw, word=word, index=place.number, role=Role(place.role), kind=Kind(place.kind), off_branch=place.off_branch)


class _Bytes:
    """The bytes of a source, read from its start to its end once."""

    def __init__(self, source: SourceFile) -> None:
        self._chunks = source_bytes(source)
        self._held = b""
        self._start = 0

    def slice(self, offset: int, length: int) -> bytes:
        """The bytes of the record there. Records come in order."""
        while offset + length > self._start + len(self._held) and (chunk := next(self._chunks, None)) is not None:
            passed = min(offset - self._start, len(self._held))
            self._held = self._held[passed:] + chunk
            self._start += passed
        return self._held[offset - self._start : offset - self._start + length]
