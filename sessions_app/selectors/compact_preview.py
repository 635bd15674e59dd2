"""What a compaction would do, before anybody asks for it: the same plan that the attempt makes, and nothing is changed."""

from dataclasses import dataclass

from sessions_app.engine import plan as planning
from sessions_app.engine.boundary import IllegalBoundary
from sessions_app.engine.explanations import EXPLANATIONS
from sessions_app.engine.terms import SkipReason
from sessions_app.models import Session
from sessions_app.providers.registry import summariser_for
from sessions_app.selectors import plans
from sessions_app.selectors.history_window import HistoryItem, read_items

MAX_INSTRUCTIONS_CHARS = 2_000


@dataclass(frozen=True)
class CompactPreview:
    """Numbers of the plan, in entries and estimated tokens; or `refusal`, in words, with everything else at its default."""

    refusal: str = ""
    boundary_index: int = 0
    boundary_item: HistoryItem | None = None
    folded: int = 0
    folded_tokens: int = 0
    kept: int = 0
    kept_tokens: int = 0
    carried: tuple[int, ...] = ()
    view_tokens: int = 0
    view_after: int = 0
    chunk_count: int = 0
    generation: int | None = None
    profile: str = ""
    profile_source: str = ""
    summariser: str = ""

    @property
    def folded_width(self) -> int:
        """The folded part of a bar of 1000, by tokens."""
        return round(1000 * self.folded_tokens / max(1, self.folded_tokens + self.kept_tokens))

    @property
    def kept_width(self) -> int:
        return 1000 - self.folded_width


def compact_preview(session: Session, *, boundary: int | None = None) -> CompactPreview:
    """The plan of a manual compaction as it would be made now. Reads the shape of every entry: linear in the history."""
    resolved = plans.effective_policy(session)
    summariser = summariser_for(resolved.policy)
    chain = plans.load_chain(session)
    try:
        plan = planning.make(
            plans.load_shapes(session.pk),
            previous=chain[-1] if chain else None,
            policy=resolved.policy,
            window=session.window,
            summariser_window=summariser.window,
            signal_tokens=session.signal_tokens or 0,
            manual=True,
            force=False,
            wanted=boundary,
        )
    except IllegalBoundary as error:
        return CompactPreview(refusal=str(error))
    if isinstance(plan, SkipReason):
        return CompactPreview(refusal=EXPLANATIONS[plan])
    kept_tokens = plan.kept_tokens
    items = read_items(session.pk, [plan.boundary_index])
    return CompactPreview(
        boundary_index=plan.boundary_index,
        boundary_item=items[0] if items else None,
        folded=len(plan.span),
        folded_tokens=plan.span_tokens,
        kept=plan.kept,
        kept_tokens=kept_tokens,
        carried=plan.carried,
        view_tokens=plan.tokens_before,
        view_after=min(plan.tokens_before, kept_tokens + plan.block_tokens),
        chunk_count=len(plan.chunks),
        generation=chain[-1].generation if chain else None,
        profile=resolved.policy.profile,
        profile_source=str(resolved.sources.get("profile", "default")),
        summariser=summariser.name,
    )
