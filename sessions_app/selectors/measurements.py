"""The prompts of a session that a provider measured, against the estimates of what stood before them."""

from bisect import bisect_left

from django.db.models import Sum

from sessions_app.engine.calibration import PROMPTS_LOOKED_AT, Prompt
from sessions_app.engine.terms import Lineage, Role
from sessions_app.models import Compaction, Entry, Session, SessionKind
from sessions_app.selectors import cuts
from sessions_app.selectors.entry_rows import readable_usage


def measured_prompts(session: Session) -> list[Prompt]:
    """The latest of them, oldest first, by stored prefix sums; at most five queries, however long the session is.

    `estimate` counts all live entries before the request. Before the first checkpoint that is its view.
    """
    rows = Entry.objects.filter(session_id=session.pk, usage__isnull=False, off_branch=False).order_by("-index")
    found = []
    for index, usage, key, before in rows.values_list("index", "usage", "message_key", "prefix_tokens")[:PROMPTS_LOOKED_AT]:
        used = readable_usage(usage)
        if used and used.prompt:
            found.append((index, key, before, used.prompt))
    if not found:
        return []
    first_index = found[-1][0]
    before_message = _before_messages(session, [key for _, key, _, _ in found if key], (first_index - cuts.TAIL_STEP, found[0][0]))
    off_branch = Entry.objects.filter(session_id=session.pk, off_branch=True).exclude(role=Role.NOTICE).order_by("index")
    aside = list(off_branch.filter(index__range=(first_index, found[0][0])).values_list("index", "tokens"))
    dividers = _dividers(session)
    prompts: list[Prompt] = []
    seen, passed = set(), 0
    left_out = off_branch.filter(index__lt=first_index).order_by().aggregate(tokens=Sum("tokens"))["tokens"] or 0
    for index, key, before, measured in reversed(found):
        while passed < len(aside) and aside[passed][0] < index:
            left_out += aside[passed][1]
            passed += 1
        if key and key in seen:
            continue
        seen.add(key)
        estimate = before_message.get(key, before) - left_out
        prompts.append(Prompt(measured=measured, estimate=estimate, context=bisect_left(dividers, index)))
    return prompts


def _before_messages(session: Session, keys: list[str], among: tuple[int, int]) -> dict[str, int]:
    """Tokens before the first row of each message: its prompt ends there."""
    entries = Entry.objects.filter(session_id=session.pk, index__range=among, message_key__in=keys)
    rows = entries.order_by("-index").values_list("message_key", "prefix_tokens")
    return dict(rows) if keys else {}


def _dividers(session: Session) -> list[int]:
    if not session.compaction_count:
        return []
    made = Compaction.objects.filter(session_id=session.pk, divider_index__isnull=False)
    if session.kind != SessionKind.INLINE:
        made = made.filter(lineage=Lineage.AGENT)  # what this console folds, the agent's own context does not know
    return sorted(index for index in made.values_list("divider_index", flat=True) if index is not None)
