"""What commands that use the database have in common."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from sessions_app.management.preflight import check_data_directory, prepare_database


class DatabaseCommand(BaseCommand):
    """Finds a database that is there and up to date, as `up` does. Ends in one sentence where that can't be."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        check_data_directory(settings.DATA_DIR)
        prepare_database()
        return super().execute(*args, **options)
