"""Filters and tags of the pages: numbers, times and names as people read them. Markup stands in components."""

from datetime import UTC, datetime
from functools import lru_cache

from django import template
from django.template.context import Context
from django.template.loader import render_to_string

from sessions_app.selectors import agents
from sessions_app.selectors.session_list import SessionRow

register = template.Library()
register.filter("agent_name", agents.agent_name)
register.filter("short_model", agents.short_model)

UNKNOWN = "unknown"
_PACED = {"scripted": "extractive, paced"}
_AGES = ((60, 1, "s"), (3600, 60, "min"), (86_400, 3600, "h"), (60 * 86_400, 86_400, "d"), (730 * 86_400, 30 * 86_400, "mo"))


@register.simple_tag
@lru_cache(maxsize=512)
def icon(name: str, *, small: bool = False, classes: str = "") -> str:
    """One symbol of `static/icons.svg`. It says nothing to assistive tools: put a word beside it. A page has a hundred."""
    return render_to_string("components/icon.html", {"name": name, "small": small, "classes": classes})


@register.simple_tag
def session_row(row: SessionRow) -> str:
    """`components/session_row.html`, kept for as long as neither the row nor its age in words changes."""
    return _row_html(row, ago(row.active_at))


@lru_cache(maxsize=4096)
def _row_html(row: SessionRow, _age: str) -> str:
    return render_to_string("components/session_row.html", {"row": row})


@register.filter
def tokens(value: int | None) -> str:
    """A number of tokens in at most five characters: 940, 8.9k, 131.2k, 1.05M; `unknown` for None."""
    if value is None:
        return UNKNOWN
    if value < 1000:
        return str(value)
    if value < 999_950:
        return f"{value / 1000:.1f}".removesuffix(".0") + "k"
    return f"{value / 1_000_000:.2f}".rstrip("0").rstrip(".") + "M"


@register.filter
def count(value: int | None) -> str:
    """A whole number with thousands apart: 1,284; `unknown` for None."""
    return UNKNOWN if value is None else f"{value:,}"


@register.filter
def usd(value: float | None) -> str:
    """US dollars: `$1.24`, `$0.04`, what is little is `under 1 cent`; `unknown` for None."""
    if value is None:
        return UNKNOWN
    return "nothing" if not value else "under 1 cent" if abs(value) < 0.01 else f"{'-' if value < 0 else ''}${abs(value):,.2f}"


@register.filter
def percent(share: float | None) -> str:
    """A share of 1 as whole per cent: 0.663 is `66 %`, what is little is `< 1 %`; `unknown` for None."""
    if share is None:
        return UNKNOWN
    return "< 1 %" if 0 < share < 0.005 else f"{share * 100:.0f} %"


@register.filter
def size(value: int | None) -> str:
    """A number of bytes in decimal units: 512 B, 1.2 MB."""
    if value is None:
        return UNKNOWN
    amount, units = float(value), ["B", "kB", "MB", "GB"]
    while amount >= 1000 and len(units) > 1:
        amount /= 1000
        units.pop(0)
    return f"{amount:.0f} {units[0]}" if units[0] == "B" or amount >= 100 else f"{amount:.1f} {units[0]}"


@register.filter
def ago(at: datetime | None, now: datetime | None = None) -> str:
    """How long ago, in one unit: `12 s`, `4 min`, `3 h`, `9 d`. The browser renews it (`static/js/time.js`)."""
    if at is None:
        return UNKNOWN
    seconds = max(0.0, ((now or datetime.now(UTC)) - at).total_seconds())
    for limit, unit, word in _AGES:
        if seconds < limit:
            return f"{int(seconds // unit)} {word}"
    return f"{int(seconds // (365 * 86_400))} y"


@register.filter
def seconds(value: float | None) -> str:
    """A span as people say it: `under 0.1 s`, `0.4 s`, `48 s`, `2 m 22 s`; `unknown` for None, and for clocks that ran backwards."""
    if value is None or value < 0:
        return UNKNOWN
    if value < 0.05:
        return "under 0.1 s"
    if value < 10:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} m {rest:02d} s" if minutes else f"{rest} s"


@register.filter
def milliseconds(value: int | None) -> str:
    """The same of a number of milliseconds."""
    return seconds(None if value is None else value / 1000)


@register.filter
def iso(at: datetime | None) -> str:
    """ISO 8601 in UTC, for `datetime` attributes."""
    return "" if at is None else at.astimezone(UTC).isoformat(timespec="seconds")


@register.filter
def utc(at: datetime | None) -> str:
    """The moment in full, in UTC: what stands on hover until the browser knows the reader's zone."""
    return UNKNOWN if at is None else f"{at.astimezone(UTC):%-d %b %Y, %H:%M:%S} UTC"


@register.filter
def words(term: str) -> str:
    """A value of an enumeration as a person reads it: `whole_request` is `whole request`."""
    return term.replace("_", " ")


@register.filter
def author_words(name: str) -> str:
    """Who wrote a version: a person by the name, a summariser as everywhere."""
    return _PACED.get(name, name)


@register.filter
def summariser_words(name: str, source: str = "") -> str:
    """Who writes a summary, said once: `extractive`, `extractive, paced`; what it fell back to, if the source says another."""
    said = _PACED.get(name, words(name))
    source = words(source)
    return said if not source or said.startswith(source) else f"{source} ({said})" if said else source


@register.simple_tag(takes_context=True)
def query(context: Context, without: str = "", **changes: object) -> str:
    """The page's own address with some of its query changed, and without one name.

    The place in a paged list (`after`) is dropped as well, unless it is what changes.
    """
    request = context["request"]
    parameters = request.GET.copy()
    for name, value in {"after": "", without: "", **changes}.items():
        parameters.pop(name, None)
        if value not in ("", None):
            parameters[name] = str(value)
    text = parameters.urlencode()
    return f"{request.path}?{text}" if text else request.path
