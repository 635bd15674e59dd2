"""What a person says in a session that the product holds itself. The answers come from the scripted model, turn by turn."""

import random
from dataclasses import dataclass

from sessions_app.demo.material import PAYMENTS, log_lines


@dataclass(frozen=True)
class Conversation:
    """One inline session: its messages are sent one after the other. `key`: under which it is found again."""

    key: str
    title: str
    system: str
    window: int  # tokens; small, so that it was compacted on its way
    messages: tuple[str, ...]


def release_watch() -> Conversation:
    """A release that is watched through a day, with logs pasted in."""
    rng = random.Random(42)  # noqa: S311  a story, not a secret

    def log(lines: int) -> str:
        return "\n```\n" + log_lines(rng, PAYMENTS, lines) + "\n```"

    return Conversation(
        key="demo-release-watch",
        title="Release 4.2 of payments: watch it through the day",
        system="You watch a release with a person. Be brief. Never advise a restart of the ledger before 18:00.",
        window=3_000,
        messages=(
            "4.2 of payments goes out at 10:00. Three changes: retries with a pause, refunds that show their reason, and exports "
            "that are twice as fast. We must not lose a posting, and customer 48213 must not be charged twice. What do we watch?",
            "It is out. This is the worker's log of the first minutes:" + log(12),
            "Retries are up from 2 to 9 a minute. Is the pause of 250 ms too short?" + log(8),
            "Ben set RETRY_PAUSE_MS=1000 in worker/retry.py at 10:40 and deployed again, commit 7c1e9f0. The log since then:" + log(14),
            "Better: 3 a minute. Now the export of May takes 48 s, where it took 110 s before. Note both numbers for the report.",
            "A refund of 24.00 for invoice R-90112 shows no reason. It was made before the release. Do we fill in old ones?" + log(10),
            "Decided: old refunds stay as they are, and the page says “made before 4.2”. Ticket 5120.",
            "15:30. One posting was rejected with E_DUPLICATE, for customer 48213. Look:" + log(16),
            "It was the same posting sent twice by the client, and the second was refused as it should be. Nothing was charged twice.",
            "Write what is left to do before 18:00, in order.",
        ),
    )


CONVERSATIONS = (release_watch(),)
