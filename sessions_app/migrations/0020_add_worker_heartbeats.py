"""Signs of life of workers: whether anybody takes what is queued."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0019_add_runners")]

    operations = [
        migrations.CreateModel(
            name="WorkerHeartbeat",
            fields=[
                ("worker", models.CharField(max_length=255, primary_key=True, serialize=False)),
                ("queues", models.JSONField(default=list)),
                ("at", models.DateTimeField()),
            ],
        ),
    ]
