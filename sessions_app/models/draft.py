"""What a compaction would commit once a person agrees, and the versions of its summary."""

from django.db import models

from sessions_app.models.compaction import Compaction


class Draft(models.Model):
    """The result of an attempt that stopped before its commit. Kept after its end: it tells what was reviewed."""

    compaction = models.OneToOneField(Compaction, primary_key=True, on_delete=models.CASCADE, related_name="draft")
    result = models.JSONField()  # engine.steps.Commit, as the engine returned it: no model is needed to commit it
    built_on = models.ForeignKey(Compaction, null=True, on_delete=models.SET_NULL, related_name="+")  # the checkpoint in force then
    off_branch = models.JSONField(default=list)  # indexes before the boundary that its plan left out
    entry_count = models.PositiveIntegerField()  # of the session then: what came later is in the tail of a later commit
    drafted_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"draft of {self.compaction_id}"


class SummaryVersion(models.Model):
    """One wording of a draft's summary. Version 1 is the summariser's; rows are only ever added."""

    compaction = models.ForeignKey(Compaction, on_delete=models.CASCADE, related_name="summary_versions", db_index=False)
    version = models.PositiveIntegerField()
    text = models.TextField()
    sha256 = models.CharField(max_length=64)
    author = models.CharField(max_length=150)
    tokens_after = models.PositiveBigIntegerField()  # estimate of the view with this wording
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["compaction", "version"], name="summary_version")]

    def __str__(self) -> str:
        return f"version {self.version}"
