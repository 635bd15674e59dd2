"""Messages of a model view, and how their parts are sent."""

import msgspec

from sessions_app.engine.entries import Part
from sessions_app.engine.terms import Fate, PartKind, Role


class ViewPart(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a message, with its source: an entry, or none for what a view adds itself (`synthetic`).

    `glued`: it is sent at the end of the result before it, after a blank line. `newline`: it is a text that a user's
    text follows in the same message, and is sent with a newline behind it. See `sent_parts`.
    """

    part: Part
    entry_index: int | None
    fate: Fate = Fate.VERBATIM
    synthetic: bool = False
    glued: bool = False
    newline: bool = False
    tokens: int = 0


class ViewMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message as a provider gets it. Merged entries keep their sources, part by part."""

    role: Role  # system, user or assistant: results stand in user messages
    parts: tuple[ViewPart, ...]
    tokens: int

    @property
    def synthetic(self) -> bool:
        """Whether nothing in it comes from an entry."""
        return all(part.synthetic for part in self.parts)


def sent_parts(message: ViewMessage) -> tuple[Part, ...]:
    """The message's parts as they are sent: with their newlines, and what is glued to a result part of its text.

    Raises `ValueError` where a text that grows by this lies in a blob: load it first.
    """
    parts: list[Part] = []
    for view_part in message.parts:
        if view_part.glued:
            place = next(place for place in range(len(parts) - 1, -1, -1) if parts[place].kind is PartKind.RESULT)
            # White space at either end goes: that is how agents glue, and a cache keeps only what is sent to the byte.
            texts = (parts[place].text.strip(), view_part.part.text.strip())
            parts[place] = _with_text(parts[place], "\n\n".join(text for text in texts if text))
        else:
            part = view_part.part
            parts.append(_with_text(part, part.text + "\n") if view_part.newline else part)
    return tuple(parts)


def _with_text(part: Part, text: str) -> Part:
    if part.chars:
        raise ValueError("Only a part whose whole text is loaded can be sent with more behind it.")
    return msgspec.structs.replace(part, text=text)
