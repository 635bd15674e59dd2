"""Ten examples of each class of facts: what somebody wrote, and the fact in it. The classes and the rule are frozen."""

import json
from collections.abc import Callable

from sessions_app.engine.entries import Part
from sessions_app.engine.facts import FactClass
from sessions_app.engine.terms import Kind, PartKind, Role
from tests.engine.histories import Story, text

Build = Callable[[Story], object]


def call(name: str, *, result: str = "ok", is_error: bool = False, **arguments: object) -> Build:
    """A call and its result."""

    def build(story: Story) -> None:
        call_id = f"x{len(story.entries)}"
        story.add(Role.ASSISTANT, Kind.CALL, Part(kind=PartKind.CALL, name=name, text=json.dumps(arguments), call_id=call_id))
        story.add(Role.USER, Kind.RESULT, Part(kind=PartKind.RESULT, text=result, call_id=call_id, is_error=is_error))

    return build


def user(words: str) -> Build:
    return lambda story: story.user(words)


def says(words: str) -> Build:
    return lambda story: story.says(words)


def todos(*items: tuple[str, str]) -> Build:
    return call("TodoWrite", todos=[{"content": content, "status": status} for content, status in items])


PATCH = "*** Begin Patch\n*** Update File: {path}\n@@\n-a\n+b\n*** End Patch"

EXAMPLES: dict[FactClass, tuple[tuple[Build, str], ...]] = {
    FactClass.FILE_EDITED: (
        (call("Edit", file_path="/w/app/ledger.py", old_string="a", new_string="b"), "/w/app/ledger.py"),
        (call("Write", file_path="/w/app/new.py", content="x"), "/w/app/new.py"),
        (call("MultiEdit", file_path="src/main.rs", edits=[]), "src/main.rs"),
        (call("NotebookEdit", notebook_path="/w/plot.ipynb", new_source="1"), "/w/plot.ipynb"),
        (call("apply_patch", input=PATCH.format(path="lib/queue.ts")), "lib/queue.ts"),
        (call("write_file", path="docs/intro.md", content="x"), "docs/intro.md"),
        (call("edit_file", path="config/app.toml", edits=[]), "config/app.toml"),
        (call("Bash", command="rm -f build/old.log"), "build/old.log"),
        (call("create_file", filename="Makefile", text="x"), "Makefile"),
        (call("str_replace_based_edit", path="/w/café/menü.py", old="a", new="b"), "/w/café/menü.py"),
    ),
    FactClass.FILE_READ: (
        (call("Read", file_path="/w/README.md"), "/w/README.md"),
        (call("Read", file_path="src/lib.rs", offset=10, limit=20), "src/lib.rs"),
        (call("NotebookRead", notebook_path="a.ipynb"), "a.ipynb"),
        (call("read_file", path="go.mod"), "go.mod"),
        (call("view", path="/w/app/models.py"), "/w/app/models.py"),
        (call("open_file", file="notes.txt"), "notes.txt"),
        (call("view_image", path="shots/page.png"), "shots/page.png"),
        (call("load_file", absolute_path="/etc/hosts"), "/etc/hosts"),
        (call("cat_file", target_file="a b/c.txt"), "a b/c.txt"),
        (call("get_file", filename="package.json"), "package.json"),
    ),
    FactClass.COMMAND: (
        (call("Bash", command="pytest -q tests/engine"), "pytest -q tests/engine"),
        (call("Bash", command="cd /w && npm run build"), "npm run build"),
        (call("Bash", command="cargo test 2>&1 | tail -20"), "cargo test"),
        (call("Bash", command="make lint", result="Exit code 2\nmake: *** [lint] Error 1", is_error=True), "make lint"),
        (call("shell", command=["go", "vet", "./..."]), "go vet ./..."),
        (call("exec_command", cmd="uv sync --frozen"), "uv sync --frozen"),
        (call("Bash", command="git commit -m 'Hold the lock'"), "git commit -m 'Hold the lock'"),
        (call("Bash", command="grep -rn lock src", result="Exit code 1", is_error=True), "grep -rn lock src"),
        (call("run", script="./deploy.sh staging"), "./deploy.sh staging"),
        (call("Bash", command="docker compose up -d db"), "docker compose up -d db"),
    ),
    FactClass.ERROR: (
        (call("Bash", command="a", result="Exit code 1\nValueError: the lock is held", is_error=True), "ValueError: the lock is held"),
        (call("Bash", command="b", result="E   assert 3 == 4\nFAILED test_x", is_error=True), "FAILED test_x"),
        (call("Read", file_path="x", result="File does not exist.", is_error=True), "File does not exist."),
        (call("WebFetch", url="http://a.test/x", result="Request failed: status 404", is_error=True), "Request failed: status 404"),
        (call("Bash", command="c", result="bash: foo: command not found", is_error=True), "bash: foo: command not found"),
        (call("Bash", command="d", result="Exit code 101\nerror[E0382]: borrow of it", is_error=True), "error[E0382]: borrow of it"),
        (call("Bash", command="e", result="Segmentation fault (core dumped)", is_error=True), "Segmentation fault (core dumped)"),
        (call("Edit", file_path="y", result="String to replace not found in file.", is_error=True), "String to replace not found in file."),
        (call("Bash", command="f", result="npm ERR! missing script: build", is_error=True), "npm ERR! missing script: build"),
        (call("Bash", command="g", result="psql: connection refused on 5432", is_error=True), "psql: connection refused on 5432"),
    ),
    FactClass.URL: (
        (user("See https://docs.test/guide/locks."), "https://docs.test/guide/locks"),
        (user("(http://localhost:8000/admin)"), "http://localhost:8000/admin"),
        (says("It is described at https://a.test/b?c=1&d=2, at the end."), "https://a.test/b?c=1&d=2"),
        (call("WebFetch", url="https://api.test/v1/items"), "https://api.test/v1/items"),
        (says("[link](https://a.test/p/q)"), "https://a.test/p/q"),
        (user("https://git.test/o/r/issues/17#note-3"), "https://git.test/o/r/issues/17#note-3"),
        (says("`https://cdn.test/x.js`"), "https://cdn.test/x.js"),
        (user("Log in at https://xn--caf-dma.test/anmeldung!"), "https://xn--caf-dma.test/anmeldung"),
        (says("<https://wiki.test/Page_One>"), "https://wiki.test/Page_One"),
        (call("fetch", url="http://127.0.0.1:9/health"), "http://127.0.0.1:9/health"),
    ),
    FactClass.IDENTIFIER: (
        (user("It began with commit 3f9c2ab."), "3f9c2ab"),
        (user("Session 258c7280-ae70-4798-800f-63464d01a85d hangs."), "258c7280-ae70-4798-800f-63464d01a85d"),
        (user("Look at issue #4417 first."), "#4417"),
        (user("Same as owner/project#12 was."), "owner/project#12"),
        (user("Ticket OPS-2231 asks for it."), "OPS-2231"),
        (user("The fault is in parse_header somewhere."), "parse_header"),
        (user("Rename LockKeeper as well."), "LockKeeper"),
        (says("It was pushed as 0a1b2c3d4e5f."), "0a1b2c3d4e5f"),
        (says("That closes PAY-77."), "PAY-77"),
        (user("max_retry_count must stay"), "max_retry_count"),
    ),
    FactClass.NUMBER: (
        (user("It takes 429 ms."), "429 ms"),
        (says("Memory fell to 12.5 MB."), "12.5 MB"),
        (says("Coverage is 87% now."), "87%"),
        (user("Keep it under 1,500 tokens, please."), "1500 tokens"),
        (says("All 318 tests pass."), "318 tests"),
        (user("At most 30s."), "30 s"),
        (says("A 4-minute build."), "4 minute"),
        (user("It was 16px before."), "16 px"),
        (says("There are 12 files to change."), "12 files"),
        (says("It is 3x faster."), "3 x"),
    ),
    FactClass.ASK: (
        (user("Make the lock hold."), "Make the lock hold."),
        (user("Why does the build fail on Windows?"), "Why does the build fail on Windows?"),
        (user("continue"), "continue"),
        (user("Rename it\nand  run the tests."), "Rename it and run the tests."),
        (user("<system-reminder>Mind.</system-reminder>Add a page of reports."), "Add a page of reports."),
        (user("Bitte prüfe die Abrechnung."), "Bitte prüfe die Abrechnung."),
        (user("修正登录错误"), "修正登录错误"),
        (user("[Request interrupted by user]Do the second one first."), "Do the second one first."),
        (user("word " * 60), ("word " * 39).strip()),
        (user("yes"), "yes"),
    ),
    FactClass.CONSTRAINT: (
        (user("You must not touch the public API."), "You must not touch the public API."),
        (user("Never call the carrier twice."), "Never call the carrier twice."),
        (user("Fix it. Always run the linter before a commit."), "Always run the linter before a commit."),
        (user("Don't add any dependency to it."), "Don't add any dependency to it."),
        (user("Please keep the old column names."), "Please keep the old column names."),
        (user("Make sure that the page works without a script."), "Make sure that the page works without a script."),
        (user("It should only read from the replica."), "It should only read from the replica."),
        (user("Do it without a new table, if you can."), "Do it without a new table, if you can."),
        (user("- avoid threads in the reader\n- log each step"), "avoid threads in the reader"),
        (user("Stop using the global cache there."), "Stop using the global cache there."),
    ),
    FactClass.TO_DO: (
        (todos(("Write the migration", "pending")), "Write the migration"),
        (todos(("Read the code", "completed"), ("Fix the reader", "in_progress")), "Fix the reader"),
        (call("update_plan", plan=[{"step": "Measure it", "status": "pending"}]), "Measure it"),
        (call("update_plan", plan=[{"step": "Ship it", "status": "in_progress"}]), "Ship it"),
        (call("TaskCreate", subject="Check the docs", result="Task #1 created"), "Check the docs"),
        (call("TaskCreate", description="Ask for a review", result="Task #2 created"), "Ask for a review"),
        (todos(("Überprüfe die Zahlen", "pending")), "Überprüfe die Zahlen"),
        (todos(("Delete the old table", "in_progress")), "Delete the old table"),
        (call("update_plan", plan=[{"step": "A", "status": "completed"}, {"step": "Then B", "status": "pending"}]), "Then B"),
        (todos(("Deploy to staging", "pending"), ("Tell the team", "pending")), "Tell the team"),
    ),
}  # fmt: skip

NO_FACTS: dict[FactClass, tuple[Build, ...]] = {
    FactClass.FILE_EDITED: (call("Read", file_path="a.py"), call("Edit", file_path="a.py", result="no", is_error=True)),
    FactClass.FILE_READ: (call("Write", file_path="a.py", content=""), call("Bash", command="cat a.py")),
    FactClass.COMMAND: (call("Bash", command="ls -la"), call("Bash", command="cd /w && git status"), call("Read", file_path="a.sh")),
    FactClass.ERROR: (call("Bash", command="a", result="0 errors, all passed"), says("There was an error.")),
    FactClass.URL: (says("See docs.test/guide"), call("Bash", command="x", result="https://in.a.result/only")),
    FactClass.IDENTIFIER: (says("call parse_header"), user("deadbeef"), user("a 1234567 b"), user("On GitHub.")),
    FactClass.NUMBER: (says("Step 3 of 4"), user("version 2.14"), says("/v1/15s/x")),
    FactClass.ASK: (says("Do it."), lambda story: story.reminder("Do it."), user("<command-name>/clear</command-name>")),
    FactClass.CONSTRAINT: (says("You must not."), user("Should it never stop?"), user("Rename the button, then add a test.")),
    FactClass.TO_DO: (todos(("Read", "completed")), says("To do: write it")),
}


def story_with(*builds: Build) -> Story:
    story = Story()
    story.add(Role.SYSTEM, Kind.MESSAGE, text("You are an agent."))
    for build in builds:
        build(story)
    return story
