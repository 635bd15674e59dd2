"""Text that PostgreSQL refuses (U+0000, lone surrogates), in an encoding of its own that is taken back on reading.

Transcripts hold whatever a program printed. The encoding is one for all statements, so two texts are equal in the
database exactly where they are equal. A text without those characters, nearly every one, is stored as it is.

JSON writes them as `\\u0000` and `\\ud800`: PostgreSQL stores that, and then fails on every look into the document. So there
they are encoded as well, and come back as the same six characters.
"""

import re

ZERO = "\U0010fffe"
"""Stands for U+0000. Unicode assigns it to no character for ever, and PostgreSQL stores it."""

ESCAPE = "\U0010ffff"
"""Before ZERO or itself: that character is meant. Before a character from SURROGATES on: the surrogate is."""

SURROGATES = 0x100000
_MARK = b"\xf4\x8f\xbf"  # what the UTF-8 of both begins with
_TO_ENCODE = re.compile("[\0\ud800-\udfff\U0010fffe\U0010ffff]")
_TO_DECODE = re.compile("\U0010ffff(.)|\U0010fffe", re.DOTALL)
_PAIR = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_JSON_TO_ENCODE = re.compile(rf"\\\\|{_PAIR}|\\u(0000|d[89a-f][0-9a-f]{{2}})")


def encode(text: str) -> bytes:
    """The bytes that are stored for a text."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return _TO_ENCODE.sub(_encoded, text).encode()
    if b"\0" in data or _MARK in data:
        return _TO_ENCODE.sub(_encoded, text).encode()
    return data


def encode_json(text: str) -> bytes:
    """The same for a JSON document; escapes are expected in lower case, as every encoder in use writes them."""
    if "\\u0000" in text or "\\ud" in text:
        return _JSON_TO_ENCODE.sub(_encoded_escape, encode(text).decode()).encode()
    return encode(text)


def decode(data: bytes) -> str:
    """The text that was stored as these bytes."""
    text = data.decode()
    return _TO_DECODE.sub(_decoded, text) if _MARK in data else text


def decode_json(data: bytes) -> str:
    """The JSON document that was stored as these bytes."""
    text = data.decode()
    return _TO_DECODE.sub(_decoded_escape, text) if _MARK in data else text


def _encoded(found: re.Match[str]) -> str:
    character = found[0]
    if character == "\0":
        return ZERO
    if character in (ZERO, ESCAPE):
        return ESCAPE + character
    return ESCAPE + chr(SURROGATES + ord(character) - 0xD800)


def _decoded(found: re.Match[str]) -> str:
    character = found[1]
    if character is None:
        return "\0"
    if character in (ZERO, ESCAPE):
        return character
    return chr(ord(character) - SURROGATES + 0xD800)


def _encoded_escape(found: re.Match[str]) -> str:
    if found[1] is None:  # an escaped backslash, or a whole pair: a character like any other
        return found[0]
    number = int(found[1], 16)
    return ESCAPE + chr(SURROGATES + number - 0xD800) if number else ZERO


def _decoded_escape(found: re.Match[str]) -> str:
    character = found[1]
    if character is None:
        return "\\u0000"
    if character in (ZERO, ESCAPE):
        return character
    return f"\\u{ord(character) - SURROGATES + 0xD800:04x}"
