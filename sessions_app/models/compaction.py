"""Compactions, the plans they leave behind, and the lease that lets one run at a time."""

from django.db import models
from django.db.models import Q

from sessions_app.engine.terms import OPEN_STATUSES, CoverageStatus, Lineage, Outcome, Phase, SegmentKind, Status, SummarySource, Trigger
from sessions_app.models.ids import new_id
from sessions_app.models.session import Session


def _choices(terms: type) -> list[tuple[str, str]]:
    return [(term.value, term.value) for term in terms]  # type: ignore[attr-defined]


class Compaction(models.Model):
    """One attempt. A committed one is a checkpoint and has a generation.

    State machine: `docs/architecture.md`. Only `services.compactions` writes here.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="compactions")
    attempt = models.PositiveIntegerField()
    lineage = models.CharField(max_length=8, choices=_choices(Lineage))
    generation = models.PositiveIntegerField(null=True, blank=True)
    parent = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")  # the checkpoint it builds on
    trigger = models.CharField(max_length=12, choices=_choices(Trigger))
    evaluation = models.JSONField(default=dict)  # the verdict that made it start; empty where a person asked
    turn_id = models.UUIDField(null=True, blank=True)  # the turn before or in which it ran by itself
    requested_by = models.CharField(max_length=150, blank=True)  # the actor's name as it was then
    policy = models.JSONField(default=dict)  # the policy as it was, with the source of each value
    profile = models.CharField(max_length=20, blank=True)
    instructions = models.TextField(blank=True)
    force = models.BooleanField(default=False)
    status = models.CharField(max_length=20, choices=_choices(Status), default=Status.REQUESTED)
    outcome = models.CharField(max_length=20, choices=_choices(Outcome), blank=True)
    reason = models.CharField(max_length=80, blank=True)  # an engine.terms.SkipReason, or a short word
    explanation = models.TextField(blank=True)  # the reason in words, for people
    phase = models.CharField(max_length=12, choices=_choices(Phase), blank=True)
    chunk_index = models.PositiveIntegerField(default=0)
    chunk_count = models.PositiveIntegerField(default=0)
    step = models.PositiveIntegerField(default=0)  # number of the last of its five-step events
    cancel_requested = models.BooleanField(default=False)
    through = models.CharField(max_length=8, null=True, blank=True)  # `runner` or `console`, where whoever asked chose who does it
    runner = models.ForeignKey("Runner", null=True, blank=True, on_delete=models.SET_NULL, related_name="+", db_index=False)
    forwarded_at = models.DateTimeField(null=True, blank=True)  # stored before anything is sent: never forwarded twice
    runner_answer = models.PositiveSmallIntegerField(null=True, blank=True)  # the status of HTTP that came back
    operation_id = models.CharField(max_length=200, null=True, blank=True)  # under which the runner will report
    decided_at = models.DateTimeField(null=True, blank=True)  # when somebody settled an outcome that was unknown
    session_status_before = models.CharField(max_length=12, blank=True)  # what the session goes back to when this ends
    lease_token = models.UUIDField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    deadline_at = models.DateTimeField(null=True, blank=True)

    boundary_index = models.PositiveIntegerField(null=True, blank=True)
    boundary_source_id = models.CharField(max_length=200, blank=True)
    prefix_hash = models.BinaryField(max_length=32, default=b"")
    divider_index = models.PositiveIntegerField(null=True, blank=True)
    override_version = models.PositiveIntegerField(default=0)  # of the overrides that its plan was made with
    entries_folded = models.PositiveIntegerField(default=0)
    entries_kept = models.PositiveIntegerField(default=0)
    summary = models.TextField(blank=True)
    summary_source = models.CharField(max_length=12, choices=_choices(SummarySource), blank=True)
    summariser = models.CharField(max_length=80, blank=True)
    summarisers_tried = models.JSONField(default=list)  # engine.steps.SummariserTry
    rungs = models.JSONField(default=list)  # engine.steps.RungReport
    mechanical_state = models.JSONField(default=dict)
    warnings = models.JSONField(default=list)
    retention = models.JSONField(default=dict)  # engine.retention.Retention
    unsupported = models.JSONField(default=list)  # engine.grounding.Unsupported
    coverage_status = models.CharField(max_length=20, choices=_choices(CoverageStatus), blank=True)
    estimator = models.CharField(max_length=10, blank=True, default="chars")  # which one made its estimates
    tokens_before = models.PositiveBigIntegerField(null=True, blank=True)
    tokens_before_origin = models.CharField(max_length=10, blank=True)
    tokens_before_scope = models.CharField(max_length=15, blank=True)
    tokens_after = models.PositiveBigIntegerField(null=True, blank=True)
    tokens_after_origin = models.CharField(max_length=10, blank=True)
    tokens_after_scope = models.CharField(max_length=15, blank=True)
    detail = models.JSONField(default=dict)  # what an agent's own record says beyond these columns
    requested_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["session", "attempt"], name="compaction_attempt"),
            models.UniqueConstraint(fields=["session", "generation"], name="compaction_generation", condition=Q(generation__isnull=False)),
            models.UniqueConstraint(fields=["session"], name="compaction_single_flight", condition=Q(status__in=sorted(OPEN_STATUSES))),
        ]
        indexes = [
            models.Index(fields=["status"], name="compaction_open", condition=Q(status__in=sorted(OPEN_STATUSES))),
            models.Index(
                fields=["session", "divider_index"],
                name="compaction_by_divider",
                condition=Q(lineage=Lineage.CONSOLE.value, generation__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"#{self.generation}" if self.generation else f"a{self.attempt}"

    @property
    def is_open(self) -> bool:
        return self.status in OPEN_STATUSES


class ViewSegment(models.Model):
    """One piece of a checkpoint's view plan, in order (see engine.entries.Segment)."""

    compaction = models.ForeignKey(Compaction, on_delete=models.CASCADE, related_name="segments", db_index=False)
    position = models.PositiveIntegerField()
    kind = models.CharField(max_length=10, choices=_choices(SegmentKind))
    first_index = models.PositiveIntegerField(null=True)
    last_index = models.PositiveIntegerField(null=True)  # null on a range: and all that come later
    payload = models.JSONField(null=True)  # engine.entries.SyntheticMessage
    tokens = models.PositiveIntegerField(default=0)  # of a synthetic message

    class Meta:
        constraints = [models.UniqueConstraint(fields=["compaction", "position"], name="segment_place")]

    def __str__(self) -> str:
        return f"{self.position} {self.kind}"


class ClearedResult(models.Model):
    """A tool result that a checkpoint's view replaces by a placeholder."""

    compaction = models.ForeignKey(Compaction, on_delete=models.CASCADE, related_name="cleared_results", db_index=False)
    entry_index = models.PositiveIntegerField()
    reason = models.CharField(max_length=40, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["compaction", "entry_index"], name="cleared_place")]

    def __str__(self) -> str:
        return str(self.entry_index)


class Lease(models.Model):
    """The right to compact a session. Who holds the token may write; who lost it must stop."""

    session = models.OneToOneField(Session, primary_key=True, on_delete=models.CASCADE, related_name="lease")
    compaction = models.ForeignKey(Compaction, null=True, on_delete=models.CASCADE, related_name="+")
    token = models.UUIDField(null=True)
    expires_at = models.DateTimeField(null=True, db_index=True)

    def __str__(self) -> str:
        return f"{self.session_id} until {self.expires_at}"
