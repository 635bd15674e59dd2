"""Entries as they are stored: whether they can be read and are what they were, what they sum up to, and what they refer to.

One pass over the rows of a session, in pages.
"""

import hashlib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
from django.db.models import Count, Max, Q, Sum

from sessions_app.engine.entries import Part, chain_prefix_hash, decode_parts
from sessions_app.engine.terms import Kind, Role
from sessions_app.models import Blob, Entry, Session
from sessions_app.services.doctor.findings import MOST_NAMED, Check, Finding, named

PAGE = 500
MOST_KEPT = 10_000
"""Of one kind of fault, so many are kept by name: a session in which more are broken is not told apart from this one."""

_COLUMNS = ("index", "role", "kind", "source_id", "parts", "tokens", "prefix_tokens", "prefix_hash")
_ROLES, _KINDS = {role.value for role in Role}, {kind.value for kind in Kind}
_ENCODER = msgspec.json.Encoder()


class Sums(NamedTuple):
    """What a session's row keeps of its entries."""

    entry_count: int
    tokens_total: int
    head_hash: bytes
    failure_count: int


@dataclass
class Pass:
    """What one pass over the entries saw. All lists hold indexes of entries."""

    lost: list[int] = field(default_factory=list)  # there is none of this index, but a later one
    unreadable: list[int] = field(default_factory=list)
    changed: list[int] = field(default_factory=list)  # what it says has not the hash that it was written with
    wrong_sums: list[int] = field(default_factory=list)
    blobs: dict[str, int] = field(default_factory=dict)  # missing ones, by their hash: the first entry that refers to each


def sums_of(session_id: uuid.UUID) -> tuple[Sums, Sums]:
    """(as the session's row keeps them, as its entries have them), in one statement: nothing comes between the two."""
    counted = Session.objects.filter(pk=session_id).annotate(
        last=Max("entries__index"),
        said=Sum("entries__tokens", filter=~Q(entries__role=Role.NOTICE)),
        errors=Count("entries", filter=Q(entries__is_error=True)),
    )
    count, tokens, head, failures, last, said, errors = counted.values_list(
        "entry_count", "tokens_total", "head_hash", "failure_count", "last", "said", "errors"
    ).get()
    newest = (
        Entry.objects.filter(session_id=session_id, index=last).values_list("prefix_hash", flat=True).first() if last is not None else b""
    )
    kept = Sums(count, tokens, bytes(head), failures)
    return kept, Sums(0 if last is None else last + 1, said or 0, bytes(newest or b""), errors)


def look_through(session_id: uuid.UUID, end: int) -> Pass:
    """Reads the entries before `end`, page by page."""
    seen = Pass()
    tokens, previous, expected = 0, b"", 0
    for row in pages(session_id, _COLUMNS, end):
        index, role, kind, source_id, stored, own, prefix_tokens, prefix_hash = row
        _keep(seen.lost, *range(expected, min(index, expected + MOST_KEPT)))
        parts = _readable(stored)
        if parts is None or role not in _ROLES or kind not in _KINDS:
            _keep(seen.unreadable, index)
        if chain_prefix_hash(previous, _digest(role, kind, source_id, stored)) != bytes(prefix_hash):
            _keep(seen.changed, index)
        if prefix_tokens != tokens:
            _keep(seen.wrong_sums, index)
        for part in parts or ():
            if part.blob:
                seen.blobs.setdefault(part.blob, index)
        if index % PAGE == PAGE - 1:
            _drop_known(seen.blobs)
        tokens += 0 if role == Role.NOTICE else own
        previous, expected = bytes(prefix_hash), index + 1
    _drop_known(seen.blobs)
    return seen


def pages(session_id: uuid.UUID, columns: tuple[str, ...], end: int) -> Iterator[tuple[Any, ...]]:
    """Rows of the entries before `end`, in order; no query is open while they are looked at. The index comes first."""
    first = 0
    while page := list(
        Entry.objects.filter(session_id=session_id, index__gte=first, index__lt=end).order_by("index").values_list(*columns)[:PAGE]
    ):
        yield from page
        first = page[-1][0] + 1


def _keep(kept: list[int], *indexes: int) -> None:
    kept += indexes[: max(0, MOST_KEPT - len(kept))]


def _readable(stored: str) -> tuple[Part, ...] | None:
    try:
        return decode_parts(stored)
    except msgspec.DecodeError:
        return None


def _digest(role: str, kind: str, source_id: str, stored: str) -> bytes:
    """The same as `engine.entries.Entry.digest`, of parts as they are stored."""
    head = _ENCODER.encode((role, kind, source_id))
    return hashlib.sha256(head[:-1] + b"," + stored.encode("utf-8", "surrogatepass") + b"]").digest()


def _drop_known(blobs: dict[str, int]) -> None:
    """Leaves those that are missing."""
    wanted = list(blobs)
    for start in range(0, len(wanted), PAGE):
        for known in Blob.objects.filter(pk__in=wanted[start : start + PAGE]).values_list("pk", flat=True):
            del blobs[known]


def findings_of(session_id: uuid.UUID) -> Iterator[Finding]:
    """What is wrong with the entries of a session, and with what is kept of them."""
    kept, true = sums_of(session_id)
    seen = look_through(session_id, true.entry_count)
    if kept != true or seen.wrong_sums:
        yield _wrong_sums(kept, true, seen)
    if seen.blobs:
        places = sorted(set(seen.blobs.values()))
        yield Finding(
            check=Check.BLOB_MISSING,
            what=f"{len(seen.blobs):,} long text{'s' if len(seen.blobs) > 1 else ''} or picture{'s' if len(seen.blobs) > 1 else ''}"
            f" of {named(places)} are not in the store.",
            meaning="The beginning of such a text is shown and sent, with a note that the rest is missing; a picture is a placeholder.",
            repair="Takes them anew from the original records, where the session was imported and they are still there.",
            facts={"entries": places[:MOST_NAMED], "blobs": sorted(seen.blobs)[:MOST_NAMED], "count": len(seen.blobs)},
        )
    if seen.unreadable:
        yield Finding(
            check=Check.ENTRY_UNREADABLE,
            what=f"What {named(seen.unreadable)} say can't be read as it is stored.",
            meaning="A note stands in their place on pages, and in the view where parts are damaged. Where role or kind is no word of this "
            "version, no view is made: run the version that wrote it. What they said may stand in the tab Raw, and does in a backup.",
            facts={"entries": seen.unreadable[:MOST_NAMED], "count": len(seen.unreadable)},
        )
    if seen.lost or seen.changed:
        yield _changed(seen)


def _wrong_sums(kept: Sums, true: Sums, seen: Pass) -> Finding:
    wrong = [
        f"{words} {was:,} for {now:,}"
        for words, was, now in (
            ("entries", kept.entry_count, true.entry_count),
            ("tokens", kept.tokens_total, true.tokens_total),
            ("failed results", kept.failure_count, true.failure_count),
        )
        if was != now
    ]
    wrong += ["the hash of the newest entry"] if kept.head_hash != true.head_hash else []
    wrong += [f"the sums of tokens before {named(seen.wrong_sums)}"] if seen.wrong_sums else []
    stops = " Nothing can be added to the session: messages fail, and compactions." if kept.entry_count < true.entry_count else ""
    return Finding(
        check=Check.SUMS_WRONG,
        what=f"What is kept of its entries is not what they sum up to: {', '.join(wrong)}.",
        meaning=f"The meter, triggers and what a compaction would leave are reckoned from wrong numbers.{stops}",
        repair="Counts the entries anew, and stores what they sum up to.",
        facts={
            "kept": {"entries": kept.entry_count, "tokens": kept.tokens_total, "failures": kept.failure_count},
            "counted": {"entries": true.entry_count, "tokens": true.tokens_total, "failures": true.failure_count},
            "wrong_sums": len(seen.wrong_sums),
        },
    )


def _changed(seen: Pass) -> Finding:
    told = [f"{named(seen.lost)} {'is' if len(seen.lost) == 1 else 'are'} missing"] if seen.lost else []
    # The entry behind a missing one has no hash to follow from.
    changed = [index for index in seen.changed if index - 1 not in set(seen.lost)]
    told += [f"{named(changed)} {'is' if len(changed) == 1 else 'are'} not what was written"] if changed else []
    return Finding(
        check=Check.HISTORY_CHANGED,
        what=f"The history was changed around the product: {', and '.join(told or ['hashes of entries do not follow from each other'])}.",
        meaning="It is shown as it is now, and a draft that covers the place ends as stale. Only a backup has what was there.",
        facts={"missing": seen.lost[:MOST_NAMED], "changed": changed[:MOST_NAMED]},
    )
