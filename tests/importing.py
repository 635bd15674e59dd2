"""Brings a transcript into the store as a person would: as a file, through the importer."""

import json
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sessions_app.demo.other_stories import SideFiles
from sessions_app.demo.transcript import Transcript
from sessions_app.events.actors import system_actor
from sessions_app.models import PolicyScope, Session
from sessions_app.services import policies, signals
from sessions_app.services.imports import import_paths

ACTOR = system_actor("tests")


def imported(
    transcript: Transcript, children: SideFiles | None = None, *, window: int | None = None, policy: Mapping[str, object] | None = None
) -> Session:
    """The session that importing this transcript gives, with a window and a policy of its own where asked."""
    ended = datetime.now(UTC) - timedelta(hours=1)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / f"{transcript.session_id}.jsonl").write_bytes(transcript.render(ended))
        side = Path(folder) / transcript.session_id / "subagents"
        for child, about in children or []:
            side.mkdir(parents=True, exist_ok=True)
            (side / f"agent-{child.agent_id}.jsonl").write_bytes(child.render(ended))
            (side / f"agent-{child.agent_id}.meta.json").write_text(json.dumps(about))
        import_paths(actor=ACTOR, paths=[folder])
    session = Session.objects.get(source_key__endswith=transcript.session_id, parent=None)
    if window is not None:
        Session.objects.filter(pk=session.pk).update(window_override=window)
    for field, value in (policy or {}).items():
        policies.set_value(actor=ACTOR, scope=PolicyScope.SESSION, scope_id=str(session.pk), field=field, value=value)
    signals.refresh(session.pk)
    session.refresh_from_db()
    return session
