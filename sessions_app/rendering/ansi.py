"""Terminal output: colours as classes, everything else of the escape codes dropped."""

import re

import nh3
from ansi2html import Ansi2HTMLConverter
from django.utils.safestring import SafeString, mark_safe

from sessions_app.rendering.plain import ESCAPE, plain_html, visible

MAX_COLOURED_CHARS = 64_000
_CLASSES = {f"ansi{code}" for code in [*range(1, 10), *range(30, 38), *range(40, 48), *range(90, 98), *range(100, 108)]} | {
    "inv_foreground"
}
# Sequences that ansi2html does not eat: cursor moves, titles, hyperlinks (OSC 8, whose text stays), single shifts.
_OTHER_SEQUENCES = re.compile(
    "\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)"
    "|\x1b\\[[0-9;?<=>]*[ -/]*[A-HJKSTfhilnprsu]"
    "|\x1b[PX^_][^\x1b]*\x1b\\\\"
    "|\x1b[()][A-Z0-9]"
    "|\x1b[78=>McDEHNOZ]"
)


def strip_ansi(text: str) -> str:
    """The text without any escape sequence."""
    return re.sub("\x1b\\[[0-9;:]*m", "", _OTHER_SEQUENCES.sub("", text)).replace(ESCAPE, "")


def ansi_html(text: str) -> SafeString:
    """Terminal output as spans with `ansi…` classes; plain text when it has no colours or is too long."""
    if ESCAPE not in text:
        return plain_html(text)
    if len(text) > MAX_COLOURED_CHARS:
        return plain_html(strip_ansi(text))
    coloured = visible(_OTHER_SEQUENCES.sub("", text), keep_escape=True)
    converter = Ansi2HTMLConverter(inline=False, escaped=True, linkify=False)
    html = nh3.clean(
        converter.convert(coloured, full=False),
        tags={"span"},
        attributes={},
        allowed_classes={"span": _CLASSES},
        link_rel=None,
    )
    return mark_safe(html.replace(ESCAPE, "\ufffd"))  # noqa: S308  just cleaned: spans with known classes only
