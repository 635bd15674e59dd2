"""Inputs of the pages about accounts: passwords and users."""

from typing import Any

from django import forms
from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from sessions_app.permissions import ROLE_BY_GROUP

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
