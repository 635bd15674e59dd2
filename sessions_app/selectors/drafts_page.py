"""Drafts that wait for a review: whether they still fit, what they would come to, and every wording of their summary."""

import uuid
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

import msgspec
from django.core.cache import cache

from sessions_app.engine import overrides
from sessions_app.engine.steps import Commit
from sessions_app.engine.terms import Status
from sessions_app.models import Compaction, Draft, Entry, Session, SummaryVersion, short
from sessions_app.selectors import cuts, plans, prefixes
from sessions_app.selectors.retention import RetentionReport, report_of
from sessions_app.selectors.short_ids import FEWEST_DIGITS

MAX_LISTED = 200
MAX_SUMMARY_CHARS = 200_000
COUNTED_S = 5
_COUNT = "drafts.waiting"


@dataclass(frozen=True)
class Fitness:
    """Whether a draft can be committed now. `why` says in words what is in the way, and is empty when nothing is."""

    why: str = ""
    is_stale: bool = False  # for good: its prefix is another one, or a checkpoint came between
    is_blocked: bool = False  # until another generation is in force again

    @property
    def is_fit(self) -> bool:
        return not self.why


@dataclass(frozen=True)
class Growth:
    """What came after a draft was made: it stays in the tail."""

    entries: int
    tokens: int


@dataclass(frozen=True)
class DraftRow:
    """A draft in a list."""

    compaction: Compaction
    session: Session
    drafted_at: datetime
    version: int
    author: str
    fitness: Fitness


@dataclass(frozen=True)
class DraftPage:
    """A draft with its wordings, newest first. `shown` is the one to read; `latest` the one that a commit takes."""

    compaction: Compaction
    versions: tuple[SummaryVersion, ...]
    shown: SummaryVersion
    latest: SummaryVersion
    before_shown: SummaryVersion | None
    fitness: Fitness
    growth: Growth
    drafted_at: datetime
    has_summary: bool
    report: RetentionReport | None  # of the latest version

    @property
    def is_waiting(self) -> bool:
        return self.compaction.status == Status.DRAFTED

    @property
    def decided(self) -> str:
        """What became of a draft that waits no more."""
        done = self.compaction
        if done.generation:
            return f"This draft was committed as generation #{done.generation}."
        return done.explanation or f"This draft waits no more: it is {done.status}."

    @property
    def built_on(self) -> int:
        """The generation that it was made of; 0 for the whole history."""
        built_on = self.compaction.draft.built_on
        return (built_on.generation or 0) if built_on else 0

    @property
    def tokens_before(self) -> int:
        """Of the view as it is now."""
        return (self.compaction.tokens_before or 0) + self.growth.tokens

    @property
    def tokens_after(self) -> int:
        """Of the view, if the version that is shown were committed now."""
        return self.shown.tokens_after + self.growth.tokens


def result_of(compaction: Compaction) -> Commit:
    """The checkpoint as the engine made it, of a draft."""
    return msgspec.convert(compaction.draft.result, Commit)


def fitness(compaction: Compaction) -> Fitness:
    """Whether this draft can be committed as things stand. Four queries."""
    draft, session = compaction.draft, Session.objects.select_related("active_console", "active_agent").get(pk=compaction.session_id)
    boundary = compaction.boundary_index or 0
    if prefixes.is_prefix_changed(compaction, boundary, draft.off_branch):
        return Fitness(
            f"The entries before entry {boundary:,} changed after this draft was made, so its summary fits them no more.", is_stale=True
        )
    excluded = overrides.folded_of(plans.overrides_of(session), result_of(compaction).segments, boundary)
    if excluded:
        return Fitness(f"Entry {min(excluded):,}, which it folds, was excluded after this draft was made.", is_stale=True)
    in_force = session.active_console or session.active_agent
    if (in_force.pk if in_force else None) == draft.built_on_id:
        return Fitness()
    base = f"generation #{draft.built_on.generation}" if draft.built_on else "the whole history"
    now = f"generation #{in_force.generation}" if in_force else "the whole history"
    later = Compaction.objects.filter(session_id=session.pk, generation__isnull=False, finished_at__gt=draft.drafted_at)
    if later.exists():
        return Fitness(f"It was made of {base}; since then another compaction was committed.", is_stale=True)
    return Fitness(f"It was made of {base}, and the view is {now} now. Show {base} again, and it can be committed.", is_blocked=True)


def growth(compaction: Compaction) -> Growth:
    """What the session gained after the draft was made. Few queries by index."""
    first = compaction.draft.entry_count
    newest = Entry.objects.filter(session_id=compaction.session_id).order_by("-index").values_list("index", flat=True).first()
    if newest is None or newest < first:
        return Growth(0, 0)
    entries = cuts.count_sent(compaction.session_id, first, newest)
    return Growth(entries, plans.tokens_between(compaction.session_id, first, None))


def draft_page(session: Session, compaction_id: uuid.UUID, version: int | None = None) -> DraftPage | None:
    """A draft, also one that somebody decided about. None when the session has no such draft or it has no such version."""
    found = (
        Compaction.objects.select_related("draft__built_on", "session")
        .filter(pk=compaction_id, session=session, draft__isnull=False)
        .first()
    )
    if found is None:
        return None
    versions = tuple(found.summary_versions.order_by("-version"))
    places = {one.version: one for one in versions}
    shown = places.get(version) if version is not None else versions[0]
    if shown is None:
        return None
    is_waiting = found.status == Status.DRAFTED
    return DraftPage(
        compaction=found,
        versions=versions,
        shown=shown,
        latest=versions[0],
        before_shown=places.get(shown.version - 1),
        fitness=fitness(found) if is_waiting else Fitness(),
        growth=growth(found) if is_waiting else Growth(0, 0),
        drafted_at=found.draft.drafted_at,
        has_summary=bool(found.draft.result.get("block")),
        report=report_of(found),
    )


def waiting_drafts(session: Session | None = None) -> tuple[DraftRow, ...]:
    """The drafts that wait, oldest first, at most 200; of one session, or of all."""
    found = (
        Compaction.objects.filter(status=Status.DRAFTED).select_related("draft__built_on", "session__project").order_by("draft__drafted_at")
    )
    if session is not None:
        found = found.filter(session=session)
    drafts = list(found.defer("mechanical_state", "policy")[:MAX_LISTED])
    latest: dict[uuid.UUID, tuple[int, str]] = {}
    rows = SummaryVersion.objects.filter(compaction__in=[draft.pk for draft in drafts]).order_by("version")
    for pk, number, author in rows.values_list("compaction_id", "version", "author"):
        latest[pk] = (number, author)
    return tuple(DraftRow(draft, draft.session, draft.draft.drafted_at, *latest[draft.pk], fitness(draft)) for draft in drafts)


def waiting_after(after: uuid.UUID | None, at_most: int) -> list[tuple[uuid.UUID, uuid.UUID]]:
    """(draft, session) of drafts that wait, in the order of their ids, behind one of them; from the first on where none is behind it."""
    waiting = Draft.objects.filter(compaction__status=Status.DRAFTED).order_by("pk").values_list("pk", "compaction__session_id")
    behind = list(waiting.filter(pk__gt=after)[:at_most]) if after is not None else []
    return behind or list(waiting[:at_most])


def waiting_count() -> int:
    """How many drafts wait for somebody: counted anew every few seconds, at once in the process in which that changed."""
    known: int | None = cache.get(_COUNT)
    if known is None:
        known = Draft.objects.filter(compaction__status=Status.DRAFTED).count()
        cache.set(_COUNT, known, COUNTED_S)
    return known


def count_anew() -> None:
    """Call where a draft came or went, once that is committed."""
    cache.delete(_COUNT)


def drafts_like(text: str) -> list[tuple[uuid.UUID, uuid.UUID]]:
    """(session, draft) of the drafts whose id begins or ends with these hex digits, also decided ones; at most ten."""
    digits = text.strip().lower().replace("-", "")
    if len(digits) < FEWEST_DIGITS:
        return []
    ids = Draft.objects.order_by("-drafted_at").values_list("compaction__session_id", "pk")
    found = ((session, draft) for session, draft in ids.iterator() if _is_like(draft, digits))
    return list(islice(found, 10))


def _is_like(identifier: uuid.UUID, digits: str) -> bool:
    return identifier.hex.startswith(digits) or identifier.hex.endswith(digits) or short(identifier).startswith(digits)
