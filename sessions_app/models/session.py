"""Projects and sessions."""

from typing import Self

from django.db import models
from django.db.models import Q

from sessions_app.models.ids import new_id


class SessionKind(models.TextChoices):
    """Whose context a session is (`imported`: a copy of what some agent wrote down)."""

    INLINE = "inline"
    OWNED = "owned"
    JOINED = "joined"
    OBSERVED = "observed"
    IMPORTED = "imported"


class SessionStatus(models.TextChoices):
    WORKING = "working"
    WAITING = "waiting"
    COMPACTING = "compacting"
    IDLE = "idle"
    STALE = "stale"
    FAILED = "failed"
    GONE = "gone"


BUSY_STATUSES = frozenset({SessionStatus.WORKING, SessionStatus.WAITING})


class SessionRelation(models.TextChoices):
    SUB_AGENT = "sub_agent"
    FORK = "fork"
    CONTINUATION = "continuation"


class Project(models.Model):
    """Where sessions belong: a repository root or working directory, or a name that somebody gave."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    key = models.CharField(max_length=500, unique=True)
    name = models.CharField(max_length=200)

    def __str__(self) -> str:
        return self.name


class SessionQuerySet(models.QuerySet["Session"]):
    def listed(self) -> Self:
        """Sessions that stand in lists: whole, not archived, not a sub-agent of another one."""
        return self.filter(is_complete=True, archived=False).exclude(relation=SessionRelation.SUB_AGENT)


class Session(models.Model):
    """One conversation of one agent. Sums and signal are kept here so that a list reads one row a session."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    project = models.ForeignKey(Project, null=True, blank=True, on_delete=models.SET_NULL, related_name="sessions")
    title = models.CharField(max_length=300)
    title_source = models.CharField(max_length=20, blank=True)
    agent = models.CharField(max_length=40)
    agent_version = models.CharField(max_length=40, blank=True)
    model = models.CharField(max_length=100, blank=True)
    provider = models.CharField(max_length=20, blank=True, default="")  # of an inline session: who answers its turns
    window_override = models.PositiveIntegerField(null=True, blank=True)  # tokens; somebody set it
    window_reported = models.PositiveIntegerField(null=True, blank=True)  # tokens; the agent's file says so. Else the model table decides
    kind = models.CharField(max_length=10, choices=SessionKind.choices, default=SessionKind.IMPORTED)
    runner = models.ForeignKey("Runner", null=True, blank=True, on_delete=models.SET_NULL, related_name="sessions", db_index=False)
    external_id = models.CharField(max_length=200, blank=True, default="", db_default="")  # what its runner calls it; empty: by our own id
    unbound_kind = models.CharField(max_length=10, blank=True, default="", db_default="")  # what its kind is again without its runner
    status = models.CharField(max_length=12, choices=SessionStatus.choices, default=SessionStatus.IDLE)
    parent = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="children")
    relation = models.CharField(max_length=12, choices=SessionRelation.choices, blank=True)
    parent_call_id = models.CharField(max_length=200, blank=True)  # the parent's call that this session answers
    source_key = models.CharField(max_length=400, unique=True)  # agent and source id: a second import finds it again
    copied_from = models.CharField(max_length=400, blank=True, default="")  # key of the session whose rows its source begins with
    first_source_id = models.CharField(max_length=200, blank=True, default="")  # of its first entry: a copy of a whole session has it, too
    inherited_count = models.PositiveIntegerField(default=0)  # entries that are copies; what they cost is counted where they are from
    working_directory = models.CharField(max_length=500, blank=True)
    branch = models.CharField(max_length=200, blank=True)
    goal = models.TextField(blank=True, default="", db_default="")  # that somebody set; else engine.goal finds it in the messages
    labels = models.JSONField(default=list, blank=True)
    archived = models.BooleanField(default=False)
    is_complete = models.BooleanField(default=True)  # False while its first import is under way

    entry_count = models.PositiveIntegerField(default=0)
    tokens_total = models.PositiveBigIntegerField(default=0)  # estimate over all sendable entries
    head_hash = models.BinaryField(max_length=32, default=b"")  # rolling prefix hash after the last entry
    compaction_count = models.PositiveIntegerField(default=0)  # checkpoints, of both lineages
    last_generation = models.PositiveIntegerField(default=0)  # numbers are never reused, so they are counted here
    last_attempt = models.PositiveIntegerField(default=0)
    active_agent = models.ForeignKey("Compaction", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    active_console = models.ForeignKey("Compaction", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    running = models.ForeignKey("Compaction", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")

    # The signal of the default context, kept by the writers so that no page has to derive it.
    signal_tokens = models.PositiveBigIntegerField(null=True, blank=True)
    signal_origin = models.CharField(max_length=10, blank=True)
    signal_scope = models.CharField(max_length=15, blank=True)
    signal_measured = models.PositiveBigIntegerField(null=True, blank=True)
    signal_measured_at = models.CharField(max_length=40, blank=True)
    signal_appended = models.PositiveBigIntegerField(default=0)  # estimate of what came after the measurement
    calibration_factor = models.FloatField(default=1.0)  # measured tokens for each estimated one: engine.calibration
    calibration_overhead = models.PositiveIntegerField(default=0)  # tokens of what no entry holds: system prompt and tools
    calibration_prompts = models.PositiveIntegerField(default=0)  # measured prompts behind the two; 0: not calibrated
    usage_reported = models.JSONField(null=True, blank=True)  # what its agent says that its context held, when it had so many entries
    window = models.PositiveIntegerField(default=128_000)  # effective, in tokens
    trigger_tokens = models.PositiveIntegerField(default=102_400)
    trigger_source = models.CharField(max_length=12, blank=True, default="default")  # where the value that decides it was set
    pressure = models.FloatField(default=0.0)  # signal ÷ window
    foldable_to = models.PositiveBigIntegerField(null=True, blank=True)  # about how many tokens a compaction would leave
    unfoldable_reason = models.CharField(max_length=40, blank=True)  # an engine.terms.SkipReason when there is nothing to fold
    composition = models.JSONField(default=dict, blank=True)  # tokens by what fills the view: block, results, text …

    overrides = models.JSONField(default=dict, blank=True)  # engine.overrides.Overrides: what holds now, so that no page has to ask

    evaluation = models.JSONField(default=dict, blank=True)  # why automatic compaction last did or did not fire
    breaker_failures = models.PositiveIntegerField(default=0)  # automatic compactions that failed in a row
    breaker_failed_at = models.DateTimeField(null=True, blank=True)  # the last of them
    refill_warning = models.TextField(blank=True, default="")  # why compacting makes no headway; empty while it does

    failure_count = models.PositiveIntegerField(default=0)  # results that were errors
    warning_count = models.PositiveIntegerField(default=0)  # problems in its parse report
    started_at = models.DateTimeField(null=True, blank=True)
    last_activity_at = models.DateTimeField(db_index=True)
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)

    objects = SessionQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["-last_activity_at", "-id"], name="session_by_activity"),
            models.Index(fields=["-pressure", "-id"], name="session_by_pressure"),
            models.Index(fields=["-entry_count", "-id"], name="session_by_entries"),
            models.Index(fields=["title", "id"], name="session_by_title"),
            models.Index(fields=["status"], name="session_busy", condition=~Q(status="idle")),
            models.Index(fields=["runner"], name="session_by_runner", condition=Q(runner__isnull=False)),
            models.Index(fields=["copied_from"], name="session_by_origin", condition=~Q(copied_from="")),
            models.Index(fields=["first_source_id"], name="session_by_first", condition=~Q(first_source_id="")),
            # All that the counts above the list read, so that they read no rows: a row is a hundred times as long.
            models.Index(
                fields=[
                    "agent",
                    "model",
                    "project",
                    "archived",
                    "is_complete",
                    "relation",
                    "status",
                    "running",
                    "pressure",
                    "signal_tokens",
                    "trigger_tokens",
                    "breaker_failures",
                    "refill_warning",
                ],
                name="session_facets",
            ),
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def is_busy(self) -> bool:
        return self.status in BUSY_STATUSES
