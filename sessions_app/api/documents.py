"""What the API says of a thing by itself: what lists say of it, and what only its own address tells."""

from sessions_app.models import Session
from sessions_app.selectors.goals import goal_of
from sessions_app.selectors.last_errors import last_error
from sessions_app.selectors.runners import runner_line
from sessions_app.selectors.session_list import row_of
from sessions_app.selectors.verdicts import Evaluation, evaluation_of, resting_of
from sessions_app.shapes import Shape, iso, session_shape


def session_document(session: Session) -> Shape:
    """A session from its row with `project`, `parent`, `running` and both active checkpoints; no query."""
    evaluation, resting = evaluation_of(session), resting_of(session)
    running = session.running if session.running and session.running.is_open else None
    return session_shape(row_of(session)) | {
        "project_id": session.project_id,
        "agent_version": session.agent_version or None,
        "provider": session.provider or None,
        "window_override": session.window_override,
        "trigger_source": session.trigger_source,
        "foldable_to": session.foldable_to,
        "unfoldable_reason": session.unfoldable_reason or None,
        "context": "agent" if session.active_agent_id and not session.active_console_id else "console",
        "generation": {
            "agent": session.active_agent.generation if session.active_agent else None,
            "console": session.active_console.generation if session.active_console else None,
        },
        "active_compaction": {"id": running.pk, "status": running.status, "phase": running.phase or None} if running else None,
        "evaluation": {
            "fires": evaluation.fires,
            "reason": evaluation.reason,
            "explanation": evaluation.explanation,
            "at": iso(evaluation.at),
        }
        if evaluation
        else None,
        "breaker": {"failures": resting.failures, "rests_until": iso(resting.until)},
        "parent_session_id": session.parent_id,
        "relation": session.relation or None,
        "archived": session.archived,
        "created_at": iso(session.created_at),
        "started_at": iso(session.started_at),
    }


def opened_document(session: Session, last_seq: int) -> Shape:
    """The same, with what only its own address tells; up to six queries. `last_seq`: where its stream was before the row was read."""
    runner, error, goal = runner_line(session), last_error(session), goal_of(session)
    said = {"id": runner.id, "name": runner.name, "health": runner.health, "external_id": runner.external_id or None} if runner else None
    return session_document(session) | {
        "runner": said,
        "unknown_outcome": runner.undecided if runner else None,
        "last_error": {"of": error.of, "reason": error.reason, "message": error.message, "at": iso(error.at)} if error else None,
        "goal": {"text": goal.text, "is_set": goal.is_set} if goal.text else None,
        "last_seq": last_seq,
    }


def _evaluation(evaluation: Evaluation) -> Shape:
    said = {"fires": evaluation.fires, "trigger": evaluation.trigger, "reason": evaluation.reason, "explanation": evaluation.explanation}
    return said | {"at": iso(evaluation.at)}
