"""Empties the search index: what is a word has changed, and emojis, arrows and the like are words now.

The sweep fills it again, or `manage.py index_entries` at once; until then pages say how many entries are not indexed yet.
"""

from django.db import migrations

WORDS = "CREATE VIRTUAL TABLE search_words USING fts5(text, content='', tokenize='unicode61 remove_diacritics {accents}')"


def empty(apps, schema_editor, accents):
    if schema_editor.connection.vendor == "sqlite":
        schema_editor.execute("DROP TABLE search_words")
        schema_editor.execute(WORDS.format(accents=accents))
        schema_editor.execute("INSERT INTO search_grams (search_grams) VALUES ('delete-all')")
    else:
        schema_editor.execute("TRUNCATE search_words, search_grams")
    apps.get_model("sessions_app", "SearchBlock").objects.all().delete()


def renew(apps, schema_editor):
    empty(apps, schema_editor, accents=0)  # texts are told without accents


def go_back(apps, schema_editor):
    empty(apps, schema_editor, accents=2)


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0020_add_worker_heartbeats")]

    operations = [migrations.RunPython(renew, go_back)]
