"""The summariser that needs no model: it fills the eight sections with what the entries themselves say."""

from collections.abc import Sequence

import msgspec

from sessions_app.engine import digest as digests
from sessions_app.engine import fold, sections, sentences, summary
from sessions_app.engine.counting import estimate_text
from sessions_app.engine.digest import Digest, Paragraph
from sessions_app.engine.sentences import Sentence
from sessions_app.engine.state import MechanicalState
from sessions_app.engine.steps import ShouldStop, SummaryAnswer, SummaryRequest
from sessions_app.engine.summary import Section
from sessions_app.engine.terms import SummarySource

_SHARES = {
    Section.INTENT: 0.17,
    Section.FILES: 0.13,
    Section.ERRORS: 0.13,
    Section.USER_MESSAGES: 0.08,
    Section.PENDING: 0.06,
    Section.CURRENT: 0.09,
    Section.NEXT: 0.05,
}
"""Of the whole budget. Decisions take all that the others leave."""

_KEPT_BACK = 0.06
"""Of the whole budget, for names that no other section tells."""

_FRAME_TOKENS = 60  # the eight headings
_AFTER = "After the failure at #"


class Material(msgspec.Struct, kw_only=True):
    """Everything that a summary is made of: paragraphs by turn, and what earlier summaries say in other sections."""

    decisions: list[Paragraph] = []
    causes: dict[int, Sentence] = {}
    closing: list[Sentence] = []
    earlier: dict[Section, list[Paragraph]] = {}
    place: str = ""  # which entries it comes from


class ExtractiveSummariser:
    """Deterministic, linear in the entries, without a network. Every sentence that it quotes stands in its input."""

    name = "extractive"
    window = 400_000
    is_model = False

    def summarise(self, request: SummaryRequest, should_stop: ShouldStop) -> SummaryAnswer:
        """Fills the sections. Raises `Stopped` as soon as `should_stop` answers."""
        stressed = sentences.words(f"{request.standing_instructions}\n{request.instructions}")
        material = _of_partials(request, stressed) if request.partial_summaries else _of_entries(request, stressed, should_stop)
        state = request.state or MechanicalState()
        text = compose(material, state, request.max_tokens, is_partial=request.state is None)
        return SummaryAnswer(text=text, source=SummarySource.EXTRACTIVE)


def _of_entries(request: SummaryRequest, stressed: frozenset[str], should_stop: ShouldStop) -> Material:
    read: Digest = digests.take(request.entries, stressed, should_stop)
    earlier = _earlier([request.previous_summary, *read.summaries], stressed)
    return Material(
        decisions=_named([earlier.pop(Section.DECISIONS, []), read.paragraphs], request),
        causes=_earlier_causes(request) | read.causes,
        closing=read.closing,
        earlier=earlier,
        place=f"Entries #{request.entries[0].index} to #{request.entries[-1].index}." if request.entries else "No entries.",
    )


def _of_partials(request: SummaryRequest, stressed: frozenset[str]) -> Material:
    parsed = [summary.parse(text) for text in request.partial_summaries]
    earlier = _earlier([request.previous_summary], stressed)
    causes = _earlier_causes(request)
    for partial in parsed:
        causes.update(_causes_of(partial.bodies.get(Section.ERRORS, "")))
        for section in (Section.INTENT, Section.FILES, Section.PENDING):
            if found := fold.paragraphs_of(partial.bodies.get(section, ""), stressed):
                earlier[section] = fold.merge([earlier.get(section, []), found])
    decisions = [fold.paragraphs_of(partial.bodies.get(Section.DECISIONS, ""), stressed) for partial in parsed]
    closing = [partial.bodies.get(Section.CURRENT, "") for partial in parsed if partial.bodies.get(Section.CURRENT)]
    return Material(
        decisions=_named([earlier.pop(Section.DECISIONS, []), *decisions], request),
        causes=causes,
        closing=sentences.candidates(closing[-1], -1) if closing else [],
        earlier=earlier,
    )


def _named(groups: Sequence[Sequence[Paragraph]], request: SummaryRequest) -> list[Paragraph]:
    """The groups as one, each turn once. Only who knows the whole history can name a turn that began before the span."""
    if request.state is None:
        return fold.merge(groups)
    return fold.merge([fold.name_turns(group, request.state) for group in groups])


def _earlier(texts: list[str], stressed: frozenset[str]) -> dict[Section, list[Paragraph]]:
    """What earlier summaries say, by section, oldest first. What was current or next then is not so any more."""
    found: dict[Section, list[Paragraph]] = {}
    for text in filter(None, texts):
        parsed = summary.parse(text)
        bodies = dict(parsed.bodies) or {Section.DECISIONS: parsed.preamble}
        for section in (Section.INTENT, Section.DECISIONS, Section.FILES, Section.ERRORS):
            body = sections.without_own(section, bodies.get(section, ""))
            if paragraphs := fold.paragraphs_of(body, stressed):
                found[section] = fold.merge([found.get(section, []), paragraphs])
        if pending := fold.paragraphs_of(sections.without_own(Section.PENDING, bodies.get(Section.PENDING, "")), stressed):
            found[Section.PENDING] = pending
    return found


def _earlier_causes(request: SummaryRequest) -> dict[int, Sentence]:
    return sections.causes_in(summary.parse(request.previous_summary).bodies.get(Section.ERRORS, ""))


def _causes_of(body: str) -> dict[int, Sentence]:
    causes: dict[int, Sentence] = {}
    for line in body.splitlines():
        index, _, said = line.removeprefix(_AFTER).partition(": ")
        if line.startswith(_AFTER) and index.isdigit() and said:
            causes[int(index)] = Sentence(said, sentences.score(said), int(index))
    return causes


def compose(material: Material, state: MechanicalState, max_tokens: int, *, is_partial: bool) -> str:
    """The summary as text, of about `max_tokens` at most. A partial one carries on only what a fold will need."""
    budget = {section: int(max_tokens * share) for section, share in _SHARES.items()}
    bodies: dict[Section, str] = {}
    if is_partial:
        bodies[Section.INTENT] = fold.prose(fold.choose(material.earlier.get(Section.INTENT, []), budget[Section.INTENT]))
        bodies[Section.FILES] = fold.prose(fold.choose(material.earlier.get(Section.FILES, []), budget[Section.FILES]))
        bodies[Section.ERRORS] = "\n".join(
            f"{_AFTER}{index}: {cause.text}" for index, cause in list(material.causes.items())[-20:] if cause.score > 0
        )
        # A part of a history may well hold calls and no word: then this line alone says that it was read.
        bodies[Section.USER_MESSAGES] = material.place
        bodies[Section.CURRENT] = fold.prose([Paragraph("", material.closing[-6:])]) if material.closing else ""
    else:
        bodies[Section.INTENT] = sections.intent(state, material.earlier.get(Section.INTENT, []), budget[Section.INTENT])
        pool = [sentence for paragraph in material.decisions for sentence in paragraph.sentences]
        pool += [sentence for paragraph in material.earlier.get(Section.FILES, []) for sentence in paragraph.sentences]
        bodies[Section.FILES] = sections.files(state, pool, budget[Section.FILES])
        bodies[Section.ERRORS] = sections.errors(state, material.causes, material.earlier.get(Section.ERRORS, []), budget[Section.ERRORS])
        bodies[Section.USER_MESSAGES] = sections.user_messages(state, budget[Section.USER_MESSAGES])
        bodies[Section.PENDING] = sections.pending(state, material.earlier.get(Section.PENDING, []), budget[Section.PENDING])
        bodies[Section.CURRENT] = sections.current(state, material.closing, budget[Section.CURRENT])
        bodies[Section.NEXT] = sections.next_step(state, material.closing, budget[Section.NEXT])
    left = max_tokens - _FRAME_TOKENS - sum(estimate_text(body) for body in bodies.values())
    # What the other sections quote is not said twice.
    quoted = "\n".join(bodies.values())
    fresh = [
        Paragraph(
            paragraph.head,
            [said for said in paragraph.sentences if said.text not in quoted and said.text.rpartition(" — ")[2] not in quoted],
        )
        for paragraph in material.decisions
    ]
    fresh = [paragraph for paragraph in fresh if paragraph.sentences]
    kept_back = 0 if is_partial else int(max_tokens * _KEPT_BACK)
    bodies[Section.DECISIONS] = fold.prose(fold.choose(fresh, max(left - kept_back, 0)))
    return summary.render(bodies if is_partial else _filled(bodies, state, left - estimate_text(bodies[Section.DECISIONS])))


def _filled(bodies: dict[Section, str], state: MechanicalState, left: int) -> dict[Section, str]:
    """The sections with what else fits, each in one sentence: requests that none quotes, files that were read, commands."""
    told = "\n".join(bodies.values())
    has_changes = any(file.changed for file in state.files)  # else those that were read stand there already
    read = sections.files_read(state, left // 3) if has_changes else ""
    names = [more for more in (read, sections.commands_run(state, left // 3)) if more]
    bodies[Section.FILES] = "\n".join((bodies[Section.FILES], *names))
    bodies[Section.USER_MESSAGES] += sections.requests_besides(state, told, left - estimate_text("\n".join(names)))
    return bodies
