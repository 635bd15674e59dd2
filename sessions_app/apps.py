"""The application's configuration."""

from django.apps import AppConfig


class SessionsAppConfig(AppConfig):
    name = "sessions_app"
    verbose_name = "Palimpsest"

    def ready(self) -> None:
        """Has the search index forget what is deleted, whoever deletes it."""
        from sessions_app.services import search_index  # noqa: PLC0415  models must be loaded before

        search_index.forget_what_is_deleted()
