"""Messages of a model view, and how their parts are sent."""

import msgspec

from sessions_app.engine.entries import Part
from sessions_app.engine.terms import Fate, PartKind, Role


class ViewPart(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a message, with its source: an entry, or none for what a view adds itself (`synthetic`).

    `glued`: it is sent at the end of the result before it, after a blank line (see `sent_parts`).
    """

    part: Part
    entry_index: int | None
    fate: Fate = Fate.VERBATIM
    synthetic: bool = False
    glued: bool = False
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
    """The message's parts as they are sent: what is glued to a result has become part of its text.

    Raises `ValueError` where that result's whole text lies in a blob: load it first.
    """
    parts: list[Part] = []
    for view_part in message.parts:
        if not view_part.glued:
            parts.append(view_part.part)
            continue
        place = next(place for place in range(len(parts) - 1, -1, -1) if parts[place].kind is PartKind.RESULT)
        if parts[place].chars:
            raise ValueError("A reminder can be glued only to a result whose whole text is loaded.")
        # The agent that does this takes the white space off both before it joins them.
        texts = [text for text in (parts[place].text.strip(), view_part.part.text.strip()) if text]
        parts[place] = msgspec.structs.replace(parts[place], text="\n\n".join(texts))
    return tuple(parts)
