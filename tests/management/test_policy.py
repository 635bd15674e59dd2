"""`manage.py policy`: what holds where, and what an admin changes."""

import json

import pytest

from sessions_app.engine.policy_fields import FIELDS
from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.models import Event, PolicyValue, Project
from tests.management.commands import run
from tests.services.compaction_scenes import fresh, long_session

pytestmark = pytest.mark.django_db(transaction=True)


def document(*arguments: object, **options: object) -> dict:
    return json.loads(run("policy", *arguments, as_json=True, **options)[0])


def stored() -> dict[str, object]:
    return dict(PolicyValue.objects.values_list("field", "value"))


def test_every_field_is_told_with_its_value_its_range_and_where_it_is_from():
    told = document()
    assert (told["object"], told["scope"], list(told["values"])) == ("policy", "installation", list(FIELDS))
    trigger = told["values"]["threshold_pct"]
    assert (trigger["value"], trigger["source"], trigger["own"], trigger["range"]) == ("80 %", "default", None, "10 % to 95 %")
    out = run("policy")[0]
    assert all(name in out for name in FIELDS)


def test_values_are_set_as_the_page_writes_them_and_reset_to_what_is_above():
    project = Project.objects.create(key="/srv/pay", name="Payments")
    session = long_session(40, project=project)
    out, _, end = run("policy", "--set", "threshold_pct=70", "cap_tokens=160k")
    assert (end, "160,000" in out, stored()) == (Exit.OK, True, {"threshold_pct": 0.7, "cap_tokens": 160_000})
    run("policy", "--project", "Payments", "--set", "threshold_pct=60 %")
    told = document("--session", session.pk)["values"]
    assert [(told[name]["value"], told[name]["source"]) for name in ("threshold_pct", "cap_tokens")] == [
        ("60 %", "project"),
        ("160,000", "installation"),
    ]
    assert fresh(session).trigger_tokens == int(0.6 * session.window)
    assert document("--project", "/srv/pay", "--reset", "threshold_pct")["values"]["threshold_pct"]["source"] == "installation"
    event = Event.objects.filter(type="policy.changed").latest("pk")
    assert (event.before, event.after) == ({"threshold_pct": 0.6}, None)


def test_what_is_so_already_is_told_and_writes_no_event():
    run("policy", "--set", "profile=coding")
    out, err, end = run("policy", "--set", "profile=coding")
    assert (end, out, "Nothing was changed" in err) == (Exit.NOTHING_TO_DO, "", True)
    assert Event.objects.filter(type="policy.changed").count() == 1


@pytest.mark.parametrize(
    ("arguments", "field", "said"),
    [
        (("--set", "threshold_pct=5"), "threshold_pct", "between 10 % and 95 %"),
        (("--set", "threshold_pct"), "threshold_pct", "FIELD=VALUE"),
        (("--set", "threshold=70"), "set", "no field 'threshold'"),
        (("--reset", "x" * 500), "reset", "A policy has no field"),
        (("--set", "summarisers=nobody"), "summarisers", "nobody"),
        (("--set", "profile=coding", "--reset", "profile"), "profile", "at once"),
        (("--set", "target_fraction=20", "keep_recent_fraction=80"), "keep_recent_fraction", "Nothing was changed"),
        (("--set", "threshold_pct=50", "threshold_pct=60"), "threshold_pct", "threshold_pct is set twice. Nothing was changed."),
        (("--project", "nobody's"), "project", "no project"),
    ],
)
def test_what_cannot_be_is_told_with_its_field_and_changes_nothing(arguments, field, said):
    with pytest.raises(CommandFailure, match=said) as failure:
        run("policy", *arguments)
    assert failure.value.end in (Exit.USAGE, Exit.NOT_FOUND)
    assert failure.value.field == field
    assert stored() == {}


def test_all_may_look_and_admins_alone_may_change(support):
    assert document(acting_as=support.username)["scope"] == "installation"
    with pytest.raises(CommandFailure, match="may not manage policies") as failure:
        run("policy", "--set", "profile=coding", acting_as=support.username)
    assert (failure.value.end, stored()) == (Exit.REFUSED, {})
    assert Event.objects.filter(type="access.refused").count() == 1
