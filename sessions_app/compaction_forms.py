"""Every input of the pages about compactions: asking for one, a draft, a comparison, a revert, a fork."""

from typing import Any, TypedDict
from uuid import UUID

from django import forms
from django.core.exceptions import BadRequest

from sessions_app.engine.extractive import ExtractiveSummariser
from sessions_app.engine.goal import MAX_CHARS as MAX_GOAL_CHARS
from sessions_app.engine.policy import Policy
from sessions_app.engine.terms import Profile
from sessions_app.providers.turn_models import suggestions
from sessions_app.selectors.compact_preview import BESIDE_FORCE, MAX_INSTRUCTIONS_CHARS, PreviewOptions
from sessions_app.selectors.drafts_page import MAX_SUMMARY_CHARS

EXTRACTIVE = ExtractiveSummariser.name


class CompactOptions(TypedDict):
    """The options of a request, as the service takes them."""

    instructions: str
    profile: str
    boundary: int | None
    force: bool
    changes: dict[str, object]


class CompactForm(forms.Form):
    """What a person may ask of a compaction."""

    instructions = forms.CharField(
        max_length=MAX_INSTRUCTIONS_CHARS,
        required=False,
        label="Stress in the summary",
        widget=forms.Textarea(attrs={"class": "input", "rows": 3}),
        error_messages={"max_length": "At most %(limit_value)d characters, and this has %(show_value)d. Nothing was started."},
    )
    profile = forms.ChoiceField(
        choices=[("", "as the policy says"), *((profile.value, profile.value) for profile in Profile)],
        required=False,
        widget=forms.Select(attrs={"class": "input"}),
        error_messages={"invalid_choice": "There is no profile “%(value)s”. Nothing was started."},
    )
    boundary = forms.IntegerField(
        min_value=1,
        max_value=10**9,
        required=False,
        label="Keep from entry",
        error_messages=dict.fromkeys(
            ("invalid", "min_value", "max_value"), "A boundary is the whole number of an entry after the first. Nothing was started."
        ),
        widget=forms.NumberInput(attrs={"class": "input", "inputmode": "numeric"}),
    )

    summariser = forms.ChoiceField(
        required=False,
        widget=forms.Select(attrs={"class": "input"}),
        error_messages={"invalid_choice": "The policy names no summariser “%(value)s”. Nothing was started."},
    )
    beside = forms.ChoiceField(
        choices=[*((profile.value, f"profile {profile.value}") for profile in Profile), (BESIDE_FORCE, "as much as is legal")],
        required=False,
        label="Compare with",
        widget=forms.Select(attrs={"class": "input"}),
    )
    move = forms.IntegerField(min_value=1, max_value=10**9, required=False)  # a button: the boundary to go to
    review = forms.BooleanField(required=False, label="Review before commit")
    force = forms.BooleanField(required=False, label="Fold as much as is legal")

    def __init__(self, data: Any = None, *, policy: Policy, initial: Any = None) -> None:
        """`policy`: the one in force; it names the summarisers, and says whether a review is the rule."""
        other = Profile.CODING if policy.profile == Profile.CONVERSATION else Profile.CONVERSATION
        super().__init__(data, initial={"review": policy.review_before_commit, "beside": other} | (initial or {}))
        self._policy, self._other = policy, other
        offered = dict.fromkeys((*policy.summarisers, EXTRACTIVE))
        self.fields["summariser"].choices = [("", "as the policy says"), *((name, name) for name in offered)]  # type: ignore[attr-defined]

    @property
    def standing(self) -> str:
        """What every summary of the session stresses already."""
        return self._policy.standing_instructions

    def plan_options(self) -> PreviewOptions:
        """What changes the plan, as far as it is valid; before anything was sent, what the form starts with."""
        if not self.is_bound:
            given = {name: self.get_initial_for_field(self.fields[name], name) for name in ("profile", "boundary", "force", "summariser")}
            return PreviewOptions(given["profile"] or "", given["boundary"], bool(given["force"]), given["summariser"] or "")
        self.is_valid()
        data = self.cleaned_data
        boundary = data.get("move") or data.get("boundary")
        return PreviewOptions(data.get("profile", ""), boundary, data.get("force", False), data.get("summariser", ""))

    def alternative(self) -> str:
        """What to show beside the plan."""
        chosen: str = self.cleaned_data.get("beside", "") if self.is_bound and not self.errors else ""
        return chosen or self._other

    def request(self) -> CompactOptions:
        """What was asked for. Call `is_valid` first."""
        data, policy = self.cleaned_data, self._policy
        changes: dict[str, object] = {}
        if data["review"] != policy.review_before_commit:
            changes["review_before_commit"] = data["review"]
        if data["summariser"]:
            others = [name for name in policy.summarisers if name != data["summariser"]]
            changes["summarisers"] = [data["summariser"], *others]
        return {
            "instructions": data["instructions"],
            "profile": data["profile"],
            "boundary": data["boundary"],
            "force": data["force"],
            "changes": changes,
        }


class CompactStartForm(forms.Form):
    """The address of a compact dialog: what it starts with, or which attempt is to be run again."""

    attempt = forms.UUIDField(required=False)
    boundary = forms.IntegerField(min_value=1, max_value=10**9, required=False)
    profile = forms.ChoiceField(choices=[(profile.value, profile.value) for profile in Profile], required=False)
    force = forms.BooleanField(required=False)
    review = forms.BooleanField(required=False)

    def again(self) -> UUID | None:
        """The attempt to be run again. Raises `BadRequest` on a value that a field cannot have."""
        if not self.is_valid():
            raise BadRequest(f"{', '.join(self.errors)} has a value that it cannot have. Open the dialog anew.")
        attempt: UUID | None = self.cleaned_data["attempt"]
        return attempt

    def given(self) -> dict[str, Any]:
        """What the address says. Call `again` first."""
        return {name: value for name, value in self.cleaned_data.items() if value and name != "attempt"}


class CompareForm(forms.Form):
    """Two attempts, by their numbers."""

    one = forms.IntegerField(min_value=1, max_value=10**9, required=False)
    other = forms.IntegerField(min_value=1, max_value=10**9, required=False)


class ForkForm(forms.Form):
    """Where a fork begins, and with which model it goes on."""

    generation = forms.IntegerField(min_value=0, max_value=10**9, required=False, widget=forms.HiddenInput())
    as_it_was = forms.BooleanField(required=False)
    model = forms.ChoiceField(required=False, widget=forms.Select(attrs={"class": "input"}))
    title = forms.CharField(max_length=200, required=False, widget=forms.TextInput(attrs={"class": "input"}))

    def __init__(self, data: Any = None, *, initial: Any = None) -> None:
        super().__init__(data, initial=initial)
        choices = [("", "no model: a copy, as this session is"), *((name, name) for name in suggestions())]
        self.fields["model"].choices = choices  # type: ignore[attr-defined]

    def options(self) -> dict[str, Any]:
        """As the service takes them. Call `is_valid` first."""
        return {name: self.cleaned_data[name] for name in ("generation", "as_it_was", "model", "title")}


class GoalForm(forms.Form):
    """What a session is for, in a person's words; empty: as its messages tell."""

    # How long it may be is said by the service: a browser sends each line end as two characters, and counts it as one.
    goal = forms.CharField(required=False, widget=forms.Textarea(attrs={"class": "input", "rows": 4, "maxlength": MAX_GOAL_CHARS}))


class Wording(TypedDict):
    """Another wording of a draft, as the service takes it."""

    text: str
    base_version: int | None


class DraftForm(forms.Form):
    """A summary as a person words it, and the version that it was made from."""

    text = forms.CharField(
        max_length=MAX_SUMMARY_CHARS,
        label="Summary",
        widget=forms.Textarea(attrs={"class": "input draft__text", "rows": 30, "spellcheck": "true"}),
        error_messages={
            "required": "A summary can't be empty. Nothing was saved. To drop it, discard the draft.",
            "max_length": "At most %(limit_value)d characters, and this has %(show_value)d. Nothing was saved.",
        },
    )
    base_version = forms.IntegerField(min_value=1, max_value=10**9, required=False, widget=forms.HiddenInput())

    def wording(self) -> Wording:
        """What is to be saved. Call `is_valid` first."""
        return {"text": self.cleaned_data["text"], "base_version": self.cleaned_data["base_version"]}


class VersionForm(forms.Form):
    """Which version of a draft: to be shown or committed; `base`, the one that somebody edits."""

    version = forms.IntegerField(min_value=1, max_value=10**9, required=False)
    base = forms.IntegerField(min_value=1, max_value=10**9, required=False)


class RevertForm(forms.Form):
    """Which generation to show, 0 for the whole history; and whether with the pins and exclusions of that time."""

    generation = forms.IntegerField(min_value=0, max_value=10**9, required=False)
    as_it_was = forms.BooleanField(required=False)
