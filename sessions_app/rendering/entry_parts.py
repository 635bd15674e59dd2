"""The parts of an entry, prepared for its template: texts, thinking, cards of calls with their results, images."""

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import orjson
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from sessions_app.engine.entries import Part
from sessions_app.engine.terms import Kind, PartKind, Role
from sessions_app.rendering import tools
from sessions_app.rendering.ansi import ansi_html
from sessions_app.rendering.block_html import section_views
from sessions_app.rendering.code import code_html
from sessions_app.rendering.diffs import diff_html
from sessions_app.rendering.markdown import markdown_html
from sessions_app.rendering.plain import clip, first_line, plain_html, visible
from sessions_app.selectors.history_window import Detail, HistoryItem, SubAgent

INLINE_CHARS = 4_000
"""Longer texts are cut here; the rest is one press away."""

MOST_PARTS = 50
"""So many parts of an entry are shown at once; the rest is one press away. A message may hold thousands of calls."""

OUTPUT_LINES = 14
QUIET_LINES = 3
_SAID = (PartKind.RESULT, PartKind.TEXT)
IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


@dataclass(frozen=True)
class TextView:
    """A text. `more_url` leads to the whole when `html` is only its beginning. `kind`: text, thinking, plain or encrypted."""

    kind: str
    html: SafeString
    length: int
    tokens: int = 0
    more_url: str = ""


@dataclass(frozen=True)
class ImageView:
    """An image that may be shown by its address, or, with `url` empty, only named."""

    url: str
    media_type: str
    size_bytes: int
    width: int
    height: int
    name: str = ""


@dataclass(frozen=True)
class OutputView:
    """What a call answered. `is_cut`: there is more than `html` shows; of a text that is stored elsewhere nobody counted the `lines`."""

    index: int
    html: SafeString
    lines: int | None
    length: int
    tokens: int
    is_cut: bool
    is_prose: bool
    more_url: str
    raw_url: str
    images: tuple[ImageView, ...] = ()


@dataclass(frozen=True)
class CardView:
    """A call and its result as one card."""

    icon: str
    name: str
    what: str
    state: str  # ok, failed, running, unanswered
    state_words: str
    duration_ms: int | None
    added: int
    removed: int
    body: tuple[SafeString, ...]
    arguments: SafeString | None
    outputs: tuple[OutputView, ...]
    sub_agents: tuple[tuple[SubAgent, str, str], ...]  # with the addresses of its entries here, and of its own page
    tokens: int
    raw_url: str


PartView = tuple[str, object]
Placed = tuple[int, Part]
"""A part with its position in its entry."""


@dataclass(frozen=True)
class MoreParts:
    """The parts of an entry that are not shown yet."""

    count: int
    url: str


class _Answers:
    """What the results of an entry's calls say, by call. Each is looked at once: thousands of calls may share an entry."""

    def __init__(self, results: Iterable[HistoryItem]) -> None:
        self._results: dict[str, list[HistoryItem]] = {}
        self._texts: dict[tuple[int, str], list[Placed]] = {}
        self._all = tuple(results)
        for result in self._all:
            for call_id in dict.fromkeys(result.call_ids):
                self._results.setdefault(call_id, []).append(result)
            for position, part in enumerate(result.entry.parts):
                if part.kind in _SAID:
                    self._texts.setdefault((result.index, part.call_id), []).append((position, part))

    def results_of(self, call_id: str) -> Sequence[HistoryItem]:
        return self._results.get(call_id, ()) if call_id else self._all

    def texts_of(self, result: HistoryItem, call_id: str) -> list[Placed]:
        """The texts of a result that answer a call, or say of none which they answer."""
        named = self._texts.get((result.index, call_id), []) if call_id else []
        return sorted([*self._texts.get((result.index, ""), []), *named], key=lambda placed: placed[0])


def part_views(session_id: uuid.UUID, item: HistoryItem, detail: Detail, start: int = 0) -> tuple[list[PartView], MoreParts | None]:
    """Pairs of a kind (`text`, `summary`, `card`, `image`) and its view, in the order of the entry's parts; and what is left."""
    if item.entry.kind is Kind.RESULT:
        return [("card", _lone_result(session_id, item, detail))], None
    views: list[PartView] = []
    answers = _Answers(item.results)
    for position, part in islice(enumerate(item.entry.parts), start, start + MOST_PARTS):
        if part.kind is PartKind.CALL:
            views.append(("card", _card(session_id, item, part, answers, detail)))
        elif part.kind in (PartKind.IMAGE, PartKind.DOCUMENT):
            views.append(("image", _image(session_id, item.index, position, part)))
        elif part.kind is PartKind.RESULT:
            views.append(("text", _text(session_id, item, position, part, kind="plain")))
        elif item.entry.kind is Kind.SUMMARY:
            views.append(("summary", section_views(part.text)))
        else:
            views.append(("text", _text(session_id, item, position, part, kind=_text_kind(item, part))))
    return views, _more(session_id, item, detail, start + MOST_PARTS)


def _more(session_id: uuid.UUID, item: HistoryItem, detail: Detail, start: int) -> MoreParts | None:
    left = len(item.entry.parts) - start
    address = f"{reverse('entry-parts', args=[session_id, item.index])}?start={start}"
    return MoreParts(left, address if detail is Detail.EVERYTHING else f"{address}&detail={detail.value}") if left > 0 else None


def text_url(session_id: uuid.UUID, index: int, position: int) -> str:
    return reverse("part-text", args=[session_id, index, position])


def _text_kind(item: HistoryItem, part: Part) -> str:
    if part.encrypted:
        return "encrypted"
    if part.kind is PartKind.THINKING:
        return "thinking"
    # Text that no person and no model wrote is not Markdown: reminders, errors, system prompts come as they are.
    written = item.entry.kind in (Kind.MESSAGE, Kind.SUMMARY, Kind.CALL) and item.entry.role is not Role.SYSTEM and not item.entry.meta
    return "text" if written else "plain"


def _text(session_id: uuid.UUID, item: HistoryItem, position: int, part: Part, *, kind: str) -> TextView:
    shown, is_cut = clip(part.text, INLINE_CHARS)
    html = plain_html(shown) if kind in ("plain", "encrypted") else markdown_html(shown)
    more_url = text_url(session_id, item.index, position) if is_cut or part.chars else ""
    return TextView(kind=kind, html=html, length=part.length, tokens=item.entry.tokens, more_url=more_url)


def _image(session_id: uuid.UUID, index: int, position: int, part: Part) -> ImageView:
    is_shown = part.kind is PartKind.IMAGE and bool(part.blob) and part.media_type in IMAGE_TYPES
    return ImageView(
        url=reverse("part-image", args=[session_id, index, position]) if is_shown else "",
        media_type=visible(part.media_type)[:100],
        size_bytes=part.size_bytes,
        width=part.width,
        height=part.height,
        name=first_line(part.name),
    )


def _card(session_id: uuid.UUID, item: HistoryItem, part: Part, answers: _Answers, detail: Detail) -> CardView:
    arguments = tools.arguments_of(part.text)
    results = answers.results_of(part.call_id)
    annex = {**item.annex, **{key: value for result in results for key, value in result.annex.items()}}
    said = [(result, answers.texts_of(result, part.call_id)) for result in results]
    outputs = tuple(view for result, texts in said for view in _outputs(session_id, result, texts, part.name, detail))
    diffs = tools.diffs_of(arguments, annex)
    body = tuple(diff_html(diff, label=f"Diff of {tools.subject_of(arguments)[:120]}") for diff in diffs)
    state, state_words = _state(said, annex, part)
    what = tools.subject_of(arguments)
    if "\n" in what.strip() and not diffs:
        body = (_command(what),)
    return CardView(
        icon=tools.icon_of(part.name),
        name=first_line(part.name, 60) or "call",
        what=first_line(what, 300),
        state=state,
        state_words=state_words,
        duration_ms=_number(annex, "duration_ms", "durationMs", "totalDurationMs"),
        added=sum(diff.added for diff in diffs),
        removed=sum(diff.removed for diff in diffs),
        body=body,
        arguments=None if diffs or not _worth_showing(arguments, what) else _arguments(part),
        outputs=() if diffs and state == "ok" else outputs,
        sub_agents=tuple(_agent(session_id, agent, part.call_id) for agent in item.sub_agents),
        tokens=item.tokens,
        raw_url=reverse("entry-raw", args=[session_id, item.index]) if item.has_record else "",
    )


def _lone_result(session_id: uuid.UUID, item: HistoryItem, detail: Detail) -> CardView:
    """A result whose call stands outside the window, or nowhere."""
    part = item.entry.parts[0] if item.entry.parts else Part(kind=PartKind.RESULT)
    texts = [(position, part) for position, part in enumerate(item.entry.parts) if part.kind in _SAID]
    state, state_words = _state([(item, texts)], item.annex, part)
    return CardView(
        icon=tools.icon_of(part.name),
        name=first_line(part.name, 60) or "result",
        what="of a call that stands elsewhere",
        state=state,
        state_words=state_words,
        duration_ms=_number(item.annex, "duration_ms", "durationMs"),
        added=0,
        removed=0,
        body=(),
        arguments=None,
        outputs=tuple(_outputs(session_id, item, texts[:MOST_PARTS], "", detail)),
        sub_agents=(),
        tokens=item.entry.tokens,
        raw_url=reverse("entry-raw", args=[session_id, item.index]) if item.has_record else "",
    )


def _outputs(session_id: uuid.UUID, result: HistoryItem, wanted: Sequence[Placed], name: str, detail: Detail) -> Iterator[OutputView]:
    """One view for each of the wanted texts of a result; its images belong to the first. `name`: of the tool, where it is known."""
    images = tuple(_image(session_id, result.index, position, part) for position, part in islice(_pictures(result), MOST_PARTS))
    for number, (position, part) in enumerate(wanted):
        yield _output(session_id, result, position, part, name or part.name, detail, images if number == 0 else ())
    if images and not wanted:
        yield _output(session_id, result, 0, Part(kind=PartKind.RESULT), name, detail, images)


def _pictures(result: HistoryItem) -> Iterator[Placed]:
    return ((position, part) for position, part in enumerate(result.entry.parts) if part.kind in (PartKind.IMAGE, PartKind.DOCUMENT))


def _output(
    session_id: uuid.UUID, result: HistoryItem, position: int, part: Part, name: str, detail: Detail, images: tuple[ImageView, ...]
) -> OutputView:
    is_prose = tools.icon_of(name) == "branch" and not part.is_error
    lines = part.text.count("\n") + 1 if part.text else 0
    limit = 0 if detail is not Detail.EVERYTHING else OUTPUT_LINES
    if tools.is_quiet(name) and not part.is_error and lines > QUIET_LINES:
        limit = 0
    shown, is_cut = clip("\n".join(part.text.split("\n", limit)[:limit]) if lines > limit else part.text, INLINE_CHARS)
    return OutputView(
        index=result.index,
        html=markdown_html(shown) if is_prose else ansi_html(shown),
        lines=None if part.chars else lines,
        length=part.length,
        tokens=result.entry.tokens,
        is_cut=is_cut or lines > limit or bool(part.chars),
        is_prose=is_prose,
        more_url=text_url(session_id, result.index, position),
        raw_url=reverse("entry-raw", args=[session_id, result.index]) if result.has_record else "",
        images=images if detail is Detail.EVERYTHING else (),
    )


def _state(said: Sequence[tuple[HistoryItem, Sequence[Placed]]], annex: dict[str, Any], part: Part) -> tuple[str, str]:
    """The state of a call and its word: an exit status where the source tells one, else whether its result was an error.

    `said`: its results, each with what it says to this call.
    """
    if not said:
        return "unanswered", "no result"
    code = _number(annex, "exit_code", "exitCode", "exit_status")
    failed = any(_is_error(result, texts) for result, texts in said) or part.is_error
    if code is not None and (code != 0 or not failed):
        return ("failed" if code else "ok"), f"exit {code}"
    return ("failed", "error") if failed else ("ok", "ok")


def _is_error(result: HistoryItem, texts: Sequence[Placed]) -> bool:
    # The mark of a row that answers several calls says that one of them failed; which, say its parts.
    return any(part.is_error for _, part in texts) or (result.is_error and len(set(result.call_ids)) <= 1)


def _number(annex: dict[str, Any], *keys: str) -> int | None:
    found = next((annex[key] for key in keys if isinstance(annex.get(key), int | float) and not isinstance(annex.get(key), bool)), None)
    return None if found is None else int(found)


def _agent(session_id: uuid.UUID, agent: SubAgent, call_id: str) -> tuple[SubAgent, str, str]:
    return agent, reverse("session-children", args=[session_id, call_id]), reverse("session-detail", args=[agent.id])


def _worth_showing(arguments: dict[str, Any], what: str) -> bool:
    """Whether the arguments say more than the head of the card does."""
    return any(value != what for key, value in arguments.items() if key not in ("description", "timeout"))


def _command(text: str) -> SafeString:
    shown, _ = clip(text, INLINE_CHARS)
    return format_html('<pre class="term" tabindex="0" role="group" aria-label="Command">{}</pre>', code_html(shown, "bash"))


def _arguments(part: Part) -> SafeString:
    try:
        pretty = orjson.dumps(orjson.loads(part.text), option=orjson.OPT_INDENT_2).decode()
    except (orjson.JSONDecodeError, TypeError):  # no JSON, or nested deeper than can be written again
        return plain_html(clip(part.text, INLINE_CHARS)[0])
    shown, is_cut = clip(pretty, INLINE_CHARS)
    return plain_html(shown + "\n…") if is_cut else code_html(shown, "json")
