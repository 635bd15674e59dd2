"""The search index as each database asks for it, behind one interface: ids in, ids out, no text."""

import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Any

from django.db import connection

from sessions_app.models import Entry, SearchBlock, Session
from sessions_app.selectors.search_query import SearchQuery, Term
from sessions_app.selectors.search_words import for_fts5

Row = tuple[Any, ...]


@dataclass(frozen=True)
class SearchFilters:
    """What hits are narrowed to. An empty string, or None, means any."""

    agent: str = ""
    role: str = ""
    kind: str = ""
    session: str = ""
    since: date | None = None
    until: date | None = None  # that day included

    @property
    def is_set(self) -> bool:
        return self != SearchFilters()

    def given(self) -> dict[str, str]:
        """Those that are set, as they stand in the address."""
        return {name: str(value) for name, value in asdict(self).items() if value}

    def conditions(self) -> tuple[str, list[object]]:
        """SQL over the entry `e` and its session `s`, beginning with AND, and its values."""
        parts = ["s.is_complete"]
        values: list[object] = []
        for column, value in (("s.agent", self.agent), ("e.role", self.role), ("e.kind", self.kind)):
            if value:
                parts.append(f"{column} = %s")
                values.append(value)
        if self.session:
            parts.append("e.session_id = %s")
            values.append(key_of(self.session))
        # Times stand as their source gave them: the beginning of ISO 8601 has the order of days.
        moment = "COALESCE(NULLIF(e.timestamp, ''), CAST(s.last_activity_at AS text))"
        if self.since:
            parts.append(f"{moment} >= %s")
            values.append(self.since.isoformat())
        if self.until:
            parts.append(f"{moment} < %s")
            values.append((self.until + timedelta(days=1)).isoformat())
        return "".join(f" AND {part}" for part in parts), values

    def session_conditions(self) -> tuple[str, list[object]]:
        """SQL over the session `s` alone, beginning with AND, and its values: of the agent, and of days on which it went on."""
        condition = ""
        values: list[object] = []
        if self.agent:
            condition += " AND s.agent = %s"
            values.append(self.agent)
        if self.since:
            condition += " AND CAST(s.last_activity_at AS text) >= %s"
            values.append(self.since.isoformat())
        if self.until:
            condition += " AND (s.started_at IS NULL OR CAST(s.started_at AS text) < %s)"
            values.append((self.until + timedelta(days=1)).isoformat())
        return condition, values


def escaped_like(text: str) -> str:
    """A text to be found by LIKE as it stands."""
    return re.sub(r"([\\%_])", r"\\\1", text)


def session_of(stored: object) -> uuid.UUID:
    """A session's id as the database gives it back."""
    return stored if isinstance(stored, uuid.UUID) else uuid.UUID(hex=str(stored))


def moment_of(stored: Any) -> datetime:
    """A moment as the database gives it back: SQLite has it as text."""
    moment: datetime = datetime.fromisoformat(stored) if isinstance(stored, str) else stored
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def key_of(session_id: object) -> object:
    """A session's id as the database stores it."""
    return Session._meta.pk.get_db_prep_value(session_id, connection, prepared=False)


@cache
def _names() -> dict[str, str]:
    quote = connection.ops.quote_name
    tables = {"entry": Entry, "session": Session, "block": SearchBlock}
    beyond_ascii = "s.title GLOB '*[^ -~]*'" if connection.vendor == "sqlite" else r"s.title ~ '[^\x01-\x7f]'"
    columns = {"place": f"e.{quote('index')}", "beyond_ascii": beyond_ascii}
    return {name: quote(model._meta.db_table) for name, model in tables.items()} | columns


def rows_of(sql: str, values: Sequence[Any]) -> list[Row]:
    with connection.cursor() as cursor:
        cursor.execute(sql.format(**_names()), values)
        return list(cursor.fetchall())


class SearchIndex(ABC):
    """One database's way to ask."""

    title_has: str

    @abstractmethod
    def expression(self, query: SearchQuery) -> str:
        """The words of a query in the database's own language; every word is quoted, so no text can be wrong in it."""

    @abstractmethod
    def ranked(self, query: SearchQuery, filters: SearchFilters, after: tuple[float, int] | None, limit: int) -> list[Row]:
        """(rank, entry id, how many there are or None) of the best hits behind `after`, best first. A lower rank is better.

        How many there are is told where counting them apart would look for the phrases once more.
        """

    @abstractmethod
    def in_order(self, query: SearchQuery, session: object, ids: tuple[int, int], limit: int) -> list[int]:
        """Indexes of hits in one session, in its order, `limit` at most. `ids`: first and last of its entries."""

    @abstractmethod
    def blocks(self, query: SearchQuery, filters: SearchFilters, up_to: int | None, limit: int) -> list[int]:
        """Ids of blocks that may hold the query's pieces, newest first, from `up_to` on."""

    @abstractmethod
    def having_words(self, query: SearchQuery, ids: Sequence[int]) -> set[int]:
        """Those of these entries that hold the query's words."""

    @abstractmethod
    def counted(self, query: SearchQuery, limit: int) -> int:
        """How many entries hold the query's words, `limit` at most."""


class _Fts5(SearchIndex):
    title_has = r"s.title LIKE %s ESCAPE '\'"

    def expression(self, query: SearchQuery) -> str:
        wanted = " AND ".join(self._phrase(term) for term in query.wanted if term.words)
        excluded = " OR ".join(self._phrase(term) for term in query.excluded if term.words)
        return f"({wanted}) NOT ({excluded})" if excluded else wanted

    def _phrase(self, term: Term) -> str:
        words = for_fts5(term.words)  # letters and digits alone, as FTS5 sees them
        return f'"{words}"*' if term.is_prefix else f'"{words}"'

    def ranked(self, query: SearchQuery, filters: SearchFilters, after: tuple[float, int] | None, limit: int) -> list[Row]:
        where, values = "search_words MATCH %s", [self.expression(query)]
        found: list[object] = [*values]
        if after:
            where += " AND (rank > %s OR (rank = %s AND search_words.rowid < %s))"
            found += [after[0], after[0], after[1]]
        is_phrase = any(len(term.words) > 1 for term in query.terms)
        source = f"SELECT rank, search_words.rowid, {'count(*) OVER ()' if is_phrase else 'NULL'} FROM search_words"  # noqa: S608  of our own
        if filters.is_set:
            condition, more = filters.conditions()
            source += " JOIN {entry} e ON e.id = search_words.rowid JOIN {session} s ON s.id = e.session_id"
            where += condition
            found += more
        return rows_of(f"{source} WHERE {where} ORDER BY rank, search_words.rowid DESC LIMIT %s", [*found, limit])

    def in_order(self, query: SearchQuery, session: object, ids: tuple[int, int], limit: int) -> list[int]:
        sql = (
            "SELECT {place} FROM search_words JOIN {entry} e ON e.id = search_words.rowid"
            " WHERE search_words MATCH %s AND search_words.rowid BETWEEN %s AND %s AND e.session_id = %s"
            " ORDER BY search_words.rowid LIMIT %s"
        )
        return [index for (index,) in rows_of(sql, [self.expression(query), *ids, session, limit])]

    def blocks(self, query: SearchQuery, filters: SearchFilters, up_to: int | None, limit: int) -> list[int]:
        grams = dict.fromkeys(piece[place : place + 3] for piece in query.pieces for place in range(len(piece) - 2))
        table, where, values = "{block} b", "1 = 1", []
        if grams:
            table = "search_grams g JOIN {block} b ON b.id = g.rowid"
            where, values = "search_grams MATCH %s", [" AND ".join(f'"{gram}"' for gram in grams)]
        return _blocks(table, where, values, filters, up_to, limit, by="g.rowid" if grams else "b.id")

    def having_words(self, query: SearchQuery, ids: Sequence[int]) -> set[int]:
        if not ids or not query.has_words:
            return set()
        marks = ", ".join(["%s"] * len(ids))
        sql = f"SELECT rowid FROM search_words WHERE search_words MATCH %s AND rowid IN ({marks})"  # noqa: S608  marks alone
        return {key for (key,) in rows_of(sql, [self.expression(query), *ids])}

    def counted(self, query: SearchQuery, limit: int) -> int:
        sql = "SELECT count(*) FROM (SELECT 1 FROM search_words WHERE search_words MATCH %s LIMIT %s) AS found"
        return int(rows_of(sql, [self.expression(query), limit])[0][0])


class _TsVector(SearchIndex):
    title_has = r"s.title ILIKE %s ESCAPE '\'"

    def expression(self, query: SearchQuery) -> str:
        wanted = [self._phrase(term) for term in query.wanted if term.words]
        excluded = [f"!{self._phrase(term)}" for term in query.excluded if term.words]
        return " & ".join(wanted + excluded)

    def _phrase(self, term: Term) -> str:
        words = [f"'{word}'" for word in term.words]
        if term.is_prefix:
            words[-1] += ":*"
        return f"({' <-> '.join(words)})"

    def ranked(self, query: SearchQuery, filters: SearchFilters, after: tuple[float, int] | None, limit: int) -> list[Row]:
        condition, values = filters.conditions()
        inner = (
            "SELECT -ts_rank(w.words, q, 1)::float8 AS rank, w.entry_id AS id FROM CAST(%s AS tsquery) q, search_words w"  # noqa: S608
            " JOIN {entry} e ON e.id = w.entry_id JOIN {session} s ON s.id = e.session_id WHERE w.words @@ q" + condition
        )
        found: list[object] = [self.expression(query), *values]
        where = ""
        if after:
            where = " WHERE rank > %s OR (rank = %s AND id < %s)"
            found += [after[0], after[0], after[1]]
        return rows_of(f"SELECT rank, id, NULL FROM ({inner}) AS found{where} ORDER BY rank, id DESC LIMIT %s", [*found, limit])  # noqa: S608

    def in_order(self, query: SearchQuery, session: object, ids: tuple[int, int], limit: int) -> list[int]:
        sql = (
            "SELECT {place} FROM search_words w JOIN {entry} e ON e.id = w.entry_id"
            " WHERE w.words @@ %s::tsquery AND w.entry_id BETWEEN %s AND %s AND e.session_id = %s"
            " ORDER BY w.entry_id LIMIT %s"
        )
        return [index for (index,) in rows_of(sql, [self.expression(query), *ids, session, limit])]

    def blocks(self, query: SearchQuery, filters: SearchFilters, up_to: int | None, limit: int) -> list[int]:
        table, where, values = "{block} b", "true", []
        if query.pieces:
            table = "search_grams g JOIN {block} b ON b.id = g.block_id"
            where = " AND ".join(["g.text LIKE %s"] * len(query.pieces))
            values = [f"%{piece}%" for piece in query.pieces]  # letters and digits alone
        return _blocks(table, where, values, filters, up_to, limit, by="b.id")

    def having_words(self, query: SearchQuery, ids: Sequence[int]) -> set[int]:
        if not ids or not query.has_words:
            return set()
        sql = "SELECT entry_id FROM search_words WHERE entry_id = ANY(%s) AND words @@ %s::tsquery"
        return {key for (key,) in rows_of(sql, [list(ids), self.expression(query)])}

    def counted(self, query: SearchQuery, limit: int) -> int:
        sql = "SELECT count(*) FROM (SELECT 1 FROM search_words WHERE words @@ %s::tsquery LIMIT %s) AS found"
        return int(rows_of(sql, [self.expression(query), limit])[0][0])


def _blocks(
    table: str, where: str, values: Sequence[object], filters: SearchFilters, up_to: int | None, limit: int, *, by: str
) -> list[int]:
    found = list(values)
    if up_to is not None:
        where += f" AND {by} <= %s"
        found.append(up_to)
    if filters.session:
        where += " AND b.session_id = %s"
        found.append(key_of(filters.session))
    return [key for (key,) in rows_of(f"SELECT {by} FROM {table} WHERE {where} ORDER BY {by} DESC LIMIT %s", [*found, limit])]  # noqa: S608


def search_index() -> SearchIndex:
    """The index of the database in use."""
    return _Fts5() if connection.vendor == "sqlite" else _TsVector()
