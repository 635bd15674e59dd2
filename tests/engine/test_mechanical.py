"""Mechanical state: what code reads from calls, results and messages."""

from typing import Self

import msgspec
import pytest
from hypothesis import given, settings

from sessions_app.engine.entries import Part
from sessions_app.engine.extractors import FileAction, TodoStatus, call_facts
from sessions_app.engine.mechanical import Collector, collect
from sessions_app.engine.shapes import shape_of
from sessions_app.engine.steps import Stop, Stopped
from sessions_app.engine.terms import Kind, PartKind, Role
from tests.engine.histories import Story, histories, text


class Work(Story):
    """A story with real tools."""

    def tool(self, name: str, arguments: dict[str, object], result: str = "ok", *, is_error: bool = False) -> Self:
        call_id = f"t{len(self.entries)}"
        arguments_text = msgspec.json.encode(arguments).decode()
        self.add(Role.ASSISTANT, Kind.CALL, Part(kind=PartKind.CALL, name=name, text=arguments_text, call_id=call_id))
        self.add(Role.TOOL, Kind.RESULT, Part(kind=PartKind.RESULT, text=result, call_id=call_id, is_error=is_error))
        return self


def test_each_file_has_its_last_action_and_how_often_it_was_changed():
    work = Work().user().tool("Read", {"file_path": "/a.py"}).tool("Edit", {"file_path": "/a.py"}).tool("Write", {"file_path": "/b.py"})
    work.tool("Edit", {"file_path": "/a.py"}).tool("Read", {"file_path": "/a.py"})
    files = {file.path: file for file in collect(work.entries).files}
    assert (files["/a.py"].action, files["/a.py"].changed) == (FileAction.READ, 2)
    assert (files["/b.py"].action, files["/b.py"].changed) == (FileAction.WRITTEN, 1)


def test_a_file_that_a_tool_could_not_change_is_not_called_changed():
    work = Work().user().tool("Edit", {"file_path": "/a.py"}, "String not found", is_error=True)
    assert collect(work.entries).files == ()


def test_a_removed_file_is_deleted():
    work = Work().user().tool("Write", {"file_path": "notes.md"}).tool("Bash", {"command": "rm -f notes.md && ls"})
    assert collect(work.entries).files[-1].action is FileAction.DELETED


@pytest.mark.parametrize(
    ("result", "is_error", "status"),
    [
        ("ok", False, "ok"),
        ("Exit code 2\nmake: *** [all] Error 1", True, "exit 2"),
        ("The user doesn't want to proceed with this tool use. The tool use was rejected.", True, "refused"),
        ("Command running in background with ID: b1", False, "running in background"),
        ("something broke", True, "failed"),
    ],
)
def test_each_command_has_how_it_ended(result, is_error, status):
    work = Work().user().tool("Bash", {"command": "make all"}, result, is_error=is_error)
    assert [(command.command, command.status) for command in collect(work.entries).commands] == [("make all", status)]


def test_a_failure_is_made_good_by_the_same_thing_succeeding_later():
    work = Work().user().tool("Bash", {"command": "cd /x && npm test"}, "Exit code 1\nError: no such module", is_error=True)
    work.tool("Edit", {"file_path": "/x/a.ts"}).tool("Bash", {"command": "npm test -- --all"})
    work.tool("WebFetch", {"url": "https://example.org/x"}, "status code 404", is_error=True)
    fixed, still_open = collect(work.entries).errors
    assert (fixed.message, fixed.fixed_index) == ("Error: no such module", 5)
    assert still_open.fixed_index is None


def test_what_the_user_refused_and_what_he_said_instead_is_kept():
    said = "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\nUse pnpm, not npm"
    refusal = collect(Work().user().tool("Bash", {"command": "npm i"}, said, is_error=True).entries).refusals[0]
    assert refusal.said == "Use pnpm, not npm"


def test_the_to_do_list_is_the_last_one_that_was_written():
    first = [{"content": "Read", "status": "in_progress"}, {"content": "Write", "status": "pending"}]
    last = [{"content": "Read", "status": "completed"}, {"content": "Write", "status": "in_progress"}]
    state = collect(Work().user().tool("TodoWrite", {"todos": first}).tool("TodoWrite", {"todos": last}).entries)
    assert [(todo.text, todo.status) for todo in state.open_todos] == [("Write", TodoStatus.IN_PROGRESS)]


def test_tasks_are_followed_by_the_id_that_they_were_given():
    work = Work().user().tool("TaskCreate", {"subject": "Port the reader"}, "Task #7 created successfully: Port the reader")
    work.tool("TaskUpdate", {"taskId": "7", "status": "in_progress"})
    assert [(todo.text, todo.status) for todo in collect(work.entries).todos] == [("Port the reader", TodoStatus.IN_PROGRESS)]
    work.tool("TaskUpdate", {"taskId": "7", "status": "completed"})
    assert collect(work.entries).open_todos == ()


def test_what_was_done_stays_known_when_its_list_is_gone_and_until_it_is_taken_up_again():
    lists = [
        [{"content": "Read", "status": "completed"}, {"content": "Write", "status": "pending"}],
        [{"content": "Test", "status": "in_progress"}],
        [{"content": "Write", "status": "completed"}, {"content": "Test", "status": "completed"}],
        [{"content": "Test", "status": "in_progress"}],
    ]
    work = Work().user()
    for todos in lists:
        work.tool("TodoWrite", {"todos": todos})
    work.tool("TaskCreate", {"subject": "Port"}, "Task #7 created").tool("TaskUpdate", {"taskId": "7", "status": "completed"})
    assert [(done.text, done.index) for done in collect(work.entries).done] == [("Read", 1), ("Write", 5), ("Port", 11)]


def test_a_background_job_is_open_until_something_says_that_it_ended():
    work = Work().user().tool("Bash", {"command": "npm run dev"}, "Command running in background with ID: b1")
    assert [job.job for job in collect(work.entries).jobs] == ["b1"]
    work.user("<task-notification><task-id>b1</task-id><status>completed</status></task-notification>")
    assert collect(work.entries).jobs == ()


def test_a_call_without_a_result_is_pending_until_the_user_speaks_past_it():
    story = Story().user().calls("a")
    assert [call.index for call in collect(story.entries).pending_calls] == [1]
    assert collect(story.user("Never mind.").entries).pending_calls == ()


def test_directory_branch_and_commits_come_from_what_git_and_the_shell_say():
    work = Work().user().tool("Bash", {"command": "cd /srv/app && git checkout -b fix/io"}, "Switched to a new branch 'fix/io'")
    work.tool("Bash", {"command": "git commit -m x"}, "[fix/io 1a2b3c4] Close the file\n 1 file changed")
    state = collect(work.entries)
    assert (state.cwd, state.branch) == ("/srv/app", "fix/io")
    assert [(commit.sha, commit.subject) for commit in state.commits] == [("1a2b3c4", "Close the file")]


def test_identifiers_and_addresses_that_people_name_are_kept():
    state = collect(Story().user("See PAY-12, acme/app#7 and https://example.org/a?b=1. It is about max_retries.").says().entries)
    assert [word.text for word in state.identifiers] == ["acme/app#7", "PAY-12", "max_retries"] or {
        word.text for word in state.identifiers
    } == {"PAY-12", "acme/app#7", "max_retries"}
    assert [url.text for url in state.urls] == ["https://example.org/a?b=1"]


def test_a_user_message_is_answered_by_a_closing_statement_and_not_by_one_before_a_call():
    story = Story().user("One").says("Let me see.").calls("a").result("a").user("Two").says("Done.")
    assert [message.answered_index for message in collect(story.entries).user_messages] == [None, 5]


def test_unknown_tools_are_understood_by_their_argument_names():
    facts = call_facts("str_replace_editor", '{"path": "/x.py", "command": "view"}')
    assert facts.paths == ("/x.py",)
    assert call_facts("run_in_terminal", '{"cmd": ["ls", "-l"]}').command == "ls -l"
    assert call_facts("browse", '{"url": "https://example.org"}').urls == ("https://example.org",)


def test_arguments_that_were_shortened_still_name_their_file():
    assert call_facts("Write", '{"file_path": "/long.py", "content": "abc').paths == ("/long.py",)


def test_collecting_stops_when_it_is_told_to():
    with pytest.raises(Stopped):
        collect(Story().user().entries, should_stop=lambda: Stop.CANCELLED)


@settings(max_examples=60, deadline=None)
@given(histories())
def test_state_collected_over_generations_equals_state_from_scratch(entries):
    """Invariant 15: it cannot decay."""
    collector = Collector()
    for position, entry in enumerate(entries):
        collector.add(entry)
        if position % 5 == 0:
            collector.state()
    assert collector.state() == collect(entries)


@settings(max_examples=60, deadline=None)
@given(histories())
def test_every_user_message_is_listed_by_its_position(entries):
    """Invariant 14."""
    wanted = [entry.index for entry in entries if shape_of(entry).is_user_message]
    assert [message.index for message in collect(entries).user_messages] == wanted


def test_state_survives_being_stored_as_json():
    state = collect(Work().user("Fix it").tool("Edit", {"file_path": "/a.py"}).add(Role.USER, Kind.MESSAGE, text("More")).entries)
    assert msgspec.convert(msgspec.to_builtins(state), type(state)) == state
