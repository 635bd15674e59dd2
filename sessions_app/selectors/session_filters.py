"""What the list of sessions can be filtered by: the views, the filters, what they offer, how many match."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from django.core.cache import cache
from django.db.models import Count, F, Q

from sessions_app.engine.breaker import OPENS_AT
from sessions_app.models import Project, Session, SessionKind, SessionStatus
from sessions_app.selectors.agents import agent_name

ATTENTION_PRESSURE = 0.9
PRESSURES = (50, 80, 90)  # per cent that the filter offers
OFFERED_PROJECTS = 100
CACHED_S = 10  # counts and choices may be this old
_FACETS_KEY = "session_filters.facets"

LIVE_STATUSES = (SessionStatus.WORKING, SessionStatus.WAITING, SessionStatus.COMPACTING)
VIEWS: dict[str, tuple[str, Q]] = {
    "": ("All", Q()),
    "attention": (
        "Needs attention",
        Q(status__in=(SessionStatus.WAITING, SessionStatus.FAILED))
        | Q(pressure__gte=ATTENTION_PRESSURE)
        | Q(breaker_failures__gte=OPENS_AT)
        | ~Q(refill_warning=""),
    ),
    "live": ("Live", Q(status__in=LIVE_STATUSES) | Q(running__isnull=False)),
    "pressure": ("Under pressure", Q(signal_tokens__gte=F("trigger_tokens"))),
}


@dataclass(frozen=True)
class SessionFilters:
    """What the address asks for. An empty string, or None, means any."""

    view: str = ""
    q: str = ""
    agent: str = ""
    model: str = ""
    status: str = ""
    project: str = ""
    kind: str = ""
    pressure: int | None = None  # at least so many per cent

    def condition(self) -> Q:
        """The filters as one condition, without the view."""
        condition = Q()
        for name, value in (("agent", self.agent), ("model", self.model), ("status", self.status), ("kind", self.kind)):
            if value:
                condition &= Q(**{name: value})
        if self.q:
            condition &= Q(title__icontains=self.q)
        if self.project:
            condition &= Q(project_id=self.project)
        if self.pressure is not None:
            condition &= Q(pressure__gte=self.pressure / 100)
        return condition

    def value_of(self, name: str) -> str:
        """What the address holds for one filter."""
        value = getattr(self, name)
        return "" if value is None else str(value)

    @property
    def is_set(self) -> bool:
        return self != SessionFilters(view=self.view)


@dataclass(frozen=True)
class Choice:
    """One value of a filter, and how it reads."""

    value: str
    label: str


@dataclass(frozen=True)
class FilterChoices:
    """One filter of the list: its name in the address, what it says, what it offers."""

    name: str
    label: str
    offered: tuple[Choice, ...]
    chosen: str = ""

    def choosing(self, value: str, label: str) -> "FilterChoices":
        """The filter with a value chosen, which is then offered, also when it is none of the usual ones."""
        is_offered = not value or any(choice.value == value for choice in self.offered)
        return replace(self, chosen=value, offered=self.offered if is_offered else (Choice(value, label), *self.offered))


@dataclass(frozen=True)
class Facets:
    """How many sessions each view holds, and what the filters can offer."""

    counts: dict[str, int]
    choices: tuple[FilterChoices, ...]


def facets_and_matching(filters: SessionFilters) -> tuple[Facets, int]:
    """At most three queries: what is cached leaves only the matches to count, and those only when a filter is set."""
    facets: Facets | None = cache.get(_FACETS_KEY)
    # Counted by a column of the index `session_facets`, which is never null: no row itself is read.
    matching = Count("agent", filter=VIEWS[filters.view][1] & filters.condition())
    if facets is None:
        views = {f"in_{key or 'all'}": Count("agent", filter=condition) for key, (_, condition) in VIEWS.items()}
        grouped = Session.objects.listed().values("agent", "model").order_by()  # few, however many sessions there are
        rows: list[dict[str, Any]] = list(grouped.annotate(**views, matching=matching))  # type: ignore[arg-type]  # the names are made here
        facets = Facets(
            counts={key: sum(row[f"in_{key or 'all'}"] for row in rows) for key in VIEWS},
            choices=_choices(
                agents={row["agent"] for row in rows},
                models={row["model"] for row in rows if row["model"]},
                projects=_largest_projects(),
            ),
        )
        cache.set(_FACETS_KEY, facets, CACHED_S)
        return facets, sum(row["matching"] for row in rows)
    if filters.is_set:
        return facets, Session.objects.listed().aggregate(matching=matching)["matching"]
    return facets, facets.counts[filters.view]


def _largest_projects() -> set[tuple[str, str]]:
    """(id, name) of the projects with the most sessions: thousands of them would be most of the page's bytes. Two queries."""
    sized = Session.objects.listed().filter(project__isnull=False).values("project_id").annotate(size=Count("agent"))
    largest = [project for project, _ in sized.order_by("-size", "project_id").values_list("project_id", "size")[:OFFERED_PROJECTS]]
    return {(str(project), name) for project, name in Project.objects.filter(pk__in=largest).values_list("pk", "name")}


def _choices(agents: set[str], models: set[str], projects: set[tuple[str, str]]) -> tuple[FilterChoices, ...]:
    return (
        FilterChoices("status", "Status", _same(SessionStatus.values)),
        FilterChoices("agent", "Agent", tuple(Choice(agent, agent_name(agent)) for agent in sorted(agents))),
        FilterChoices("model", "Model", _same(sorted(models))),
        FilterChoices("project", "Project", tuple(Choice(*project) for project in sorted(projects, key=lambda project: project[1]))),
        FilterChoices("pressure", "Pressure", tuple(Choice(str(share), f"{share} % or more") for share in PRESSURES)),
        FilterChoices("kind", "Kind", _same(SessionKind.values)),
    )


def _same(values: Iterable[str]) -> tuple[Choice, ...]:
    return tuple(Choice(value, value) for value in values)
