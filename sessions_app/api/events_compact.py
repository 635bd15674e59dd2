"""The event `compact`: the same request as the button's, and by default an answer when the compaction is over.

Whoever waits holds no thread: the session's notices wake this call, and one short query says how the attempt stands.
"""

import asyncio
import json
import uuid
from contextlib import suppress
from typing import Any, Literal

from asgiref.sync import sync_to_async
from channels.layers import get_channel_layer
from django.http import HttpRequest, HttpResponse
from pydantic import Field

from sessions_app.api.errors import ApiError
from sessions_app.api.events_data import Data, read_data
from sessions_app.api.idempotency import create_once, created
from sessions_app.api.wire import json_response
from sessions_app.engine.terms import Status
from sessions_app.events.actors import Actor
from sessions_app.live.groups import session_group
from sessions_app.models import Compaction, Session
from sessions_app.permissions import Action, access_session
from sessions_app.selectors.attempts import attempt_of
from sessions_app.services import steering
from sessions_app.services.compactions import forwards, unknown
from sessions_app.services.compactions.request import request as request_compaction
from sessions_app.services.idempotency import Answer

COMPACT = "compact"
HEADER = "Compaction-Id"
LOOK_S = 5.0
"""A notice may get lost: so long after the last look, the attempt is looked at without one."""

RETRY_S = 5


class CompactData(Data):
    """What a request may say. Without `when`, a session whose turn is open is refused."""

    wait: bool = True
    instructions: str = ""
    profile: str = ""
    boundary: int | None = Field(default=None, ge=0)
    force: bool = False
    review: bool = False
    policy: dict[str, Any] = Field(default_factory=dict)
    when: Literal["idle", "interrupt"] | None = None
    through: Literal["runner", "console"] | None = None


async def compact(request: HttpRequest, actor: Actor, session: Session, data: dict[str, Any]) -> HttpResponse:
    """Asks for it, or joins the one under way; answers when it is over, or at once where `wait` is false."""
    wanted = read_data(COMPACT, CompactData, data)
    await sync_to_async(access_session)(actor, session.pk, Action.COMPACT)
    if wanted.when == "interrupt":
        await sync_to_async(steering.interrupt)(actor=actor, session=session)
    begun = await sync_to_async(create_once)(request, lambda: _begin(actor, session, wanted))
    attempt_id = uuid.UUID(json.loads(begun.content)["compaction_id"])
    if not wanted.wait:
        begun[HEADER] = str(attempt_id)
        return begun
    return _answer(await _ended(session.pk, attempt_id))


def _begin(actor: Actor, session: Session, wanted: CompactData) -> Answer:
    options = wanted.model_dump(include={"instructions", "profile", "boundary", "force"})
    changes = wanted.policy | ({"review_before_commit": True} if wanted.review else {})
    answer = request_compaction(
        actor=actor, session=session, when_idle=wanted.when is not None, through=wanted.through or "", changes=changes, **options
    )
    return created({"queued": True, "compaction_id": str(answer.compaction.pk), "joined": answer.joined}, status=202)


async def _ended(session_id: uuid.UUID, attempt_id: uuid.UUID) -> Compaction:
    """The attempt, once it is over or waits for a review."""
    layer: Any = get_channel_layer()  # the stubs know of no groups
    channel = await layer.new_channel("compact")
    group = session_group(session_id)
    await layer.group_add(group, channel)
    try:
        while (attempt := await sync_to_async(attempt_of)(attempt_id)).is_open:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await layer.receive(channel)
        return attempt
    finally:
        await layer.group_discard(group, channel)


def _answer(attempt: Compaction) -> HttpResponse:
    """202 where nothing is wrong; else the error of how it ended. Raises `ApiError`."""
    told = {HEADER: str(attempt.pk)}
    why = attempt.explanation or f"It ended as {attempt.outcome or attempt.status}."
    match Status(attempt.status), attempt.reason:
        case ((Status.COMPLETED | Status.DRAFTED | Status.SKIPPED | Status.EMERGENCY_EPHEMERAL), _):
            return json_response({"queued": False}, 202, told)
        case _, unknown.UNKNOWN_OUTCOME:
            raise ApiError("runner_unavailable", why, retryable=False, headers=told)
        case _, forwards.UNREACHABLE:
            raise ApiError("runner_unavailable", why, retry_s=RETRY_S, headers=told)
        case _, forwards.UNAVAILABLE:
            raise ApiError("invalid_input", why, headers=told)
        case ((Status.CANCELLED | Status.STALE), _):
            raise ApiError("conflict", why, headers=told)
    raise ApiError("internal_error", why, retryable=attempt.reason != forwards.REFUSED, headers=told)
