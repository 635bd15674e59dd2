"""What somebody typed into a search field. Every text is a query: there is no wrong one."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from sessions_app.selectors.search_text import fold, is_unspaced, pieces_of, words_of

MAX_QUERY_CHARS = 400
MAX_TERMS = 16
MAX_WORDS = 24  # of one term
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")  # no text of a database holds them
_TERM = re.compile(r'(-?)"([^"]*)"?(\*?)|(\S+)')


@dataclass(frozen=True)
class Term:
    """One word or “phrase” of a query; `words` are empty where it is made of signs alone."""

    text: str
    words: tuple[str, ...]
    is_excluded: bool = False
    is_prefix: bool = False
    is_quoted: bool = False

    @cached_property
    def needle(self) -> str:
        """The term as it stands in folded text."""
        return " ".join(fold(self.text).split())

    @cached_property
    def folded(self) -> tuple[str, ...]:
        """The words without case and accents."""
        return tuple(map(fold, self.words))

    @cached_property
    def pattern(self) -> str:
        """A regular expression that finds the term's words in folded text, as the index does."""
        if not self.words:
            return re.escape(self.needle)
        inner = r"[\W_]*".join(map(re.escape, self.folded))
        return (
            inner
            if is_unspaced(self.words[0]) or is_unspaced(self.words[-1])
            else rf"(?<![^\W_]){inner}" + ("" if self.is_prefix else r"(?![^\W_])")
        )


@dataclass(frozen=True)
class SearchQuery:
    """A query, taken apart."""

    text: str
    terms: tuple[Term, ...]

    @property
    def wanted(self) -> tuple[Term, ...]:
        return tuple(term for term in self.terms if not term.is_excluded)

    @property
    def excluded(self) -> tuple[Term, ...]:
        return tuple(term for term in self.terms if term.is_excluded)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to look for; what must not occur is not enough."""
        return not self.wanted

    @property
    def signs(self) -> tuple[Term, ...]:
        """Terms without a word, which no index of words holds."""
        return tuple(term for term in self.wanted if not term.words)

    @property
    def has_words(self) -> bool:
        return any(term.words for term in self.wanted)

    @cached_property
    def pieces(self) -> tuple[str, ...]:
        """Runs of letters and digits that a text must hold somewhere, inside words as well; each at least three characters."""
        runs = dict.fromkeys(piece.decode() for term in self.wanted for piece in pieces_of(" ".join(term.text.split())))
        return tuple(run for run in runs if len(run) > 2)

    @property
    def looks_inside_words(self) -> bool:
        """Whether parts of words count: not where somebody says how a word begins, or puts words in quotes."""
        return not any(term.is_prefix or term.is_quoted for term in self.wanted if term.words)

    @cached_property
    def marks(self) -> tuple[re.Pattern[str], re.Pattern[str]]:
        """Find what is to be marked in folded text: whole words, and where there are none, wherever the terms stand."""
        return re.compile("|".join(term.pattern for term in self.wanted)), re.compile("|".join(map(_loose, self.wanted)))

    @cached_property
    def _exclusions(self) -> tuple[re.Pattern[str], ...]:
        return tuple(re.compile(term.pattern) for term in self.excluded)

    def holds(self, folded: str) -> bool:
        """Whether a folded text has every wanted term somewhere and none of the excluded ones."""
        return self.has_signs(folded) and all(_loosely(term).search(folded) for term in self.wanted if term.words) and self.allows(folded)

    def has_signs(self, folded: str) -> bool:
        return all(term.needle in folded for term in self.signs)

    def allows(self, folded: str) -> bool:
        """Whether a folded text has none of the excluded terms."""
        return not any(pattern.search(folded) for pattern in self._exclusions)


def _loose(term: Term) -> str:
    return r"\s+".join(re.escape(part) for part in term.needle.split())


def _loosely(term: Term) -> re.Pattern[str]:
    return re.compile(_loose(term))


def parse_query(text: str) -> SearchQuery:
    """Words, "phrases", -excluded, begin*. Anything else is taken as it stands."""
    text = _UNSTORABLE.sub(" ", text[:MAX_QUERY_CHARS])
    return SearchQuery(text=text.strip(), terms=tuple(_terms(text))[:MAX_TERMS])


def _terms(text: str) -> Iterable[Term]:
    for found in _TERM.finditer(text):
        minus, phrase, star, word = found.groups()
        is_excluded = minus == "-"
        if word is not None:
            is_excluded = len(word) > 1 and word[0] == "-" and word[1] != "-"
            phrase = word[1:] if is_excluded else word
            star = "*" if len(phrase) > 1 and phrase.endswith("*") else ""
            phrase = phrase.removesuffix("*") if star else phrase
        words = tuple(words_of(phrase)[:MAX_WORDS])
        if phrase.strip() and word != "AND":  # what some are used to write between words, which is meant anyway
            yield Term(phrase.strip(), words, is_excluded=is_excluded, is_prefix=bool(star and words), is_quoted=word is None)
