"""What a commit's summary kept of the facts that it stands for, and what it says that no entry does."""

from django.db import migrations, models

COVERAGE_STATUSES = ["pass", "pass_with_backfill", "warn", "fail_blocked", "unknown"]


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0007_number_transactions")]

    operations = [
        migrations.AddField("compaction", "retention", models.JSONField(default=dict)),
        migrations.AddField("compaction", "unsupported", models.JSONField(default=list)),
        migrations.AddField(
            "compaction",
            "coverage_status",
            models.CharField(blank=True, choices=[(status, status) for status in COVERAGE_STATUSES], max_length=20),
        ),
    ]
