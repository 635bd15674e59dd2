"""What somebody typed into a search field. Every text is a query: there is no wrong one."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from sessions_app.selectors.search_words import as_written, is_alone, is_regional, is_sign, is_unspaced, pieces_of, plain, words_of

MAX_QUERY_CHARS = 400
MAX_TERMS = 16
MAX_WORDS = 24  # of one term
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")  # no text of a database holds them
_TERM = re.compile(r'(-?)"([^"]*)"?(\*?)|(\S+)')


@dataclass(frozen=True)
class Term:
    """One word or “phrase” of a query; `words` are empty where it is made of ASCII signs and punctuation alone."""

    text: str
    words: tuple[str, ...]
    is_excluded: bool = False
    is_prefix: bool = False
    is_quoted: bool = False

    @cached_property
    def needle(self) -> str:
        """The term as it stands in plain text."""
        return " ".join(plain(self.text).split())

    @cached_property
    def _loose(self) -> re.Pattern[str]:
        return re.compile(r"\s+".join(map(re.escape, self.needle.split())))

    @cached_property
    def _strict(self) -> re.Pattern[str]:
        """The words one after the other, whatever parts them; of ASCII, with none beside them: `_is_exact` looks at the rest."""
        first, last = as_written(self.words[0]), as_written(self.words[-1])
        # What looks back stands behind the first word, since a pattern that begins with letters is looked for much faster.
        pattern = re.escape(first) + ("" if is_alone(first) else rf"(?<![0-9a-z]{re.escape(first)})")
        for before, word in pairwise(self.words):
            pattern += (r"[\W_]*?" if is_alone(before) or is_alone(word) else r"[\W_]+?") + re.escape(as_written(word))
        return re.compile(pattern + ("" if self.is_prefix or is_alone(last) else "(?![0-9a-z])"))

    def found_as_words(self, plain_text: str, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
        """Where, between two places, the term's words stand in a plain text, as the index has them."""
        end = len(plain_text) if end is None else end
        if not self.words:
            yield from self.found_as_text(plain_text, start, end)
            return
        # Not cut at `end`: what is behind it may be the rest of a word.
        while (found := self._strict.search(plain_text, start)) and found.start() < end:
            first, last = found.span()
            if plain_text.isascii() or plain_text[max(0, first - 1) : last + 1].isascii() or self._is_exact(plain_text, first, last):
                yield first, last
                start = last
            else:
                start = first + 1

    def found_as_text(self, plain_text: str, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
        """Where, between two places, the term stands in a plain text, inside of words as well."""
        if self.needle:
            end = len(plain_text) if end is None else end
            yield from (found.span() for found in self._loose.finditer(plain_text, start, end))

    def _is_exact(self, text: str, start: int, end: int) -> bool:
        """Whether the words of this stretch are the term's, and none of them goes on beyond it."""
        if _is_one_word(text, start) or (not self.is_prefix and _is_one_word(text, end)):
            return False
        if _cuts_a_flag(text, start) or _cuts_a_flag(text, end):
            return False
        return len(self.words) == 1 or tuple(words_of(text[start:end])) == self.words

    def is_in(self, plain_text: str, *, inside_words: bool) -> bool:
        """Whether the term is in a plain text: as words, or anywhere."""
        if inside_words:
            if self._loose.search(plain_text):
                return not self.signs_alone or next(self.found_as_words(plain_text), None) is not None
            if (self.needle,) == self.words:
                return False  # a word of its own would stand there as text
        return next(self.found_as_words(plain_text), None) is not None

    @cached_property
    def signs_alone(self) -> bool:
        """Whether all of it are signs that the index has: nothing is inside of such a word."""
        return bool(self.words) and not any(_is_part(char) or is_unspaced(char) for char in self.needle)


def _is_part(char: str) -> bool:
    """Whether a character belongs to a word of several."""
    if char.isascii():
        return char.isalnum()
    return (not is_alone(char) and char.isalnum()) or (unicodedata.category(char)[0] == "M" and not is_sign(char) and not is_unspaced(char))


def _is_one_word(text: str, place: int) -> bool:
    """Whether what is before and what is behind this place belong to one word."""
    return 0 < place < len(text) and _is_part(text[place - 1]) and _is_part(text[place])


def _cuts_a_flag(text: str, place: int) -> bool:
    """Whether this place is between the two letters of a flag."""
    if not 0 < place < len(text) or not is_regional(text[place]):
        return False
    first = place
    while first and is_regional(text[first - 1]):
        first -= 1
    return (place - first) % 2 == 1


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
        """Terms without a word, which no index holds: texts are read for them."""
        return tuple(term for term in self.terms if not term.words)

    @property
    def has_words(self) -> bool:
        return any(term.words for term in self.wanted)

    @cached_property
    def pieces(self) -> tuple[str, ...]:
        """Runs of letters and digits that a text must hold somewhere, inside words as well; each at least three characters."""
        runs = dict.fromkeys(piece for term in self.wanted for piece in pieces_of(term.needle))
        return tuple(run for run in runs if len(run) > 2)

    @property
    def looks_inside_words(self) -> bool:
        """Whether parts of words count: not where somebody says how a word begins, or puts words in quotes."""
        return not any(term.is_prefix or term.is_quoted for term in self.wanted if term.words)

    def holds(self, plain_text: str) -> bool:
        """Whether a plain text has every wanted term, and none of the excluded ones."""
        inside = self.looks_inside_words
        return all(term.is_in(plain_text, inside_words=inside) for term in self.wanted) and self.allows(plain_text)

    def is_in_title(self, plain_title: str) -> bool:
        """Whether a plain title has every wanted term, as words or as text, and none of the excluded ones."""
        return all(term.is_in(plain_title, inside_words=True) for term in self.wanted) and self.allows(plain_title)

    def allows(self, plain_text: str) -> bool:
        """Whether a plain text has none of the excluded terms."""
        return not any(term.is_in(plain_text, inside_words=False) for term in self.excluded)


def parse_query(text: str) -> SearchQuery:
    """Words, "phrases", -excluded, begin*. Anything else is taken as it stands."""
    text = _UNSTORABLE.sub(" ", text[:MAX_QUERY_CHARS])
    return SearchQuery(text=text.strip(), terms=tuple(_terms(text))[:MAX_TERMS])


def _terms(text: str) -> Iterable[Term]:
    for found in _TERM.finditer(text):
        minus, phrase, star, word = found.groups()
        is_excluded = minus == "-"
        if word is not None:
            is_excluded = len(word) > 1 and word[0] == "-" and word[1] != "-" and bool(words_of(plain(word)))  # `->` is a sign
            phrase = word[1:] if is_excluded else word
            star = "*" if len(phrase) > 1 and phrase.endswith("*") else ""
            phrase = phrase.removesuffix("*") if star else phrase
        words = tuple(words_of(plain(phrase))[:MAX_WORDS])
        if plain(phrase).strip() and word != "AND":  # what some are used to write between words, which is meant anyway
            yield Term(phrase.strip(), words, is_excluded=is_excluded, is_prefix=bool(star and words), is_quoted=word is None)
