"""The search index: a ledger of what is indexed, and beside it the indexes of the database in use.

Nothing is indexed here: sessions that are stored already are taken up by the sweep, or by `manage.py index_entries`.
"""

import django.db.models.deletion
from django.db import migrations, models

SQLITE = (
    "CREATE VIRTUAL TABLE search_words USING fts5(text, content='', tokenize='unicode61 remove_diacritics 2')",
    "CREATE VIRTUAL TABLE search_grams USING fts5(text, content='', detail=none, columnsize=0, tokenize='trigram')",
)
POSTGRESQL = (
    "CREATE TABLE search_words (entry_id bigint PRIMARY KEY, words tsvector NOT NULL)",
    "CREATE INDEX search_words_by_word ON search_words USING gin (words)",
    "CREATE TABLE search_grams (block_id bigint PRIMARY KEY, text text NOT NULL)",
)


def make_indexes(apps, schema_editor):
    connection = schema_editor.connection
    for statement in SQLITE if connection.vendor == "sqlite" else POSTGRESQL:
        schema_editor.execute(statement)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'pg_trgm'")
            has_trigrams = cursor.fetchone() is not None
        if has_trigrams:  # without them words are found as fast, and parts of words by reading the whole table
            schema_editor.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
            schema_editor.execute("CREATE INDEX search_grams_by_trigram ON search_grams USING gin (text gin_trgm_ops)")


def drop_indexes(apps, schema_editor):
    schema_editor.execute("DROP TABLE search_grams")
    schema_editor.execute("DROP TABLE search_words")


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0001_create_tables")]

    operations = [
        migrations.CreateModel(
            name="SearchBlock",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("first_index", models.PositiveIntegerField()),
                ("last_index", models.PositiveIntegerField()),
                ("capped", models.PositiveIntegerField(default=0)),
                (
                    "session",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="search_blocks", to="sessions_app.session"
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="searchblock",
            constraint=models.UniqueConstraint(fields=("session", "first_index"), name="search_block_place"),
        ),
        migrations.RunPython(make_indexes, drop_indexes),
    ]
