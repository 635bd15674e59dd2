"""`/v1/sessions`."""

import uuid
from typing import Any

from django.http import HttpRequest
from ninja import Router

from sessions_app.api.auth import actor_of
from sessions_app.api.documents import session_document
from sessions_app.permissions import Action, access_session
from sessions_app.services.access import record_view

router = Router()


@router.get("/{uuid:session_id}", response=dict[str, Any])
def read_session(request: HttpRequest, session_id: uuid.UUID) -> dict[str, Any]:
    """A session: what it is, how full its context is, what is under way."""
    actor = actor_of(request)
    session = access_session(actor, session_id, Action.READ)
    record_view(actor=actor, session=session)
    return session_document(session)
