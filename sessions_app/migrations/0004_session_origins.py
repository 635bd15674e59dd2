"""What a session was copied from, the window that its agent reports, and which estimator counted an entry."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0003_one_time_passwords")]

    operations = [
        migrations.AddField("session", "copied_from", models.CharField(max_length=400, blank=True, default="")),
        migrations.AddField("session", "first_source_id", models.CharField(max_length=200, blank=True, default="")),
        migrations.AddField("session", "inherited_count", models.PositiveIntegerField(default=0)),
        migrations.AddField("session", "window_reported", models.PositiveIntegerField(null=True, blank=True)),
        migrations.AddIndex("session", models.Index(fields=["copied_from"], name="session_by_origin", condition=~Q(copied_from=""))),
        migrations.AddIndex("session", models.Index(fields=["first_source_id"], name="session_by_first", condition=~Q(first_source_id=""))),
        # Nullable: adding it must not write a large table anew.
        migrations.AddField("entry", "estimator_version", models.PositiveSmallIntegerField(null=True)),
    ]
