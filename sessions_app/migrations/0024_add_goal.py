"""The goal that a person sets for a session."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0023_index_time_travel")]

    operations = [migrations.AddField("session", "goal", models.TextField(blank=True, default="", db_default=""))]
