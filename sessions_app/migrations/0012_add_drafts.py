"""Results of compactions that wait for a person, and the versions of their summaries."""

import django.db.models.deletion
from django.db import migrations, models

_STATUSES = [
    *("requested", "waiting_for_idle", "running", "drafted"),
    *("completed", "skipped", "stale", "cancelled", "timed_out", "failed", "emergency_ephemeral"),
]


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0011_add_evaluations")]

    operations = [
        migrations.AlterField(
            "compaction", "status", models.CharField(choices=[(word, word) for word in _STATUSES], default="requested", max_length=20)
        ),
        migrations.CreateModel(
            name="Draft",
            fields=[
                (
                    "compaction",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="draft",
                        serialize=False,
                        to="sessions_app.compaction",
                    ),
                ),
                ("result", models.JSONField()),
                ("off_branch", models.JSONField(default=list)),
                ("entry_count", models.PositiveIntegerField()),
                ("drafted_at", models.DateTimeField(auto_now_add=True)),
                (
                    "built_on",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="sessions_app.compaction"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="SummaryVersion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("version", models.PositiveIntegerField()),
                ("text", models.TextField()),
                ("sha256", models.CharField(max_length=64)),
                ("author", models.CharField(max_length=150)),
                ("tokens_after", models.PositiveBigIntegerField()),
                ("at", models.DateTimeField(auto_now_add=True)),
                (
                    "compaction",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="summary_versions",
                        to="sessions_app.compaction",
                    ),
                ),
            ],
            options={"constraints": [models.UniqueConstraint(fields=("compaction", "version"), name="summary_version")]},
        ),
    ]
