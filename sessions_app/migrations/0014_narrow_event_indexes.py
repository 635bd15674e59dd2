"""Four indexes of events hold only the events that somebody looks for by them: most have no such value, and each entry costs an append."""

from django.db import migrations, models

OF_ALL = (
    models.Index(fields=["target_id", "at"], name="event_by_target"),
    models.Index(fields=["result", "at"], name="event_by_result"),
    models.Index(fields=["request_id", "at"], name="event_by_request"),
    models.Index(fields=["gesture_id", "at"], name="event_by_gesture"),
)
OF_SOME = (
    models.Index(fields=["target_id", "at"], name="event_by_target", condition=models.Q(target_id__gt="")),
    models.Index(fields=["result", "at"], name="event_by_result", condition=models.Q(result__gt="allowed")),
    models.Index(fields=["request_id", "at"], name="event_by_request", condition=models.Q(request_id__gt="")),
    models.Index(fields=["gesture_id", "at"], name="event_by_gesture", condition=models.Q(gesture_id__gt="")),
)


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0013_add_policy_revisions")]

    operations = [
        step
        for old, new in zip(OF_ALL, OF_SOME, strict=True)
        for step in (migrations.RemoveIndex("event", old.name), migrations.AddIndex("event", new))
    ]
