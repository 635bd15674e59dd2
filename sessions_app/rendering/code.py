"""Source code with classes instead of colours, for declared languages and small texts only."""

from functools import lru_cache

from django.utils.safestring import SafeString, mark_safe
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from sessions_app.rendering.plain import plain_html, visible

MAX_HIGHLIGHTED_CHARS = 20_000
CLASS_PREFIX = "hl-"
_FORMATTER = HtmlFormatter(nowrap=True, classprefix=CLASS_PREFIX)


@lru_cache(maxsize=64)
def _lexer(language: str) -> Lexer | None:
    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def code_html(text: str, language: str = "") -> SafeString:
    """Highlighted code, safe to place inside `<code>`. Falls back on plain text, never on guessing."""
    lexer = _lexer(language.lower()) if language and len(text) <= MAX_HIGHLIGHTED_CHARS else None
    if lexer is None:
        return plain_html(text)
    return mark_safe(highlight(visible(text), lexer, _FORMATTER).rstrip("\n"))  # noqa: S308  the formatter escapes; classes only
