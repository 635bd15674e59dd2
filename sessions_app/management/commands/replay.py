"""`manage.py replay SESSION`: a recorded session under two or more policies, side by side. Stores nothing."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from django.core.management.base import CommandParser

from sessions_app.engine.policy import Policy, changed
from sessions_app.engine.policy_fields import FIELDS, read
from sessions_app.engine.replay import Replayed
from sessions_app.management.arguments import count
from sessions_app.management.base import SessionCommand
from sessions_app.management.exits import CommandFailure, Exit
from sessions_app.management.output import Column
from sessions_app.management.shapes import Shape
from sessions_app.selectors.replay import NamedPolicy, ReplayedPolicy, current_policy, replayed_policies
from sessions_app.services.access import record_view

CURRENT = "current"
COLUMNS = (
    Column("POLICY", stretches=True, least=10),
    Column("TRIGGER", rank=6, right=True),
    Column("COMPACTIONS", right=True),
    Column("REQUESTS", rank=7, right=True),
    Column("SENT", right=True),
    Column("PEAK", rank=2, right=True),
    Column("FINAL", rank=1, right=True),
    Column("SUMMARIES", rank=4, right=True),
    Column("FACTS KEPT", rank=3, right=True),
    Column("PROBES", rank=3, right=True),
    Column("TOO LARGE", rank=5, right=True),
)


class Command(SessionCommand):
    help = (
        "Walks through a recorded session turn by turn as if nothing had ever been compacted, and says which compactions there would have "
        "been under each policy, and what that would have come to. Stores nothing; without --models no provider is asked."
    )
    examples = (
        ("replay 44c5e046 --set early.threshold_pct=0.5", "the policy in force, and one that starts earlier"),
        ("replay 44c5e046 --policy A.json --policy B.json --json", "two files, as a document with every compaction"),
        ("replay 44c5e046 --window 200000 --set a.profile=coding --set b.target_fraction=0.4", "three, in a window of another size"),
    )

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--policy",
            action="append",
            default=[],
            metavar="FILE",
            help="a JSON object of fields and values, for what differs from the policy in force; named after the file",
        )
        parser.add_argument("--set", action="append", default=[], metavar="NAME.FIELD=VALUE", help="one field of a policy of that name")
        parser.add_argument("--window", type=count, metavar="TOKENS", help="instead of the session's")
        parser.add_argument(
            "--models", action="store_true", help="ask the summarisers that each policy names, and not only the one without a model"
        )

    def run(self, options: Mapping[str, Any]) -> None:
        record_view(actor=self.actor, session=self.session)
        current = current_policy(self.session, CURRENT)
        policies = _policies(current, options["policy"], options["set"])
        told = replayed_policies(
            self.session, policies, window=options["window"] or None, ask_models=options["models"], on_compaction=self._note
        )
        if self.out.is_json:
            self.out.document(
                {
                    "object": "replay",
                    "session_id": self.session.pk,
                    "window": options["window"] or self.session.window,
                    "policies": [replay_shape(one, current.policy) for one in told],
                }
            )
        else:
            self.out.table(COLUMNS, [_cells(one) for one in told])

    def _note(self, name: str, made: Replayed) -> None:
        self.out.note(
            f"{name}: before entry {made.at:,} {made.trigger.value}, {made.rung.value}: {made.tokens_before:,} → {made.tokens_after:,}",
            policy=name,
        )


def replay_shape(one: ReplayedPolicy, current: Policy) -> Shape:
    """What a policy came to; all sizes are estimated tokens of views."""
    values, now = msgspec.to_builtins(one.policy), msgspec.to_builtins(current)
    told = one.replay
    return {
        "name": one.name,
        "differs": {field: value for field, value in values.items() if value != now[field]},
        "trigger_tokens": one.trigger_tokens,
        "requests": told.requests,
        "tokens_sent": told.tokens_sent,
        "peak": told.peak,
        "final": told.final,
        "summary_tokens": told.summary_tokens,
        "too_large": told.too_large,
        "not_possible": told.not_possible,
        "facts": {"total": told.facts, "in_view": told.facts_in_view, "by_summary": told.facts_by_summary},
        "probe_score": told.probe_score,
        "probes": [
            {"question": one.question, "answer": one.fact.text, "class": one.fact.kind.value, "entry": one.fact.index, "found": one.found}
            for one in told.probes
        ],
        "compactions": [msgspec.to_builtins(made) for made in told.compactions],
    }


def _policies(current: NamedPolicy, files: Sequence[str], settings: Sequence[str]) -> list[NamedPolicy]:
    """The policies to compare, each name once; the one in force first, unless two others are named."""
    differs: dict[str, dict[str, object]] = {}
    for name in files:
        differs.setdefault(Path(name).stem, {}).update(_values_of(name))
    for setting in settings:
        place, equals, value = setting.partition("=")
        name, dot, field = place.partition(".")
        if not (equals and dot and name and field):
            raise CommandFailure(f"{setting[:60]!r} is not NAME.FIELD=VALUE. Nothing was replayed.", Exit.USAGE, field="set")
        differs.setdefault(name, {})[field] = _value(name, field, value)
    policies = [NamedPolicy(name, _changed(current.policy, name, values)) for name, values in differs.items()]
    return policies if len(policies) > 1 else [current, *policies]


def _changed(policy: Policy, name: str, values: Mapping[str, object]) -> Policy:
    try:
        return changed(policy, values)
    except ValueError as error:
        raise CommandFailure(f"{name}: {error} Nothing was replayed.", Exit.USAGE, field="policy") from error


def _values_of(name: str) -> dict[str, object]:
    try:
        values = json.loads(Path(name).read_bytes())
    except OSError as error:
        raise CommandFailure(f"{name} can't be read ({error.strerror}). Nothing was replayed.", Exit.USAGE, field="policy") from error
    except ValueError as error:
        raise CommandFailure(f"{name} is no JSON ({error}). Nothing was replayed.", Exit.USAGE, field="policy") from error
    if not isinstance(values, dict):
        raise CommandFailure(f"{name} holds no JSON object of fields and values. Nothing was replayed.", Exit.USAGE, field="policy")
    return values


def _value(name: str, field: str, text: str) -> object:
    """As people write it on the page of a policy; a list may be JSON, too."""
    if field not in FIELDS:
        return text  # refused with its name
    try:
        return json.loads(text) if text.startswith("[") else read(FIELDS[field], text)
    except ValueError as error:
        raise CommandFailure(f"{name}: {error} Nothing was replayed.", Exit.USAGE, field="set") from error


def _cells(one: ReplayedPolicy) -> tuple[object, ...]:
    told = one.replay
    kept = "" if told.retained is None else f"{told.facts_in_view:,}/{told.facts:,} ({told.retained:.0%})"
    score = told.probe_score
    probed = "" if score is None else f"{sum(probe.found for probe in told.probes)}/{len(told.probes)} ({score:.0%})"
    return (
        one.name,
        f"{one.trigger_tokens:,}",
        len(told.compactions),
        f"{told.requests:,}",
        f"{told.tokens_sent:,}",
        f"{told.peak:,}",
        f"{told.final:,}",
        f"{told.summary_tokens:,}",
        kept,
        probed,
        f"{told.too_large:,}",
    )
