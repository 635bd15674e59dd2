"""The audit log: append-only streams of events, each a hash chain."""

from django.db import models


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
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    reason = models.TextField(blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    gesture_id = models.CharField(max_length=64, blank=True)
    address = models.CharField(max_length=64, blank=True)
    payload = models.JSONField(default=dict)
    at = models.CharField(max_length=32)  # UTC, ISO 8601 with microseconds: text, so that its hash never depends on a driver
    previous_hash = models.BinaryField(max_length=32, default=b"")
    hash = models.BinaryField(max_length=32)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["stream", "seq"], name="event_place")]
        indexes = [
            models.Index(fields=["compaction_id"], name="event_by_compaction", condition=models.Q(compaction_id__isnull=False)),
            # One for each filter of the audit page that can be walked in the order of time.
            models.Index(fields=["at"], name="event_by_time"),
            models.Index(fields=["type", "at"], name="event_by_type"),
            models.Index(fields=["actor_name", "at"], name="event_by_actor"),
            models.Index(fields=["target_id", "at"], name="event_by_target"),
            models.Index(fields=["stream", "at"], name="event_by_stream"),
            models.Index(fields=["result", "at"], name="event_by_result"),
            models.Index(fields=["request_id", "at"], name="event_by_request"),
            models.Index(fields=["gesture_id", "at"], name="event_by_gesture"),
        ]

    def __str__(self) -> str:
        return f"{self.stream} {self.seq} {self.type}"
