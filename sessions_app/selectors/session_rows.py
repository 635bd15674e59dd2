"""Sessions as the API lists them: by their last activity, paged by id."""

import uuid
from dataclasses import dataclass
from datetime import datetime

from django.db import connection
from django.db.models import BooleanField, Q
from django.db.models.expressions import RawSQL

from sessions_app.models import Session, SessionRelation, SessionStatus
from sessions_app.selectors.keyset import Cursor, page_of
from sessions_app.selectors.session_list import COLUMNS, ORDERINGS, SessionRow, row_of


@dataclass(frozen=True)
class RowFilters:
    """What a list is narrowed to. Empty and None: any. `label`: one that it has; `since` and `until`: of its last activity."""

    query: str = ""
    status: str = ""
    agent: str = ""
    model: str = ""
    kind: str = ""
    runner: uuid.UUID | None = None
    label: str = ""
    project: str = ""
    parent: uuid.UUID | None = None
    pressure_min: float | None = None
    since: datetime | None = None
    until: datetime | None = None
    include_archived: bool = False

    def condition(self) -> Q:
        same = {"agent": self.agent, "model": self.model, "kind": self.kind, "runner_id": self.runner, "parent_id": self.parent}
        ranges = {"pressure__gte": self.pressure_min, "last_activity_at__gte": self.since, "last_activity_at__lt": self.until}
        condition = Q(**{name: value for name, value in same.items() if value})
        condition &= Q(**{name: value for name, value in ranges.items() if value is not None})
        if self.status:
            condition &= _of_status(self.status)
        if self.query:
            condition &= Q(title__icontains=self.query)
        if self.project:
            condition &= _of_project(self.project)
        if not self.include_archived:
            condition &= Q(archived=False)
        if self.parent is None:
            condition &= ~Q(relation=SessionRelation.SUB_AGENT)
        return condition & Q(is_complete=True)


def session_rows(
    filters: RowFilters, *, named: uuid.UUID | None, is_before: bool, ascending: bool, limit: int
) -> tuple[tuple[SessionRow, ...], bool] | None:
    """At most `limit` sessions after (or before) the one that is named, and whether more lie beyond; None when it is not there.

    Two queries.
    """
    ordering = ORDERINGS["active"].reversed() if ascending else ORDERINGS["active"]
    cursor: Cursor | None = None
    if named is not None:
        at = Session.objects.filter(pk=named).values_list("last_activity_at", flat=True).first()
        if at is None:
            return None
        cursor = Cursor(ordering.column, at, named.hex, 1, is_before)
    rows = Session.objects.select_related("project", "running").only(*COLUMNS).filter(filters.condition())
    if filters.label:
        rows = rows.filter(_with_label(filters.label))
    found, position = page_of(rows, ordering, cursor, limit)
    return tuple(row_of(session) for session in found), bool(position.previous if is_before else position.next)


def _of_status(status: str) -> Q:
    """As the list shows it: a session whose compaction runs is compacting, whatever else it is."""
    is_running = Q(running__isnull=False)
    return is_running if status == SessionStatus.COMPACTING else Q(status=status) & ~is_running


def _of_project(named: str) -> Q:
    try:
        return Q(project_id=uuid.UUID(named))
    except ValueError:
        return Q(project__name=named) | Q(project__key=named)


def _with_label(label: str) -> RawSQL:
    """That one of a session's labels is this one, letter for letter."""
    labels = f'"{Session._meta.db_table}"."labels"'
    each = f"json_array_elements_text({labels}) AS label(value)" if connection.vendor == "postgresql" else f"json_each({labels})"
    held = f"EXISTS (SELECT 1 FROM {each} WHERE value = %s)"  # noqa: S608
    return RawSQL(held, [label], output_field=BooleanField())  # noqa: S611  the label is a parameter
