"""Finds what must not be in a page: anything that runs, calls out, or leads away."""

from html.parser import HTMLParser

from tests.security.hostile import MARK

FORBIDDEN_ELEMENTS = {
    "iframe",
    "frame",
    "object",
    "embed",
    "applet",
    "base",
    "style",
    "foreignobject",
    "animate",
    "set",
    "marquee",
    "portal",
}
ADDRESSES = {
    "href",
    "src",
    "srcset",
    "action",
    "formaction",
    "poster",
    "xlink:href",
    "background",
    "ping",
    "ws-connect",
    "sse-connect",
    "cite",
    "data",
}
OWN_START = ("/", "#", "?")


class Inspector(HTMLParser):
    """Collects violations. Text may say whatever it likes; elements and attributes may not."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.violations: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        if tag in FORBIDDEN_ELEMENTS:
            self._found(tag, "may not be on a page")
        if tag == "script" and not values.get("src", "").startswith("/static/"):
            self._found(tag, "is not one of our files")
        if tag == "meta" and "http-equiv" in values:
            self._found(tag, "acts like a header")
        for name, value in values.items():
            self._attribute(tag, name, value)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)

    def _attribute(self, tag: str, name: str, value: str) -> None:
        if name.startswith(("on", "hx-on", "data-hx-")):
            self._found(tag, f"has a handler {name}")
        if name == "style":
            self._found(tag, "has a style of its own")
        is_address = name in ADDRESSES or (name.startswith("hx-") and value.startswith(("http", "//", "javascript")))
        if is_address and value and (not value.startswith(OWN_START) or value.startswith("//")):
            self._found(tag, f"leads away by {name}: {value[:60]!r}")
        if is_address and MARK in value and tag != "a":
            self._found(tag, f"asks a stranger by {name}")

    def _found(self, tag: str, what: str) -> None:
        self.violations.append(f"line {self.getpos()[0]}: <{tag}> {what}")


def violations(html: str) -> list[str]:
    """Everything in this page or fragment that must not be there."""
    inspector = Inspector()
    inspector.feed(html)
    inspector.close()
    return inspector.violations
