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
