"""Which addresses a runner may have: this machine's, and those that the installation names.

A console that asks any address which somebody types is a way into the network that it stands in. So a host is taken only when it is a
loopback address or in the installation's list; a name in that list is trusted to lead where its owner says.
"""

import ipaddress
from collections.abc import Iterable
from urllib.parse import SplitResult, quote, urlsplit

MAX_URL_CHARS = 500
LOOPBACK = ("localhost", "127.0.0.0/8", "::1")


class InvalidAddress(ValueError):
    """An address that no runner may have. The text says why."""


def checked_url(url: str, allowed: Iterable[str] = ()) -> str:
    """The base address in its one form, without a slash at its end.

    `allowed`: host names, `.suffixes`, addresses and networks, beside this machine's own. Raises `InvalidAddress`.
    """
    url = url.strip()
    if not url or len(url) > MAX_URL_CHARS:
        raise InvalidAddress(f"An address is needed, of at most {MAX_URL_CHARS} characters." if not url else "The address is too long.")
    if not url.isascii() or not url.isprintable() or any(character in url for character in ' \\"<>^`{|}'):
        raise InvalidAddress("The address holds a character that no address has.")
    parts = _split(url)
    if parts.scheme not in {"http", "https"}:
        raise InvalidAddress("The address must begin with http:// or https://.")
    if "@" in parts.netloc:
        raise InvalidAddress("The address must hold no name or password. Name the variable that holds the credential instead.")
    if parts.query or parts.fragment or "?" in url or "#" in url:
        raise InvalidAddress("The address must end before any ? or #.")
    host = (parts.hostname or "").lower()
    if not is_allowed(host, allowed):
        raise InvalidAddress(f"The host {host or '(none)'} is not among those that runners may be on. PALIMPSEST_RUNNER_HOSTS names them.")
    return f"{parts.scheme}://{parts.netloc.lower()}{parts.path.rstrip('/')}"


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        is_whole = bool(parts.hostname) and (parts.port is None or 0 < parts.port < 65_536)
    except ValueError:
        is_whole = False
    if not is_whole or "%" in parts.netloc:
        raise InvalidAddress("This is no address like http://127.0.0.1:8900.")
    if any(piece in {".", ".."} for piece in parts.path.split("/")) or "%2e" in parts.path.lower():
        raise InvalidAddress("The address must hold no dots between its slashes.")
    return parts


def is_allowed(host: str, allowed: Iterable[str] = ()) -> bool:
    """Whether a host, in lower case, is this machine or one of `allowed`."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        address = None
    return any(_matches(host, address, entry.strip().lower()) for entry in (*LOOPBACK, *allowed) if entry.strip())


def _matches(host: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None, entry: str) -> bool:
    if address is None:
        return host == entry or (entry.startswith(".") and host.endswith(entry) and len(host) > len(entry))
    try:
        return address in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return False


def events_url(base_url: str, session_id: str) -> str:
    """Where events of a session are posted. The id is one piece of the path, whatever it holds."""
    return f"{base_url}/v1/sessions/{quote(session_id, safe='')}/events"
