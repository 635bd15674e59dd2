"""Choosing sentences within a budget, and taking up again what an earlier summary said."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence

from sessions_app.engine import asks, digest, sentences
from sessions_app.engine.asks import AskKind
from sessions_app.engine.counting import estimate_text
from sessions_app.engine.digest import Paragraph
from sessions_app.engine.sentences import Sentence
from sessions_app.engine.state import MechanicalState

_HEADED = re.compile(
    r"^((?:On|A sub-agent reported on) “.{1,200}” \(#\d{1,9}\):|Continued at #\d{1,9}:|From an earlier summary:|At the beginning:)\s+(.*)$",
    re.DOTALL,
)
_CONTINUED = re.compile(r"^Continued at #(\d{1,9}):$")
EARLIER = "From an earlier summary:"
COVERAGE_BONUS = 1.5
"""Added to the best sentence of each paragraph, so that a long session is not told by its liveliest hour alone."""


REPEAT_MALUS, MOST_MALUS = 0.15, 1.5
"""Taken off each further sentence of a paragraph: what ten turns say once outweighs what one says ten times."""

LEAST_NEWS = 0.2
"""Share of a sentence's words that must not stand in the chosen ones yet: who repeats himself is heard once."""


def paragraphs_of(body: str, stressed: frozenset[str]) -> list[Paragraph]:
    """The paragraphs of a section of an earlier summary, ours or another writer's, with their sentences scored anew."""
    found: list[Paragraph] = []
    loose = Paragraph(EARLIER)
    for block in re.split(r"\n\s*\n", body):
        headed = _HEADED.match(block.strip())
        if headed and headed.group(1) != loose.head:
            found.append(Paragraph(headed.group(1), _scored(headed.group(2), stressed)))
        else:
            loose.sentences.extend(_scored(headed.group(2) if headed else block, stressed))
    return [paragraph for paragraph in (loose, *found) if paragraph.sentences]


def _scored(text: str, stressed: frozenset[str]) -> list[Sentence]:
    return [sentence for sentence in sentences.candidates(text, -1, stressed) if sentence.text != "Nothing recorded."]


def name_turns(paragraphs: Iterable[Paragraph], state: MechanicalState) -> list[Paragraph]:
    """The paragraphs, where one that only continues a turn gets the head of that turn."""
    asked = [(message.index, ask.text) for message in state.user_messages if (ask := asks.read(message.text)).kind is AskKind.WORDS]
    named = []
    for paragraph in paragraphs:
        continued = _CONTINUED.match(paragraph.head)
        if continued is None:
            named.append(paragraph)
            continue
        position = bisect_left(asked, (int(continued.group(1)), "")) - 1
        head = digest.head_of(asked[position][1], asked[position][0]) if position >= 0 else "At the beginning:"
        named.append(Paragraph(head, paragraph.sentences))
    return named


def merge(groups: Iterable[Sequence[Paragraph]]) -> list[Paragraph]:
    """Paragraphs of several sources in order; those with the same head become one, a sentence said twice stays once."""
    merged: dict[str, Paragraph] = {}
    seen: set[str] = set()
    for group in groups:
        for paragraph in group:
            target = merged.setdefault(paragraph.head, Paragraph(paragraph.head))
            for sentence in paragraph.sentences:
                if (gist := sentences.gist(sentence.text)) not in seen:
                    seen.add(gist)
                    target.sentences.append(sentence)
    return [paragraph for paragraph in merged.values() if paragraph.sentences]


def choose(paragraphs: Sequence[Paragraph], budget: int, *, least_score: float = 0.5) -> list[Paragraph]:
    """The best sentences that fit the budget, in their own order. Sorting apart, linear in their number."""
    ranked: list[tuple[float, int, int]] = []
    for place, paragraph in enumerate(paragraphs):
        by_score = sorted(range(len(paragraph.sentences)), key=lambda at: (-paragraph.sentences[at].score, at))
        for rank, at in enumerate(by_score):
            points = paragraph.sentences[at].score + (COVERAGE_BONUS if rank == 0 else -min(rank * REPEAT_MALUS, MOST_MALUS))
            ranked.append((points, place, at))
    ranked.sort(key=lambda item: (-item[0], item[1], item[2]))
    heads = [estimate_text(paragraph.head) + 2 for paragraph in paragraphs]
    chosen: dict[int, list[int]] = {}
    covered: set[str] = set()
    for points, place, at in ranked:
        cost = paragraphs[place].sentences[at].tokens + (0 if place in chosen else heads[place])
        said = sentences.words(paragraphs[place].sentences[at].text)
        if points < least_score or cost > budget or (said and len(said - covered) < len(said) * LEAST_NEWS):
            continue
        covered |= said
        budget -= cost
        chosen.setdefault(place, []).append(at)
    return [
        Paragraph(paragraphs[place].head, [paragraphs[place].sentences[at] for at in sorted(chosen[place])]) for place in sorted(chosen)
    ]


def prose(paragraphs: Sequence[Paragraph]) -> str:
    """The paragraphs as text."""
    return "\n\n".join(" ".join(filter(None, (paragraph.head, *map(_ended, paragraph.sentences)))) for paragraph in paragraphs)


def _ended(sentence: Sentence) -> str:
    return sentence.text if sentence.text.rstrip("\"'*`”)")[-1:] in ".!?:。！？…" else f"{sentence.text}."
