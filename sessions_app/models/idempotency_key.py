"""What was answered to requests that create something and name a key, so that a second one creates nothing."""

from django.db import models


class IdempotencyKey(models.Model):
    """One request, by who sent it and the key that it named. Only `services.idempotency` writes here."""

    digest = models.CharField(primary_key=True, max_length=64)  # sha256 of the actor and the key, in hex
    fingerprint = models.CharField(max_length=64)  # sha256 of what was asked for: method, address, body
    status = models.PositiveSmallIntegerField(default=0)  # 0 while the transaction that makes it is open: nobody else sees that
    body = models.TextField(blank=True)  # the answer, as JSON
    location = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return self.digest
