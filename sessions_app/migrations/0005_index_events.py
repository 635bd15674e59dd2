"""Indexes for the audit page: each filter walks one of them in the order of time."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0004_session_origins")]

    operations = [
        migrations.AddIndex("event", models.Index(fields=["at"], name="event_by_time")),
        migrations.AddIndex("event", models.Index(fields=["type", "at"], name="event_by_type")),
        migrations.AddIndex("event", models.Index(fields=["actor_name", "at"], name="event_by_actor")),
        migrations.AddIndex("event", models.Index(fields=["target_id", "at"], name="event_by_target")),
        migrations.AddIndex("event", models.Index(fields=["stream", "at"], name="event_by_stream")),
        migrations.AddIndex("event", models.Index(fields=["result", "at"], name="event_by_result")),
        migrations.AddIndex("event", models.Index(fields=["request_id", "at"], name="event_by_request")),
        migrations.AddIndex("event", models.Index(fields=["gesture_id", "at"], name="event_by_gesture")),
    ]
