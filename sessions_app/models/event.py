"""The audit log: append-only streams of events, each a hash chain."""

from typing import Any

import orjson
from django.db import models

CANONICAL = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS
"""How JSON is written where a hash covers it: without spaces, keys in order."""


class CanonicalJSONField(models.JSONField):
    """JSON that is stored as the text that is hashed, so that a database can put the hashed line together by itself."""

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:  # noqa: FBT001, FBT002  Django's
        if value is None or hasattr(value, "as_sql"):
            return super().get_db_prep_value(value, connection, prepared)
        return orjson.dumps(value, option=CANONICAL).decode()

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:  # noqa: ARG002  Django's
        try:
            return None if value is None else orjson.loads(value)
        except orjson.JSONDecodeError:
            return value  # somebody put there what is no JSON: it is shown as it is, and its hash does not hold

    def deconstruct(self) -> Any:
        name, _, arguments, options = super().deconstruct()
        return name, "django.db.models.JSONField", arguments, options  # the column is the same


class EventStream(models.Model):
    """The head of one stream. Updated first in every append, which orders writers without a race."""

    name = models.CharField(primary_key=True, max_length=80)
    last_seq = models.PositiveBigIntegerField(default=0)
    last_hash = models.BinaryField(max_length=32, default=b"")

    def __str__(self) -> str:
        return self.name


class EventResult(models.TextChoices):
    ALLOWED = "allowed"
    REFUSED = "refused"
    FAILED = "failed"


class ActorKind(models.TextChoices):
    USER = "user"
    TOKEN = "token"
    RUNNER = "runner"
    SYSTEM = "system"
    CLI = "cli"
    ANONYMOUS = "anonymous"


class Event(models.Model):
    """One thing that a person, an agent or the system did. Only `events.log.append` writes here."""

    stream = models.CharField(max_length=80)
    seq = models.PositiveBigIntegerField()  # gap-free per stream, from 1
    type = models.CharField(max_length=60)
    compaction_id = models.UUIDField(null=True)
    step = models.PositiveIntegerField(null=True)  # within an attempt, from 1
    actor_kind = models.CharField(max_length=10, choices=ActorKind.choices)
    actor_id = models.CharField(max_length=64, blank=True)
    actor_name = models.CharField(max_length=150, blank=True)
    actor_role = models.CharField(max_length=20, blank=True)  # at that time
    target_kind = models.CharField(max_length=30, blank=True)
    target_id = models.CharField(max_length=64, blank=True)
    result = models.CharField(max_length=8, choices=EventResult.choices, default=EventResult.ALLOWED)
    before = CanonicalJSONField(null=True)
    after = CanonicalJSONField(null=True)
    reason = models.TextField(blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    gesture_id = models.CharField(max_length=64, blank=True)
    address = models.CharField(max_length=64, blank=True)
    payload = CanonicalJSONField(default=dict)
    at = models.CharField(max_length=32)  # UTC, ISO 8601 with microseconds: text, so that its hash never depends on a driver
    previous_hash = models.BinaryField(max_length=32, default=b"")
    hash = models.BinaryField(max_length=32)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["stream", "seq"], name="event_place")]
        indexes = [
            models.Index(fields=["compaction_id"], name="event_by_compaction", condition=models.Q(compaction_id__isnull=False)),
            # One for each filter of the audit page that can be walked in the order of time. Each costs every append that it
            # holds; so those by what most events lack hold the others, and a query for them says so: `selectors.audit`.
            models.Index(fields=["at"], name="event_by_time"),
            models.Index(fields=["type", "at"], name="event_by_type"),
            models.Index(fields=["actor_name", "at"], name="event_by_actor"),
            models.Index(fields=["stream", "at"], name="event_by_stream"),
            models.Index(fields=["target_id", "at"], name="event_by_target", condition=models.Q(target_id__gt="")),
            models.Index(fields=["result", "at"], name="event_by_result", condition=models.Q(result__gt="allowed")),
            models.Index(fields=["request_id", "at"], name="event_by_request", condition=models.Q(request_id__gt="")),
            models.Index(fields=["gesture_id", "at"], name="event_by_gesture", condition=models.Q(gesture_id__gt="")),
            # The last revert of a session before some entry, among all that its stream holds.
            models.Index(fields=["stream", "seq"], name="event_reverts", condition=models.Q(type="compaction.reverted")),
        ]

    def __str__(self) -> str:
        return f"{self.stream} {self.seq} {self.type}"
