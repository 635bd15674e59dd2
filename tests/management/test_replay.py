"""The commands replay and fork."""

import json

import pytest

from sessions_app.management.exits import CommandFailure
from sessions_app.models import Compaction, Session
from tests.management.commands import run
from tests.services.compaction_scenes import history_digest, long_session

pytestmark = pytest.mark.django_db


def test_replay_sets_policies_side_by_side_and_stores_nothing(tmp_path):
    session = long_session(40)
    (tmp_path / "late.json").write_text('{"threshold_pct": 0.9}')
    out, err, end = run("replay", session.pk, "--policy", tmp_path / "late.json", "--set", "early.threshold_pct=0.4", "--json")
    late, early = json.loads(out)["policies"]
    assert (end, late["name"], early["name"]) == (0, "late", "early")
    assert early["differs"] == {"threshold_pct": 0.4}
    assert len(early["compactions"]) > len(late["compactions"])
    assert early["tokens_sent"] < late["tokens_sent"]
    assert early["probe_score"] == sum(one["found"] for one in early["probes"]) / len(early["probes"])
    assert all(one["question"].endswith(f"at entry {one['entry']}?") for one in early["probes"])
    assert json.loads(err.splitlines()[0])["policy"] == "late"
    assert not Compaction.objects.exists()


def test_a_single_policy_is_compared_with_the_one_in_force():
    out, _, _ = run("replay", long_session(6).pk, "--set", "a.profile=coding")
    assert [line.split()[0] for line in out.splitlines()] == ["POLICY", "current", "a"]


@pytest.mark.parametrize(
    ("setting", "differs"),
    [
        ("threshold_pct=50", {"threshold_pct": 0.5}),
        ("threshold_pct=0.5", {"threshold_pct": 0.5}),
        ("cap_tokens=5k", {"cap_tokens": 5_000}),
        ("clear_results=off", {"clear_results": False}),
        ("total_timeout_s=300", {"total_timeout_s": 300}),
    ],
)
def test_a_value_is_written_as_on_the_page_of_a_policy(setting, differs):
    out = run("replay", long_session(6).pk, "--set", f"a.{setting}", "--json")[0]
    assert json.loads(out)["policies"][1]["differs"] == differs


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("a.threshold_pct=7", "a: Trigger must lie between 10 % and 95 %, not at 7 %"),
        ("a.threshold_pct=nan", "a: Trigger: 'nan' is no number that is understood here"),
        ("a.nothing=1", "no field 'nothing'"),
        ("nonsense", "not NAME.FIELD=VALUE"),
    ],
)
def test_a_policy_that_cannot_be_is_refused_in_words(option, words):
    with pytest.raises(CommandFailure, match=words):
        run("replay", long_session(6).pk, "--set", option)


def test_fork_prints_the_id_of_a_session_with_the_same_history():
    session = long_session()
    out, _, end = run("fork", session.pk)
    copy = Session.objects.get(pk=out.strip())
    assert end == 0
    assert history_digest(copy) == history_digest(session)
