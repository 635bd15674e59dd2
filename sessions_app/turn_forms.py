"""Inputs of inline sessions: a message, and what a new session is to be."""

import uuid

from django import forms

from sessions_app.engine.terms import Profile
from sessions_app.providers.turn_models import suggestions
from sessions_app.services.turns.send import MAX_MESSAGE_CHARS


class MessageForm(forms.Form):
    """A message. `key` is its own id, so that a form that is sent twice is one message."""

    text = forms.CharField(
        required=False,
        strip=False,
        label="Message",
        widget=forms.Textarea(
            attrs={"class": "input composer__text", "rows": 2, "placeholder": "Message", "maxlength": MAX_MESSAGE_CHARS, "data-key": "m"}
        ),
    )
    key = forms.UUIDField(required=False, widget=forms.HiddenInput)

    @classmethod
    def fresh(cls) -> "MessageForm":
        """An empty one, with a new key."""
        return cls(initial={"key": uuid.uuid4()})

    def with_new_key(self, error: str) -> "MessageForm":
        """The same text under another key, with what was wrong with the old one."""
        again = MessageForm({"text": self.cleaned_data["text"], "key": uuid.uuid4()})
        again.add_error("text", error)
        return again


class ModelForm(forms.Form):
    """Another model for a session that is held here, or another window for one that is not."""

    model = forms.CharField(
        required=False, widget=forms.TextInput(attrs={"class": "input", "list": "models", "spellcheck": "false", "autocomplete": "off"})
    )
    window = forms.IntegerField(
        required=False,
        label="Context window",
        widget=forms.NumberInput(attrs={"class": "input", "inputmode": "numeric", "placeholder": "the model's own"}),
    )


class NewSessionForm(forms.Form):
    """A session to be held here."""

    title = forms.CharField(
        required=False, widget=forms.TextInput(attrs={"class": "input", "autofocus": True, "placeholder": "as the first message begins"})
    )
    model = forms.CharField(
        widget=forms.TextInput(attrs={"class": "input", "list": "models", "spellcheck": "false", "autocomplete": "off"})
    )
    window = forms.IntegerField(
        required=False,
        label="Context window",
        widget=forms.NumberInput(attrs={"class": "input", "inputmode": "numeric", "placeholder": "the model's own"}),
    )
    profile = forms.ChoiceField(
        choices=[("", "as the policy says"), *((profile.value, profile.value) for profile in Profile)],
        required=False,
        widget=forms.Select(attrs={"class": "input"}),
    )
    system = forms.CharField(
        required=False,
        strip=False,
        label="System prompt",
        widget=forms.Textarea(attrs={"class": "input", "rows": 6, "placeholder": "none"}),
    )

    @classmethod
    def fresh(cls) -> "NewSessionForm":
        """An empty one, with the first model that can be asked here."""
        return cls(initial={"model": suggestions()[0]})

    @property
    def models(self) -> tuple[str, ...]:
        """Models to choose from."""
        return suggestions()
