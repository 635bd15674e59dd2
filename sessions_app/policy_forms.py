"""The inputs of a policy's page: a text for each field, and what stood there when the page was read."""

from collections.abc import Mapping

from django import forms

from sessions_app.engine.policy import PolicyError
from sessions_app.engine.policy_fields import FIELDS, MOST_CHARS, parse, read

WAS = "was-"
"""Prefix of what was set at the place when its page was read."""


class PolicyForm(forms.Form):
    """Empty means: not set here. Each value is read in the units in which the page shows it."""

    reset = forms.CharField(required=False, max_length=40)

    def __init__(self, data: Mapping[str, str]) -> None:
        super().__init__(data)
        for name in FIELDS:
            self.fields[name] = forms.CharField(required=False, max_length=MOST_CHARS, empty_value="")
            self.fields[WAS + name] = forms.CharField(required=False, max_length=MOST_CHARS, empty_value="")

    def values(self) -> tuple[dict[str, object], list[str]]:
        """(what is to be set, what is to be unset): only what differs from what the page showed. Faults stand in `errors`."""
        reset = self.cleaned_data.get("reset", "")
        if reset:
            return {}, [reset]
        wanted, unset = {}, []
        for name, field in FIELDS.items():
            text, was = (_lines(self.cleaned_data.get(key, "")) for key in (name, WAS + name))
            if text == was or name in self.errors:
                continue
            if not text:
                unset.append(name)
                continue
            try:
                wanted[name] = read(field, text)
            except PolicyError as error:
                self.add_error(name, str(error))
        return wanted, unset

    def seen(self) -> dict[str, object]:
        """What the page showed as set, by field."""
        texts = {name: self.cleaned_data.get(WAS + name, "") for name in FIELDS}
        try:
            return {name: parse(FIELDS[name], text) for name, text in texts.items() if text}
        except PolicyError:
            return {}  # nothing that the page wrote: whatever is set counts as changed since

    def texts(self) -> dict[str, str]:
        """What was typed over what the page showed, by field: to be shown again. The others are shown as they are by then."""
        typed = {name: str(self.data.get(name, ""))[:MOST_CHARS] for name in FIELDS}
        return {name: text for name, text in typed.items() if _lines(text) != _lines(str(self.data.get(WAS + name, "")))}


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").strip()
