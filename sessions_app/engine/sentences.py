"""Sentences of a message, each as it was written, and how much a reader would miss each."""

import re
from collections.abc import Iterator

import msgspec

from sessions_app.engine import mentions
from sessions_app.engine.counting import estimate_text

SHORTEST, LONGEST = 20, 420  # characters of a sentence that may be quoted
_LONGEST_CONSTRAINT = 240
_SCANNED_CHARS = 30_000  # of one message


class Sentence(msgspec.Struct, frozen=True):
    """`index` is the entry that it stands in (-1: taken from an earlier summary)."""

    text: str
    score: float
    index: int = -1

    @property
    def tokens(self) -> int:
        return estimate_text(self.text) + 1


_FENCE = re.compile(r"^\s*(?:```|~~~)")
_SKIPPED_LINE = re.compile(r"^\s*(?:\||#{1,6}\s|<[a-z/!]|[-=*_]{3,}\s*$|>\s|\$\s)")
_BULLET = re.compile(r"^\s*(?:[-*•+]|\d{1,3}[.)])\s+(?:\[[ x]\]\s+)?")
_END = re.compile(
    r"[.!?](?<!\.\.\.)(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)(?<!\betc\.)[\"')\]*`”]{0,3}\s+(?=[\"'(\[*“✓✅-]{0,3}[A-Z0-9À-Þ`])"
    r"|[。！？]"
)

_STRONG = re.compile(
    r"\b(?:because|instead of|rather than|decided|decision|chose|root cause|turn(?:s|ed) out|never|must(?:n't| not)?|trade-?off|"
    r"the (?:real |actual |main )?(?:issue|problem|reason|cause|bug|fix|key|catch|solution|approach) (?:is|was|here)|"
    r"(?:that|this)(?:'s| is| was) (?:why|because)|workaround|conclusion|agreed|don't|do not|won't|cannot|can't|only)\b",
    re.IGNORECASE,
)
# In lower case. Without one of these words there is no need to look for the phrases above.
_STRONG_WORDS = frozenset(
    word
    for line in (
        "because instead rather decided decision chose root turn turns turned never must mustn tradeoff trade issue problem reason cause",
        "bug fix key catch solution approach why workaround conclusion agreed don do won cannot can only",
    )
    for word in line.split()
)
_MEDIUM_WORDS = frozenset(
    word
    for line in (
        "so since always avoid found fixed fixes added removed changed renamed replaced moved created implemented updated",
        "committed pushed merged passes passed passing failed fails broken missing require requires should means therefore works use uses",
        "store stores return returns depends default limit",
    )
    for word in line.split()
)
_NEED_TO = re.compile(r"\bneeds? to\b")
_WORD, _CONTENT_WORD = re.compile(r"\w+"), re.compile(r"[\w./-]{3,60}\w")
_FILLER = re.compile(
    r"^(?:(?:now|ok(?:ay)?|alright|good|great|perfect|excellent|sure|yes|right|"
    r"understood|wonderful|of course|absolutely|hmm)\b[,.!: ]{0,3})*"
    r"(?:let me|let's|let’s|i'll (?:now|start|begin|check|look|read|help)|i will now|now i(?:'ll| will| need)|first,? (?:let me|i'll)|"
    r"i'm going to|i need to (?:check|look|see|read|find)|looking at|checking|here(?:'s| is| are)|"
    r"now [a-z]+|next,?|also [a-z]+|then [a-z]+|i need to [a-z]+|i'll [a-z]+|continu(?:e|ing)|moving on|proceeding|time to)\b",
    re.IGNORECASE,
)
_PRAISE = re.compile(
    r"^(?:great|perfect|excellent|good (?:question|catch|point)|you're (?:absolutely )?right|absolutely|sure thing)\b[^.]{0,40}[.!]?$",
    re.IGNORECASE,
)
_INTENTION = re.compile(
    r"\b(?:let me|i'll|i will|i'm going to|next,? (?:i|we|step)|"
    r"now i|now let|then i(?:'ll| will)|we (?:should|need to|can now)|remaining|still (?:need|to do))\b",
    re.IGNORECASE,
)
_CONSTRAINT = re.compile(
    r"^(?:no\b|actually\b|wait\b|instead\b|rather\b|stop\b|please (?:don't|keep|only|use)\b|i think\b)|"
    r"\b(?:must(?:n't| not)?|never|always|don't|do not|dont|make sure|ensure|not allowed|avoid|without|only|"
    r"should (?:always|never|not|only)|shouldn't|at (?:most|least)|no need|no more|is required)\b",
    re.IGNORECASE,
)
_LEAD_IN = re.compile(r":\W{0,4}$")  # what it leads up to is not a sentence
_POINTER = re.compile(
    r"^\W{0,4}(?:main |key |source )?(?:files?|located in|location|path|lines?|line range|function|see)\b\W{0,6}"
    r"(?:[`/~]\S+\W{0,4})(?:\(?lines? [\d, –-]+\)?\W{0,4})?$|^[`/~]\S+\W{0,4}\(?lines? [\d, –-]+\)?.{0,40}$",
    re.IGNORECASE,
)
"""Says where something lies, and nothing of it."""
_CODE = re.compile(r"`[^`]{1,120}`")
_NUMBER = re.compile(r"(?<![\w#])\d[\d,.]*\s?(?:%|ms|s|kB|KB|MB|GB|tokens?|lines?|tests?|files?|x|px)?(?!\w)")


def split(text: str) -> Iterator[str]:
    """Sentences of prose, whitespace collapsed, otherwise as written. Code, tables and headings are passed over."""
    held: list[str] = []
    fenced = False
    for line in text[:_SCANNED_CHARS].splitlines():
        is_fence = bool(_FENCE.match(line))
        fenced ^= is_fence
        if fenced and not is_fence:
            continue
        bullet = _BULLET.match(line)
        is_break = is_fence or not line.strip() or bool(_SKIPPED_LINE.match(line))
        if bullet or is_break:
            yield from _sentences(" ".join(held))
            held = []
        if bullet:
            held = [line[bullet.end() :].strip()]
        elif not is_break:
            held.append(line.strip())
    yield from _sentences(" ".join(held))


def _sentences(paragraph: str) -> Iterator[str]:
    plain = " ".join(paragraph.split())
    start = 0
    for match in _END.finditer(plain):
        yield _closed(plain[start : match.end()].strip())
        start = match.end()
    if rest := plain[start:].strip():
        yield _closed(rest)


def _closed(sentence: str) -> str:
    """The sentence without a mark of emphasis that opens or ends in another one."""
    return sentence if sentence.count("**") % 2 == 0 else sentence.replace("**", "")


def score(sentence: str, stressed: frozenset[str] = frozenset()) -> float:
    """How much would be missed without it: reasons and decisions most, facts next, talk about talk not at all.

    `stressed` are words, in lower case, that whoever asked for the summary wants to see more of.
    """
    points: float = _weight(sentence.lower(), sentence)
    points += min(len(_CODE.findall(sentence)), 2) + (1 if mentions.names_path(sentence) else 0)
    points += 0.5 * min(len(_NUMBER.findall(sentence)), 2)
    if _FILLER.match(sentence) or _PRAISE.match(sentence):
        points -= 3.5
    points -= 6 if _LEAD_IN.search(sentence) else 0
    points -= 4 if _POINTER.match(sentence) else 0
    points -= 1.5 if sentence.endswith("?") else 0
    points -= 1 if len(sentence) < 40 else 0
    points -= len(sentence) / 400  # of two that say as much, the shorter
    if stressed:
        points += 4 * min(len(stressed & words(sentence)), 2)
    return points


def _weight(lower: str, sentence: str) -> int:
    """What its words for reasons, decisions and facts are worth."""
    said = _WORD.findall(lower)
    strong = 0 if _STRONG_WORDS.isdisjoint(said) else len(_STRONG.findall(sentence))
    medium = sum(map(_MEDIUM_WORDS.__contains__, said)) + (len(_NEED_TO.findall(lower)) if "need" in lower else 0)
    return min(2 * strong, 4) + min(medium, 2)


def candidates(text: str, index: int, stressed: frozenset[str] = frozenset()) -> list[Sentence]:
    """Every sentence of a message that may be quoted."""
    return [Sentence(sentence, score(sentence, stressed), index) for sentence in split(text) if is_quotable(sentence)]


def is_quotable(sentence: str) -> bool:
    """Whether it may stand in a summary as it is."""
    return SHORTEST <= len(sentence) <= LONGEST and any(char.isalpha() for char in sentence)


def is_intention(sentence: str) -> bool:
    """Whether it says what is going to be done."""
    return bool(_INTENTION.search(sentence))


def is_constraint(sentence: str) -> bool:
    """Whether, said by a person, it lays down how something has to be."""
    return "?" not in sentence and len(sentence) <= _LONGEST_CONSTRAINT and bool(_CONSTRAINT.search(sentence))


def words(text: str) -> frozenset[str]:
    """Content words, in lower case."""
    return frozenset(_CONTENT_WORD.findall(text.lower()))


def gist(sentence: str) -> str:
    """Two sentences with the same gist say the same."""
    return "".join(filter(str.isalnum, sentence.lower()))[:120]
