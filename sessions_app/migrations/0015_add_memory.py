"""What is kept of sessions beyond them: facts of a project, and the receipts of the flushes that brought them. Two new tables."""

import django.db.models.deletion
from django.db import migrations, models

from sessions_app.models.ids import new_id

_STATUSES = [
    *("not_required", "pending", "safe", "noop_no_memory", "archive_only", "degraded_forensic"),
    *("unsafe", "failed_retryable", "repaired", "unknown"),
]
_MODES = ["off", "protect", "best_effort", "block"]
_KINDS = ["constraint", "preference", "decision", "command", "identifier", "reference", "fact"]
_OPEN = ["pending", "failed_retryable", "degraded_forensic"]


def _key(to, on_delete, **options):
    return models.ForeignKey(on_delete=on_delete, to=f"sessions_app.{to}", **({"related_name": "+"} | options))


CASCADE, SET_NULL = django.db.models.deletion.CASCADE, django.db.models.deletion.SET_NULL


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0014_narrow_event_indexes")]

    operations = [
        migrations.CreateModel(
            name="MemoryFlush",
            fields=[
                (
                    "compaction",
                    models.OneToOneField(
                        on_delete=CASCADE,
                        primary_key=True,
                        related_name="memory_flush",
                        serialize=False,
                        to="sessions_app.compaction",
                    ),
                ),
                ("session", _key("session", CASCADE, db_index=False)),
                ("project", _key("project", SET_NULL, null=True)),
                ("mode", models.CharField(choices=[(word, word) for word in _MODES], max_length=12)),
                ("status", models.CharField(choices=[(word, word) for word in _STATUSES], default="pending", max_length=20)),
                ("receipt", models.JSONField(null=True)),
                ("first_index", models.PositiveIntegerField()),
                ("last_index", models.PositiveIntegerField()),
                ("prefix_hash", models.BinaryField(default=b"", max_length=32)),
                ("tries", models.PositiveSmallIntegerField(default=1)),
                ("token", models.UUIDField(null=True)),
                ("expires_at", models.DateTimeField(null=True)),
                ("retry_at", models.DateTimeField(null=True)),
                ("asked_by", models.CharField(blank=True, max_length=150)),
                ("started_at", models.DateTimeField()),
                ("finished_at", models.DateTimeField(null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(condition=models.Q(("status", "pending")), fields=("session",), name="memory_single_flight")
                ],
                "indexes": [models.Index(condition=models.Q(("status__in", _OPEN)), fields=["status"], name="memory_to_repair")],
            },
        ),
        migrations.CreateModel(
            name="MemoryFact",
            fields=[
                ("id", models.UUIDField(default=new_id, editable=False, primary_key=True, serialize=False)),
                ("project", _key("project", CASCADE, related_name="facts", db_index=False)),
                ("session", _key("session", SET_NULL, null=True)),
                ("compaction", _key("compaction", SET_NULL, null=True)),
                ("kind", models.CharField(choices=[(word, word) for word in _KINDS], max_length=12)),
                ("text", models.CharField(blank=True, max_length=400)),
                ("digest", models.CharField(max_length=64)),
                ("entry_indexes", models.JSONField(default=list)),
                ("by_model", models.BooleanField(default=False)),
                ("author", models.CharField(blank=True, max_length=150)),
                ("created_at", models.DateTimeField()),
                ("forgotten_at", models.DateTimeField(null=True)),
                ("forgotten_by", models.CharField(blank=True, max_length=150)),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("project", "digest"), name="memory_fact_once")],
                "indexes": [
                    models.Index(condition=models.Q(("forgotten_at__isnull", True)), fields=["project", "id"], name="memory_fact_place")
                ],
            },
        ),
    ]
