"""Whether a summary says only what its entries say: its quotes of the user, and the paths and names that it uses."""

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum

import msgspec

from sessions_app.engine import mentions, summary
from sessions_app.engine.entries import Entry
from sessions_app.engine.retention import plain
from sessions_app.engine.summary import Section
from sessions_app.engine.terms import PartKind, Role

SHORTEST_QUOTE = 12
"""Characters of a quote that can be looked for; a shorter one is a word in quotes."""

MAX_CLAIMS = 600
BLOCKED_FROM, BLOCKED_SHARE = 8, 0.5
"""So many unsupported claims, and more than this share of all, and a summary is about something else."""

_QUOTE = re.compile(r"“([^“”]{1,4000})”|(?<!\w)\"([^\"\n]{1,2000})\"(?!\w)")
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
    """`needles`: any of these in an entry supports a name; a quote needs all of them."""

    kind: ClaimKind
    text: str
    needles: tuple[str, ...]


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
    plain_known = plain(known)
    quotes = [claim for claim in claims if claim.kind is ClaimKind.QUOTE and not _quoted(claim, plain_known)]
    for page in pages:
        if not names and not quotes:
            break
        if names:
            told = "\n".join(part.text for entry in page for part in entry.parts)
            names = [claim for claim in names if not _names(claim, told)]
        if quotes:
            said = plain("\n".join(entry.text for entry in page if entry.role is Role.USER) + "\n" + _answers(page))
            quotes = [claim for claim in quotes if not _quoted(claim, said)]
    missing = {(claim.kind, claim.text) for claim in (*names, *quotes)}
    unsupported = tuple(Unsupported(claim.kind, claim.text) for claim in claims if (claim.kind, claim.text) in missing)
    return Checked(claims=len(claims), unsupported=unsupported)


def _answers(page: Iterable[Entry]) -> str:
    """What a person said through a tool: an answer, a refusal."""
    results = (part.text for entry in page for part in entry.parts if part.kind is PartKind.RESULT)
    return "\n".join(text[:6_000] for text in results if "user" in text[:400])


def _names(claim: Claim, text: str) -> bool:
    return any(needle in text for needle in claim.needles)


def _quoted(claim: Claim, text: str) -> bool:
    return all(needle in text for needle in claim.needles)


def _quotes(text: str) -> Iterator[Claim]:
    """Sentences quoted as the user's own: in the section of their messages, and where the words before name the user."""
    listed = summary.parse(text).bodies.get(Section.USER_MESSAGES, "")
    for match in _QUOTE.finditer(text):
        said = match.group(1) or match.group(2)
        if len(said) < SHORTEST_QUOTE or not (said in listed or _OF_USER.search(text[max(0, match.start() - 120) : match.start()])):
            continue
        needles = tuple(piece for raw in _GAP.split(said) if len(piece := plain(raw).strip(" .,;:")) > 2)
        if needles:
            yield Claim(ClaimKind.QUOTE, said, needles)


def _paths(text: str, roots: list[str]) -> Iterator[Claim]:
    for match in mentions.PATH.finditer(text):
        path = match.group().rstrip(".,:;")
        name = path.rpartition("/")[2]
        is_file = bool(_EXTENSION.search(name))
        if not is_file and not path.startswith(("/", "~", "./", "../")) and path.count("/") < 2:
            continue  # `read/write`: two words
        bare = path.removeprefix("./").removeprefix("~/").lstrip(".").lstrip("/")
        needles = [path, bare, *(path.removeprefix(root) for root in roots if path.startswith(root))]
        if bare:
            yield Claim(ClaimKind.PATH, path, tuple(dict.fromkeys(needles)))


def _identifiers(text: str) -> Iterator[Claim]:
    without = _OWN_POSITION.sub(" ", text)  # #12 is a place in the history, as the block says
    for word in mentions.identifiers(without, spoken=True):
        if not _STANDARD.match(word):
            yield Claim(ClaimKind.IDENTIFIER, word, (word,))
