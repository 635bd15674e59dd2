"""What no page of the product may do, whatever it shows: errors, refused resources, requests to strangers. And waiting for what it does."""

from typing import Any

from playwright.sync_api import Error

from tests.services.compaction_scenes import wait_until


def comes_true(page: Any, expression: str, given: object = None) -> None:
    """Waits for an expression of the page. The driver's `wait_for_function` evaluates it inside, which the policy of our pages forbids."""

    def is_so() -> bool:
        page.wait_for_timeout(20)  # in which the driver hears of what happens
        try:
            return bool(page.evaluate(expression, given))
        except Error as error:
            if "context was destroyed" in str(error):  # it went on to another page
                return False
            raise

    wait_until(is_so)


class Watch:
    """Follows pages and keeps every complaint. `expected` complaints are added by the test that provokes them."""

    def __init__(self) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.expected: list[str] = []

    def follow(self, page: Any, origin: str) -> None:
        """Listens to everything that the page's browser reports."""
        page.on("console", lambda message: self._console(message.type, message.text))
        page.on("pageerror", lambda error: self.complaints.append(f"page error: {error}"))
        page.on("dialog", self._dialog)
        page.on("request", lambda request: self._request(request.url, origin))

    def _console(self, kind: str, text: str) -> None:
        if kind in {"error", "warning"} and not any(known in text for known in self.expected):
            self.complaints.append(f"console {kind}: {text}")

    def _dialog(self, dialog: Any) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, url: str, origin: str) -> None:
        self.requests.append(url)
        if not url.startswith((origin, origin.replace("http", "ws", 1), "data:", "blob:", "about:")):
            self.complaints.append(f"request to a stranger: {url}")


def resized(page: Any, size: dict[str, int], expression: str, expected: object) -> None:
    """Gives the page another size, and asserts what an expression says once that is laid out: which the browser does in its own time."""
    page.set_viewport_size(size)
    seen: list[object] = []

    def is_so() -> bool:
        page.wait_for_timeout(20)
        seen[:] = [page.evaluate(expression)]
        return bool(page.evaluate("document.documentElement.clientWidth") == size["width"] and seen[0] == expected)

    try:
        wait_until(is_so)
    except AssertionError:
        assert seen[0] == expected, (page.url, size)
        raise
