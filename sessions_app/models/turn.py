"""Turns of the sessions that this product holds itself: a message, and the answer that a model gave to it."""

from django.db import models
from django.db.models import Q

from sessions_app.models.ids import new_id
from sessions_app.models.session import Session


class TurnStatus(models.TextChoices):
    """Where a turn stands. `withdrawn`: its message was taken back before it was delivered."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    WITHDRAWN = "withdrawn"


INTERRUPTED = "interrupted"
"""Why a stopped turn ended of whose answer something had come: that is part of the conversation."""

OPEN_TURNS = (TurnStatus.QUEUED, TurnStatus.RUNNING)


class Turn(models.Model):
    """One message of a person, from the moment it was sent to the end of its answer.

    A queued message is no entry yet: it becomes one in the transaction in which its turn begins, and so exactly once.
    State machine: `services.turns.transitions`. Only `services.turns` writes here.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="turns", db_index=False)
    number = models.PositiveIntegerField()  # 1, 2, 3 … within the session: the order of delivery
    status = models.CharField(max_length=10, choices=TurnStatus.choices, default=TurnStatus.QUEUED)
    text = models.TextField()  # as it was sent
    sent_by = models.CharField(max_length=150, blank=True)
    retry_of = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    user_index = models.PositiveIntegerField(null=True, blank=True)  # of the entry that the message became
    answer_index = models.PositiveIntegerField(null=True, blank=True)  # of the first entry of the answer
    answer_text = models.TextField(blank=True)  # what has come of the answer so far; empty once it is an entry
    provider = models.CharField(max_length=20, blank=True)
    model = models.CharField(max_length=100, blank=True)
    compaction = models.ForeignKey("Compaction", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")  # whose view was sent
    view_hash = models.CharField(max_length=64, blank=True)  # sha256 of the view that was sent
    calls = models.PositiveSmallIntegerField(default=0)  # requests to the provider
    usage = models.JSONField(null=True)  # engine.entries.Usage
    reason = models.CharField(max_length=40, blank=True)  # a short word: why it failed, or what is to be said of it
    explanation = models.TextField(blank=True)  # the same in a sentence
    cancel_requested = models.BooleanField(default=False)
    lease_token = models.UUIDField(null=True, blank=True)
    lease_expires_at = models.DateTimeField(null=True, blank=True)  # by the database's clock
    sent_at = models.DateTimeField()
    queued_at = models.DateTimeField()  # the last time at which a task was queued for it
    started_at = models.DateTimeField(null=True, blank=True)
    answered_at = models.DateTimeField(null=True, blank=True)  # the first of its answer
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["session", "number"], name="turn_place"),
            models.UniqueConstraint(fields=["session"], name="turn_single_flight", condition=Q(status="running")),
        ]
        indexes = [models.Index(fields=["status"], name="turn_open", condition=Q(status__in=["queued", "running"]))]

    def __str__(self) -> str:
        return f"turn {self.number}"

    @property
    def is_open(self) -> bool:
        return self.status in OPEN_TURNS

    @property
    def may_be_retried(self) -> bool:
        """Whether its message is still without any answer: where one had begun, a further message goes on."""
        return self.status == TurnStatus.FAILED or (self.status == TurnStatus.CANCELLED and self.reason != INTERRUPTED)
