"""Changes of policies and how far they have spread; what a session's measurements say of its estimates; which estimator an attempt used."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0012_add_drafts")]

    operations = [
        migrations.CreateModel(
            name="PolicyRevision",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "scope",
                    models.CharField(
                        choices=[("installation", "Installation"), ("project", "Project"), ("session", "Session")], max_length=12
                    ),
                ),
                ("scope_id", models.CharField(blank=True, max_length=36)),
                ("author", models.CharField(blank=True, max_length=150)),
                ("made_at", models.DateTimeField(auto_now_add=True)),
                ("walked_to", models.UUIDField(blank=True, null=True)),
                ("is_spread", models.BooleanField(default=False)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["id"], name="policy_revision_due", condition=models.Q(("is_spread", False))),
                ],
            },
        ),
        migrations.AddField("session", "trigger_source", models.CharField(blank=True, default="default", max_length=12)),
        migrations.AddField("session", "calibration_factor", models.FloatField(default=1.0)),
        migrations.AddField("session", "calibration_overhead", models.PositiveIntegerField(default=0)),
        migrations.AddField("session", "calibration_prompts", models.PositiveIntegerField(default=0)),
        migrations.AddField("compaction", "estimator", models.CharField(blank=True, default="chars", max_length=10)),
    ]
