"""Policy values, one row each, so that every effective value knows where it comes from."""

from django.db import models


class PolicyScope(models.TextChoices):
    INSTALLATION = "installation"
    PROJECT = "project"
    SESSION = "session"


class PolicyValue(models.Model):
    """One field of a policy, set at one place. `engine.policy.Policy` names the fields and their ranges."""

    scope = models.CharField(max_length=12, choices=PolicyScope.choices)
    scope_id = models.CharField(max_length=36, blank=True)  # of the project or session; empty for the installation
    field = models.CharField(max_length=40)
    value = models.JSONField()
    author = models.CharField(max_length=150, blank=True)
    set_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["scope", "scope_id", "field"], name="policy_value_place"),
        ]

    def __str__(self) -> str:
        return f"{self.scope} {self.field} = {self.value}"


class PolicyRevision(models.Model):
    """One save of a policy, and how far it has reached the columns of the sessions that it concerns. Rows are only ever added."""

    scope = models.CharField(max_length=12, choices=PolicyScope.choices)
    scope_id = models.CharField(max_length=36, blank=True)
    author = models.CharField(max_length=150, blank=True)
    made_at = models.DateTimeField(auto_now_add=True)
    walked_to = models.UUIDField(null=True, blank=True)  # the last session, in the order of ids, whose columns were renewed
    is_spread = models.BooleanField(default=False)  # every session that was there when it was made knows of it

    class Meta:
        indexes = [
            models.Index(fields=["id"], name="policy_revision_due", condition=models.Q(is_spread=False)),
        ]

    def __str__(self) -> str:
        return f"revision {self.pk} of the policy of {self.scope} {self.scope_id}".strip()
