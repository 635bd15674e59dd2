"""`manage.py view SESSION`: what the model sees of a session, or all that was ever said in it."""

from collections import deque
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import Any, TypeVar

from django.core.management.base import CommandParser

from sessions_app.engine.fates import fate_of
from sessions_app.engine.messages import ViewMessage
from sessions_app.engine.shapes import shape_of
from sessions_app.engine.terms import Lineage, Origin, Role, Scope
from sessions_app.management.arguments import count
from sessions_app.management.base import SessionCommand
from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.management.shapes import Shape, entry_shape, message_shape, tokens
from sessions_app.management.transcript import entry_lines, message_lines
from sessions_app.selectors import plans
from sessions_app.selectors.chosen_view import ChosenView, chosen_view
from sessions_app.selectors.view_stream import stream_view
from sessions_app.services.access import record_view
from sessions_app.writers.provider_requests import anthropic_messages, openai_messages

Item = TypeVar("Item")
TEXT, CANONICAL, OPENAI, ANTHROPIC = "text", "canonical", "openai", "anthropic"


class Command(SessionCommand):
    help = (
        "Shows a session as its model sees it: the block in place of what was compacted, then what stayed word for word. "
        "With --canonical, all that was ever said, and what became of each entry. Reads as it writes, however long the session is."
    )
    examples = (
        ("view 44c5e046 | less", "the model view"),
        ("view 44c5e046 --canonical --last 20", "the newest 20 entries of the history"),
        ("view 44c5e046 --generation 1", "what the model saw after checkpoint #1, with all that came later"),
        ("view 44c5e046 --at 120", "what it saw when entry 120 was the newest"),
        ("view 44c5e046 --format anthropic > request.json", "the messages of a request"),
        ("view 44c5e046 --jsonl --first 5", "an object a message"),
    )
    has_lines = True

    def add_options(self, parser: CommandParser) -> None:
        what = parser.add_argument_group("what")
        what.add_argument("--canonical", action="store_true", help="the whole history instead of the model view")
        what.add_argument("--context", choices=[one.value for one in Lineage], help="whose: the agent's own, or this console's")
        when = what.add_mutually_exclusive_group()
        when.add_argument("--generation", type=count, metavar="N", help="the view of checkpoint #N; 0 for none")
        when.add_argument("--at", type=count, metavar="ENTRY", help="the view as it was when this entry was the newest")
        part = parser.add_argument_group("how much")
        part.add_argument("--start", type=count, metavar="ENTRY", help="from this entry on")
        ends = part.add_mutually_exclusive_group()
        ends.add_argument("--first", type=count, metavar="N", help="only the first N messages (entries with --canonical)")
        ends.add_argument("--last", type=count, metavar="N", help="only the last N")
        part.add_argument("--clip", type=count, default=0, metavar="CHARS", help="cut each text to so many characters (0: none)")
        how = parser.add_argument_group("how")
        how.add_argument(
            "--format", choices=[TEXT, CANONICAL, OPENAI, ANTHROPIC], default="",
            help="text; canonical is --json; openai and anthropic are the messages of a request",
        )  # fmt: skip
        how.add_argument("--raw", action="store_true", help="control characters as they are: they may act on your terminal")

    def run(self, options: Mapping[str, Any]) -> None:
        wanted = options["format"] or (CANONICAL if self.out.is_json else TEXT)
        if options["canonical"] and wanted in (OPENAI, ANTHROPIC):
            raise CommandFailure("A request is made of the model view: --canonical has no such format.", Exit.USAGE, field="format")
        last = self.session.entry_count - 1
        if options["start"] is not None and options["start"] > last:
            message = f"This session has no entry {options['start']:,}; it has {last + 1:,}, counted from 0."
            raise CommandFailure(message, Exit.NOT_FOUND, field="start")
        context = Lineage(options["context"]) if options["context"] else None
        view = chosen_view(self.session, context=context, generation=options["generation"], at=options["at"])
        record_view(actor=self.actor, session=self.session)
        if wanted in (OPENAI, ANTHROPIC):
            self._tell_request(wanted, _some(self._messages(view, options), options))
        elif options["canonical"]:
            self._tell_history(view, options, is_text=wanted == TEXT)
        else:
            self._tell_view(view, options, is_text=wanted == TEXT)

    def _messages(self, view: ChosenView, options: Mapping[str, Any]) -> Iterator[ViewMessage]:
        start = options["start"]
        for message in stream_view(self.session.pk, view.checkpoint, upto=view.upto):
            if start is None or any(part.entry_index is not None and part.entry_index >= start for part in message.parts):
                yield message

    def _tell_view(self, view: ChosenView, options: Mapping[str, Any], *, is_text: bool) -> None:
        messages = _some(self._messages(view, options), options)
        if not is_text:
            self.out.objects((message_shape(message) for message in messages), self._head(view, "view"))
            return
        look = {"width": self.out.width, "clip": options["clip"], "raw": options["raw"]}
        for message in messages:
            self.out.block(message_lines(message, **look))

    def _tell_history(self, view: ChosenView, options: Mapping[str, Any], *, is_text: bool) -> None:
        first = options["start"] or 0
        if options["last"]:
            first = max(first, (self.session.entry_count if view.upto is None else view.upto + 1) - options["last"])
        entries = _some(plans.load_entries(self.session.pk, first, view.upto, whole=True, for_people=True), options)
        judged = ((entry, fate_of(shape_of(entry), view.chain)) for entry in entries)
        if not is_text:
            self.out.objects((entry_shape(*one) for one in judged), self._head(view, "history"))
            return
        look = {"width": self.out.width, "clip": options["clip"], "raw": options["raw"]}
        for entry, fate in judged:
            self.out.block(entry_lines(entry, fate, **look))

    def _head(self, view: ChosenView, layout: str) -> Shape:
        size = plans.view_tokens(self.session, view.checkpoint) if view.upto is None else None
        return {
            "session_id": self.session.pk,
            "layout": layout,
            "context": view.context.value,
            "generation": view.generation,
            "at": view.upto,
            "size": tokens(size, origin=Origin.ESTIMATED, scope=Scope.VIEW),
        }

    def _tell_request(self, provider: str, messages: Iterator[ViewMessage]) -> None:
        write = openai_messages if provider == OPENAI else anthropic_messages
        items = write(messages, plans.load_blob)
        first = next(items, None)
        head: Shape = {}
        if provider == ANTHROPIC and first is not None and first["role"] == Role.SYSTEM:
            head, first = {"system": first["content"]}, next(items, None)
        self.out.stream(head, "messages", items if first is None else chain((first,), items), {})


def _some(items: Iterator[Item], options: Mapping[str, Any]) -> Iterator[Item]:
    """The first or the last of them, as the options say."""
    if options["first"] is not None:
        return islice(items, options["first"])
    if options["last"] is not None:
        return iter(deque(items, maxlen=options["last"]))
    return items
