"""`manage.py draft ID`: reads a draft, words its summary otherwise, commits or discards it."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from sessions_app.engine.terms import Status
from sessions_app.management.arguments import count
from sessions_app.management.base import ConsoleCommand
from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.management.shapes import Shape, attempt_shape, iso
from sessions_app.models import Compaction, Session
from sessions_app.permissions import Action, access_session, require
from sessions_app.selectors.compaction_panel import panel_of
from sessions_app.selectors.drafts_page import DraftPage, draft_page, drafts_like
from sessions_app.services.access import record_view
from sessions_app.services.compactions import drafts


class Command(ConsoleCommand):
    help = "Shows a draft: the summary, and what its commit would do to the view. Its id, or a part of it, is in the list of drafts."
    examples = (
        ("draft 33deb9dd", "reads it"),
        ("draft 33deb9dd > s.md; $EDITOR s.md; manage.py draft 33deb9dd --edit s.md", "words it otherwise"),
        ("draft 33deb9dd --commit", "makes it the checkpoint in force; no model is asked"),
        ("draft 33deb9dd --discard", "drops it; the text stays in the ledger"),
    )

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("draft", metavar="ID", help="the draft's id, or the beginning or end of it")
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--edit", metavar="FILE", help="save the text of this file as the next version; - for standard input")
        what.add_argument("--commit", action="store_true", help="commit its latest version")
        what.add_argument("--discard", action="store_true", help="end it without a checkpoint")
        parser.add_argument("--version-number", type=count, metavar="N", help="show this version; with --commit, only if it is the latest")

    def run(self, options: Mapping[str, Any]) -> Exit | None:
        decides = options["commit"] or options["discard"] or options["edit"] is not None
        session, compaction_id = self._find(options["draft"], Action.DRAFT if decides else Action.READ)
        if options["edit"] is not None:
            read = draft_page(session, compaction_id, None)
            saved = drafts.edit(actor=self.actor, session=session, compaction_id=compaction_id, text=_text_of(options["edit"]))
            if read is not None and saved.version == read.latest.version:
                self.out.note(f"Version {saved.version} says this already. Nothing was saved.", version=saved.version)
            else:
                self.out.note(f"Saved as version {saved.version}. Nothing is committed yet.", version=saved.version)
        elif options["commit"]:
            return self._ended(
                drafts.commit_draft(actor=self.actor, session=session, compaction_id=compaction_id, version=options["version_number"])
            )
        elif options["discard"]:
            return self._ended(drafts.discard(actor=self.actor, session=session, compaction_id=compaction_id))
        page = draft_page(session, compaction_id, options["version_number"])
        if page is None:
            raise CommandFailure("This draft has no such version.", Exit.NOT_FOUND)
        record_view(actor=self.actor, session=session)
        self._show(page, with_text=options["edit"] is None)
        return None

    def _find(self, named: str, action: Action) -> tuple[Session, Any]:
        require(self.actor, Action.READ)
        found = drafts_like(named)
        if len(found) > 1:
            raise CommandFailure(f"“{named}” stands for several drafts. Nothing was done. Give more of the id.", Exit.USAGE, field="draft")
        if not found:
            raise CommandFailure(f"There is no draft {named[:40]!r}. Nothing was changed.", Exit.NOT_FOUND)
        session_id, compaction_id = found[0]
        return access_session(self.actor, session_id, action), compaction_id

    def _show(self, page: DraftPage, *, with_text: bool) -> None:
        if self.out.is_json:
            self.out.document(page_shape(page))
            return
        state = page.fitness.why or ("waits for a review" if page.is_waiting else page.decided)
        self.out.note(
            f"Draft a{page.compaction.attempt}, version {page.shown.version} of {page.latest.version} by {page.shown.author}: "
            f"{page.tokens_before:,} → {page.tokens_after:,} tokens of the view, estimated; {state}"
        )
        for warning in page.compaction.warnings:
            self.out.note(warning)
        if with_text:
            self.out.text(page.shown.text + "\n")

    def _ended(self, done: Compaction) -> Exit:
        if self.out.is_json:
            self.out.document(attempt_shape(panel_of(done), lineage=done.lineage))
        elif done.status == Status.COMPLETED:
            self.out.line(f"{done} {done.outcome}: {done.tokens_before or 0:,} → {done.tokens_after or 0:,} tokens of the view, estimated")
        else:
            self.out.line(f"a{done.attempt} {done.status}: {done.explanation}")
        return Exit.FAILED if done.status == Status.STALE else Exit.OK


def page_shape(page: DraftPage) -> Shape:
    """A draft with its text and its versions."""
    return attempt_shape(panel_of(page.compaction), lineage=page.compaction.lineage) | {
        "object": "draft",
        "version": page.shown.version,
        "summary": page.shown.text,
        "view_before": page.tokens_before,
        "view_after": page.tokens_after,
        "is_stale": page.fitness.is_stale,
        "is_blocked": page.fitness.is_blocked,
        "why": page.fitness.why,
        "versions": [
            {"version": one.version, "author": one.author, "at": iso(one.at), "sha256": one.sha256, "view_after": one.tokens_after}
            for one in page.versions
        ],
    }


def _text_of(name: str) -> str:
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return data.decode()
    except OSError as error:
        raise CommandFailure(f"{name} can't be read ({error.strerror}). Nothing was saved.", Exit.USAGE, field="edit") from error
    except UnicodeDecodeError as error:
        raise CommandFailure(f"{name} is no text in UTF-8. Nothing was saved.", Exit.USAGE, field="edit") from error
