"""Inputs of the pages about accounts: passwords, users and access tokens."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django import forms
from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils import timezone

from sessions_app.permissions import ROLE_BY_GROUP, Scope
from sessions_app.services.tokens import MAX_NAME_CHARS

ROLES = [(role, role) for role in reversed(ROLE_BY_GROUP.values())]
_WITHOUT = "Nothing was changed."


class _PasswordField(forms.CharField):
    def __init__(self, autocomplete: str, label: str) -> None:
        widget = forms.PasswordInput(attrs={"class": "input", "autocomplete": autocomplete})
        required = {"required": f"“{label}” is missing. {_WITHOUT}"}
        super().__init__(label=label, strip=False, max_length=4096, widget=widget, error_messages=required)


class PasswordForm(forms.Form):
    """The old password, and the new one twice. Whether the new one is strong enough, the service says."""

    old = _PasswordField("current-password", "Old password")
    new = _PasswordField("new-password", "New password")
    again = _PasswordField("new-password", "New password again")

    def __init__(self, request: HttpRequest, data: Any = None) -> None:
        super().__init__(data)
        self._request = request

    def clean_old(self) -> str:
        """Guesses count as those at the sign-in do: somebody may sit at an open browser."""
        user, old = self._request.user, self.cleaned_data["old"]
        assert isinstance(user, User)
        if authenticate(self._request, username=user.get_username(), password=old) is None:
            if getattr(self._request, "axes_locked_out", False):
                raise ValidationError(f"Too many wrong passwords: wait, then try again. {_WITHOUT}")
            raise ValidationError(f"The old password is not right. {_WITHOUT}")
        return str(old)

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if "new" in data and "again" in data and data["new"] != data["again"]:
            self.add_error("again", f"The new password was typed in two ways. {_WITHOUT}")
        return data


class NewUserForm(forms.Form):
    """A name and a role; the password is made."""

    name = forms.CharField(
        max_length=150,
        error_messages={"required": f"A user needs a name. {_WITHOUT}", "max_length": f"A name has at most 150 characters. {_WITHOUT}"},
        widget=forms.TextInput(attrs={"class": "input", "autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}),
    )
    role = forms.ChoiceField(
        choices=ROLES,
        error_messages={"invalid_choice": f"There is no role “%(value)s”. {_WITHOUT}", "required": f"A user needs a role. {_WITHOUT}"},
        widget=forms.Select(attrs={"class": "input"}),
    )


class RoleForm(forms.Form):
    """Another role."""

    role = forms.ChoiceField(choices=ROLES, widget=forms.Select(attrs={"class": "input"}))


class LockForm(forms.Form):
    """Whose lock to lift."""

    key = forms.CharField(max_length=255)


class TokenForm(forms.Form):
    """A new access token: what it is for, in whose name, for what and how long."""

    name = forms.CharField(
        max_length=MAX_NAME_CHARS,
        error_messages={"required": "A token needs a name. No token was made."},
        widget=forms.TextInput(attrs={"class": "input", "autocomplete": "off", "spellcheck": "false"}),
    )
    user = forms.ChoiceField(
        label="Acts for",
        error_messages={"invalid_choice": "There is no active user “%(value)s” with a role. No token was made."},
        widget=forms.Select(attrs={"class": "input"}),
    )
    scopes = forms.MultipleChoiceField(
        choices=[(scope.value, scope.value) for scope in Scope],
        error_messages={
            "required": "A token has at least one scope. No token was made.",
            "invalid_choice": "There is no scope “%(value)s”. No token was made.",
        },
        widget=forms.CheckboxSelectMultiple,
    )
    days = forms.TypedChoiceField(
        label="Ends",
        coerce=int,
        choices=[("7", "in 7 days"), ("30", "in 30 days"), ("90", "in 90 days"), ("365", "in a year"), ("0", "never")],
        widget=forms.Select(attrs={"class": "input"}),
    )

    def __init__(self, data: Any = None, *, owners: Iterable[str], initial: dict[str, Any]) -> None:
        super().__init__(data, initial={"scopes": ["read"], "days": "90"} | initial)
        self.fields["user"].choices = [(owner, owner) for owner in owners]  # type: ignore[attr-defined]

    def wanted(self) -> dict[str, Any]:
        """As the service takes it. Call `is_valid` first."""
        data = self.cleaned_data
        expires_at = timezone.now() + timedelta(days=data["days"]) if data["days"] else None
        return {"name": data["name"], "owner": data["user"], "scopes": data["scopes"], "expires_at": expires_at}
