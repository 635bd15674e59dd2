"""Background imports."""

from django.db import models

from sessions_app.models.ids import new_id


class ImportState(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class ImportRun(models.Model):
    """One upload or one command's import. `files` lists, per source, what came of it."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    state = models.CharField(max_length=10, choices=ImportState.choices, default=ImportState.QUEUED)
    requested_by = models.CharField(max_length=150, blank=True)
    name = models.CharField(max_length=300)  # what was given: a file's name, or paths
    staged_path = models.CharField(max_length=1000, blank=True)  # where an upload waits
    files = models.JSONField(default=list)
    counts = models.JSONField(default=dict)  # sessions_new, sessions_grown, unchanged, failed, entries, bytes
    error = models.TextField(blank=True)
    cancel_requested = models.BooleanField(default=False)
    heartbeat_at = models.DateTimeField(null=True)
    requested_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.name} {self.state}"
