"""One index that holds all that the counts above the list of sessions read."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0016_keep_children")]

    operations = [
        migrations.AddIndex(
            "session",
            models.Index(
                fields=[
                    "agent", "model", "project", "archived", "is_complete", "relation", "status", "running",
                    "pressure", "signal_tokens", "trigger_tokens", "breaker_failures", "refill_warning",
                ],
                name="session_facets",
            ),
        ),
    ]  # fmt: skip
