"""Rules of the house that no linter knows: who may do what, and what may not stand in the repository."""

import ast
import hashlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
APP = ROOT / "sessions_app"
SKIPPED_FOLDERS = {".git", ".venv", "data", "node_modules", "staticfiles", "__pycache__", "palimpsest.egg-info", ".hypothesis"}
LONGEST_FILE, LONGEST_FUNCTION, LONGEST_VIEW, LONGEST_TASK = 400, 50, 25, 10


def files(*suffixes: str, under: Path = ROOT) -> list[Path]:
    """Every file of the repository with one of these endings, except what others wrote or tools left."""
    found = []
    for path in sorted(under.rglob("*")):
        parts = path.relative_to(ROOT).parts
        hidden = any(part in SKIPPED_FOLDERS or (part.startswith(".") and part.endswith("_cache")) for part in parts)
        if path.is_file() and not hidden and parts[:2] != ("static", "vendor") and path.suffix in suffixes:
            found.append(path)
    return found


def matches(pattern: str, paths: list[Path]) -> list[str]:
    expression = re.compile(pattern)
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path in paths
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if expression.search(line)
    ]


def edge_files() -> list[Path]:
    return [
        *files(".py", under=APP / "views"),
        *files(".py", under=APP / "api"),
        *files(".py", under=APP / "live"),
        *files(".py", under=APP / "templatetags"),
        APP / "tasks.py",
    ]


def python_outside(*folders: str) -> list[Path]:
    return [path for path in files(".py", under=APP) if path.relative_to(APP).as_posix().split("/")[0] not in folders]


def test_views_sockets_tasks_and_tags_hold_no_queries():
    assert matches(r"\.objects\b|\.save\(|\.create\(|(?<!register)\.filter\(", edge_files()) == []


def test_only_rendering_declares_text_to_be_safe_html():
    assert matches(r"\b(mark_safe|format_html|SafeString)\b", python_outside("rendering", "templatetags")) == []
    assert matches(r"\|\s*safe\b|autoescape off", files(".html", under=ROOT / "templates")) == []


def test_only_the_log_writes_events():
    assert (
        matches(
            r"(?<!threading\.)(?<!asyncio\.)\bEvent\(|Event\.objects\.(create|bulk_create|update|get_or)|EventStream\.objects\.(create|update|get_or)",
            python_outside("events", "models", "migrations"),
        )
        == []
    )


def test_a_locked_row_may_still_be_referred_to():
    """Whoever locks a row for its key as well waits crosswise with whoever commits a row that refers to it: every attempt does."""
    locking = [path for path in python_outside("management") if path.name != "accounts.py"]
    assert matches(r"select_for_update\((?!.*no_key=True)", locking) == []


def test_only_the_queue_starts_tasks():
    starters = [path for path in files(".py", under=APP) if path.name != "queue.py"]
    assert matches(r"\.delay\(|\.delay_on_commit\(|\.apply_async\(|send_task\(", starters) == []


def test_only_the_poke_sends_to_a_group():
    assert matches(r"group_send\(", [path for path in files(".py", under=APP) if path.name != "poke.py"]) == []


def test_templates_hold_no_inline_script_or_style_or_handler():
    templates = files(".html", under=ROOT / "templates")
    assert matches(r"\sstyle\s*=|\son[a-z]+\s*=|hx-on|<style\b", templates) == []
    assert matches(r"<script(?![^>]*\bsrc=)", templates) == []
    assert matches(r"javascript:", templates) == []


def test_templates_and_static_files_name_no_other_origin():
    own = [*files(".html", under=ROOT / "templates"), *files(".css", ".js", under=ROOT / "static")]
    assert matches(r"(src|href|url|import)\s*[=(]?\s*[\"'(]?https?://", own) == []


def test_no_file_is_too_long_to_read():
    paths = [path for path in files(".py", ".js", ".css", ".html") if "migrations" not in path.parts]
    long = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in paths}
    assert {name: lines for name, lines in long.items() if lines > LONGEST_FILE} == {}


def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def is_view(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return bool(function.args.args) and function.args.args[0].arg == "request"


def too_long(paths: list[Path], limit: int, *, views_alone: bool = False) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{function.lineno} {function.name} has {function.end_lineno - function.lineno + 1} lines"
        for path in paths
        for function in functions(path)
        if (is_view(function) or not views_alone) and function.end_lineno is not None and function.end_lineno - function.lineno + 1 > limit
    ]


def test_no_function_is_too_long_to_read():
    assert too_long([path for path in files(".py") if "migrations" not in path.parts], LONGEST_FUNCTION) == []


def test_views_and_tasks_are_thin():
    assert too_long(files(".py", under=APP / "views"), LONGEST_VIEW, views_alone=True) == []
    assert too_long([APP / "tasks.py"], LONGEST_TASK) == []


def test_modules_are_called_by_what_they_are_about():
    assert [path for path in files(".py") if path.stem in {"utils", "helpers", "misc", "common"}] == []


def test_names_are_the_words_of_the_field():
    assert matches(r"(?i)summari[sz]ation|squash|\bprun(e|ing)", files(".py", ".html", ".js", under=APP)) == []


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-models.lock", "requirements-dev.lock"])
def test_lock_files_pin_every_package_by_hash_and_name_no_host(name):
    text = (ROOT / name).read_text()
    assert re.search(r"https?:|index-url", text) is None
    packages = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
    assert packages
    assert all("==" in line for line in packages)
    assert text.count("--hash=sha256:") >= len(packages)


def test_the_repository_speaks_of_the_product_alone():
    own = [path for path in files(".py", ".md", ".html", ".css", ".js", ".toml", ".lock", ".yml", "") if path != Path(__file__)]
    assert matches(r"(?<![\w.])/work(place)?/|pythonhosted|pypi\.org|npmjs\.|deb\.debian\.org", own) == []
    assert matches(r"\b(TODO|FIXME|XXX)\b", own) == []


def test_vendored_files_are_what_their_list_says():
    vendor = ROOT / "static" / "vendor"
    vendored = [path for path in vendor.rglob("*") if path.is_file() and path.suffix not in {".md", ""}] if vendor.exists() else []
    listed = "\n".join(path.read_text() for path in vendor.rglob("VENDORED.md")) if vendored else ""
    for path in vendored:
        assert hashlib.sha256(path.read_bytes()).hexdigest() in listed, f"{path.relative_to(ROOT)} is not in VENDORED.md as it is"
