"""Text of a transcript as plain, visible characters: the first step of every renderer."""

import html
import re

from django.utils.safestring import SafeString

from sessions_app.engine.unseen import SIGN, UNSEEN

_SURROGATES = re.compile("[\ud800-\udfff]")
ESCAPE = "\x1b"


def visible(text: str, *, keep_escape: bool = False) -> str:
    """The text with line ends made `\\n` and every invisible control shown as U+FFFD.

    With `keep_escape`, ESC stays, for the renderer of terminal colours.
    """
    if text.isascii() and text.isprintable():
        return text  # nearly every piece of a list, told in a hundredth of the time
    text = _SURROGATES.sub(SIGN, text.replace("\r\n", "\n").replace("\r", "\n"))
    return UNSEEN.sub(lambda match: match[0] if keep_escape and match[0] == ESCAPE else SIGN, text)


def plain_html(text: str) -> SafeString:
    """The text escaped, nothing else."""
    return SafeString(html.escape(visible(text)))  # as Django's own, without its detour for lazy texts


def first_line(text: str, limit: int = 160) -> str:
    """The first line that says something, cut at `limit` characters; for a quiet line of a list."""
    head = text[: limit * 8].lstrip()
    line = " ".join(visible(head).split("\n", 1)[0].split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def clip(text: str, limit: int) -> tuple[str, bool]:
    """At most `limit` characters of the text, cut at a line end where one is near, and whether something is missing."""
    if len(text) <= limit:
        return text, False
    cut = text.rfind("\n", limit // 2, limit)
    return text[: cut if cut > 0 else limit], True
