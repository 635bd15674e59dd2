"""Users, as far as pages need them."""

from django.contrib.auth.models import User


def id_of_user_named(name: str) -> str:
    """The id of the user with exactly this name, active or not; empty when there is none. One query."""
    identifier = User.objects.filter(username=name).values_list("pk", flat=True).first()
    return "" if identifier is None else str(identifier)
