"""Requests that create something and name a key: the same key gives the same answer, and creates once.

What is created and what is remembered of it are one transaction: either both are there, or neither is. A second request of
the same key waits for the first at the row of the key.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db import transaction

from sessions_app.events.actors import Actor
from sessions_app.models import IdempotencyKey

KEPT = timedelta(hours=24)
FORGOTTEN_AT_ONCE = 500


class KeyConflict(Exception):  # noqa: N818  it says what is the matter
    """The key stands for another request."""


@dataclass(frozen=True)
class Answer:
    """An answer as it is sent: `body` is JSON. `repeated`: it was given before, and nothing was created now."""

    status: int
    body: str
    location: str = ""
    repeated: bool = False


def once(*, actor: Actor, key: str, fingerprint: str, create: Callable[[], Answer]) -> Answer:
    """What `create` answers, called at most once in 24 hours for one actor and key. Whatever it raises undoes all that it did.

    `fingerprint`: sha256 of the whole request, in hex. `create` runs in a transaction and should be short.
    Raises `KeyConflict` when the key was used for another request.
    """
    digest = hashlib.sha256(f"{actor.kind}:{actor.id}:{key}".encode()).hexdigest()
    now = datetime.now(UTC)
    with transaction.atomic():
        IdempotencyKey.objects.filter(pk=digest, created_at__lte=now - KEPT).delete()
        row = IdempotencyKey(digest=digest, fingerprint=fingerprint, created_at=now)
        # Where the key is there, this waits for whoever is about to store it, and stores nothing.
        IdempotencyKey.objects.bulk_create([row], ignore_conflicts=True)
        known = IdempotencyKey.objects.select_for_update(no_key=True).get(pk=digest)
        if known.status:
            if known.fingerprint != fingerprint:
                raise KeyConflict("This Idempotency-Key was used for another request. Nothing was created. Take a new key.")
            return Answer(known.status, known.body, known.location, repeated=True)
        answer = create()
        IdempotencyKey.objects.filter(pk=digest).update(status=answer.status, body=answer.body, location=answer.location)
    return answer


def forget_old() -> int:
    """Removes keys that no longer count, some hundred at a time. Returns how many."""
    old = IdempotencyKey.objects.filter(created_at__lte=datetime.now(UTC) - KEPT).values_list("pk", flat=True)[:FORGOTTEN_AT_ONCE]
    removed, _ = IdempotencyKey.objects.filter(pk__in=list(old)).delete()
    return removed
