"""What each rung of the ladder came to, on the attempt that climbed it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0005_index_events")]

    operations = [
        migrations.AddField("compaction", "rungs", models.JSONField(default=list)),
    ]
