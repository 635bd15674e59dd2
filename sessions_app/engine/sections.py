"""The sections that code can write from mechanical state, each as prose first and lists second, within a budget."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from sessions_app.engine import asks, commands, fold, sentences
from sessions_app.engine.asks import AskKind
from sessions_app.engine.counting import estimate_text
from sessions_app.engine.digest import Paragraph
from sessions_app.engine.extractors import TodoStatus, one_line
from sessions_app.engine.places import common_root, under
from sessions_app.engine.sentences import Sentence
from sessions_app.engine.state import CommandRecord, ErrorRecord, FileRecord, MechanicalState, UserMessage
from sessions_app.engine.summary import Section

_OWN_LINES = {
    Section.INTENT: re.compile(
        r"^(?:The session began with|Since then most of the work|The user laid down|Asked, the user chose|The latest request)"
    ),
    Section.FILES: re.compile(
        r"^(?:\d+ files? |No file |Also changed: |Changed: |Only read: |Run last: |- `[^`]{1,400}` (?:edited|written|deleted|changed)\b)"
    ),
    Section.ERRORS: re.compile(r"^(?:\d+ calls? failed|No call |- |After the failure)"),
    Section.PENDING: re.compile(r"^(?:- \[|The request #|No to-do|A job |A call |Noted as pending)"),
}
_MAIN_REQUESTS = 5
_LEAST_OPEN, _LEAST_FAILURE = 90, 60
"""Tokens for what is open, and for the failure that teaches most, however short the summary."""
_FILE_NOTE = re.compile(r"^- `(?:[^`]{0,400}/)?([^`/]{1,200})`[^—]{0,120} — (.{10,600})$")
_ITS_OWN_NAME = re.compile(r"^\*{0,2}`[^`]{1,300}`\*{0,2}\s{0,2}(?:—|–|-|:)\s{0,2}(?=.{10})")
_CAUSE = re.compile(r"^- .{1,400}? \(#(\d{1,9}), [^)]{1,40}\).* Then: “(.{10,600}?)”(?:\.|$| (?:Failed|Succeeded|Not seen))")


def without_own(section: Section, body: str) -> str:
    """What remains of an earlier summary's section when the lines that are written anew from the state are taken out."""
    own = _OWN_LINES.get(section)
    if own is None:
        return body
    lines: list[str] = []
    for line in body.splitlines():
        if section is Section.FILES and (note := _FILE_NOTE.match(line)):
            lines.extend(("", f"`{note.group(1)}` — {note.group(2)}"))
        elif not own.match(line):
            lines.append(line)
    return "\n".join(lines)


def causes_in(body: str) -> dict[int, Sentence]:
    """What an earlier summary of ours quotes as the cause of a failure, by the index of the failed call."""
    found = (_CAUSE.match(line) for line in body.splitlines())
    return {int(match.group(1)): Sentence(match.group(2), sentences.score(match.group(2))) for match in found if match}


def intent(state: MechanicalState, earlier: Sequence[Paragraph], budget: int) -> str:
    """What the user wanted first, what since, and what they laid down for all of it."""
    asked = [(message, ask.text) for message in state.user_messages if (ask := asks.read(message.text)).kind is AskKind.WORDS and ask.text]
    chars = budget * 4
    before = fold.prose(fold.choose(earlier, budget // 3, least_score=-1.0))
    parts = [before] if before else []
    if asked:
        parts.append(f"The session began with (#{asked[0][0].index}): “{one_line(asked[0][1], max(chars // 3, 120))}”")
    laid_down = _constraints([(message.index, text) for message, text in asked], budget // 4)
    if laid_down:
        parts.append(f"The user laid down: {laid_down}")
    if state.answers and (chosen := _newest([f"{answer.text} (#{answer.index})" for answer in state.answers], budget // 4)):
        parts.append(f"Asked, the user chose: {'; '.join(chosen)}.")
    if main := _main_requests(state, asked[1:-1], budget // 3):
        parts.append(f"Since then most of the work went into: {main}.")
    if len(asked) > 1:
        parts.append(
            f"The latest request is (#{asked[-1][0].index}, {_answered(asked[-1][0])}): “{one_line(asked[-1][1], max(chars // 5, 120))}”"
        )
    return "\n\n".join(parts)


def _main_requests(state: MechanicalState, asked: Sequence[tuple[UserMessage, str]], budget: int) -> str:
    """The requests that most entries followed, as many as fit, in order."""
    ends = dict(pairwise([message.index for message in state.user_messages]))
    work = sorted(asked, key=lambda item: item[0].index - ends.get(item[0].index, item[0].index))[:_MAIN_REQUESTS]
    quoted = [(message.index, f"“{one_line(text, 100)}” (#{message.index})") for message, text in work]
    fitting = len(_newest([quote for _, quote in reversed(quoted)], budget))
    return "; ".join(quote for _, quote in sorted(quoted[:fitting]))


def _constraints(asked: Sequence[tuple[int, str]], budget: int) -> str:
    found = [sentence for index, text in asked for sentence in sentences.candidates(text, index) if sentences.is_constraint(sentence.text)]
    chosen = fold.choose([Paragraph("", found)], budget) if found else []
    return " ".join(f"“{sentence.text}” (#{sentence.index});" for paragraph in chosen for sentence in paragraph.sentences).rstrip(";") + (
        "." if chosen else ""
    )


def _answered(message: UserMessage) -> str:
    return f"answered at #{message.answered_index}" if message.answered_index is not None else "still open"


def _newest(lines: Sequence[str], budget: int) -> list[str]:
    kept: list[str] = []
    for line in reversed(lines):
        budget -= estimate_text(line) + 1
        if budget < 0:
            break
        kept.append(line)
    return kept[::-1]


def files(state: MechanicalState, pool: Sequence[Sentence], budget: int) -> str:
    """The files that were changed, each with the best thing that was said about it."""
    changed = [file for file in state.files if file.changed]
    if not state.files:
        return fold.prose(fold.choose([Paragraph("", list(pool))], budget // 2)) if pool and not state.entries else ""
    read = len(state.files) - len(changed)
    if not changed:
        only = f"No file was changed; {_count(read, 'file')} {'was' if read == 1 else 'were'} read."
        return "\n".join(filter(None, (only, files_read(state, budget - estimate_text(only)))))
    root = common_root((file.path for file in state.files), state.cwd)
    place = f" Paths are under `{root}`." if root else ""
    head = f"{_count(len(changed), 'file')} changed, {read} only read; all are listed in the state below.{place}"
    notes = _notes(changed, pool)
    told = [file for file in changed if file.path in notes]
    lines = _newest([_file_line(file, notes[file.path], root) for file in told], (budget - estimate_text(head)) * 2 // 3)
    left = budget - estimate_text("\n".join((head, *lines)))
    untold = [file for file in changed if not any(f"`{under(root, file.path)}`" in line for line in lines)]
    names = _newest([f"`{under(root, file.path)}` (#{file.index})" for file in untold], left - 8)
    also = f"{'Also changed' if lines else 'Changed'}: {', '.join(names)}." if names else ""
    return "\n".join(filter(None, (head, *lines, also)))


def files_read(state: MechanicalState, budget: int) -> str:
    """Files that were only read, in one sentence, as many as fit."""
    read = [file for file in state.files if not file.changed]
    root = common_root((file.path for file in state.files), state.cwd)
    names = _newest([f"`{under(root, file.path)}`" for file in read], budget - 8)
    return f"Only read: {', '.join(names)}." if names else ""


def commands_run(state: MechanicalState, budget: int) -> str:
    """What was run and how it last ended, in one sentence, the latest that fit."""
    last: dict[str, CommandRecord] = {}
    for command in state.commands:
        words = commands.essence(command.command)
        if words and not (command.status == "ok" and commands.is_look_up(words)):
            last.pop(words, None)
            last[words] = command
    ran = _newest([f"`{one_line(words, 120)}` {command.status} (#{command.index})" for words, command in last.items()], budget - 8)
    return f"Run last: {'; '.join(ran)}." if ran else ""


def _notes(files_changed: Iterable[FileRecord], pool: Sequence[Sentence]) -> dict[str, str]:
    """For each file the best sentence that names it; each sentence is used once."""
    by_name: dict[str, list[Sentence]] = {}
    for sentence in pool:
        for word in set(re.findall(r"[\w@+-][\w.@+-]*\.\w{1,8}", sentence.text)):
            by_name.setdefault(word, []).append(sentence)
    notes: dict[str, str] = {}
    used: set[str] = set()
    for file in files_changed:
        said = [sentence for sentence in by_name.get(file.path.rsplit("/", 1)[-1], []) if sentence.text not in used and sentence.score > 0]
        if said:
            best = max(said, key=lambda sentence: (sentence.score, sentence.index))
            used.add(best.text)
            notes[file.path] = _ITS_OWN_NAME.sub("", best.text)
    return notes


def _file_line(file: FileRecord, note: str, root: str) -> str:
    did = file.action.value if file.action.changes else "changed"
    times = f" {file.changed} times" if file.changed > 1 else ""
    return f"- `{under(root, file.path)}` {did}{times} (#{file.index})" + (f" — {note}" if note else "")


def errors(state: MechanicalState, causes: Mapping[int, Sentence], earlier: Sequence[Paragraph], budget: int) -> str:
    """What failed, what was said about it, what made it good; and what the user would not have."""
    before = fold.prose(fold.choose(earlier, budget // 3))
    if not state.errors and not state.refusals:
        return before
    still_open = len(state.open_errors)
    fixed = len(state.errors) - still_open
    head = (
        f"{_count(len(state.errors), 'call')} failed; {fixed} of them succeeded later, {still_open} did not."
        if state.errors
        else "No call failed."
    )
    lines = [
        f"- The user refused {' '.join((refusal.tool, one_line(refusal.target, 80))).strip()} (#{refusal.index})"
        + (f" and said: “{one_line(refusal.said, 240)}”" if refusal.said else ".")
        for refusal in state.refusals
    ]
    # Failures that somebody explained teach most, so they come last in a list of which the newest stay.
    times = Counter((error.tool, error.target) for error in state.errors)
    latest = {(error.tool, error.target): error for error in state.errors}
    told = sorted(latest.values(), key=lambda error: (error.index in causes, error.fixed_index is None, error.index))
    lines = [*(_error_line(error, causes.get(error.index), times[error.tool, error.target]) for error in told), *lines]
    kept = _newest(lines, max(budget - estimate_text(head) - estimate_text(before), _LEAST_FAILURE))
    return "\n".join(filter(None, (head, *kept))) + (f"\n\n{before}" if before else "")


def _error_line(error: ErrorRecord, cause: Sentence | None, times: int) -> str:
    then = f" Then: “{cause.text}”{'' if cause.text.endswith(('.', '!', '?')) else '.'}" if cause and cause.score >= 1 else ""
    end = f" Succeeded at #{error.fixed_index}." if error.fixed_index is not None else " Not seen to succeed since."
    message = f": {one_line(error.message, 140).rstrip('.…')}" if error.message else ""
    often = f" Failed {times} times in all." if times > 1 else ""
    target = one_line(commands.essence(error.target), 100)
    return f"- {error.tool} `{target}` (#{error.index}, {error.status}){message}.{then}{often}{end}"


def user_messages(state: MechanicalState, budget: int) -> str:
    """How many there were, and those that the next one overtook; the block lists them all."""
    messages = state.user_messages
    if not messages:
        return ""
    kinds = [asks.read(message.text).kind for message in messages]
    asked = [message for message, kind in zip(messages, kinds, strict=True) if kind is AskKind.WORDS]
    answered = sum(message.answered_index is not None for message in asked)
    other = f" {len(messages) - len(asked)} more are traces of commands, notices or interruptions." if len(asked) < len(messages) else ""
    head = f"{_count(len(asked), 'message')} by the user, {answered} answered; all are listed by position further below.{other}"
    passed = [message for message in asked if message.answered_index is None]
    lines = [f"- #{message.index} “{one_line(asks.read(message.text).text, 100)}”" for message in passed]
    kept = _newest(lines, budget - estimate_text(head) - 12)
    return "\n".join((head, "Without a closing answer of their own:", *kept)) if kept else head


def requests_besides(state: MechanicalState, told: str, budget: int) -> str:
    """The user's requests that nothing told so far quotes, shortened, the latest that fit."""
    asked = [(message.index, ask.text) for message in state.user_messages if (ask := asks.read(message.text)).kind is AskKind.WORDS]
    plain = " ".join(told.split())
    silent = [f"“{one_line(text, 100)}” (#{index})" for index, text in asked if text and one_line(text, 60).rstrip("…") not in plain]
    left = budget - 4
    kept: list[str] = []
    for line in reversed(silent):
        if (size := estimate_text(line)) <= left:  # a long one does not keep a short one out
            kept.append(line)
            left -= size + 1
    return f"\nAlso asked: {'; '.join(reversed(kept))}." if kept else ""


def pending(state: MechanicalState, earlier: Sequence[Paragraph], budget: int) -> str:
    """What is open: the user's request, to-dos, jobs, calls."""
    lines = [f"The request #{message.index} has no answer yet." for message in open_requests(state)]
    lines += [f"A job is still running: {job.target} (#{job.index}, id {job.job})." for job in state.jobs[-5:]]
    lines += [f"A call has no result yet: {call.tool} {call.target} (#{call.index})." for call in state.pending_calls[-5:]]
    lines += [f"- [{todo.status.value.replace('_', ' ')}] {todo.text}" for todo in state.open_todos]
    if not state.todos and (before := fold.prose(fold.choose(earlier, budget // 2, least_score=-1.0))):
        lines.append(f"Noted as pending earlier, perhaps done since: {before.removeprefix(fold.EARLIER).strip()}")
    if not lines:
        return "No to-do, job or request is open." if state.entries else ""
    return "\n".join(_newest(lines[::-1], max(budget, _LEAST_OPEN))[::-1])


def open_requests(state: MechanicalState) -> list[UserMessage]:
    """The latest request of the user if nobody has answered it."""
    asked = [message for message in state.user_messages if asks.read(message.text).kind is AskKind.WORDS]
    return asked[-1:] if asked and asked[-1].answered_index is None else []


def current(state: MechanicalState, closing: Sequence[Sentence], budget: int) -> str:
    """Where the work stood at the end: the last request, the last words, the last actions."""
    asked = [message for message in state.user_messages if asks.read(message.text).kind is AskKind.WORDS]
    parts = [f"At the end of this record the user's request was #{asked[-1].index} ({_answered(asked[-1])})."] if asked else []
    # A closing statement opens with what came of the work; its end is an offer or a question.
    said = fold.choose([Paragraph("", list(closing))], budget * 2 // 3, least_score=-1.0) if closing else []
    if said:
        parts.append("The assistant last said: " + fold.prose(said))
    root = common_root((file.path for file in state.files), state.cwd)
    acts = [(file.index, f"{file.action.value} `{under(root, file.path)}`") for file in state.files if file.action.changes][-3:]
    acts += [
        (command.index, f"ran `{one_line(commands.essence(command.command), 70)}` ({command.status})") for command in state.commands[-3:]
    ]
    if acts:
        parts.append("Last actions: " + "; ".join(f"{words} (#{index})" for index, words in sorted(acts)[-4:]) + ".")
    return " ".join(_newest(parts[::-1], budget * 2)[::-1])


def next_step(state: MechanicalState, closing: Sequence[Sentence], budget: int) -> str:
    """What comes next: the open request, the to-do in hand, an intention or a question that stands."""
    parts = [
        f"Answer the user's request #{message.index}: “{one_line(asks.read(message.text).text, budget * 2)}”"
        for message in open_requests(state)
    ]
    in_hand = [todo.text for todo in state.open_todos if todo.status is TodoStatus.IN_PROGRESS] or [todo.text for todo in state.open_todos][
        :1
    ]
    if in_hand:
        parts.append(f"Go on with: {'; '.join(in_hand[:2])}.")
    said = [sentence.text for sentence in closing if sentences.is_intention(sentence.text) and not sentence.text.endswith("?")]
    if said and (parts or not open_requests(state)):
        parts.append(f"The assistant's stated intention: “{said[-1].rstrip(':')}”")
    questions = [sentence.text for sentence in closing if sentence.text.endswith("?")]
    if questions and not open_requests(state):
        parts.append(f"The assistant asked, and waits for an answer: “{questions[-1]}”")
    return " ".join(parts) or "Nothing is open: the last request was answered. Go by the messages that follow."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
