"""The rule of the boundary written down as plainly as it can be said: every cut tried, every suffix summed anew."""

from collections.abc import Sequence

from sessions_app.engine.shapes import EntryShape
from sessions_app.engine.terms import Kind, Role


def plain_choice(shapes: Sequence[EntryShape], keep_tokens: int, protected_messages: int = 0) -> tuple[int, tuple[int, ...]] | None:
    """(cut, carried entries), or None when there is nothing to cut. The shapes start at entry 0."""
    heads = [head for head in _heads(shapes) if not _splits(shapes, head)]
    if len(heads) < 3 or _suffix(shapes, 0) <= keep_tokens:
        return None
    cuts = {head: _with_what_leads_up(shapes, head) for head in heads[1:]}
    allowed = [
        head for head in heads[1:] if _enough_stays(shapes, cuts, head, protected_messages) and not _pending_before(shapes, cuts[head])
    ]
    if not allowed:
        return None
    users = [head for head in allowed if shapes[head].is_user_message]
    for head in users:
        if _suffix(shapes, cuts[head]) <= keep_tokens:
            return cuts[head], ()
    last_user = users[-1] if users else -1
    steps = [head for head in allowed if head > last_user and not shapes[head].is_user_message]
    fitting = [head for head in steps if _suffix(shapes, cuts[head]) <= keep_tokens]
    if steps:
        cut = cuts[fitting[0] if fitting else steps[-1]]
        before = [shape.index for shape in shapes[:cut] if shape.is_user_message]
        return cut, tuple(before[-1:])
    return cuts[last_user], ()


def _heads(shapes: Sequence[EntryShape]) -> list[int]:
    heads, keys = [], set()
    for place, shape in enumerate(shapes):
        if shape.is_user_message:
            heads.append(place)
        elif shape.is_sent and shape.role is Role.ASSISTANT and shape.message_key not in keys:
            heads.append(place)
            keys |= {shape.message_key} - {""}
    return heads


def _splits(shapes: Sequence[EntryShape], cut: int) -> bool:
    """Whether something that belongs together stands on both sides of a cut."""
    groups = [_message_of(shapes, place) for place in range(len(shapes))]
    return any(group is not None and group < cut <= place for place, group in enumerate(groups))


def _message_of(shapes: Sequence[EntryShape], place: int) -> int | None:
    """The first row of the assistant message that a row belongs to."""
    shape = shapes[place]
    if not shape.is_sent:
        return None
    if shape.role is Role.ASSISTANT:
        same = (other for other in range(place) if shapes[other].is_sent and _is_same_message(shapes[other], shape))
        return next(same, place)
    if shape.kind is not Kind.RESULT:
        return None
    callers = [_message_of(shapes, call) for call_id in shape.call_ids if (call := _call_of(shapes, place, call_id)) is not None]
    return min((caller for caller in callers if caller is not None), default=None)


def _is_same_message(one: EntryShape, other: EntryShape) -> bool:
    return one.role is Role.ASSISTANT and one.message_key == other.message_key != ""


def _call_of(shapes: Sequence[EntryShape], place: int, call_id: str) -> int | None:
    """The call that a result answers: the latest open one of its id, else the one that was answered last."""
    waiting: list[int] = []
    answered: int | None = None
    for earlier in range(place + 1):
        shape = shapes[earlier]
        if not shape.is_sent or call_id not in shape.call_ids:
            continue
        if shape.kind is Kind.CALL:
            waiting.append(earlier)
        elif waiting:
            answered = waiting.pop()
    return answered


def _pending_before(shapes: Sequence[EntryShape], cut: int) -> bool:
    last_user = max((place for place, shape in enumerate(shapes) if shape.is_user_message), default=-1)
    for place, shape in enumerate(shapes[:cut]):
        if (
            shape.kind is Kind.CALL
            and shape.is_sent
            and place > last_user
            and any(_is_open(shapes, place, call_id) for call_id in shape.call_ids)
        ):
            return True
    return False


def _is_open(shapes: Sequence[EntryShape], place: int, call_id: str) -> bool:
    return all(
        _call_of(shapes, later, call_id) != place
        for later in range(place + 1, len(shapes))
        if shapes[later].is_sent and shapes[later].kind is Kind.RESULT and call_id in shapes[later].call_ids
    )


def _with_what_leads_up(shapes: Sequence[EntryShape], head: int) -> int:
    """A user message takes the reminders with it that stand before it, unless they follow a result or another message."""
    first = head
    for place in range(head - 1, -1, -1) if shapes[head].is_user_message else ():
        shape = shapes[place]
        if not shape.is_sent or shape.role is Role.SYSTEM:
            continue
        if shape.role is Role.ASSISTANT:
            return first
        if shape.is_user_message or shape.kind is Kind.RESULT:
            return head
        first = place
    return first


def _enough_stays(shapes: Sequence[EntryShape], cuts: dict[int, int], head: int, protected: int) -> bool:
    """Whether the protected messages stay; steps and their results are two messages, each user message one."""
    later = [other for other in cuts if other >= head]
    ends = [*(cuts[other] for other in later[1:]), len(shapes)]
    messages = 0
    for start, end in zip((cuts[other] for other in later), ends, strict=True):
        messages += 1 + any(shape.kind is Kind.RESULT and shape.is_sent for shape in shapes[start:end])
    return messages >= protected


def _suffix(shapes: Sequence[EntryShape], cut: int) -> int:
    return sum(shape.tokens for shape in shapes[cut:] if shape.is_sent)
