"""Runners, which session is bound to which, and what became of a compaction that one was asked for."""

import django.db.models.deletion
from django.db import migrations, models

import sessions_app.models.ids

RUNNER = {"blank": True, "db_index": False, "null": True, "on_delete": django.db.models.deletion.SET_NULL, "to": "sessions_app.runner"}


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0018_add_access_tokens")]

    operations = [
        migrations.CreateModel(
            name="Runner",
            fields=[
                ("id", models.UUIDField(default=sessions_app.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=80, unique=True)),
                ("kind", models.CharField(choices=[("http", "http")], default="http", max_length=12)),
                ("base_url", models.CharField(max_length=500)),
                ("credential_variable", models.CharField(blank=True, max_length=80)),
                (
                    "health",
                    models.CharField(choices=[("unknown", "unknown"), ("up", "up"), ("down", "down")], default="unknown", max_length=8),
                ),
                ("last_error", models.TextField(blank=True)),
                ("checked_at", models.DateTimeField(blank=True, null=True)),
                ("last_seen_at", models.DateTimeField(blank=True, null=True)),
                ("capabilities", models.JSONField(blank=True, default=list)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("created_by", models.CharField(blank=True, max_length=150)),
            ],
        ),
        migrations.AddField("session", "runner", models.ForeignKey(related_name="sessions", **RUNNER)),
        migrations.AddField("session", "external_id", models.CharField(blank=True, db_default="", default="", max_length=200)),
        migrations.AddField("session", "unbound_kind", models.CharField(blank=True, db_default="", default="", max_length=10)),
        migrations.AddIndex("session", models.Index(condition=models.Q(runner__isnull=False), fields=["runner"], name="session_by_runner")),
        migrations.AddField("compaction", "through", models.CharField(blank=True, max_length=8, null=True)),
        migrations.AddField("compaction", "runner", models.ForeignKey(related_name="+", **RUNNER)),
        migrations.AddField("compaction", "forwarded_at", models.DateTimeField(blank=True, null=True)),
        migrations.AddField("compaction", "runner_answer", models.PositiveSmallIntegerField(blank=True, null=True)),
        migrations.AddField("compaction", "operation_id", models.CharField(blank=True, max_length=200, null=True)),
        migrations.AddField("compaction", "decided_at", models.DateTimeField(blank=True, null=True)),
    ]
