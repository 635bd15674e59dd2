"""On PostgreSQL, each event keeps the number of the transaction that wrote it: transactions end in another order than they begin."""

from typing import Any

from django.db import migrations

ADD = (
    "ALTER TABLE sessions_app_event ADD COLUMN transaction_number bigint",
    # A step of its own: with it, the step before would write every row anew.
    "ALTER TABLE sessions_app_event ALTER COLUMN transaction_number SET DEFAULT (pg_current_xact_id()::text::bigint)",
    "CREATE INDEX event_by_transaction ON sessions_app_event (transaction_number) WHERE transaction_number IS NOT NULL",
)
REMOVE = ("ALTER TABLE sessions_app_event DROP COLUMN transaction_number",)


def add(_apps: Any, schema_editor: Any) -> None:
    _execute(schema_editor, ADD)


def remove(_apps: Any, schema_editor: Any) -> None:
    _execute(schema_editor, REMOVE)


def _execute(schema_editor: Any, statements: tuple[str, ...]) -> None:
    if schema_editor.connection.vendor == "postgresql":
        for statement in statements:
            schema_editor.execute(statement)


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0006_add_rungs")]

    operations = [migrations.RunPython(add, remove)]
