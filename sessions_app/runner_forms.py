"""Inputs of the pages about runners. What they may be, the services say; forms only see that something is there."""

from django import forms

_WITHOUT = "Nothing was changed."


def _text(what: str, max_length: int, *, required: bool = True, **attributes: str) -> forms.CharField:
    messages = {"required": f"{what} is missing. {_WITHOUT}", "max_length": f"{what} has at most {max_length} characters. {_WITHOUT}"}
    widget = forms.TextInput(attrs={"class": "input", "autocomplete": "off", "autocapitalize": "none", "spellcheck": "false", **attributes})
    return forms.CharField(max_length=max_length, required=required, error_messages=messages, widget=widget)


class RunnerForm(forms.Form):
    """Name, address, and the variable of the environment that holds the credential."""

    name = _text("The name", 80, placeholder="build-box")
    base_url = _text("The address", 500, inputmode="url", placeholder="http://127.0.0.1:8900")
    credential_variable = _text("The credential's variable", 80, required=False, placeholder="RUNNER_TOKEN_…")


class BindForm(forms.Form):
    """Which runner a session goes to, and what that calls it."""

    runner = forms.CharField(max_length=80, required=False)
    external_id = _text("The id", 200, required=False)


class DecisionForm(forms.Form):
    """What follows an outcome that is unknown."""

    through = forms.ChoiceField(choices=[("runner", "runner"), ("console", "console"), ("none", "none")])
