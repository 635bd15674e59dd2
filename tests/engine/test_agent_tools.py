"""What code reads from calls of the tools of opencode, pi, Gemini CLI, Qwen Code, OpenHands and OpenWorker."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.engine import extractors
from sessions_app.engine.extractors import FileAction, TodoStatus, call_facts
from sessions_app.engine.mechanical import collect
from tests.engine.test_mechanical import Work

READ, EDITED, WRITTEN, DELETED = FileAction.READ, FileAction.EDITED, FileAction.WRITTEN, FileAction.DELETED
PATCH = "*** Begin Patch\n*** Delete File: old.py\n*** End Patch"


def facts(name, arguments):
    return call_facts(name, json.dumps(arguments))


@pytest.mark.parametrize(
    ("name", "arguments", "action", "paths"),
    [
        # opencode
        ("read", {"filePath": "/w/a.py", "offset": 10}, READ, ("/w/a.py",)),
        ("write", {"filePath": "/w/a.py", "content": "x"}, WRITTEN, ("/w/a.py",)),
        ("edit", {"filePath": "/w/a.py", "oldString": "x", "newString": "y"}, EDITED, ("/w/a.py",)),
        ("multiedit", {"filePath": "/w/a.py", "edits": []}, EDITED, ("/w/a.py",)),
        ("apply_patch", {"patchText": PATCH}, DELETED, ("old.py",)),
        # pi
        ("read", {"path": "src/a.py", "limit": 5}, READ, ("src/a.py",)),
        ("write", {"path": "src/a.py", "content": "x"}, WRITTEN, ("src/a.py",)),
        ("edit", {"path": "src/a.py", "edits": [{"oldText": "x", "newText": "y"}]}, EDITED, ("src/a.py",)),
        # Gemini CLI, Qwen Code
        ("read_file", {"absolute_path": "/w/a.py"}, READ, ("/w/a.py",)),
        ("read_file", {"file_path": "/w/a.py"}, READ, ("/w/a.py",)),
        ("read_many_files", {"include": ["a.py", "b.py", "a.py"]}, READ, ("a.py", "b.py")),
        ("write_file", {"file_path": "a.py", "content": "x"}, WRITTEN, ("a.py",)),
        ("replace", {"file_path": "a.py", "old_string": "x", "new_string": "y"}, EDITED, ("a.py",)),
        ("edit", {"file_path": "a.py", "old_string": "x", "new_string": "y"}, EDITED, ("a.py",)),
        # OpenHands
        ("file_editor", {"command": "view", "path": "/w/a.py"}, READ, ("/w/a.py",)),
        ("str_replace_editor", {"command": "create", "path": "/w/a.py", "file_text": "x"}, WRITTEN, ("/w/a.py",)),
        ("str_replace_editor", {"command": "str_replace", "path": "/w/a.py", "old_str": "x"}, EDITED, ("/w/a.py",)),
        ("file_editor", {"command": "insert", "path": "/w/a.py", "insert_line": 3}, EDITED, ("/w/a.py",)),
        ("file_editor", {"command": "undo_edit", "path": "/w/a.py"}, EDITED, ("/w/a.py",)),
        ("file_editor", {"command": "dance", "path": "/w/a.py"}, None, ()),
        ("apply_patch", {"patch": PATCH}, DELETED, ("old.py",)),
        # OpenWorker
        ("read_file", {"path": "a.md", "start_line": 3}, READ, ("a.md",)),
        ("write_file", {"path": "a.md", "content": "x"}, WRITTEN, ("a.md",)),
        ("replace_in_file", {"path": "a.md", "old": "x", "new": "y"}, EDITED, ("a.md",)),
        ("apply_unified_diff", {"diff": "--- a/x.md\t2024-01-01\n+++ b/x.md\t2024-01-02\n@@ -1 +1 @@\n-a\n+b\n"}, EDITED, ("x.md",)),
        ("apply_unified_diff", {"diff": "--- /dev/null\n+++ b/new.md\n@@ -0,0 +1 @@\n+b\n"}, WRITTEN, ("new.md",)),
        ("apply_unified_diff", {"diff": "--- a/old.md\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n"}, DELETED, ("old.md",)),
    ],
)
def test_a_call_says_what_it_does_to_which_files(name, arguments, action, paths):
    told = facts(name, arguments)
    assert (told.action, told.paths, told.command) == (action, paths, "")


@pytest.mark.parametrize(
    ("name", "arguments", "command", "job"),
    [
        ("bash", {"command": "make test", "workdir": "/w", "timeout": 60000}, "make test", ""),
        ("bash", {"command": "make test", "timeout": 120}, "make test", ""),
        ("run_shell_command", {"command": "make test", "description": "Runs tests", "dir_path": "src"}, "make test", ""),
        ("run_shell", {"command": "make test", "description": "Tests", "timeout_seconds": 9}, "make test", ""),
        ("terminal", {"command": "make test", "is_input": False, "reset": False}, "make test", ""),
        ("execute_bash", {"command": "make test", "is_input": "false"}, "make test", ""),
        ("terminal", {"command": "", "is_input": True}, "", "terminal"),
        ("terminal", {"command": "yes", "is_input": True}, "", "terminal"),
        ("execute_bash", {"command": "yes", "is_input": "true"}, "", "terminal"),
        ("execute_bash", {"command": "C-c"}, "", "terminal"),
        ("shell_task_output", {"task_id": "bg-1"}, "", "bg-1"),
        ("read_background_output", {"pid": 4711}, "", "4711"),
    ],
)
def test_a_command_is_what_the_shell_was_told_and_not_what_is_put_into_a_running_one(name, arguments, command, job):
    told = facts(name, arguments)
    assert (told.command, told.job, told.paths) == (command, job, ())


@pytest.mark.parametrize(
    ("name", "arguments", "target", "urls"),
    [
        ("webfetch", {"url": "https://example.org/a", "format": "markdown"}, "https://example.org/a", ("https://example.org/a",)),
        ("web_fetch", {"prompt": "Read https://example.org/a, then say"}, "https://example.org/a", ("https://example.org/a",)),
        ("web_fetch", {"url": "https://example.org/b"}, "https://example.org/b", ("https://example.org/b",)),
        ("browser_navigate", {"url": "https://example.org/c"}, "https://example.org/c", ("https://example.org/c",)),
        ("google_web_search", {"query": "tree rings"}, "tree rings", ()),
        ("grep", {"pattern": "def f", "path": "src"}, "def f in src", ()),
        ("find", {"pattern": "*.md", "path": "docs"}, "*.md in docs", ()),
        ("search_file_content", {"pattern": "def f", "include": "*.py"}, "def f in *.py", ()),
        ("list_directory", {"dir_path": "src"}, "src", ()),
        ("search_files", {"query": "total", "path": "notes"}, "total in notes", ()),
        ("task", {"description": "Find the door", "prompt": "Look", "subagent_type": "explore"}, "Find the door", ()),
        ("agent", {"description": "Find the door", "prompt": "Look", "subagent_type": "general"}, "Find the door", ()),
        ("codebase_investigator", {"objective": "Where is the door?"}, "Where is the door?", ()),
        ("delegate", {"command": "delegate", "tasks": {"a": "Count", "b": "Weigh"}}, "Count; Weigh", ()),
        ("explore", {"task": "Where is the door?"}, "Where is the door?", ()),
    ],
)
def test_a_call_is_named_by_what_it_looks_for_and_whom_it_sends(name, arguments, target, urls):
    told = facts(name, arguments)
    assert (told.target, told.urls, told.paths, told.command) == (target, urls, (), "")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("todowrite", {"todos": [{"content": "Saw", "status": "completed", "priority": "high"}, {"content": "Glue", "status": "pending"}]}),
        (
            "todowrite",
            {"todos": [{"content": "Saw", "status": "completed"}, {"content": "Oil", "status": "cancelled"}, {"content": "Glue"}]},
        ),
        ("write_todos", {"todos": [{"description": "Saw", "status": "completed"}, {"description": "Glue", "status": "pending"}]}),
        (
            "todo_write",
            {"todos": [{"id": "1", "content": "Saw", "status": "completed"}, {"id": "2", "content": "Glue"}]},
        ),
        ("todo_write", {"items": [{"content": "Saw", "status": "done"}, "Glue"]}),
        ("task_tracker", {"command": "plan", "task_list": [{"title": "Saw", "status": "done"}, {"title": "Glue", "status": "todo"}]}),
    ],
)
def test_a_list_of_what_is_to_do_replaces_the_one_before(name, arguments):
    told = facts(name, arguments)
    assert told.replaces_todos
    assert [(todo.text, todo.status) for todo in told.todos] == [("Saw", TodoStatus.COMPLETED), ("Glue", TodoStatus.PENDING)]


def test_looking_at_the_list_changes_nothing_on_it():
    work = Work().user().tool("task_tracker", {"command": "plan", "task_list": [{"title": "Saw", "status": "in_progress"}]})
    work.tool("task_tracker", {"command": "view"}, "# Task List")
    assert [(todo.text, todo.status) for todo in collect(work.entries).todos] == [("Saw", TodoStatus.IN_PROGRESS)]


def test_a_single_task_is_created_and_changed_by_the_id_in_its_answer():
    made = 'Task created successfully.\n\n<system-reminder>\nNew task created: {\n  "id": "t-7",\n  "title": "Saw"\n}\n</system-reminder>'
    work = Work().user().tool("task_create", {"title": "Saw"}, made)
    work.tool("task_update", {"taskId": "t-7", "status": "in_progress"}, "Task updated successfully.")
    assert [(todo.text, todo.status) for todo in collect(work.entries).todos] == [("Saw", TodoStatus.IN_PROGRESS)]


@pytest.mark.parametrize(
    ("name", "argument"), [("read", "filePath"), ("read", "path"), ("read_file", "absolute_path"), ("read_file", "file_path")]
)
def test_of_a_call_that_was_shortened_the_file_is_known(name, argument):
    assert call_facts(name, f'{{"{argument}": "/w/a.py", "content": "cut he').paths == ("/w/a.py",)


@pytest.mark.parametrize("name", sorted(extractors._OF_NAME))
@pytest.mark.parametrize(
    "arguments",
    [
        "",
        "null",
        "[]",
        "{",
        "{}",
        '{"command": 5, "path": {"path": "a"}, "filePath": ["a", 1], "file_path": null, "todos": {"a": 1}, "task_list": "x", "tasks": [1]}',
        '{"command": "plan", "task_list": [1, null, [], {"title": {}}], "todos": [[], {"content": 4}], "items": [true], "paths": [1]}',
        '{"path": "", "url": [], "prompt": {}, "diff": 7, "taskId": true, "task_id": [], "pid": {}, "status": {"a": []}, "is_input": {}}',
    ],
)
def test_whatever_a_call_holds_it_is_read(name, arguments):
    told = call_facts(name, arguments)
    assert all(isinstance(path, str) and path for path in told.paths)
    assert all(todo.text or todo.key for todo in told.todos) or name.startswith(("Task", "Todo", "update_plan"))


@given(name=st.sampled_from(sorted(extractors._OF_NAME)), text=st.text(max_size=300), is_error=st.booleans())
def test_whatever_a_result_holds_it_is_read(name, text, is_error):
    for said in (text, json.dumps({"error": text}), json.dumps({"output": text, "exit_code": text}), json.dumps([text])):
        assert extractors.result_facts(name, said, is_error=is_error).status
