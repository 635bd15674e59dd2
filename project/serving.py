"""The server as an application of Django: for its `runserver`, which must stand before the one of the static files."""

from django.apps import AppConfig


class Server(AppConfig):
    """As `daphne.apps.DaphneConfig`, but nothing is loaded until a server starts: every command would wait for it."""

    name = "daphne"
    verbose_name = "Daphne"
