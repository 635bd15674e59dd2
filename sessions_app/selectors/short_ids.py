"""Sessions by the beginning or the end of their id, as people copy it from a page."""

import re
import uuid
from itertools import islice

from django.db.models import CharField
from django.db.models.functions import Cast

from sessions_app.models import Session
from sessions_app.models.ids import short

FEWEST_DIGITS = 4
HEX_DIGITS = 32
_TAIL_DIGITS = 12  # the last group of an id as text: the same on every database
_WANTED = re.compile(r"[0-9a-f]+")


def session_ids_like(text: str, *, at_most: int = 10) -> list[uuid.UUID]:
    """Ids that begin or end with these hex digits, or whose short form begins with them, at most so many.

    Empty for what is no part of an id. At most two queries; the second reads ids alone.
    """
    digits = text.strip().lower().replace("-", "")
    if not _WANTED.fullmatch(digits) or not FEWEST_DIGITS <= len(digits) <= HEX_DIGITS:
        return []
    low, high = (uuid.UUID(hex=digits.ljust(HEX_DIGITS, fill)) for fill in "0f")
    ids = Session.objects.order_by("pk").values_list("pk", flat=True)
    found = list(ids.filter(pk__gte=low, pk__lte=high)[:at_most])
    if len(digits) < HEX_DIGITS and len(found) < at_most:
        likely = ids.annotate(text=Cast("pk", CharField())).filter(text__contains=digits[-_TAIL_DIGITS:])
        others = (one for one in likely.iterator() if one not in found and _ends_like(one, digits))
        found += islice(others, at_most - len(found))
    return found


def _ends_like(identifier: uuid.UUID, digits: str) -> bool:
    return identifier.hex.endswith(digits) or short(identifier).startswith(digits)
