"""Runners: programs that own the loop of an agent, and are asked to act on its sessions."""

from django.db import models

from sessions_app.models.ids import new_id
from sessions_app.runners.base import Health, RunnerKind


class Runner(models.Model):
    """One runner. Its credential is never here: `credential_variable` names the variable of the environment that holds it."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    name = models.CharField(max_length=80, unique=True)
    kind = models.CharField(max_length=12, choices=[(kind.value, kind.value) for kind in RunnerKind], default=RunnerKind.HTTP)
    base_url = models.CharField(max_length=500)
    credential_variable = models.CharField(max_length=80, blank=True)
    health = models.CharField(max_length=8, choices=[(health.value, health.value) for health in Health], default=Health.UNKNOWN)
    last_error = models.TextField(blank=True)  # of the last thing that was asked of it; empty once something succeeds
    checked_at = models.DateTimeField(null=True, blank=True)  # when it was last asked anything
    last_seen_at = models.DateTimeField(null=True, blank=True)  # when it last answered
    capabilities = models.JSONField(default=list, blank=True)  # runners.base.Capability
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField(max_length=150, blank=True)

    def __str__(self) -> str:
        return self.name
