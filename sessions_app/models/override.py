"""What people decided about single entries. Rows are only ever added: a later version says what holds now."""

from django.db import models

from sessions_app.models.session import Session


class OverrideKind(models.TextChoices):
    """`pinned`: word for word in every view. `excluded`: never sent."""

    PINNED = "pinned"
    EXCLUDED = "excluded"


class Override(models.Model):
    """One entry of one decision. All rows of a decision have its version; versions count from 1 within a session.

    What holds now stands in `Session.overrides`; these rows tell what held at any time before.
    """

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="override_rows", db_index=False)
    version = models.PositiveIntegerField()
    entry_index = models.PositiveIntegerField()
    kind = models.CharField(max_length=8, choices=OverrideKind.choices)
    is_on = models.BooleanField()
    entry_count = models.PositiveIntegerField()  # of the session at that moment: where in the history it was decided
    actor_name = models.CharField(max_length=150, blank=True)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session", "version", "entry_index", "kind"], name="override_step")]

    def __str__(self) -> str:
        return f"{self.entry_index} {'' if self.is_on else 'not '}{self.kind}"
