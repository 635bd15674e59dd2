"""What is kept of sessions beyond them: facts of a project, and the receipts of the flushes that brought them."""

from django.db import models
from django.db.models import Q

from sessions_app.engine.flush import ReceiptStatus
from sessions_app.engine.terms import FlushMode, MemoryKind
from sessions_app.models.compaction import Compaction
from sessions_app.models.ids import new_id
from sessions_app.models.session import Project, Session

_TO_LOOK_AT = ["pending", "failed_retryable", "degraded_forensic"]


def _choices(terms: type) -> list[tuple[str, str]]:
    return [(term.value, term.value) for term in terms]  # type: ignore[attr-defined]


class MemoryFlush(models.Model):
    """The flush beside one attempt. It is stored as `pending` before anything is taken, and becomes final by one conditional UPDATE.

    So whoever commits the attempt, and whenever, finds what is so: there is no second place that would have to be brought in line.
    Only `services.memory_flush` writes here.
    """

    compaction = models.OneToOneField(Compaction, primary_key=True, on_delete=models.CASCADE, related_name="memory_flush")
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="+", db_index=False)
    project = models.ForeignKey(Project, null=True, on_delete=models.SET_NULL, related_name="+")
    mode = models.CharField(max_length=12, choices=_choices(FlushMode))
    status = models.CharField(max_length=20, choices=_choices(ReceiptStatus), default=ReceiptStatus.PENDING)
    receipt = models.JSONField(null=True)  # engine.flush.Receipt
    first_index = models.PositiveIntegerField()  # of the entries that it is about, inclusive
    last_index = models.PositiveIntegerField()
    prefix_hash = models.BinaryField(max_length=32, default=b"")  # rolling, up to and including the last of them
    tries = models.PositiveSmallIntegerField(default=1)
    token = models.UUIDField(null=True)  # of whoever is at it
    expires_at = models.DateTimeField(null=True)  # by the database's clock: then whoever was at it is gone
    retry_at = models.DateTimeField(null=True)
    asked_by = models.CharField(max_length=150, blank=True)  # who asked for the compaction
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session"], name="memory_single_flight", condition=Q(status="pending"))]
        indexes = [models.Index(fields=["status"], name="memory_to_repair", condition=Q(status__in=_TO_LOOK_AT))]

    def __str__(self) -> str:
        return f"flush of {self.compaction_id}: {self.status}"


class MemoryFact(models.Model):
    """One thing that a project should still know when the session that stated it is forgotten.

    A forgotten one keeps its row without its text, so that no later flush brings it back.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="facts", db_index=False)
    session = models.ForeignKey(Session, null=True, on_delete=models.SET_NULL, related_name="+")
    compaction = models.ForeignKey(Compaction, null=True, on_delete=models.SET_NULL, related_name="+")  # beside which it was kept
    kind = models.CharField(max_length=12, choices=_choices(MemoryKind))
    text = models.CharField(max_length=400, blank=True)
    digest = models.CharField(max_length=64)  # engine.flush_candidates.digest_of
    entry_indexes = models.JSONField(default=list)  # of the entries that state it
    by_model = models.BooleanField(default=False)
    author = models.CharField(max_length=150, blank=True)  # who asked for the compaction
    created_at = models.DateTimeField()
    forgotten_at = models.DateTimeField(null=True)
    forgotten_by = models.CharField(max_length=150, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "digest"], name="memory_fact_once")]
        indexes = [models.Index(fields=["project", "id"], name="memory_fact_place", condition=Q(forgotten_at__isnull=True))]

    def __str__(self) -> str:
        return f"{self.kind} of {self.project_id}"
