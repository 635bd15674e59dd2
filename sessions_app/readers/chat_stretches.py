"""Files of chat messages as one sequence, whatever their container: JSON documents, or JSON Lines of messages or conversations."""

import io
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple

import orjson

from sessions_app.readers.base import ProblemKind
from sessions_app.readers.json_scan import HOLDERS, MESSAGE_ARRAYS, JsonScanner, Place, Span
from sessions_app.readers.lines import Piece, decode, iter_pieces

HEAD_BYTES = 1 << 18
MAX_LINES = 50  # that are looked at
_KEYS = frozenset(key.strip(b'"').decode() for key in MESSAGE_ARRAYS)
_HOLDERS = frozenset(key.strip(b'"').decode() for key in HOLDERS)
_SEPARATORS = b", \t\r\n\x00\xef\xbb\xbf"

Envelope = dict[str, Any]


class Stretch(NamedTuple):
    """A piece of the source with its place. `conversation` counts from 1; 0 are messages that stand in none.

    `piece.value` is the message of an item, and of a head or tail what its side of the conversation's object says.
    """

    place: Place
    piece: Piece
    conversation: int = 0


def is_json_lines(head: bytes) -> bool:
    """Whether the first bytes of a source are objects of one line each, rather than a document."""
    lines = head.split(b"\n", MAX_LINES)
    if len(lines) > 1:
        lines.pop()  # cut, or the rest
    said = [line for line in lines if line.strip(_SEPARATORS)]
    return 2 * sum(_is_object(line) for line in said) >= max(1, len(said))


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(orjson.loads(line), dict)
    except ValueError:
        return False


def iter_stretches(source: BinaryIO, *, cancelled: Callable[[], bool] = lambda: False) -> Iterator[Stretch]:
    """Every stretch of a seekable source in order, without a gap. Raises `OSError` when it can't be read."""
    source.seek(0)
    if is_json_lines(source.read(HEAD_BYTES)):
        source.seek(0)
        yield from _of_lines(source, cancelled)
    else:
        yield from _of_spans(JsonScanner(source, cancelled=cancelled), 0)


def is_collection(source: BinaryIO, path: str) -> bool:
    """Whether a source holds conversations rather than one: a list of at least two, or JSON Lines of them, however few by now."""
    source.seek(0)
    head = source.read(HEAD_BYTES)
    if is_json_lines(head):
        firsts = (stretch.place for stretch in _of_lines(io.BytesIO(head), lambda: False) if stretch.piece.value is not None)
        return path.endswith(".jsonl") and next(firsts, None) is Place.HEAD
    places = (span.place for span in JsonScanner(source) if span.place is not Place.LOST)
    return (next(places, None), next(places, None)) == (Place.OPEN, Place.HEAD) and Place.HEAD in places


def _of_lines(source: BinaryIO, cancelled: Callable[[], bool]) -> Iterator[Stretch]:
    conversation = 0
    for piece in iter_pieces(source, cancelled=cancelled):
        if _holds_messages(piece):
            conversation += 1
            for stretch in _of_spans(JsonScanner(io.BytesIO(piece.raw), line=piece.line), conversation - 1):
                yield stretch._replace(piece=stretch.piece._replace(offset=piece.offset + stretch.piece.offset, line=piece.line))
        else:
            yield Stretch(Place.ITEM, piece)


def _holds_messages(piece: Piece) -> bool:
    value = piece.value
    if value is None:  # broken somewhere: the messages around that place may be whole
        return ProblemKind.UNREADABLE in piece.problems and any(key in piece.raw for key in MESSAGE_ARRAYS)
    places = (value, *(inner for name in _HOLDERS if isinstance(inner := value.get(name), dict)))
    return any(isinstance(place.get(key), list) for place in places for key in _KEYS)


def _of_spans(spans: JsonScanner, conversation: int) -> Iterator[Stretch]:
    inside = False
    for span in spans:
        if span.place is Place.HEAD:
            conversation += 1
            inside = True
        number = conversation if inside else 0
        inside = inside and span.place is not Place.TAIL
        if span.place is Place.ITEM and span.problem is None:
            yield from (Stretch(Place.ITEM, piece, number) for piece in _pieces(span))
        else:
            yield Stretch(span.place, _piece(span), number)


def _pieces(span: Span) -> Iterator[Piece]:
    """The item of a span; more than one where its bytes are broken. The separators stay with the last."""
    found = decode(span.raw[: span.size])
    for start, end, value, told in found:
        # Its end was found: only what is in it can be broken.
        problems = tuple(ProblemKind.UNREADABLE if kind is ProblemKind.TRUNCATED else kind for kind in told)
        line, offset = span.line + span.raw.count(b"\n", 0, start), span.offset + start
        if end == span.size:
            yield Piece(line, offset, span.raw[start:], value, (*problems, *_left(span)))
        else:
            yield Piece(line, offset, span.raw[start:end], value, problems)


def _piece(span: Span) -> Piece:
    problems = _left(span) if span.problem is None else (span.problem,)
    return Piece(span.line, span.offset, span.raw, envelope_of(span), problems)


def _left(span: Span) -> tuple[ProblemKind, ...]:
    """Whether something that is no object stands where only separators may."""
    return (ProblemKind.NOT_AN_OBJECT,) if span.raw[span.size :].strip(_SEPARATORS) else ()


def envelope_of(span: Span) -> Envelope | None:
    """What a conversation's object says beside its messages, on the side of them where the span lies."""
    if span.problem is not None or span.place not in (Place.HEAD, Place.TAIL):
        return None
    own = span.raw[: span.size].lstrip(_SEPARATORS)
    for depth in (1, 2):  # the object itself, or one that a request stands in
        found = decode(own + b"]" + b"}" * depth if span.place is Place.HEAD else b'{"":' * depth + b"[" + own)
        if len(found) == 1 and found[0][2] is not None:
            return _flat(found[0][2])
    return None


def _flat(envelope: Envelope) -> Envelope:
    """What the object of the messages says, together with what stands around it."""
    flat = {name: value for name, value in envelope.items() if name and name not in _HOLDERS}
    for name in ("", *_HOLDERS):
        inner = envelope.get(name)
        if isinstance(inner, dict):
            flat |= {key: value for key, value in inner.items() if key}
    return flat


def rest_of_envelope(source: BinaryIO, head: Piece) -> Envelope:
    """What the conversation that begins with this head says behind its messages; empty when it is cut short."""
    position = source.tell()
    scanner = JsonScanner(source, start=head.offset, line=head.line)
    found = next((envelope_of(span) for span in scanner if span.place is Place.TAIL), None)
    source.seek(position)
    return found or {}
