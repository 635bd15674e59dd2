"""Every input of a page, what stands in the address included."""

from django import forms
from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import BadRequest

from sessions_app.models import SessionKind, SessionStatus
from sessions_app.selectors.session_filters import VIEWS, SessionFilters
from sessions_app.selectors.session_list import DEFAULT_SORT, ORDERINGS

_WRONG = "Name and password do not match. Nothing was changed; try again, or ask an admin for a new password."


class SignInForm(AuthenticationForm):
    """User name and password. Says one thing for every way of being wrong."""

    error_messages = {"invalid_login": _WRONG, "inactive": _WRONG}  # noqa: RUF012  Django's own shape


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
