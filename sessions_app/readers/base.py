"""What every reader of a session format yields: records, entries, problems, checkpoints, in file order."""

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import BinaryIO, Protocol

import msgspec

from sessions_app.engine.entries import Part, Segment, Usage
from sessions_app.engine.terms import Kind, Role, Trigger
from sessions_app.readers.times import TIME_IN_DOUBT


class ProblemKind(StrEnum):
    """What was wrong with a piece of a source. Nothing of it is dropped: each is counted, shown and kept."""

    UNREADABLE = "unreadable"  # no JSON could be made of these bytes
    SPLICED = "spliced"  # several objects on one line, each recovered
    NUL_BYTES = "nul_bytes"
    TRUNCATED = "truncated"  # the last line has no newline and does not decode: it may still be written
    TOO_LONG = "too_long"  # a line over the cap: kept as bytes, not decoded
    NOT_AN_OBJECT = "not_an_object"
    INVALID_TEXT = "invalid_text"  # lone surrogates, NUL characters, bytes that are not UTF-8; replaced for storage
    DUPLICATE_KEYS = "duplicate_keys"
    UNKNOWN_TYPE = "unknown_type"
    BAD_SHAPE = "bad_shape"  # a known type whose fields are not as expected
    DUPLICATE = "duplicate"  # a uuid that was already read
    ORPHAN = "orphan"  # its parent is not in the source
    CYCLE = "cycle"
    DEAD_BOUNDARY = "dead_boundary"  # a compaction that names rows which are not there
    UNANSWERED_CALL = "unanswered_call"
    ORPHAN_RESULT = "orphan_result"
    FOREIGN_SESSION = "foreign_session"  # a row that names another session than the file's
    NAIVE_TIME = "naive_time"
    TIME_IN_DOUBT = "time_in_doubt"  # before the year 2000, or more than a day later than the import: shown, not used


class Problem(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One finding, with its place: `line` counts from 1, `offset` is in bytes from the start of the file."""

    kind: ProblemKind
    line: int
    offset: int
    detail: str = ""  # never transcript text


class ParsedEntry(msgspec.Struct, omit_defaults=True, kw_only=True):
    """An entry as its source tells it, before it has an index. `blobs` maps sha256 (hex) to bytes and media type."""

    role: Role
    kind: Kind
    parts: tuple[Part, ...]
    source_id: str = ""
    parent_source_id: str = ""
    message_key: str = ""
    meta: bool = False
    usage: Usage | None = None
    model: str = ""
    timestamp: str = ""
    synthetic_time: bool = False
    child_key: str = ""  # set when the entry belongs to a side chain: it goes to that child session only
    annex: dict[str, object] = {}  # facts for display only (exit status, duration, sub-agent id), never sent
    blobs: dict[str, tuple[str, bytes]] = {}

    @property
    def own_time(self) -> str:
        """The time that its source tells of it, where that can be true; else empty."""
        return "" if self.synthetic_time or TIME_IN_DOUBT in self.annex else self.timestamp


class Record(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One item of a source, byte-exact by its place: `raw` is exactly `length` bytes at `offset`."""

    line: int
    offset: int
    length: int  # includes the line's own newline, so that records cover the file without a gap
    kind: str  # the source's own word for it, e.g. `user`, `system/compact_boundary`; `unreadable`
    raw: bytes
    entry: ParsedEntry | None = None
    problems: tuple[Problem, ...] = ()


class AgentCheckpoint(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A compaction that the agent made itself, as its file tells it.

    Indexes are entry indexes *within the session*, counted by the reader over the entries that it yielded
    for that session (`child_key` "" is the main session).
    """

    child_key: str = ""
    divider_index: int
    boundary_index: int
    segments: tuple[Segment, ...]
    cleared: tuple[int, ...] = ()
    trigger: Trigger
    summary: str = ""
    tokens_before: int | None = None
    tokens_after: int | None = None
    duration_ms: int | None = None
    instructions: str = ""
    detail: dict[str, object] = {}


class ChildSession(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A side chain found inside a file, which becomes a session of its own."""

    key: str
    title: str = ""
    call_id: str = ""  # the parent's call that started it
    agent_type: str = ""


class SessionFacts(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What a file says about its session as a whole; known for certain only when the file has been read."""

    agent: str = ""
    source_session_id: str = ""
    title: str = ""
    title_source: str = ""
    model: str = ""
    window: int | None = None
    cwd: str = ""
    branch: str = ""
    version: str = ""
    parent_source_session_id: str = ""  # set by a sub-agent's own file
    parent_call_id: str = ""
    agent_id: str = ""
    started: str = ""
    last_activity: str = ""
    open_turn: bool = False  # it ends with an unanswered user message or call
    copied_from: str = ""  # source id of the session whose rows the file begins with, or which it goes on from
    is_fork: bool = False  # it says so; else whether the other one went on tells
    inherited: dict[str, int] = {}  # child key → how many entries, from the first on, are copies
    first_source_id: str = ""  # of its first entry, where the source gives ids that no other session may have
    is_continued: bool = False  # it begins with the summary of another session, which it may not name


class ParseReport(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What reading a source found. `problems` holds at most `MAX_LISTED_PROBLEMS`; the counts are complete."""

    reader: str = ""
    reader_version: int = 1
    bytes_read: int = 0
    lines: int = 0
    records: int = 0
    entries: int = 0
    by_kind: dict[str, int] = {}
    by_problem: dict[str, int] = {}
    problems: list[Problem] = []
    checkpoints: int = 0
    side_chain_entries: int = 0
    duplicates: int = 0
    notes: list[str] = []


MAX_LISTED_PROBLEMS = 500


class UsageCorrection(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A stored entry whose usage is another one by now: none, or one that was told after it."""

    child_key: str = ""
    ordinal: int
    usage: Usage | None = None


class SourceIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """Whose source this is, as far as its name and first rows tell. `agent_id` is set by a sub-agent's own file."""

    session_id: str
    agent_id: str = ""


class SourceReading(Protocol):
    """One pass over one source. Iterate it to the end, then ask for the rest; only `identity` is known before.

    `off_branch()` gives, per child key, the indexes that a rewind or an abandoned branch left behind.
    `agent_calls()` maps a sub-agent's id to the call that started it. Some sources tell a message's usage more
    than once, or long after it: the entry that carries it may lose it to a later one, or get it late. `mark_written()`
    says that everything yielded so far is stored; `usage_corrections()` then names the stored entries whose
    usage is another one by now.
    """

    def identity(self) -> SourceIdentity: ...
    def mark_written(self) -> None: ...
    def usage_corrections(self) -> Iterable[UsageCorrection]: ...
    def agent_calls(self) -> dict[str, str]: ...
    def __iter__(self) -> Iterator[Record]: ...
    def facts(self) -> SessionFacts: ...
    def child_sessions(self) -> list[ChildSession]: ...
    def checkpoints(self) -> list[AgentCheckpoint]: ...
    def off_branch(self) -> dict[str, list[int]]: ...
    def report(self) -> ParseReport: ...


class Reader(Protocol):
    """One session format. `sniff` sees the first bytes of a source and never raises."""

    name: str
    version: int

    def sniff(self, head: bytes) -> bool: ...
    def read(self, source: BinaryIO, *, path: str = "", cancelled: Callable[[], bool] = ...) -> SourceReading: ...
