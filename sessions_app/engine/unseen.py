"""Characters that nobody sees, or that make a line read otherwise than it is: text of a transcript shows that they are there."""

import re

SIGN = "\N{REPLACEMENT CHARACTER}"
"""What is shown in the place of one."""

# C0 controls but tab and line ends, DEL, C1; zero-width and filling characters; bidirectional marks and overrides; tags, in which text
# can be hidden. What joins letters of a script or the parts of one picture is none of them.
_CHARACTERS = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
    "\u180e\u200b\u2060-\u2064\u3164\ufeff\uffa0\ufff9-\ufffb"
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f"
    "\U000e0000-\U000e007f"
)
UNSEEN = re.compile(f"[{_CHARACTERS}]")
_PLAIN = bytes([*b"\t\n\r", *range(0x20, 0x7F)])


def shown(text: str) -> str:
    """The text with each of them shown as `SIGN`."""
    return UNSEEN.sub(SIGN, text)


def shown_page(page: bytes) -> bytes:
    """The same of a page in UTF-8: itself, in nearly no time, where it has none."""
    rest = page.translate(None, _PLAIN).decode("utf-8", "replace")  # what is not plain ASCII: little of most pages
    return shown(page.decode("utf-8", "replace")).encode() if UNSEEN.search(rest) else page
