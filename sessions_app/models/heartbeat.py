"""Signs of life of whoever takes tasks."""

from django.db import models


class WorkerHeartbeat(models.Model):
    """A worker gave a sign of life at this time, by the database's clock, and takes from these queues. Gone when it ends in order."""

    worker = models.CharField(max_length=255, primary_key=True)
    queues = models.JSONField(default=list)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.worker} at {self.at:%H:%M:%S}"
