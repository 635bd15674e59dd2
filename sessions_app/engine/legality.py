"""Whether a view is one that a provider accepts."""

from collections.abc import Sequence

from sessions_app.engine.messages import ViewMessage
from sessions_app.engine.terms import PartKind, Role


def problems(messages: Sequence[ViewMessage]) -> list[str]:
    """What a provider would refuse in a view, one sentence each; nothing for a legal one.

    Each call needs its result in the message right after it and each result its call right before it, results stand
    first in their message, roles alternate, and only the first message may be the system's.
    """
    found: list[str] = []
    open_calls: set[str] = set()
    previous: Role | None = None
    for place, message in enumerate(messages):
        if not message.parts:
            found.append(f"Message {place} is empty.")
        if message.role is Role.SYSTEM and place > 0:
            found.append(f"Message {place} is a system message after the first.")
        if message.role is previous:
            found.append(f"Messages {place - 1} and {place} have the same role, {message.role.value}.")
        previous = message.role
        if message.role is Role.ASSISTANT:
            found += _unanswered(open_calls, place)
            open_calls = _calls_of(message, place, found)
        elif message.role is Role.USER:
            found += _check_results(message, place, open_calls)
    return found + _unanswered(open_calls, len(messages))


def _unanswered(open_calls: set[str], place: int) -> list[str]:
    return [f"The call {call_id} has no result before message {place}." for call_id in sorted(open_calls)]


def _calls_of(message: ViewMessage, place: int, found: list[str]) -> set[str]:
    calls: set[str] = set()
    for view_part in message.parts:
        part = view_part.part
        if part.kind is PartKind.CALL:
            if part.call_id in calls:
                found.append(f"Message {place} makes the call {part.call_id} twice.")
            calls.add(part.call_id)
        elif part.kind is PartKind.RESULT:
            if part.call_id not in calls:
                found.append(f"The result of {part.call_id} in message {place} has no call.")
            calls.discard(part.call_id)
    return calls


def _check_results(message: ViewMessage, place: int, open_calls: set[str]) -> list[str]:
    found: list[str] = []
    in_results = True
    for view_part in message.parts:
        part = view_part.part
        if part.kind is not PartKind.RESULT:
            in_results = in_results and (view_part.glued or bool(part.call_id))
            continue
        if not in_results:
            found.append(f"The result of {part.call_id} stands behind other text in message {place}.")
        if part.call_id not in open_calls:
            found.append(f"The result of {part.call_id} in message {place} has no call right before it.")
        open_calls.discard(part.call_id)
    found += _unanswered(open_calls, place + 1)
    open_calls.clear()
    return found
