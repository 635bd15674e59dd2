"""Every input of a page, what stands in the address included."""

from dataclasses import dataclass, fields, replace
from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import BadRequest, ValidationError
from django.core.files.uploadedfile import UploadedFile
from django.http import QueryDict

from sessions_app.engine.terms import Kind, Lineage, MemoryKind, Role
from sessions_app.models import ActorKind, EventResult, SessionKind, SessionStatus
from sessions_app.selectors.audit import FAMILIES, AuditFilters
from sessions_app.selectors.history import HistoryOptions, Layout
from sessions_app.selectors.history_window import Detail
from sessions_app.selectors.memory import MemoryFilters
from sessions_app.selectors.search_query import SearchQuery, parse_query
from sessions_app.selectors.search_sql import SearchFilters
from sessions_app.selectors.session_filters import VIEWS, SessionFilters
from sessions_app.selectors.session_list import DEFAULT_SORT, ORDERINGS

_WRONG = "Name and password do not match. Nothing was changed; try again, or ask an admin for a new password."


class SignInForm(AuthenticationForm):
    """User name and password. Says one thing for every way of being wrong."""

    error_messages = {"invalid_login": _WRONG, "inactive": _WRONG}  # noqa: RUF012  Django's own shape


class _ManyFiles(forms.ClearableFileInput):
    allow_multiple_selected = True


class _FilesField(forms.FileField):
    """One or more files, none of them empty or larger than the installation takes."""

    def clean(self, data: Any, initial: Any = None) -> "list[UploadedFile[Any]]":
        given = data if isinstance(data, list | tuple) else [data]
        return [self._clean_one(file, initial) for file in given or [None]]

    def _clean_one(self, data: Any, initial: Any) -> "UploadedFile[Any]":
        file: UploadedFile[Any] = super().clean(data, initial)
        if file.size is not None and file.size > settings.UPLOAD_MAX_BYTES:
            limit = settings.UPLOAD_MAX_BYTES // 1_000_000
            raise ValidationError(
                f"{file.name} is larger than {limit} MB, so nothing was imported. The command “manage.py import_sessions” takes any size."
            )
        return file


class UploadForm(forms.Form):
    """Session files to import."""

    transcripts = _FilesField(
        widget=_ManyFiles(),
        error_messages={
            "required": "No file was chosen, so nothing was imported.",
            "missing": "No file was chosen, so nothing was imported.",
            "empty": "A chosen file is empty, so nothing was imported.",
        },
    )


class SessionListForm(forms.Form):
    """The address of the list: view, filters, order, page."""

    view = forms.ChoiceField(choices=[(key, label) for key, (label, _) in VIEWS.items() if key], required=False)
    q = forms.CharField(max_length=200, required=False)
    agent = forms.CharField(max_length=40, required=False)
    model = forms.CharField(max_length=100, required=False)
    status = forms.ChoiceField(choices=SessionStatus.choices, required=False)
    project = forms.UUIDField(required=False)
    kind = forms.ChoiceField(choices=SessionKind.choices, required=False)
    pressure = forms.IntegerField(min_value=0, max_value=100, required=False)
    sort = forms.ChoiceField(choices=[(sign + key, key) for key in ORDERINGS for sign in ("", "-")], required=False)
    after = forms.CharField(max_length=2000, required=False)

    def filters(self) -> SessionFilters:
        """What is asked for. Raises `BadRequest` when a field holds a value that it cannot have."""
        if not self.is_valid():
            raise BadRequest(f"The filter {', '.join(self.errors)} has a value that it cannot have. Clear it and choose again.")
        data = self.cleaned_data
        return SessionFilters(
            view=data["view"],
            q=data["q"],
            agent=data["agent"],
            model=data["model"],
            status=data["status"],
            project=str(data["project"] or ""),
            kind=data["kind"],
            pressure=data["pressure"],
        )

    def order(self) -> tuple[str, bool]:
        """The column, and whether its natural direction is reversed. Call `filters` first."""
        sort = self.cleaned_data["sort"] or DEFAULT_SORT
        return sort.removeprefix("-"), sort.startswith("-")


class MemoryForm(forms.Form):
    """The address of a project's memory: which facts of it, from which on."""

    q = forms.CharField(max_length=200, required=False)
    kind = forms.ChoiceField(choices=[(kind.value, kind.value) for kind in MemoryKind], required=False)
    session = forms.UUIDField(required=False)
    before = forms.UUIDField(required=False)

    def filters(self) -> MemoryFilters:
        """What is asked for. Raises `BadRequest` when a field holds a value that it cannot have."""
        if not self.is_valid():
            raise BadRequest(f"The filter {', '.join(self.errors)} has a value that it cannot have. Clear it and choose again.")
        return MemoryFilters(**self.cleaned_data)


class SearchForm(forms.Form):
    """The address of a search: what for, in what, from which hit on. Any text can be searched for."""

    q = forms.CharField(required=False, strip=False)
    agent = forms.CharField(max_length=40, required=False)
    role = forms.ChoiceField(choices=[(role.value, role.value) for role in Role], required=False)
    kind = forms.ChoiceField(choices=[(kind.value, kind.value) for kind in Kind], required=False)
    session = forms.UUIDField(required=False)
    since = forms.DateField(required=False)
    until = forms.DateField(required=False)
    after = forms.CharField(max_length=2000, required=False)

    def asked(self) -> tuple[SearchQuery, SearchFilters, str]:
        """The query, what narrows it, and where its page starts. Raises `BadRequest` on a value that a filter cannot have."""
        wrong = [] if self.is_valid() else [name for name in self.errors if name != "q"]
        if wrong:
            raise BadRequest(f"The filter {', '.join(wrong)} has a value that it cannot have. Clear it and choose again.")
        data = self.cleaned_data
        filters = SearchFilters(
            agent=data["agent"],
            role=data["role"],
            kind=data["kind"],
            session=str(data["session"] or ""),
            since=data["since"],
            until=data["until"],
        )
        # A text with a NUL is none for the field, and one to look for all the same.
        return parse_query(self.data.get("q", "")), filters, data["after"]


class HistoryForm(forms.Form):
    """The address of a history: layout, detail, whose view at which generation, and the place in it."""

    layout = forms.ChoiceField(choices=[(layout.value, layout.value) for layout in Layout], required=False)
    detail = forms.ChoiceField(choices=[(detail.value, detail.value) for detail in Detail], required=False)
    context = forms.ChoiceField(choices=[(context.value, context.value) for context in Lineage], required=False)
    generation = forms.IntegerField(min_value=0, max_value=10**9, required=False)
    at = forms.IntegerField(min_value=0, max_value=10**9, required=False)
    before = forms.IntegerField(min_value=0, max_value=10**9, required=False)
    start = forms.IntegerField(min_value=0, max_value=10**9, required=False)
    at_view = forms.IntegerField(min_value=0, max_value=10**9, required=False)

    def options(self) -> HistoryOptions:
        """What is asked for. Raises `BadRequest` when a field holds a value that it cannot have."""
        if not self.is_valid():
            raise BadRequest(f"{', '.join(self.errors)} has a value that this page does not know. Open the session anew.")
        data = self.cleaned_data
        return HistoryOptions(
            layout=Layout(data["layout"]) if data["layout"] else None,
            detail=Detail(data["detail"] or Detail.EVERYTHING),
            context=Lineage(data["context"]) if data["context"] else None,
            generation=data["generation"],
            at=data["at"],
            before=data["before"],
            start=data["start"],
            at_view=data["at_view"],
        )


class WindowForm(forms.Form):
    """Which window of a history a decision was made in: the query of its page, and its first and last entry."""

    query = forms.CharField(max_length=2000, required=False)
    first = forms.IntegerField(min_value=0, max_value=10**9, required=False)
    last = forms.IntegerField(min_value=0, max_value=10**9, required=False)

    def window(self) -> tuple[HistoryOptions, QueryDict] | None:
        """What to show again, and the query of its page; None where the page did not say."""
        if not self.is_valid() or self.cleaned_data["first"] is None or self.cleaned_data["last"] is None:
            return None
        query = QueryDict(self.cleaned_data["query"])
        options = HistoryForm(query).options()
        return replace(options, at=None, before=None, start=self.cleaned_data["first"], last=self.cleaned_data["last"]), query


class PlaceForm(forms.Form):
    """Where a list by number goes on: before an attempt, an event, or from a character of a text."""

    before = forms.IntegerField(min_value=0, max_value=2**53, required=False)
    start = forms.IntegerField(min_value=0, max_value=2**53, required=False)

    def place(self, name: str) -> int | None:
        """The number, None without one. Raises `BadRequest` on anything else."""
        if not self.is_valid():
            raise BadRequest(f"{name} must be a whole number.")
        value: int | None = self.cleaned_data[name]
        return value


@dataclass(frozen=True)
class RawPlace:
    """Which records are asked for: from `first` on, of one kind, or `record` alone from a character on."""

    first: int = 0
    kind: str = ""
    record: int | None = None
    start: int = 0


class RawForm(forms.Form):
    """The address of the raw tab."""

    first = forms.IntegerField(min_value=0, max_value=2**31, required=False)
    kind = forms.CharField(max_length=80, required=False, strip=False)
    record = forms.IntegerField(min_value=0, max_value=2**31, required=False)
    start = forms.IntegerField(min_value=0, max_value=2**53, required=False)

    def asked(self) -> RawPlace:
        """What is asked for. Raises `BadRequest` when a field holds a value that it cannot have."""
        if not self.is_valid():
            raise BadRequest(f"{', '.join(self.errors)} has a value that this page does not know. Open the session anew.")
        data = self.cleaned_data
        return RawPlace(first=data["first"] or 0, kind=data["kind"], record=data["record"], start=data["start"] or 0)


class StreamForm(forms.Form):
    """A stream of the log by its name: the one to verify, or the one behind which a page of them begins."""

    stream = forms.CharField(max_length=80, strip=False)
    after = forms.CharField(max_length=80, required=False, strip=False)

    def text(self, name: str) -> str:
        """`stream` or `after`. Raises `BadRequest` when it is none that a stream could have."""
        if name in self.errors:
            raise BadRequest("No stream of the log has that name. Nothing was changed; choose one from the table of streams.")
        found: str = self.cleaned_data[name]
        return found


class AuditForm(forms.Form):
    """The address of the audit log: filters, place, the event that is open. Moments without a zone are UTC."""

    stream = forms.CharField(max_length=80, required=False)
    family = forms.ChoiceField(choices=[(family, family) for family in FAMILIES], required=False)
    actor = forms.CharField(max_length=150, required=False)
    kind = forms.ChoiceField(choices=ActorKind.choices, required=False)
    role = forms.ChoiceField(choices=[(role, role) for role in ("operator", "support", "admin")], required=False)
    action = forms.CharField(max_length=60, required=False)
    session = forms.UUIDField(required=False)
    target = forms.CharField(max_length=64, required=False)
    result = forms.ChoiceField(choices=EventResult.choices, required=False)
    compaction = forms.UUIDField(required=False)
    request = forms.CharField(max_length=64, required=False)
    gesture = forms.CharField(max_length=64, required=False)
    address = forms.CharField(max_length=64, required=False)
    since = forms.DateTimeField(required=False)
    until = forms.DateTimeField(required=False)
    q = forms.CharField(max_length=200, required=False)
    before = forms.IntegerField(min_value=1, max_value=2**62, required=False)
    after = forms.IntegerField(min_value=1, max_value=2**62, required=False)
    opened = forms.IntegerField(min_value=1, max_value=2**62, required=False)
    newer_than = forms.IntegerField(min_value=0, max_value=2**62, required=False)
    format = forms.ChoiceField(choices=[("jsonl", "jsonl"), ("csv", "csv")], required=False)

    def filters(self) -> AuditFilters:
        """What is asked for. Raises `BadRequest` when a field holds a value that it cannot have."""
        if not self.is_valid():
            raise BadRequest(f"The filter {', '.join(self.errors)} has a value that it cannot have. Clear it and choose again.")
        chosen: dict[str, Any] = {name: self.cleaned_data[name] for name in (field.name for field in fields(AuditFilters))}
        given: dict[str, Any] = {name: str(value) if isinstance(value, UUID) else value for name, value in chosen.items() if value}
        return AuditFilters(**given)

    def place(self, name: str) -> int | None:
        """`before`, `after`, `opened` or `newer_than`. Call `filters` first."""
        value: int | None = self.cleaned_data[name]
        return value
