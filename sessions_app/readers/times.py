"""Which of the times that a source tells can be true."""

import re
from datetime import UTC, datetime, timedelta

AHEAD = timedelta(days=1)
"""By so much a clock may be ahead of ours: a zone that was left out, a day that has begun elsewhere."""

FIRST = datetime(2000, 1, 1, tzinfo=UTC)
"""No agent wrote before. A clock that nobody set stands at 1970, a time that nobody filled in at the year 1."""

TIME_IN_DOUBT = "time_in_doubt"
"""In the annex of an entry whose time can't be true. It is shown, and nothing is put in order by it."""

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
_OTHER_ZONES = timedelta(hours=14)


def parse_time(told: str) -> datetime | None:
    """A source's time as a moment; one without zone is read as UTC. `None` when there is none."""
    try:
        parsed = datetime.fromisoformat(told)
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def can_be(moment: datetime, now: datetime) -> bool:
    """Whether something that is read `now` can have been written at that moment."""
    return FIRST <= moment <= now + AHEAD


class Clock:
    """Ours, as it stood when it was last looked at: times beside which those of a source are put."""

    def __init__(self) -> None:
        self.look()

    def look(self) -> None:
        """Looks at the clock again."""
        self._now = datetime.now(UTC)
        self._surely = (self._now + AHEAD - _OTHER_ZONES).isoformat()

    def believes(self, told: str) -> bool:
        """Whether a time that `TIME` matches can be true."""
        if "2000-01-02" <= told <= self._surely:  # most are told by their letters, whatever their zone
            return True
        moment = parse_time(told)
        return moment is not None and can_be(moment, self._now)
