"""Whether a summary says only what its entries say: its quotes of the user, and the paths and names that it uses."""

import math
import re
from collections.abc import Iterable, Iterator
from enum import StrEnum

import msgspec

from sessions_app.engine import mentions, summary
from sessions_app.engine.entries import Entry
from sessions_app.engine.retention import content_words, plain
from sessions_app.engine.summary import Section
from sessions_app.engine.terms import PartKind

SHORTEST_QUOTE = 12
"""Characters of a quote that can be looked for; a shorter one is a word in quotes."""

LEAST_QUOTED_WORDS, LEAST_QUOTED_SHARE = 4, 0.8
"""Whoever quotes may mend a slip of the pen: so many content words, and this share of them in one message, are the quote."""

MAX_CLAIMS = 600
BLOCKED_FROM, BLOCKED_SHARE = 8, 0.5
"""So many unsupported claims, and more than this share of all, and a summary is about something else."""

_QUOTE = re.compile(r"“([^“”]{1,4000})”|(?<!\w)\"([^\"\n]{1,2000})\"(?!\w)")
_LISTED = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])?\s*(?:#\d{1,9}[^“\"]{0,60})?[“\"](.+)[”\"][^“”\"]{0,40}$")
_OF_USER = re.compile(r"\b(?:user|they|human)(?:'s|’s)?\b[^.\n“\"]{0,80}$", re.IGNORECASE)
_GAP = re.compile(r"\s*(?:\[?…\]?|\[?\.\.\.\]?)\s*")
_OWN_POSITION = re.compile(r"(?<![\w/.-])#\d{1,9}\b")
_EXTENSION = re.compile(r"\.\w{1,8}$")
_STANDARD = re.compile(r"\A(?:UTF|SHA|ISO|GPT|RFC|HTTP|AES|MD|CVE|ES|COVID|US|IPV|CP|BASE|FTS|X|PEP|H)-?\d", re.IGNORECASE)


class ClaimKind(StrEnum):
    QUOTE = "quote"
    PATH = "path"
    IDENTIFIER = "identifier"


class Unsupported(msgspec.Struct, frozen=True):
    """Something that a summary says and no entry of its span does."""

    kind: ClaimKind
    text: str


class Claim(msgspec.Struct, frozen=True):
    """`needles`: what must stand in an entry, all of them in the same; of a quote, that or most of its content `words`."""

    kind: ClaimKind
    text: str
    needles: tuple[str, ...]
    words: tuple[str, ...] = ()  # the longest first: where a text does not hold a quote, they are the first to be missing


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """`claims`: how many were looked up."""

    claims: int = 0
    unsupported: tuple[Unsupported, ...] = ()

    @property
    def is_blocking(self) -> bool:
        return len(self.unsupported) >= BLOCKED_FROM and len(self.unsupported) > self.claims * BLOCKED_SHARE


def claims_of(text: str, *, roots: Iterable[str] = ()) -> list[Claim]:
    """What the summary claims, each once. A path also counts without a root: a directory under which all work was done."""
    roots = [root.rstrip("/") + "/" for root in roots if root.strip("/")]
    found = [*_quotes(text), *_paths(text, roots), *_identifiers(text)]
    return list({(claim.kind, claim.text): claim for claim in found}.values())[:MAX_CLAIMS]


def check(text: str, pages: Iterable[list[Entry]], *, known: str = "", roots: Iterable[str] = ()) -> Checked:
    """Looks the claims of a summary up: first in what is `known` already (what code knows, the previous summary), then page
    by page in the entries, until all are found."""
    claims = claims_of(text, roots=roots)
    names = [claim for claim in claims if claim.kind is not ClaimKind.QUOTE and not _names(claim, known)]
    quotes = _unsaid([claim for claim in claims if claim.kind is ClaimKind.QUOTE], known.splitlines())
    for page in pages:
        if not names and not quotes:
            break
        if names:
            told = "\n".join(f"{part.name} {part.text}" for entry in page for part in entry.parts)
            names = [claim for claim in names if not _names(claim, told)]
        if quotes:
            quotes = _unsaid(quotes, [entry.text or _answer(entry) for entry in page])
    missing = {(claim.kind, claim.text) for claim in (*names, *quotes)}
    unsupported = tuple(Unsupported(claim.kind, claim.text) for claim in claims if (claim.kind, claim.text) in missing)
    return Checked(claims=len(claims), unsupported=unsupported)


def _answer(entry: Entry) -> str:
    """What a person said through a tool: an answer, a refusal."""
    results = (part.text for part in entry.parts if part.kind is PartKind.RESULT)
    return "\n".join(text[:6_000] for text in results if "user" in text[:400].lower())


def _names(claim: Claim, text: str) -> bool:
    return all(needle in text for needle in claim.needles)


def _unsaid(quotes: list[Claim], texts: Iterable[str]) -> list[Claim]:
    """The quotes that none of these texts says, in these words or, a slip of the pen aside, nearly so."""
    for text in texts:
        if not quotes:
            return []
        if text:
            said = plain(text)
            quotes = [claim for claim in quotes if not _says(said, claim)]
    return quotes


def _says(said: str, claim: Claim) -> bool:
    if all(needle in said for needle in claim.needles):
        return True
    if len(claim.words) < LEAST_QUOTED_WORDS:
        return False
    may_miss = len(claim.words) - math.ceil(LEAST_QUOTED_SHARE * len(claim.words))
    for word in claim.words:
        if word not in said:
            may_miss -= 1
            if may_miss < 0:
                return False
    return True


def _quotes(text: str) -> Iterator[Claim]:
    """Sentences quoted as the user's own: in the section of their messages, and where the words before name the user."""
    listed = summary.parse(text).bodies.get(Section.USER_MESSAGES, "")
    for line in listed.splitlines():
        if match := _LISTED.match(line):
            yield from _quote(match.group(1))
    rest = text.replace(listed, "", 1) if listed else text
    for match in _QUOTE.finditer(rest):
        if _OF_USER.search(rest[max(0, match.start() - 120) : match.start()]):
            yield from _quote(match.group(1) or match.group(2))


def _quote(said: str) -> Iterator[Claim]:
    needles = tuple(piece for raw in _GAP.split(said) if len(piece := plain(raw).strip(" .,;:")) > 2)
    if needles and len(said) >= SHORTEST_QUOTE:
        yield Claim(ClaimKind.QUOTE, said, needles, tuple(sorted(content_words(said), key=len, reverse=True)))


def _paths(text: str, roots: list[str]) -> Iterator[Claim]:
    for match in mentions.PATH.finditer(text):
        path = match.group().rstrip(".,:;")
        name = path.rpartition("/")[2]
        is_file = bool(_EXTENSION.search(name))
        if not is_file and not path.startswith(("/", "~", "./", "../")):
            continue  # `read/write`: words
        bare = path.removeprefix("./").removeprefix("~/").lstrip(".").lstrip("/")
        below = (path.removeprefix(root) for root in roots if path.startswith(root))
        if bare:  # each of them ends the path: where a longer one stands, the shortest does
            yield Claim(ClaimKind.PATH, path, (min((bare, *below), key=len),))


def _identifiers(text: str) -> Iterator[Claim]:
    without = _OWN_POSITION.sub(" ", text)  # #12 is a place in the history, as the block says
    for word in mentions.identifiers(without, spoken=True):
        if not _STANDARD.match(word):
            yield Claim(ClaimKind.IDENTIFIER, word, (word,))
