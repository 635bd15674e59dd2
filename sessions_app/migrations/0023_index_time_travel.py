"""What was in force when an entry was the newest is told by two rows: the checkpoint with the last divider until then, and the last revert."""

from django.db import migrations, models

BY_DIVIDER = models.Index(
    fields=["session", "divider_index"],
    name="compaction_by_divider",
    condition=models.Q(lineage="console", generation__isnull=False),
)
REVERTS = models.Index(fields=["stream", "seq"], name="event_reverts", condition=models.Q(type="compaction.reverted"))


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0022_add_reported_usage")]

    operations = [migrations.AddIndex("compaction", BY_DIVIDER), migrations.AddIndex("event", REVERTS)]
