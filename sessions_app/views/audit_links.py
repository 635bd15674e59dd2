"""The addresses that a page of the audit log leads to."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.http import QueryDict
from django.urls import reverse

from sessions_app.selectors.audit import AuditFilters, AuditPage


@dataclass(frozen=True)
class AuditLinks:
    """`filters` is the query with the filters alone; the others are addresses, empty where there is nothing."""

    filters: str
    newest: str
    newer: str
    older: str
    closed: str
    opening: str
    poll: str
    more_is_set: bool


_IN_THE_BAR = ("q", "action", "family", "kind", "role", "result")


def audit_links(given: QueryDict, filters: AuditFilters, page: AuditPage) -> AuditLinks:
    """Addresses that keep the filters. An event's id is put behind `opening`."""
    kept = _query(filters.chosen)
    place = {name: given[name] for name in ("before", "after") if given.get(name)}
    return AuditLinks(
        filters=kept,
        newest=_address({}, filters),
        newer=_address({"after": page.newer}, filters) if page.newer else "",
        older=_address({"before": page.older}, filters) if page.older else "",
        closed=_address(place, filters),
        opening=_address(place | {"opened": ""}, filters),
        poll=f"{reverse('audit-newer')}?{_query(filters.chosen | {'newer_than': str(page.newest)})}",
        more_is_set=any(name not in _IN_THE_BAR for name in filters.chosen),
    )


def result_links(filters: AuditFilters, results: tuple[str, ...]) -> tuple[tuple[str, str, bool], ...]:
    """(words, address, whether it is chosen) for each result, and for all of them."""
    rest = {name: value for name, value in filters.chosen.items() if name != "result"}
    every = ("All", f"{reverse('audit-list')}{_behind(rest)}", not filters.result)
    one = ((result, f"{reverse('audit-list')}{_behind({**rest, 'result': result})}", filters.result == result) for result in results)
    return every, *one


def newest_link(filters: AuditFilters) -> str:
    """The first page with the same filters."""
    return _address({}, filters)


def _address(place: Mapping[str, object], filters: AuditFilters) -> str:
    return f"{reverse('audit-list')}{_behind({**filters.chosen, **place})}"


def _behind(values: Mapping[str, object]) -> str:
    text = _query(values)
    return f"?{text}" if text else ""


def _query(values: Mapping[str, object]) -> str:
    query = QueryDict(mutable=True)
    for name, value in values.items():
        query[name] = str(value)
    return query.urlencode()
