"""`manage.py compare_summaries`: an agent's own summaries beside ours."""

import json
from pathlib import Path

import pytest

from sessions_app.events import deferred
from sessions_app.events.actors import system_actor
from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.models import Event
from sessions_app.services.imports import import_paths
from tests.management.commands import run
from tests.services.compaction_scenes import long_session

pytestmark = pytest.mark.django_db(transaction=True)

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
RECORDED = [
    CORPUS / "claude-code" / "entireio__cli__cd95adddad32-0-full.jsonl",
    CORPUS / "claude-code" / "marot__spotter__258c7280-ae70-4798-800f-63464d01a85d.jsonl",
    *sorted((CORPUS / "generated" / "claude-code").glob("transcript-*.jsonl")),
    *sorted((CORPUS / "generated" / "codex").glob("rollout-*.jsonl")),
]


def test_it_wants_sessions_or_all_of_them_and_not_both():
    for arguments in ([], ["44c5e046", "--all"]):
        with pytest.raises(CommandFailure, match="or say --all") as failure:
            run("compare_summaries", *arguments)
        assert failure.value.end == Exit.USAGE


def test_a_session_whose_agent_left_no_summary_says_so():
    out, err, end = run("compare_summaries", long_session().pk)
    assert (out, end) == ("", Exit.OK)
    assert "No agent of these sessions left a summary" in err


@pytest.mark.skipif(not all(path.exists() for path in RECORDED), reason=f"the recordings are not there ({CORPUS})")
def test_of_recorded_sessions_ours_keeps_as_many_facts_in_no_more_tokens_and_makes_nothing_up():
    import_paths(actor=system_actor("tests"), paths=[str(path) for path in RECORDED])
    found = json.loads(run("compare_summaries", "--all", as_json=True)[0])
    assert len(found["comparisons"]) >= 20
    for one in found["comparisons"]:
        agent, ours = one["agent"], one["ours"]
        assert ours["unsupported"] == [], one
        assert ours["tokens"] <= agent["tokens"] * 1.02, one
        assert ours["kept"] + ours["paraphrased"] >= agent["kept"] + agent["paraphrased"], one
    assert found["total"]["ours"]["kept"] == sum(one["ours"]["kept"] for one in found["comparisons"])
    assert deferred.flush()
    seen = set(Event.objects.filter(type="session.viewed").values_list("target_id", flat=True))
    assert {one["session"] for one in found["comparisons"]} <= seen
    session = max(found["comparisons"], key=lambda one: one["agent"]["tokens"])["session"]
    table = run("compare_summaries", session)[0].splitlines()
    assert [line.split()[0] for line in (table[0], table[-2])] == ["SESSION", "in"]
    assert len(table) == 1 + 2 * sum(one["session"] == session for one in found["comparisons"]) + 2
