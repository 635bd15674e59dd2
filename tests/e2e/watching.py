"""What no page of the product may do, whatever it shows: errors, refused resources, requests to strangers."""

from typing import Any


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
