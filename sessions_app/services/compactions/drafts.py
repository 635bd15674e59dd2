"""Drafts: what an attempt would commit, kept until a person has read it, worded it otherwise, and commits or discards it."""

import hashlib
import uuid
from collections.abc import Collection

import msgspec
from django.db import transaction

from sessions_app.engine import revision
from sessions_app.engine.policy import Policy
from sessions_app.engine.steps import Commit, Ended
from sessions_app.engine.terms import OPEN_STATUSES, Outcome, Phase, Status, Trigger
from sessions_app.engine.texts import storable
from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.events.types import EventType
from sessions_app.models import Compaction, Draft, Session, SummaryVersion
from sessions_app.selectors import drafts_page, plans
from sessions_app.selectors.drafts_page import MAX_SUMMARY_CHARS, result_of
from sessions_app.services.compactions import lease
from sessions_app.services.compactions.cancel import UnknownCompaction
from sessions_app.services.compactions.commit import InForce, commit, lock, result_columns
from sessions_app.services.compactions.endings import STALE, end, give_back
from sessions_app.services.compactions.lease import Claim, LeaseLost
from sessions_app.services.compactions.revert import CompactionUnderWay
from sessions_app.services.compactions.step_events import WORKER
from sessions_app.services.compactions.transitions import move

_REVIEWED = frozenset({Trigger.MANUAL, Trigger.THRESHOLD, Trigger.PREFLIGHT})
"""A request that the provider refused, or one that goes to another model, can't wait for a person."""

DISCARDED = Ended(
    status=Status.CANCELLED,
    outcome=Outcome.CANCELLED,
    reason="discarded",
    explanation="The draft was discarded. Nothing was changed.",
)


class NotADraft(Exception):
    """The attempt does not wait for a review: it never did, or somebody decided about it."""


class DraftChanged(Exception):
    """Somebody saved another version meanwhile; nothing of this one was saved or committed."""


class DraftBlocked(Exception):
    """The draft can't be committed as things stand now, and may be later. The text says what would help."""


class InvalidSummary(Exception):
    """This text can't be a summary; nothing was saved."""


def is_reviewed(compaction: Compaction, policy: Policy) -> bool:
    """Whether this attempt's result waits for a person."""
    return policy.review_before_commit and compaction.trigger in _REVIEWED


def store(held: Claim, result: Commit, in_force: InForce, off_branch: Collection[int]) -> Ended | None:
    """Keeps the result of a running attempt as a draft and frees its session; or returns how the attempt ends instead.

    Raises `LeaseLost`.
    """
    with transaction.atomic():
        found = lock(held, in_force)
        if isinstance(found, Ended):
            return found
        session, compaction = found
        Draft.objects.create(
            compaction=compaction,
            result=msgspec.to_builtins(result),
            built_on_id=in_force.checkpoint_id,
            off_branch=[index for index in off_branch if index < result.boundary_index],
            entry_count=session.entry_count,
        )
        first = _add_version(compaction, result, 1, author=result.summariser or result.summary_source)
        columns = result_columns(result) | {"phase": Phase.COMMIT, "parent_id": in_force.checkpoint_id, "deadline_at": None}
        columns["override_version"] = in_force.override_version
        if not move(compaction.pk, Status.DRAFTED, token=held.token, **columns):
            raise LeaseLost
        give_back(compaction.pk)
        # It holds nothing any more: whatever the session is when the draft ends, it stays.
        Compaction.objects.filter(pk=compaction.pk).update(session_status_before="", lease_token=None)
        _log(compaction, EventType.COMPACTION_DRAFTED, WORKER, None, first)
    return None


def edit(*, actor: Actor, session: Session, compaction_id: uuid.UUID, text: str, base_version: int | None = None) -> SummaryVersion:
    """Saves another wording of a draft's summary, and works out what the view would then come to.

    `base_version`: the version that the text was made from; None takes any. The same text again saves nothing. Raises
    `UnknownCompaction`, `NotADraft`, `DraftChanged` and `InvalidSummary`.
    """
    text = _storable(text)
    if not text:
        raise InvalidSummary("A summary can't be empty. Nothing was saved. To drop it, discard the draft.")
    if len(text) > MAX_SUMMARY_CHARS:
        raise InvalidSummary(f"A summary may have {MAX_SUMMARY_CHARS:,} characters; this one has {len(text):,}. Nothing was saved.")
    found = _draft(session, compaction_id)
    made = result_of(found)
    if not made.block:
        raise InvalidSummary("This draft only clears results: it has no summary to edit. Nothing was saved.")
    latest = found.summary_versions.latest("version")
    if text == latest.text:
        return latest
    worded = _checked(found, session, revision.reworded(made, text))
    with transaction.atomic():
        compaction = _locked(session, compaction_id)
        before = compaction.summary_versions.latest("version")
        if base_version is not None and before.version != base_version:
            raise DraftChanged(
                f"{before.author} saved version {before.version} while you edited version {base_version}. Your text was not saved; "
                "compare the two and save again."
            )
        after = _add_version(compaction, worded, before.version + 1, author=actor.name)
        Compaction.objects.filter(pk=compaction.pk).update(**result_columns(worded))
        _log(compaction, EventType.DRAFT_EDITED, actor, before, after)
    return after


def commit_draft(*, actor: Actor, session: Session, compaction_id: uuid.UUID, version: int | None = None) -> Compaction:
    """Commits the latest wording of a draft; no model is asked. The attempt as it then stands: `completed`, or `stale`.

    `version`: the one that was read; None takes whichever is the latest. Raises `UnknownCompaction`, `NotADraft`,
    `DraftChanged`, `DraftBlocked`, and `CompactionUnderWay` while an attempt of the session is open.
    """
    with transaction.atomic():
        compaction = _locked(session, compaction_id)
        latest = compaction.summary_versions.latest("version")
        if version is not None and latest.version != version:
            raise DraftChanged(f"{latest.author} saved version {latest.version} after you read version {version}. Nothing was committed.")
        if Compaction.objects.filter(session_id=session.pk, status__in=OPEN_STATUSES).exists():
            raise CompactionUnderWay(
                "A compaction of this session is under way. The draft was not committed. Wait for its end, or cancel it."
            )
        fitness = drafts_page.fitness(compaction)
        if fitness.is_blocked:
            raise DraftBlocked(f"{fitness.why} Nothing was committed.")
        ended: Ended | None = msgspec.structs.replace(STALE, explanation=f"{fitness.why} Nothing of it was used.")
        held = None if fitness.is_stale else lease.retake(compaction.pk, session.pk)
        if held is not None:
            in_force = InForce(console_id=compaction.draft.built_on_id, agent_id=None, override_version=compaction.override_version)
            ended = commit(held, _as_of_now(compaction, latest), in_force, compaction.draft.off_branch, actor=actor)
        elif not fitness.is_stale:
            raise CompactionUnderWay(
                "The lease of this session is held by a compaction. The draft was not committed. Try again in a moment."
            )
        if ended is not None:
            end(compaction.pk, ended, actor=actor)
        else:
            _log(compaction, EventType.DRAFT_COMMITTED, actor, compaction.summary_versions.earliest("version"), latest)
    compaction.refresh_from_db()
    return compaction


def discard(*, actor: Actor, session: Session, compaction_id: uuid.UUID) -> Compaction:
    """Ends a draft as cancelled; its text stays readable in the ledger. Raises `UnknownCompaction` and `NotADraft`."""
    with transaction.atomic():
        compaction = _locked(session, compaction_id)
        _log(compaction, EventType.DRAFT_DISCARDED, actor, compaction.summary_versions.latest("version"), None)
        end(compaction.pk, DISCARDED, actor=actor)
    compaction.refresh_from_db()
    return compaction


def end_stale(*, actor: Actor, at_most: int = 20) -> int:
    """Ends drafts as stale that can never be committed any more, and says why. Looks at so many that wait; returns how many it ended.

    Of many, each call looks at those that come after the ones before.
    """
    ended = 0
    for compaction_id, session_id in drafts_page.waiting_after(_looked.at, at_most):
        _looked.at = compaction_id
        with transaction.atomic():
            Session.objects.select_for_update(no_key=True).get(pk=session_id)
            draft = Compaction.objects.select_related("draft__built_on").filter(pk=compaction_id, status=Status.DRAFTED).first()
            fitness = drafts_page.fitness(draft) if draft is not None else drafts_page.Fitness()
            if fitness.is_stale:
                ended += end(
                    compaction_id, msgspec.structs.replace(STALE, explanation=f"{fitness.why} Nothing of it was used."), actor=actor
                )
    return ended


class _Looked:
    """Up to which draft this process has looked; None: from the first on."""

    at: uuid.UUID | None = None


_looked = _Looked()


def _storable(text: str) -> str:
    """The text as any database takes it, with one kind of line end."""
    return storable(text).replace("\r\n", "\n").replace("\r", "\n").strip()


def _draft(session: Session, compaction_id: uuid.UUID) -> Compaction:
    found = Compaction.objects.select_related("draft").filter(pk=compaction_id, session_id=session.pk).first()
    if found is None:
        raise UnknownCompaction("This session has no such compaction. Nothing was changed.")
    if found.status != Status.DRAFTED:
        became = found.outcome.replace("_", " ") if found.outcome else found.status.replace("_", " ")
        raise NotADraft(f"{found} is no draft that waits: it is {became}. Nothing was changed.")
    return found


def _locked(session: Session, compaction_id: uuid.UUID) -> Compaction:
    """The draft, with its session's row locked: nobody else decides about it meanwhile."""
    Session.objects.select_for_update(no_key=True).get(pk=session.pk)
    return _draft(session, compaction_id)


def _checked(compaction: Compaction, session: Session, worded: Commit) -> Commit:
    """The wording with a new report of what it retains."""
    built_on = compaction.draft.built_on
    return revision.verified(
        worded,
        plans.load_shapes(session.pk),
        plans.chain_of(built_on),
        lambda first, last: plans.load_entries(session.pk, first, last),
        built_on.summary if built_on else "",
    )


def _as_of_now(compaction: Compaction, latest: SummaryVersion) -> Commit:
    """What is committed: the latest wording, with the sizes that the view has now, since its tail may have grown."""
    made = result_of(compaction)
    if latest.version > 1:
        names = ("retention", "unsupported", "coverage_status", "warnings")
        checked = {name: getattr(compaction, name) for name in names}
        made = msgspec.convert(msgspec.to_builtins(revision.reworded(made, latest.text)) | checked, Commit)
    grown = drafts_page.growth(compaction)
    return msgspec.structs.replace(
        made,
        tokens_before=made.tokens_before + grown.tokens,
        tokens_after=made.tokens_after + grown.tokens,
        entries_kept=made.entries_kept + grown.entries,
    )


def _add_version(compaction: Compaction, made: Commit, version: int, *, author: str) -> SummaryVersion:
    return SummaryVersion.objects.create(
        compaction=compaction,
        version=version,
        text=made.summary,
        sha256=hashlib.sha256(made.summary.encode(errors="surrogatepass")).hexdigest(),
        author=author[:150],
        tokens_after=made.tokens_after,
    )


def _log(compaction: Compaction, event_type: EventType, actor: Actor, before: SummaryVersion | None, after: SummaryVersion | None) -> None:
    """The event of a step, with the hashes of the wordings and never a word of them."""
    log.append(
        log.session_stream(compaction.session_id),
        event_type,
        actor=actor,
        target=("compaction", str(compaction.pk)),
        compaction_id=compaction.pk,
        before=_facts(before),
        after=_facts(after),
        payload={"attempt": compaction.attempt},
    )


def _facts(version: SummaryVersion | None) -> dict[str, object] | None:
    if version is None:
        return None
    return {"version": version.version, "summary_sha256": version.sha256, "tokens_after": version.tokens_after}
