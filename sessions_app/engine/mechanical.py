"""Mechanical state: what a history did, taken from its entries by code, from the first one at every generation."""

import re
from collections.abc import Iterable, Iterator
from itertools import islice

import msgspec

from sessions_app.engine import commands, extractors, facts, mentions
from sessions_app.engine.entries import Entry, Part
from sessions_app.engine.extractors import CallFacts, FileAction, ResultFacts, Todo, TodoStatus, one_line
from sessions_app.engine.facts import Collected, Facts
from sessions_app.engine.state import (
    CommandRecord,
    CommitRecord,
    ErrorRecord,
    FileRecord,
    MechanicalState,
    Mention,
    OpenCall,
    Refusal,
    UserMessage,
)
from sessions_app.engine.steps import ShouldStop, Stopped
from sessions_app.engine.terms import Kind, PartKind, Role

# Looking a member up in its class costs a call in Python 3.11, and the collector asks this of every entry.
_NOTICE, _SYSTEM, _USER, _ASSISTANT, _MESSAGE = Role.NOTICE, Role.SYSTEM, Role.USER, Role.ASSISTANT, Kind.MESSAGE
_COMPLETED = TodoStatus.COMPLETED
_CALL, _RESULT, _TEXT, _IMAGE = PartKind.CALL, PartKind.RESULT, PartKind.TEXT, PartKind.IMAGE

MAX_COMMANDS, MAX_MENTIONS, MAX_ERRORS, MAX_FILES = 500, 300, 300, 2_000
MAX_PATH_CHARS, MAX_NAME_CHARS, MAX_TODOS = 500, 80, 300
USER_TEXT_CHARS = 4_000
STOP_EVERY = 200  # entries between two questions whether to stop
_SCANNED_CHARS = 20_000  # of one text, for addresses and identifiers


def collect(entries: Iterable[Entry], should_stop: ShouldStop = lambda: None) -> MechanicalState:
    """The state after these entries; give all of them, from index 0. Streams; raises `Stopped`."""
    collector = Collector()
    for page in _pages(entries):
        if (stop := should_stop()) is not None:
            raise Stopped(stop)
        collector.add_all(page)
    return collector.state()


def facts_of(entries: Iterable[Entry]) -> Facts:
    """The facts that these entries state. One pass."""
    collector = Collector()
    for page in _pages(entries):
        collector.add_all(page)
    return collector.facts()


def _pages(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    rest = iter(entries)
    while page := list(islice(rest, STOP_EVERY)):
        yield page


class _Call(msgspec.Struct, gc=False):
    index: int
    tool: str
    facts: CallFacts
    record: int | None = None  # place of its command in the list


class Collector:
    """Takes entries in order, best by the page; `state()` may be asked at any time."""

    def __init__(self) -> None:
        self._entries = 0
        self._cwd = self._branch = ""
        self._files: dict[str, FileRecord] = {}
        self._commands: list[CommandRecord] = []
        self._tools: dict[str, int] = {}
        self._tool_names: dict[str, str] = {}  # as calls have them → on one line
        self._urls: dict[str, int] = {}
        self._identifiers: dict[str, int] = {}
        self._numbers: dict[str, int] = {}
        self._commits: dict[str, CommitRecord] = {}
        self._errors: list[ErrorRecord] = []
        self._unfixed: dict[tuple[str, str], list[int]] = {}
        self._refusals: list[Refusal] = []
        self._answers: list[Mention] = []
        self._todos: dict[str, Todo] = {}
        self._todos_at: dict[str, int] = {}
        self._done: dict[str, int] = {}  # text of a to-do that was completed → the call that said so
        self._background: dict[str, _Call] = {}  # id of a job → the call that began it
        self._open: dict[str, _Call] = {}
        self._users: list[UserMessage] = []
        self._answered: list[int | None] = []  # of each of these: the entry with the closing statement of its turn

    def add(self, entry: Entry) -> None:
        """Takes the next entry."""
        self.add_all((entry,))

    def add_all(self, entries: Iterable[Entry]) -> None:
        """Takes the next entries, in order. What was left behind by a rewind did not happen in this history.

        What their texts name is looked for in all of them at once.
        """
        said, taken = _Said(), 0
        for entry in entries:
            role = entry.role
            if entry.off_branch or role is _NOTICE:
                continue
            taken += 1
            for part in entry.parts:
                kind = part.kind
                if kind is _CALL:
                    self._call(entry.index, part, said)
                elif kind is _RESULT:
                    self._result(part)
                elif kind is _TEXT:
                    self._text(entry, part, said)
            if role is _USER and entry.kind is _MESSAGE and not entry.meta:
                self._user_message(entry)
        self._entries += taken
        if said.texts or said.called:
            self._note_names(said)

    def _text(self, entry: Entry, part: Part, said: "_Said") -> None:
        text, role = part.text[:_SCANNED_CHARS], entry.role
        if role in (_SYSTEM, _USER) and (cwd := mentions.working_directory(text)):
            self._cwd = cwd
        for job, status in mentions.ended_jobs(part.text) if role is _USER else ():
            self._end_job(job, status)
        if entry.kind is not _MESSAGE or entry.meta:
            return
        said.texts.append(text)
        said.indexes.append(entry.index)
        said.spoken.append(role is _USER)
        if role is _ASSISTANT and self._answered and text and not text.isspace():
            self._answered[-1] = entry.index

    def _note_names(self, said: "_Said") -> None:
        """Each name stays with the entry that said it first: those of calls and of texts are taken in their order."""
        named = mentions.named_in(said.texts, said.spoken)
        called = iter((*said.called, (len(said.texts), "", -1)))
        place_of_call, url_of_call, index_of_call = next(called)
        for place in sorted(named):
            while place_of_call <= place:
                self._urls.setdefault(url_of_call, index_of_call)
                place_of_call, url_of_call, index_of_call = next(called)
            names, index = named[place], said.indexes[place]
            for url in names.urls:
                self._urls.setdefault(url, index)
            for word in names.identifiers:
                self._identifiers.setdefault(word, index)
            for number in names.quantities:
                self._numbers.setdefault(number, index)
        while index_of_call >= 0:
            self._urls.setdefault(url_of_call, index_of_call)
            place_of_call, url_of_call, index_of_call = next(called)

    def _user_message(self, entry: Entry) -> None:
        self._open = {}  # a call that the person spoke past was abandoned
        text = entry.text.strip()
        images = sum(part.kind is _IMAGE for part in entry.parts)
        chars = sum(part.length for part in entry.parts if part.kind is _TEXT)
        self._users.append(UserMessage(entry.index, text[:USER_TEXT_CHARS], chars, images=images))
        self._answered.append(None)

    def _call(self, index: int, part: Part, said: "_Said") -> None:
        facts = extractors.call_facts(part.name, part.text)
        tool = self._tool_names.get(part.name)
        if tool is None:
            tool = self._tool_names[part.name] = one_line(part.name, MAX_NAME_CHARS)
        self._tools[tool] = self._tools.get(tool, 0) + 1
        self._open[part.call_id] = _Call(index, tool, facts)
        for url in facts.urls:
            said.called.append((len(said.texts), url, index))
        if self._answered:  # a statement before a call does not close the turn
            self._answered[-1] = None

    def _result(self, part: Part) -> None:
        call = self._open.pop(part.call_id, None)
        if call is None:
            return
        result = extractors.result_facts(call.tool, part.text, is_error=part.is_error)
        if result.job_ended:
            call = self._background.pop(call.facts.job, call)  # how a job came out is told of the call that began it
        did = call.facts
        if did.command:
            if result.status == "exit 1":
                result = msgspec.structs.replace(result, status=commands.verdict_of(did.command[:2_000], result.status))
            self._note_command(call, result, part.text)
        if result.status == "refused":
            self._refusals.append(Refusal(call.index, call.tool, did.target, result.said))
        elif result.status != "ok" and result.is_failure:
            self._unfixed.setdefault(_same_thing(call), []).append(len(self._errors))
            self._errors.append(ErrorRecord(call.index, call.tool, did.target, result.status, result.message))
        else:
            self._succeeded(call, did, result)

    def _succeeded(self, call: _Call, did: CallFacts, result: ResultFacts) -> None:
        for position in self._unfixed.pop(_same_thing(call), ()) if self._unfixed else ():
            self._errors[position] = msgspec.structs.replace(self._errors[position], fixed_index=call.index)
        if result.said:
            self._answers.append(Mention(result.said, call.index))
        if did.paths or did.command:
            self._note_files(call)
        if did.todos or did.replaces_todos:
            self._note_todos(call, result)
        if result.job and result.job != did.job:  # whoever looks at what runs starts nothing else
            self._background[result.job] = call
        if did.ends_job:
            self._end_job(did.ends_job, "stopped")

    def _end_job(self, job: str, status: str) -> None:
        call = self._background.pop(job, None)
        if call is not None and call.record is not None:
            self._commands[call.record] = msgspec.structs.replace(self._commands[call.record], status=status)

    def _note_command(self, call: _Call, result: ResultFacts, text: str) -> None:
        command = call.facts.command
        if not command:
            return
        record = CommandRecord(one_line(command, 200), result.status, call.index)
        if call.record is None:
            call.record = len(self._commands)
            self._commands.append(record)
        else:
            self._commands[call.record] = record
        if result.is_failure or result.status == "refused":
            return
        if directory := mentions.directory_of_command(command):
            self._cwd = one_line(directory, MAX_PATH_CHARS)
        if "git" in command:
            self._branch = mentions.branch_of_result(text) or mentions.branch_of_command(command) or self._branch
            for branch, sha, subject in mentions.commits(text):
                self._commits[sha] = CommitRecord(sha, subject.strip(), branch, call.index)
                self._branch = branch if branch != "detached" else self._branch

    def _note_files(self, call: _Call) -> None:
        action = call.facts.action
        for named in call.facts.paths if action else ():
            path = one_line(named, MAX_PATH_CHARS)
            if action is None or not path:
                continue
            before = self._files.pop(path, None)  # popped, so that the order is that of the last action
            changed = (before.changed if before else 0) + action.changes
            self._files[path] = FileRecord(path, action, call.index, changed)
        for path in _deleted_by(call.facts.command) if "rm " in call.facts.command else ():
            before = self._files.pop(path, None)
            self._files[path] = FileRecord(path, FileAction.DELETED, call.index, (before.changed if before else 0) + 1)

    def _note_todos(self, call: _Call, result: ResultFacts) -> None:
        todos = call.facts.todos[:MAX_TODOS]
        if call.facts.replaces_todos:
            self._todos = {todo.text: todo for todo in todos}
            self._todos_at = dict.fromkeys(self._todos, call.index)
            for todo in todos:
                self._note_done(todo, call.index)
            return
        for todo in todos:
            key = todo.key or result.todo_key or todo.text
            before = self._todos.get(key)
            self._todos_at[key] = call.index
            self._todos[key] = now = Todo(todo.text or (before.text if before else f"task {key}"), todo.status, key)
            self._note_done(now, call.index)

    def _note_done(self, todo: Todo, index: int) -> None:
        if todo.status is _COMPLETED:
            self._done.setdefault(todo.text, index)
        else:
            self._done.pop(todo.text, None)

    def facts(self) -> Facts:
        """What the entries so far state, uncut."""
        return facts.gather(
            Collected(
                files=self._files.values(),
                commands=self._commands,
                errors=self._errors,
                urls=self._urls,
                identifiers=self._identifiers,
                numbers=self._numbers,
                users=self._users,
                todos=[(todo, self._todos_at[key]) for key, todo in self._todos.items()],
            )
        )

    def state(self) -> MechanicalState:
        """What is known now. The long lists keep their newest."""
        return MechanicalState(
            entries=self._entries,
            cwd=self._cwd,
            branch=self._branch,
            files=_newest_files(list(self._files.values())),
            commands=tuple(self._commands[-MAX_COMMANDS:]),
            commands_run=len(self._commands),
            tools=dict(sorted(self._tools.items(), key=lambda item: (-item[1], item[0]))),
            urls=_newest(self._urls),
            identifiers=_newest(self._identifiers),
            commits=tuple(self._commits.values())[-MAX_MENTIONS:],
            errors=tuple(self._errors[-MAX_ERRORS:]),
            refusals=tuple(self._refusals[-MAX_ERRORS:]),
            answers=tuple(self._answers[-MAX_ERRORS:]),
            todos=tuple(self._todos.values()),
            done=_newest(self._done),
            jobs=tuple(OpenCall(call.index, call.tool, call.facts.target, job) for job, call in self._background.items()),
            pending_calls=tuple(OpenCall(call.index, call.tool, call.facts.target) for call in self._open.values()),
            user_messages=self._user_messages(),
        )

    def _user_messages(self) -> tuple[UserMessage, ...]:
        for place, (message, answered) in enumerate(zip(self._users, self._answered, strict=True)):
            if message.answered_index != answered:
                self._users[place] = msgspec.structs.replace(message, answered_index=answered)
        return tuple(self._users)


class _Said(msgspec.Struct):
    """What a page says: its messages as parallel lists, and the addresses that calls between them name, as (messages before,
    address, index)."""

    texts: list[str] = []
    indexes: list[int] = []
    spoken: list[bool] = []  # by a person
    called: list[tuple[int, str, int]] = []


def _newest(found: dict[str, int]) -> tuple[Mention, ...]:
    return tuple(Mention(text, index) for text, index in list(found.items())[-MAX_MENTIONS:])


def _newest_files(files: list[FileRecord]) -> tuple[FileRecord, ...]:
    """Files beyond the cap go, the ones only read before the changed ones."""
    if len(files) <= MAX_FILES:
        return tuple(files)
    changed = [file for file in files if file.changed][-MAX_FILES:]
    read = [file for file in files if not file.changed]
    kept = {file.path for file in changed} | {file.path for file in read[len(read) - (MAX_FILES - len(changed)) :]}
    return tuple(file for file in files if file.path in kept)


_DELETION = re.compile(r"(?:^|&&|;|\n)\s*(?:git\s+rm|rm)((?:\s+-[\w-]+)*)((?:\s+[\w./@~+-]+)+)")


def _same_thing(call: _Call) -> tuple[str, str]:
    """What makes two calls *the same thing*: tool and file or query, or a command's first two words."""
    if not call.facts.command:
        return call.tool, call.facts.target
    return "", " ".join(commands.without_cd(call.facts.command[:2_000].strip()).split()[:2])


def _deleted_by(command: str) -> Iterable[str]:
    for match in _DELETION.finditer(command[:2_000]):
        yield from (word for word in match.group(2).split() if not word.startswith("-"))
