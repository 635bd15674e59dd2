"""What a change of tier is decided by: how much history a view holds in front of the request that is being answered."""

from collections.abc import Sequence

from sessions_app.engine import plan
from sessions_app.engine.clearing import as_cleared
from sessions_app.engine.rounds import link, rounds_of
from sessions_app.engine.shapes import EntryShape, in_view
from sessions_app.engine.triggers import Capacity
from sessions_app.models import Session, SessionRelation
from sessions_app.selectors import plans


def capacity_of(session: Session, *, window: int, active: int | None) -> tuple[Capacity, int]:
    """The tokens that count, and how many messages are protected: the active request and all that came after it.

    `active`: index of that request's entry; None for the last message of a person. One that the view does not hold
    protects everything, because nobody can say where it belongs.
    """
    shapes = plans.load_shapes(session.pk)
    chain = plans.load_chain(session)
    checkpoint = chain[-1] if chain else None
    held = in_view(as_cleared(shapes, checkpoint), checkpoint)
    start = _start(held, active)
    before, protected = [shape for shape in held if shape.index < start], [shape for shape in held if shape.index >= start]
    request = next((shape for shape in protected if shape.is_user_message), None)
    capacity = Capacity(
        window=window,
        durable=sum(shape.tokens for shape in before) + plan.added_tokens(checkpoint),
        active_request=request.tokens if request else 0,
        entries=len(held),
        protected_entries=len(protected),
        is_background=session.relation == SessionRelation.SUB_AGENT,
    )
    return capacity, sum(round_.messages for round_ in rounds_of(link(protected))) if protected else 0


def _start(held: Sequence[EntryShape], active: int | None) -> int:
    if active is not None:
        return active if any(shape.index == active for shape in held) else 0
    end = held[-1].index + 1 if held else 0
    return next((shape.index for shape in reversed(held) if shape.is_user_message), end)
