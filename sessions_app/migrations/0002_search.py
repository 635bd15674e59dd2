"""The search index: a ledger of what is indexed, and beside it the indexes of the database in use."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0001_create_tables")]

    operations = []
