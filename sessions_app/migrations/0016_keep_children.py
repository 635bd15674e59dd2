"""A session outlives its parent: somebody else may have imported it. Nothing changes in the database, where deletions never cascaded."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0015_add_memory")]

    operations = [
        migrations.AlterField(
            "session",
            "parent",
            models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="children",
                to="sessions_app.session",
            ),
        )
    ]
