"""The last evaluation of a session's triggers, its breaker, and what made an attempt start."""

from django.db import migrations, models

STATUSES = [
    "requested", "waiting_for_idle", "running", "completed", "skipped", "stale", "cancelled", "timed_out", "failed", "emergency_ephemeral",
]  # fmt: skip


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0010_add_overrides")]

    operations = [
        migrations.AddField("session", "evaluation", models.JSONField(blank=True, default=dict)),
        migrations.AddField("session", "breaker_failures", models.PositiveIntegerField(default=0)),
        migrations.AddField("session", "breaker_failed_at", models.DateTimeField(blank=True, null=True)),
        migrations.AddField("session", "refill_warning", models.TextField(blank=True, default="")),
        migrations.AddField("compaction", "evaluation", models.JSONField(default=dict)),
        migrations.AddField("compaction", "turn_id", models.UUIDField(blank=True, null=True)),
        migrations.AlterField(
            "compaction",
            "status",
            models.CharField(choices=[(status, status) for status in STATUSES], default="requested", max_length=20),
        ),
    ]
