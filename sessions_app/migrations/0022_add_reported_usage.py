"""What an agent says that its context holds, beside what its calls measured."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0021_renew_search_words")]

    operations = [migrations.AddField("session", "usage_reported", models.JSONField(blank=True, null=True))]
