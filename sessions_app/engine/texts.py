"""Texts as every store takes them."""

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def storable(text: str) -> str:
    """The text with a replacement character for each NUL, which PostgreSQL does not store, and each half of a character.

    Two halves that came apart on their way, as in the pieces of a stream, become the character again.
    """
    if not text.isascii():
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\0", _REPLACEMENT)


def is_storable(text: str) -> bool:
    """Whether any database takes the text as it is."""
    return storable(text) == text
