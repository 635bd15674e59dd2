"""One part of an entry: a stretch of a long text, or the bytes of an image."""

import uuid
from dataclasses import dataclass

from sessions_app.engine.entries import Part
from sessions_app.engine.terms import PartKind
from sessions_app.models import Entry
from sessions_app.selectors.entry_rows import readable_parts
from sessions_app.selectors.plans import load_blob, whole_text

STRETCH_CHARS = 200_000
IMAGE_EXTENSIONS = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}
"""Types that a browser shows as pictures and nothing else. SVG is none of them."""


@dataclass(frozen=True)
class TextStretch:
    """Characters `start` to `end` of a text of `length`."""

    index: int
    position: int
    kind: str
    name: str
    text: str
    start: int
    end: int
    length: int

    @property
    def has_more(self) -> bool:
        return self.end < self.length


@dataclass(frozen=True)
class Image:
    """The bytes of an image, and what they are."""

    data: bytes
    media_type: str
    extension: str


def text_stretch(session_id: uuid.UUID, index: int, position: int, start: int) -> TextStretch | None:
    """At most 200,000 characters of a part's text from `start`; None where there is no such part. Two queries."""
    part = _part(session_id, index, position)
    if part is None:
        return None
    # An image's blob is its bytes; a text's blob, which `chars` gives away, is the whole of the text.
    text = whole_text(part)
    end = min(len(text), start + STRETCH_CHARS)
    return TextStretch(index, position, part.kind, part.name, text[start:end], start, end, len(text))


def image(session_id: uuid.UUID, index: int, position: int) -> Image | None:
    """The image, or None when there is none, its bytes are gone, or its type could hold more than a picture. Two queries."""
    part = _part(session_id, index, position)
    if part is None or part.kind is not PartKind.IMAGE or not part.blob or part.media_type not in IMAGE_EXTENSIONS:
        return None
    try:
        return Image(load_blob(part.blob), part.media_type, IMAGE_EXTENSIONS[part.media_type])
    except LookupError:
        return None


def _part(session_id: uuid.UUID, index: int, position: int) -> Part | None:
    text = Entry.objects.filter(session_id=session_id, index=index).values_list("parts", flat=True).first()
    parts = readable_parts(text) if text else ()
    return parts[position] if position < len(parts) else None
