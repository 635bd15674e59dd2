"""Questions that code makes of a history, and whether the view that is left of it still holds their answers.

Retention counts every fact, so that a class of many (numbers, files that were read) outweighs the few that work hangs on. A
probe asks the same number of each class, spread over the whole history, of the view as it stands at the end.
"""

from collections.abc import Iterable, Sequence

import msgspec

from sessions_app.engine.facts import Fact, FactClass, Facts
from sessions_app.engine.retention import report

OF_EACH_CLASS = 8

_QUESTIONS = {
    FactClass.ASK: "What did the user ask for at entry {index}?",
    FactClass.CONSTRAINT: "Which constraint was stated at entry {index}?",
    FactClass.TO_DO: "Which task was left open at entry {index}?",
    FactClass.FILE_EDITED: "Which file was changed at entry {index}?",
    FactClass.FILE_READ: "Which file was read at entry {index}?",
    FactClass.COMMAND: "Which command was run at entry {index}?",
    FactClass.ERROR: "Which error came up at entry {index}?",
    FactClass.URL: "Which address was named at entry {index}?",
    FactClass.IDENTIFIER: "Which identifier was named at entry {index}?",
    FactClass.NUMBER: "Which quantity was named at entry {index}?",
}


class Probe(msgspec.Struct, frozen=True):
    """A question with the fact that answers it. `found`: whether the view holds that answer."""

    question: str
    fact: Fact
    found: bool


def probe(facts: Facts, view_texts: Iterable[str]) -> tuple[Probe, ...]:
    """At most `OF_EACH_CLASS` questions of each class, answered from the texts of a view. The same facts give the same questions."""
    asked = [fact for kind in FactClass for fact in _spread([fact for fact in facts.found if fact.kind is kind])]
    looked_up = report(Facts(found=tuple(asked)), summary="", block="", tail_texts=view_texts)
    there = {one.fact for one in looked_up.facts if one.place is not None}
    return tuple(Probe(_QUESTIONS[fact.kind].format(index=fact.index), fact, fact in there) for fact in asked)


def _spread(facts: Sequence[Fact]) -> list[Fact]:
    """As many as are asked for, from the first to the last, at equal distances."""
    if len(facts) <= OF_EACH_CLASS:
        return list(facts)
    return [facts[place * (len(facts) - 1) // (OF_EACH_CLASS - 1)] for place in range(OF_EACH_CLASS)]
