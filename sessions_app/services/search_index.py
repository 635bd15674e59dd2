"""Fills the search index: by the importer as it goes, by the sweep and a command what came otherwise.

Per block of entries and in one transaction: words of each entry with their places (ranking, phrases), trigrams of the
block as a whole (parts of words; verified on the stored text), and a row of the ledger. What the ledger does not hold is
not indexed, so that any interruption leaves nothing half done, and two who index the same session do it once.
"""

import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from django.db import IntegrityError, connection, transaction
from django.db.models.signals import pre_delete

from sessions_app.models import Entry, SearchBlock, Session
from sessions_app.selectors.search_state import lagging_sessions
from sessions_app.selectors.search_text import blob_texts, blobs_of, parts_of, searchable
from sessions_app.selectors.search_words import for_index, words_in
from sessions_app.services.write_turns import write_turn

BLOCK_ENTRIES = 64
BLOCK_CHARS = 256_000
TRANSACTION_CHARS = 300_000
"""About 30 ms of writing."""

LONGEST_LEXEME, LAST_POSITION, POSITIONS = 500, 16_383, 255
"""What a `tsvector` of PostgreSQL holds: characters of a word (bytes, in fact, so fewer), places in a text, places of a word."""

_READ_ENTRIES = 256


@dataclass
class _Block:
    """Entries on their way into the index."""

    session_id: uuid.UUID
    first: int
    last: int
    capped: int = 0
    chars: int = 0
    texts: list[tuple[int, str]] = field(default_factory=list)  # of words, by the entry's id
    pieces: set[bytes] = field(default_factory=set)

    def add(self, entry_id: int, index: int, text: str, *, is_capped: bool) -> None:
        self.last = index
        self.capped += is_capped
        self.chars += len(text)
        if text:
            words, pieces = for_index(text, for_fts5=connection.vendor == "sqlite")
            self.texts.append((entry_id, words))
            self.pieces.update(pieces)

    @property
    def grams(self) -> str:
        """What the trigrams are made of."""
        return b" ".join(piece for piece in self.pieces if len(piece) > 8 or len(piece.decode(errors="replace")) > 2).decode(
            errors="replace"
        )

    @property
    def is_full(self) -> bool:
        return self.last - self.first + 1 >= BLOCK_ENTRIES or self.chars >= BLOCK_CHARS


def index_sessions(session_ids: Iterable[uuid.UUID | str]) -> int:
    """Indexes what is new of these sessions and of their sub-agents. Returns how many entries that were."""
    wanted = [uuid.UUID(str(session_id)) for session_id in session_ids]
    if not wanted:
        return 0
    children = Session.objects.filter(parent_id__in=wanted).values_list("pk", flat=True)
    return _index(lagging_sessions([*wanted, *children]))


def index_lagging(*, for_s: float = float("inf"), progress: Callable[[int], None] = lambda _entries: None) -> int:
    """Indexes whatever is not yet, in all sessions, for about `for_s` seconds. Returns how many entries that were."""
    return _index(lagging_sessions(), until=time.monotonic() + for_s, progress=progress)


def _index(
    lagging: Iterable[tuple[uuid.UUID, int]],
    *,
    until: float = float("inf"),
    progress: Callable[[int], None] = lambda _entries: None,
) -> int:
    held: list[_Block] = []
    done = chars = 0
    for block in (block for session_id, first in lagging for block in _blocks(session_id, first)):
        held.append(block)
        chars += block.chars
        if chars < TRANSACTION_CHARS and len(held) < BLOCK_ENTRIES:
            continue
        done += _write(held)
        progress(done)
        held, chars = [], 0
        if time.monotonic() > until:
            return done
    done += _write(held)
    progress(done)
    return done


def _blocks(session_id: uuid.UUID, first: int) -> Iterator[_Block]:
    """The entries of a session from `first` on, in blocks."""
    block: _Block | None = None
    for entry_id, index, text, is_capped in _texts(session_id, first):
        if block is None:
            block = _Block(session_id, index, index)
        block.add(entry_id, index, text, is_capped=is_capped)
        if block.is_full:
            yield block
            block = None
    if block is not None:
        yield block


def _texts(session_id: uuid.UUID, first: int, end: int | None = None) -> Iterator[tuple[int, int, str, bool]]:
    """(id, index, text, whether it says more) of the entries from `first` on, read some at a time."""
    while True:
        rows = Entry.objects.filter(session_id=session_id, index__gte=first).order_by("index")
        if end is not None:
            rows = rows.filter(index__lte=end)
        page = [(key, index, parts_of(stored)) for key, index, stored in rows.values_list("pk", "index", "parts")[:_READ_ENTRIES]]
        long_texts = blob_texts({blob for _, _, parts in page for blob in blobs_of(parts)})
        for key, index, parts in page:
            yield key, index, *searchable(parts, long_texts)
        if len(page) < _READ_ENTRIES:
            return
        first = page[-1][1] + 1


def _write(blocks: list[_Block]) -> int:
    """Stores blocks; all in one transaction, or one by one where somebody else was faster with some of them."""
    if not blocks:
        return 0
    # Made before the transaction: while it lasts nobody else can write.
    told = str if connection.vendor == "sqlite" else _vector
    words = [(key, told(text)) for block in blocks for key, text in block.texts]
    grams = [block.grams for block in blocks]
    try:
        with write_turn(), transaction.atomic():
            # The ledger first: a statement on another table would make SQLite write out the index that it holds in memory.
            ids = [_enter(block) for block in blocks]
            _insert(words, list(zip(ids, grams, strict=True)))
    except IntegrityError:
        if len(blocks) == 1:
            return 0
        return sum(_write([block]) for block in blocks)
    return sum(block.last - block.first + 1 for block in blocks)


def _enter(block: _Block) -> int:
    """Writes the block into the ledger and returns its id. Raises `IntegrityError` when it stands there already."""
    row = SearchBlock(session_id=block.session_id, first_index=block.first, last_index=block.last, capped=block.capped)
    row.save(force_insert=True)
    return row.pk


def _insert(words: list[tuple[int, str]], grams: list[tuple[int, str]]) -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.executemany("INSERT INTO search_words (rowid, text) VALUES (%s, %s)", words)
            cursor.executemany("INSERT INTO search_grams (rowid, text) VALUES (%s, %s)", grams)
        else:
            cursor.executemany("INSERT INTO search_words (entry_id, words) VALUES (%s, %s::tsvector) ON CONFLICT DO NOTHING", words)
            cursor.executemany("INSERT INTO search_grams (block_id, text) VALUES (%s, %s)", grams)


def _vector(text: str) -> str:
    """A text as a `tsvector` is written, by our own words: PostgreSQL's parser has its own opinion of what is one, by its locale."""
    places: dict[str, list[int]] = {}
    for place, word in enumerate(words_in(text), 1):
        if len(word) <= LONGEST_LEXEME:
            places.setdefault(word, []).append(min(place, LAST_POSITION))
    return " ".join(f"'{word}':{','.join(map(str, found[:POSITIONS]))}" for word, found in places.items())


def forget_session(session_id: uuid.UUID) -> None:
    """Takes a session out of the index, before its rows are deleted: an index that keeps no text must be told what to forget.

    In the caller's transaction, if there is one.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        for block_id, first, last in list(
            SearchBlock.objects.filter(session_id=session_id).order_by("first_index").values_list("pk", "first_index", "last_index")
        ):
            block = _Block(session_id, first, last)
            for key, index, text, is_capped in _texts(session_id, first, last):
                block.add(key, index, text, is_capped=is_capped)
            if connection.vendor == "sqlite":
                cursor.executemany(
                    "INSERT INTO search_words (search_words, rowid, text) VALUES ('delete', %s, %s)",
                    block.texts,
                )
                cursor.execute("INSERT INTO search_grams (search_grams, rowid, text) VALUES ('delete', %s, %s)", [block_id, block.grams])
            else:
                cursor.execute("DELETE FROM search_words WHERE entry_id = ANY(%s)", [[key for key, _ in block.texts]])
                cursor.execute("DELETE FROM search_grams WHERE block_id = %s", [block_id])
        SearchBlock.objects.filter(session_id=session_id).delete()


def forget_what_is_deleted() -> None:
    """Makes every deletion of sessions take them out of the index first, by whatever way they are deleted. Called once, at the start."""
    pre_delete.connect(_forget_deleted, sender=Session, dispatch_uid="search index")


def _forget_deleted(instance: Session, **_: object) -> None:
    forget_session(instance.pk)


def empty_index() -> None:
    """Forgets everything; `index_lagging` fills it anew."""
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            for table in ("search_words", "search_grams"):
                cursor.execute(f"INSERT INTO {table} ({table}) VALUES ('delete-all')")  # noqa: S608  names of our own
        else:
            cursor.execute("TRUNCATE search_words, search_grams")
        SearchBlock.objects.all().delete()
