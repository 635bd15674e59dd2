"""What this product keeps of an account beside Django's own columns."""

from django.contrib.auth.models import User
from django.db import models


class OneTimePassword(models.Model):
    """A row says that somebody else made the user's password: it opens nothing but the page that changes it."""

    user = models.OneToOneField(User, primary_key=True, on_delete=models.CASCADE, related_name="one_time_password")
    given_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"one-time password of {self.user_id}"
