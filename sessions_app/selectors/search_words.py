"""Which texts are the same to a search, and what a word is: decided here for the index, for queries and for what is marked.

*Plain* text has no case, no accents, no characters that nobody sees, and full-width letters as the common ones. A *word* of
it is a run of letters and digits; one character of a script that is written without spaces; or one sign beyond ASCII, such as
an emoji, an arrow or a line of a table. Of a run of the same sign two count. ASCII signs and punctuation only part words.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003fffd"
)
"""Scripts that are written without spaces between words: each character is a word of its own, and a run of them a phrase."""

_ACCENTS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc"
    "\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u08d3-\u08e1\u08e3-\u08ff\u1ab0-\u1abd\u1abf-\u1ace\u1dc0-\u1dff\u20d0-\u20dc\u20e1"
    "\u20e5-\u20f0\ufe20-\ufe2f"
)
_UNSEEN = "\u00ad\u061c\u180b-\u180f\u200c-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0100-\U000e01ef"
"""Joiners, selectors and marks of direction. (A space without width parts words, and so does what else is not in this list.)"""

MAY_BE_ASCII = re.compile(f"[\u00c0-\u0250\u037e\u1e00-\u1eff\u1fef\u212a\u212b\ufb00-\ufb06\uff01-\uff5e{_ACCENTS}{_UNSEEN}]")
"""Characters whose plain form may be ASCII or nothing."""

_BESIDES = frozenset("§¶†‡•‣※‰‱‼⁇⁈⁉〰")
"""Punctuation by its name, and a sign to whoever looks for it."""

_UNKNOWN_TO_FTS5 = re.compile("[\u19b0-\u19c0\u19c8\u19c9\u1cf2\u1cf3]")  # letters since later versions of Unicode

_ACCENT = re.compile(f"[{_ACCENTS}]")
_DROPPED = re.compile(f"[{_ACCENTS}{_UNSEEN}]")
_WIDE = re.compile("[\uff01-\uff9f\uffa0-\uffee\ufb00-\ufb06]")  # full and half width, ligatures
_HALF_WIDTH = re.compile("[\uff66-\uff9d][\uff9e\uff9f]")
_UNSPACED_CHAR = re.compile(f"[{_UNSPACED}]")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
_APART = re.compile(r"([^\x00-\x7f]+)")
_FLAG = re.compile("([\U0001f1e6-\U0001f1ff])([\U0001f1e6-\U0001f1ff])")
_LONG_RUN = re.compile(r"([^\w\s\x00-\x7f\U0001f1e6-\U0001f1ff])\1{2,}")
_JAMO = "\u1160-\u11ff\ud7b0-\ud7fb"
_MARKS = (
    "\u0711\u0730-\u082d\u0859-\u085b\u0898-\u1cff\u302a-\u302f\u3099\u309a\ua66f-\ua69f\ua6f0-\ua6f1\ua800-\uabff\ufb1e\uff9e\uff9f"
    "\U000101fd\U000102e0\U00010376-\U0001037a\U00010a01-\U00011fff\U00016af0-\U00016f92\U0001bc9d\U0001cf00-\U0001cf46"
    "\U0001d165-\U0001d244\U0001da00-\U0001daaf\U0001e000-\U0001e94a"
)
_CLUSTER = re.compile(f"(?s:.)?[{_ACCENTS}{_UNSEEN}{_JAMO}{_MARKS}]+")
"""Characters that may become one with, or vanish behind, the one before."""

FEW = 9
"""Characters of a run that is worth remembering."""

_FLAGS, _TAGS = 0xFD800, 0xFDC00
_FIRST_FLAG = 0x1F1E6
_OURS = re.compile("[\U000fd800-\U000fdbff]")
"""Characters of the private planes that stand for flags, and mean nothing where a text has them."""


def _plain_char(char: str) -> str:
    composed = unicodedata.normalize("NFC", char)
    if _DROPPED.fullmatch(composed):
        return ""
    if _WIDE.fullmatch(composed):
        composed = unicodedata.normalize("NFKC", composed)
    if composed == "й" or composed == "Й":  # a letter, and not the one without its breve
        return "й"
    folded = composed.casefold()
    if composed[:1].isalpha():
        folded = unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFD", folded)))
    return folded


class _Plain(dict[int, str]):
    """Characters to their plain form: mostly one, sometimes none or several."""

    def __missing__(self, code: int) -> str:
        self[code] = plain = _plain_char(chr(code))
        return plain


_PLAIN = _Plain()


def _plain_of(run: str) -> str:
    """The plain form of characters beyond ASCII."""
    if not unicodedata.is_normalized("NFC", run):
        run = unicodedata.normalize("NFC", run)
    if _WIDE.search(run):
        run = _HALF_WIDTH.sub(lambda found: unicodedata.normalize("NFKC", found.group()), run)
    return run.translate(_PLAIN)


_plain_of_few = lru_cache(maxsize=8_192)(_plain_of)
"""Nearly all runs are a sign or two, and the same ones again and again."""


def _plain_run(run: str) -> str:
    return _plain_of_few(run) if len(run) < FEW else _plain_of(run)


def plain(text: str) -> str:
    """The text without case, accents and unseen characters."""
    if text.isascii():
        return text.lower()
    return _small(_BEYOND_ASCII.sub(lambda run: _plain_run(run.group()), text))


def _small(text: str) -> str:
    """The text with its ASCII letters small, as bytes: of a text each character would be looked up."""
    return text.encode(errors="surrogatepass").lower().decode(errors="surrogatepass")


@dataclass(frozen=True)
class Folded:
    """The plain form of a text, and where each of its characters stands in the text itself."""

    text: str
    _starts: tuple[int, ...] = ()  # of stretches, in the plain text; none: both texts have the same places
    _sources: tuple[tuple[int, int, bool], ...] = ()  # (start, end, whether character by character) of each in the text itself

    def source(self, start: int, end: int) -> tuple[int, int]:
        """Where the characters from `start` to `end` of the plain text stand in the text itself."""
        if not self._starts:
            return start, end
        if start == end:
            return (place := self._place(start)[0] if start < len(self.text) else self._sources[-1][1]), place
        return self._place(start)[0], self._place(end - 1)[1]

    def place_of(self, source: int) -> int:
        """Where the plain text is at this place of the text itself, or just before."""
        if not self._starts:
            return source
        number = max(0, bisect_right(self._sources, (source, len(self.text), True)) - 1)
        first, _, is_even = self._sources[number]
        return self._starts[number] + (max(0, source - first) if is_even else 0)

    def _place(self, place: int) -> tuple[int, int]:
        number = bisect_right(self._starts, place) - 1
        first, last, is_even = self._sources[number]
        if not is_even:
            return first, last
        begin = first + place - self._starts[number]
        return begin, begin + 1


def fold(text: str) -> Folded:
    """The plain form of a text with the places of its characters."""
    if text.isascii():
        return Folded(text.lower())
    pieces: list[str] = []
    starts: list[int] = []
    sources: list[tuple[int, int, bool]] = []
    length = 0
    for start, end, is_even in _stretches(text):
        piece = plain(text[start:end])
        if piece:
            pieces.append(piece)
            starts.append(length)
            sources.append((start, end, is_even))
            length += len(piece)
    if all(even for _, _, even in sources) and length == len(text):
        return Folded("".join(pieces))
    return Folded("".join(pieces), tuple(starts), tuple(sources))


def _stretches(text: str) -> Iterator[tuple[int, int, bool]]:
    """(start, end, whether each character has a plain one): clusters, characters that become several, and what is between."""
    at = 0
    for found in _CLUSTER.finditer(text):
        yield from _singly(text, at, found.start())
        cluster = found.group()
        yield *found.span(), all(len(plain(char)) == 1 for char in cluster) and len(plain(cluster)) == len(cluster)
        at = found.end()
    yield from _singly(text, at, len(text))


def _singly(text: str, start: int, end: int) -> Iterator[tuple[int, int, bool]]:
    if start == end:
        return
    if len(plain(text[start:end])) == end - start and not _WIDE.search(text, start, end):
        yield start, end, True
        return
    for run in re.finditer(r"[\x00-\x7f]+|[^\x00-\x7f]", text[start:end]):
        yield start + run.start(), start + run.end(), len(plain(run.group())) == len(run.group())


def is_sign(char: str) -> bool:
    """Whether a character beyond ASCII is a word by itself: symbols, frames, icons of a terminal's font."""
    if char in _BESIDES or "\ue000" <= char <= "\uf8ff" or "\U000e0020" <= char <= "\U000e007f":
        return True
    category = unicodedata.category(char)
    return not char.isascii() and (category[0] == "S" or category == "Me")


def _in_index(char: str) -> str:
    """A sign or mark as a character that FTS5 takes for a letter."""
    code = ord(char)
    if 0xE0000 <= code <= 0xE007F:
        return chr(_TAGS + code - 0xE0000)
    return char if 0xE000 <= code <= 0xF8FF else chr(0xF0000 + code)


class _Spacing(dict[int, str]):
    """Characters beyond ASCII as they stand in a text of words: letters as they are, words of one character apart, the rest blank."""

    def __init__(self, *, for_fts5: bool) -> None:
        super().__init__()
        self._for_fts5 = for_fts5
        self._of_few = lru_cache(maxsize=8_192)(self._of)

    def of(self, run: str) -> str:
        """Plain characters beyond ASCII, spaced."""
        return self._of_few(run) if len(run) < FEW else self._of(run)

    def _of(self, run: str) -> str:
        return _FLAG.sub(_flag, _LONG_RUN.sub(_two_of_them, _OURS.sub(" ", run))).translate(self)

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if is_sign(char):
            spaced = f" {_in_index(char) if self._for_fts5 else char} "
        elif _FLAGS <= code < _TAGS:  # of a pair of letters, see `_flag`
            spaced = f" {char} "
        elif char.isalnum() or unicodedata.category(char)[0] == "M":
            is_hidden = self._for_fts5 and (not char.isalnum() or _UNKNOWN_TO_FTS5.fullmatch(char))
            letter = _in_index(char) if is_hidden else char
            spaced = f" {letter} " if _UNSPACED_CHAR.fullmatch(char) else letter
        else:
            spaced = " "
        self[code] = spaced
        return spaced


class _Pieces(dict[int, str]):
    """Letters as they are, in scripts without spaces as well; signs and the rest blank."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        self[code] = piece = char if char.isalnum() or (unicodedata.category(char)[0] == "M" and not is_sign(char)) else " "
        return piece


_WORDS, _FTS5, _PIECES = _Spacing(for_fts5=False), _Spacing(for_fts5=True), _Pieces()
_GRAMS = bytes(
    code + 32 if 65 <= code <= 90 else code if 48 <= code <= 57 or 97 <= code <= 122 or code >= 128 else 32 for code in range(256)
)
_ASCII_BLANKS = {code: " " for code in range(128) if not chr(code).isalnum()}


def _two_of_them(run: re.Match[str]) -> str:
    return 2 * run[1] if is_sign(run[1]) else run[0]


def _flag(pair: re.Match[str]) -> str:
    """Two regional letters are one flag: the second of one and the first of the next are none."""
    first, second = (ord(letter) - _FIRST_FLAG for letter in pair.groups())
    return chr(_FLAGS + 26 * first + second)


def for_index(text: str, *, for_fts5: bool) -> tuple[str, list[bytes]]:
    """A text's words with something between any two of them, and its runs of letters and digits in UTF-8, small.

    Words `for_fts5` are such that its tokenizer, which has its own opinion of what is a letter, finds `words_of` in them.
    """
    if text.isascii():
        return text if for_fts5 else text.lower(), text.encode().translate(_GRAMS).split()
    parts = _APART.split(text)  # every second one is beyond ASCII
    runs = [_plain_run(run) for run in parts[1::2]]
    parts[1::2] = map((_FTS5 if for_fts5 else _WORDS).of, runs)
    words = "".join(parts)
    parts[1::2] = [run.translate(_PIECES) for run in runs]
    pieces = "".join(parts).encode(errors="replace").translate(_GRAMS).split()
    return words if for_fts5 else _small(words), pieces


def for_fts5(words: Iterable[str]) -> str:
    """Words as `for_index` tells them."""
    return for_index(" ".join(map(as_written, words)), for_fts5=True)[0]


def words_of(plain_text: str) -> list[str]:
    """The words of a plain text in order."""
    spaced = plain_text if plain_text.isascii() else _BEYOND_ASCII.sub(lambda run: _WORDS.of(run.group()), plain_text)
    return words_in(spaced)


def words_in(spaced: str) -> list[str]:
    """The words of a text that `for_index` made, but not for FTS5."""
    return spaced.translate(_ASCII_BLANKS).split()


def is_unspaced(char: str) -> bool:
    """Whether a character is of a script that has no spaces."""
    return _UNSPACED_CHAR.fullmatch(char) is not None


def is_regional(char: str) -> bool:
    """Whether a character is one of the letters of which flags are made."""
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def is_alone(word: str) -> bool:
    """Whether a word is a single character that needs nothing around it: a sign, or of a script without spaces."""
    return len(word) == 1 and not word.isascii() and (is_unspaced(word) or is_sign(word) or is_flag(word))


def is_flag(word: str) -> bool:
    """Whether a word stands for a pair of regional letters."""
    return len(word) == 1 and _FLAGS <= ord(word) < _TAGS


def as_written(word: str) -> str:
    """A word as it stands in plain text."""
    if is_flag(word):
        return "".join(chr(_FIRST_FLAG + letter) for letter in divmod(ord(word) - _FLAGS, 26))
    return word


def pieces_of(text: str) -> list[str]:
    """The runs of letters and digits in a text, small. What is shorter than three of them holds no trigram."""
    return [piece.decode(errors="replace") for piece in for_index(text, for_fts5=False)[1]]
