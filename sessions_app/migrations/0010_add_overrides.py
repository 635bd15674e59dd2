"""What people decided about single entries: always word for word, or never sent."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0009_add_turns")]

    operations = [
        migrations.AddField("session", "overrides", models.JSONField(blank=True, default=dict)),
        migrations.AddField("compaction", "override_version", models.PositiveIntegerField(default=0)),
        migrations.CreateModel(
            name="Override",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("version", models.PositiveIntegerField()),
                ("entry_index", models.PositiveIntegerField()),
                ("kind", models.CharField(choices=[("pinned", "Pinned"), ("excluded", "Excluded")], max_length=8)),
                ("is_on", models.BooleanField()),
                ("entry_count", models.PositiveIntegerField()),
                ("actor_name", models.CharField(blank=True, max_length=150)),
                ("at", models.DateTimeField(auto_now_add=True)),
                (
                    "session",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="override_rows", to="sessions_app.session"
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("session", "version", "entry_index", "kind"), name="override_step")],
            },
        ),
    ]
