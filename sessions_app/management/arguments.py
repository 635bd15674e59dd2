"""Arguments that several commands take, and the filters of a page as options."""

import argparse
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any

from django import forms
from django.core.management.base import CommandParser

from sessions_app.management.exits import CommandFailure, Exit

LIMIT = 100
MOST_NAMED = 80


def add_limit(parser: argparse._ActionsContainer, *, of: str, limit: int = LIMIT) -> None:
    """`--limit N`; 0 stands for all."""
    parser.add_argument("--limit", type=count, default=limit, metavar="N", help=f"at most so many {of}; 0 for all (default: {limit})")


def count(text: str) -> int:
    """A whole number from 0."""
    if not (text.isascii() and text.isdigit() and len(text) <= 10):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no whole number from 0")
    return int(text)


def moment(text: str) -> datetime:
    """A date or a time in ISO 8601; UTC where it names no zone."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no time, such as 2026-11-30 or 2026-11-30T21:00:00+01:00") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def add_form_options(
    parser: CommandParser, form: type[forms.Form], words: Mapping[str, str], *, without: tuple[str, ...] = (), title: str = "filters"
) -> None:
    """Each field of a page's form as the option of its name, so that a page and its command always take the same.

    `words`: help by field; a field that has none is explained by its label.
    """
    group = parser.add_argument_group(title)
    for name, field in form.base_fields.items():
        if name in without:
            continue
        option = f"--{name.replace('_', '-')}"
        told = words.get(name) or str(field.label or name.replace("_", " "))
        if isinstance(field, forms.BooleanField):
            group.add_argument(option, action="store_true", dest=name, help=told)
        elif isinstance(field, forms.ChoiceField):
            choices: Iterable[tuple[Any, Any]] = field.choices  # type: ignore[assignment]  # flat ones alone
            offered = [str(value) for value, _ in choices if value != ""]
            many = len(offered) > 8
            group.add_argument(option, choices=offered, dest=name, help=told, **({"metavar": name.upper()} if many else {}))  # type: ignore[arg-type]
        else:
            group.add_argument(option, dest=name, metavar=name.upper(), help=told)


def bound_form(form: type[forms.Form], options: Mapping[str, Any]) -> Any:
    """The page's form with what the options say. Raises `CommandFailure` on the first value that its field cannot have."""
    bound = form({name: options[name] for name in form.base_fields if options.get(name) not in (None, "", False)})
    for name, errors in bound.errors.items():
        told = f"--{name.replace('_', '-')} cannot be {str(options[name])[:60]!r}: {' '.join(map(str, errors))} Nothing was done."
        raise CommandFailure(told, Exit.USAGE, field=name)
    return bound


def check_known(name: str, value: str, known: Collection[str]) -> None:
    """Raises `CommandFailure` where the value of a filter is none that there is: an empty answer would say that nothing happened."""
    if not value or value in known:
        return
    names = sorted(set(known))
    near = get_close_matches(value, names, n=5, cutoff=0.5) or [one for one in names if value.lower() in one.lower()]
    named = near or names
    more = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
    told = f"{'Near it' if near else 'There'} {'is' if len(named) == 1 else 'are'} {', '.join(named[:MOST_NAMED])}{more}."
    raise CommandFailure(f"--{name}: there is no {value[:60]!r}. {told} Nothing was done.", Exit.USAGE, field=name)
