"""Which sessions the demo holds, and how each is to be set up after its import."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from sessions_app.demo import other_stories, stories
from sessions_app.demo.other_stories import SideFiles
from sessions_app.demo.transcript import Transcript


@dataclass(frozen=True)
class DemoSession:
    """One session: its story, how long ago it ended, its window, its policy, and what this console did to it.

    `steps` are done in order: `compact`, `revert:N` (back to the N-th checkpoint that this console made).
    """

    story: Callable[[], Transcript | tuple[Transcript, SideFiles]]
    ended_ago: timedelta
    window: int | None = None  # tokens; else the model's own
    policy: Mapping[str, object] = field(default_factory=dict)
    steps: tuple[str, ...] = ()

    def files(self) -> tuple[Transcript, SideFiles]:
        """The session's file, and those of its sub-agents."""
        made = self.story()
        return made if isinstance(made, tuple) else (made, [])


SLOW = {"summarisers": ["scripted", "extractive"], "scripted_delay_s": 2.0}
CATALOGUE: tuple[DemoSession, ...] = (
    DemoSession(other_stories.vat_ticket, timedelta(seconds=25)),
    DemoSession(stories.slow_partials, timedelta(minutes=9), window=64_000, policy=SLOW),
    DemoSession(stories.session_store, timedelta(minutes=42), window=50_000),
    DemoSession(other_stories.permissions_review, timedelta(hours=2)),
    DemoSession(stories.doubled_rows, timedelta(hours=5), window=40_000, steps=("compact",)),
    DemoSession(other_stories.pricing_pictures, timedelta(hours=8)),
    DemoSession(stories.streaming_importer, timedelta(hours=20)),
    DemoSession(stories.two_checkpoints, timedelta(days=1, hours=3), window=36_000, steps=("compact", "compact", "revert:1")),
    DemoSession(other_stories.vector_index, timedelta(days=2), window=32_000),
    DemoSession(stories.rewound, timedelta(days=3)),
    DemoSession(stories.flaky_retry, timedelta(days=5)),
    DemoSession(stories.damaged_file, timedelta(days=8)),
    DemoSession(other_stories.release_notes, timedelta(days=12), steps=("compact",)),
)
KEEPS_FACTS = ("payments", "shop")
"""Projects of the demo whose memory is filled: a compaction there shows what it keeps."""
