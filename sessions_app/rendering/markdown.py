"""Markdown of a transcript as HTML that can do nothing: no link, no image, no raw HTML, no style."""
# ruff: noqa: ARG002  the renderer calls every rule with the same four arguments

import re
from collections.abc import MutableMapping, Sequence
from typing import Any

import nh3
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline, autolink
from markdown_it.token import Token
from pygments.token import STANDARD_TYPES

from sessions_app.rendering.code import CLASS_PREFIX, code_html
from sessions_app.rendering.plain import plain_html, visible

MAX_MARKDOWN_CHARS = 64_000
"""Beyond this a text is shown as it is: parsing costs about 0.3 ms a kilobyte."""

_ADDRESS = re.compile(r"<(?:(?:https?|ftp)://|mailto:|[\w.+-]+@)")
_TAGS = {
    "p", "br", "hr", "em", "strong", "s", "code", "pre", "ul", "ol", "li", "blockquote", "span",
    "table", "thead", "tbody", "tr", "th", "td", "div",
}  # fmt: skip
_ATTRIBUTES = {"ol": {"start"}, "pre": {"tabindex", "role", "aria-label"}, "div": {"tabindex", "role", "aria-label"}}
_OUR_CLASSES = {"text__heading", "text__link", "text__url", "text__table", "code", "text__image"}
_KNOWN_CODE_CLASSES = {CLASS_PREFIX + short for short in set(STANDARD_TYPES.values()) if short}


class _InertRenderer(RendererHTML):
    """Links and images as text with their address beside it; headings as bold paragraphs, since the page has its own."""

    def link_open(self, tokens: Sequence[Token], idx: int, options: object, env: MutableMapping[str, Any]) -> str:
        env.setdefault("links", []).append((str(tokens[idx].attrGet("href") or ""), idx))
        return '<span class="text__link">'

    def link_close(self, tokens: Sequence[Token], idx: int, options: object, env: MutableMapping[str, Any]) -> str:
        href, opened_at = env["links"].pop()
        said = "".join(token.content for token in tokens[opened_at + 1 : idx])
        shown = "" if said.strip() in href or not href else f' <span class="text__url">({escape(visible(href))})</span>'
        return f"{shown}</span>"

    def image(self, tokens: Sequence[Token], idx: int, options: object, env: MutableMapping[str, Any]) -> str:
        source = escape(visible(str(tokens[idx].attrGet("src") or "")))
        return f'<span class="text__image">[image {escape(visible(tokens[idx].content))} <span class="text__url">{source}</span>]</span>'

    def heading_open(self, tokens: Sequence[Token], idx: int, options: object, env: MutableMapping[str, Any]) -> str:
        return '<p class="text__heading"><strong>'

    def heading_close(self, tokens: Sequence[Token], idx: int, options: object, env: MutableMapping[str, Any]) -> str:
        return "</strong></p>"

    def table_open(self, tokens: Sequence[Token], idx: int, options: object, env: MutableMapping[str, Any]) -> str:
        return '<div class="text__table" tabindex="0" role="group" aria-label="Table"><table>'

    def table_close(self, tokens: Sequence[Token], idx: int, options: object, env: MutableMapping[str, Any]) -> str:
        return "</table></div>"

    def fence(self, tokens: Sequence[Token], idx: int, options: object, env: MutableMapping[str, Any]) -> str:
        language = (tokens[idx].info.split() or [""])[0]
        return _code_block(tokens[idx].content, language)

    def code_block(self, tokens: Sequence[Token], idx: int, options: object, env: MutableMapping[str, Any]) -> str:
        return _code_block(tokens[idx].content, "")


def _code_block(text: str, language: str) -> str:
    return f'<pre class="code" tabindex="0" role="group" aria-label="Code"><code>{code_html(text, language)}</code></pre>'


def _any_address(url: str) -> bool:  # noqa: ARG001  the parser's signature
    return True


def _web_address(state: StateInline, silent: bool) -> bool:  # noqa: FBT001  the parser's signature
    """An address in angle brackets. Of every scheme that could be one, tags with a namespace would lose their brackets."""
    return bool(_ADDRESS.match(state.src, state.pos)) and autolink(state, silent)


def _parser() -> MarkdownIt:
    parser = MarkdownIt(
        "commonmark", {"html": False, "linkify": False, "typographer": False, "maxNesting": 30}, renderer_cls=_InertRenderer
    )
    # Hard breaks: people and models write lines, and a chat shows them as lines.
    parser.options["breaks"] = True
    # Nothing becomes a target, so every address may be shown.
    parser.validateLink = _any_address  # type: ignore[method-assign]
    parser.inline.ruler.at("autolink", _web_address)
    return parser.enable(["table", "strikethrough"])


_PARSER = _parser()


def markdown_html(text: str) -> SafeString:
    """The text as HTML. Whatever it says, the result requests nothing, runs nothing and leads nowhere."""
    if len(text) > MAX_MARKDOWN_CHARS:
        return mark_safe(f'<pre class="code" tabindex="0" role="group" aria-label="Text">{plain_html(text)}</pre>')  # noqa: S308  escaped
    html = nh3.clean(
        _PARSER.render(visible(text)),
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        allowed_classes={"p": _OUR_CLASSES, "span": _OUR_CLASSES | _KNOWN_CODE_CLASSES, "div": _OUR_CLASSES, "pre": _OUR_CLASSES},
        link_rel=None,
    )
    return mark_safe(html)  # noqa: S308  just cleaned
