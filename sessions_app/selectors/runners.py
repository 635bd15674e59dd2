"""Runners as pages and the API name them."""

import uuid

from sessions_app.models import Runner


def runner_named(text: str) -> Runner | None:
    """The runner of this name or id; None when there is none. One query."""
    try:
        return Runner.objects.filter(pk=uuid.UUID(text)).first()
    except ValueError:
        return Runner.objects.filter(name=text).first() if "\0" not in text else None
