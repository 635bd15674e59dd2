"""A stretch of a long text, whole and as it is: terminal colours stay, nothing else is interpreted."""

from dataclasses import dataclass

from django.utils.safestring import SafeString

from sessions_app.engine.terms import PartKind
from sessions_app.rendering.ansi import ansi_html
from sessions_app.rendering.markdown import MAX_MARKDOWN_CHARS, markdown_html
from sessions_app.rendering.plain import plain_html
from sessions_app.selectors.parts import STRETCH_CHARS, TextStretch
from sessions_app.selectors.raw_page import RawRecord


def stretch_html(stretch: TextStretch) -> SafeString:
    """The stretch as HTML. Only a whole text is read as Markdown: a piece of one would be read wrongly."""
    if stretch.kind == PartKind.RESULT:
        return ansi_html(stretch.text)
    is_whole = stretch.start == 0 and not stretch.has_more
    if stretch.kind in (PartKind.TEXT, PartKind.THINKING) and is_whole and stretch.length <= MAX_MARKDOWN_CHARS:
        return markdown_html(stretch.text)
    return plain_html(stretch.text)


def is_prose(stretch: TextStretch) -> bool:
    """Whether the HTML is paragraphs and not lines."""
    return stretch.kind in (PartKind.TEXT, PartKind.THINKING) and stretch.length <= MAX_MARKDOWN_CHARS


@dataclass(frozen=True)
class RecordView:
    """A record as text: characters `start` to `end` of `length`. The bytes themselves are in the export."""

    ordinal: int
    line: int
    offset: int
    size: int
    kind: str
    path: str
    html: SafeString
    start: int
    end: int
    length: int


def record_view(record: RawRecord, *, start: int = 0) -> RecordView:
    """At most 200,000 characters of a record, exactly as they stand in its source but for what has no sign."""
    text = record.text
    end = min(len(text), start + STRETCH_CHARS)
    return RecordView(
        ordinal=record.ordinal,
        line=record.line,
        offset=record.offset,
        size=record.length,
        kind=record.kind,
        path=record.path,
        html=plain_html(text[start:end]),
        start=start,
        end=end,
        length=len(text),
    )
