"""The memory of a project: keeps facts once, and forgets those that somebody wants gone."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from sessions_app.engine.flush_candidates import Candidate
from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import MemoryFact, new_id
from sessions_app.permissions import Action, require

MEMORY_STREAM = "memory"
"""Of changes to facts whose session is gone."""


class UnknownFact(LookupError):  # noqa: N818  it says what is the matter
    """There is no such fact, or it is forgotten already."""


@dataclass(frozen=True)
class Kept:
    """What came of a keep: digests that are in the store now, and how many of them are new."""

    digests: frozenset[str]
    new: int


@dataclass(frozen=True)
class Origin:
    """Where facts come from: the session and the attempt that stated them, and who asked for it."""

    project_id: uuid.UUID
    session_id: uuid.UUID
    compaction_id: uuid.UUID
    author: str


def keep(candidates: Sequence[Candidate], origin: Origin) -> Kept:
    """Stores what the project does not know yet, and looks whether all of it is there. Call in a transaction.

    A fact that somebody forgot stays forgotten; it counts as known.
    """
    wanted = {candidate.digest: candidate for candidate in candidates}
    known = MemoryFact.objects.filter(project_id=origin.project_id, digest__in=wanted)
    before = set(known.values_list("digest", flat=True))
    unknown = sorted((candidate for digest, candidate in wanted.items() if digest not in before), key=lambda one: one.indexes)
    ids = sorted(new_id() for _ in unknown)  # facts are read in the order of their ids: of one flush, in that of its entries
    rows = [_row(fact_id, candidate, origin) for fact_id, candidate in zip(ids, unknown, strict=True)]
    # By digest: two flushes that store the same facts at once must not wait for each other crosswise.
    MemoryFact.objects.bulk_create(sorted(rows, key=lambda row: row.digest), ignore_conflicts=True)
    found = frozenset(known.values_list("digest", flat=True)) if rows else frozenset(before)
    return Kept(found, len(found - before))


def _row(fact_id: uuid.UUID, candidate: Candidate, origin: Origin) -> MemoryFact:
    return MemoryFact(
        id=fact_id,
        project_id=origin.project_id,
        session_id=origin.session_id,
        compaction_id=origin.compaction_id,
        kind=candidate.kind,
        text=candidate.text,
        digest=candidate.digest,
        entry_indexes=list(candidate.indexes),
        by_model=candidate.by_model,
        author=origin.author,
        created_at=timezone.now(),
    )


def forget(*, actor: Actor, fact_id: uuid.UUID) -> MemoryFact:
    """Takes a fact out of its project's memory for good: its text is gone, and no later flush brings it back.

    The entries that state it stay, as all entries do. Raises `UnknownFact`, and `permissions.ActionRefused` where the actor may not.
    """
    require(actor, Action.CHANGE_MEMORY, target=("fact", str(fact_id)))
    with transaction.atomic():
        fact = MemoryFact.objects.filter(pk=fact_id, forgotten_at__isnull=True).first()
        held = MemoryFact.objects.filter(pk=fact_id, forgotten_at__isnull=True)
        if fact is None or not held.update(text="", entry_indexes=[], forgotten_at=Now(), forgotten_by=actor.name):
            raise UnknownFact("There is no such fact in any memory, or it is forgotten already. Nothing was changed.")
        log.append(
            log.session_stream(fact.session_id) if fact.session_id else MEMORY_STREAM,
            EventType.MEMORY_FORGOTTEN,
            actor=actor,
            target=("fact", str(fact_id)),
            compaction_id=fact.compaction_id,
            payload={"project_id": str(fact.project_id), "kind": fact.kind, "digest": fact.digest},
        )
    return fact
