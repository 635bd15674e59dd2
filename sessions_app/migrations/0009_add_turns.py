"""Turns of the sessions that this product holds itself, and who answers them."""

import django.db.models.deletion
from django.db import migrations, models

import sessions_app.models.ids


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0008_add_verification")]

    operations = [
        migrations.AddField("session", "provider", models.CharField(blank=True, default="", max_length=20)),
        migrations.CreateModel(
            name="Turn",
            fields=[
                ("id", models.UUIDField(default=sessions_app.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ("number", models.PositiveIntegerField()),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("queued", "Queued"),
                            ("running", "Running"),
                            ("completed", "Completed"),
                            ("failed", "Failed"),
                            ("cancelled", "Cancelled"),
                            ("withdrawn", "Withdrawn"),
                        ],
                        default="queued",
                        max_length=10,
                    ),
                ),
                ("text", models.TextField()),
                ("sent_by", models.CharField(blank=True, max_length=150)),
                ("user_index", models.PositiveIntegerField(blank=True, null=True)),
                ("answer_index", models.PositiveIntegerField(blank=True, null=True)),
                ("answer_text", models.TextField(blank=True)),
                ("provider", models.CharField(blank=True, max_length=20)),
                ("model", models.CharField(blank=True, max_length=100)),
                ("view_hash", models.CharField(blank=True, max_length=64)),
                ("calls", models.PositiveSmallIntegerField(default=0)),
                ("usage", models.JSONField(null=True)),
                ("reason", models.CharField(blank=True, max_length=40)),
                ("explanation", models.TextField(blank=True)),
                ("cancel_requested", models.BooleanField(default=False)),
                ("lease_token", models.UUIDField(blank=True, null=True)),
                ("lease_expires_at", models.DateTimeField(blank=True, null=True)),
                ("sent_at", models.DateTimeField()),
                ("queued_at", models.DateTimeField()),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("answered_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "compaction",
                    models.ForeignKey(
                        blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="sessions_app.compaction"
                    ),
                ),
                (
                    "retry_of",
                    models.ForeignKey(
                        blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="sessions_app.turn"
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="turns", to="sessions_app.session"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(condition=models.Q(("status__in", ["queued", "running"])), fields=["status"], name="turn_open"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("session", "number"), name="turn_place"),
                    models.UniqueConstraint(condition=models.Q(("status", "running")), fields=("session",), name="turn_single_flight"),
                ],
            },
        ),
    ]
