"""Tokens by which programs ask the API for something in the name of a person."""

from django.contrib.auth.models import User
from django.db import models
from django.db.models import Q

from sessions_app.models.ids import new_id


class AccessToken(models.Model):
    """One token. Its secret is shown once, when it is made: what is kept is a hash. Only `services.tokens` writes here."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    name = models.CharField(max_length=100)
    owner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="access_tokens")
    scopes = models.JSONField(default=list)  # of `permissions.Scope`, in their order
    digest = models.CharField(max_length=64, unique=True)  # sha256 of the secret, in hex: a secret of 256 bits needs nothing slower
    hint = models.CharField(max_length=16)  # how the secret begins: enough to tell it by, not to guess it by
    created_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)  # to the minute
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["name"], name="access_token_name", condition=Q(revoked_at__isnull=True)),
        ]

    def __str__(self) -> str:
        return self.name
