"""The application's configuration."""

from django.apps import AppConfig


class SessionsAppConfig(AppConfig):
    name = "sessions_app"
    verbose_name = "Palimpsest"

    def ready(self) -> None:
        """Registers the tasks: a worker looks for them by itself, but pages and commands must know them to start them.

        And has the search index forget what is deleted, whoever deletes it.
        """
        from sessions_app import tasks  # noqa: F401, PLC0415  models must be loaded before
        from sessions_app.services import search_index  # noqa: PLC0415

        search_index.forget_what_is_deleted()
