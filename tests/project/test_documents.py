"""The documents say what is so: settings, fields, commands, links, keys, sentences."""

import ast
import itertools
import re
from functools import lru_cache
from html import unescape
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class
from django.core.management.base import CommandError

from project.settings.env import PREFIX, VARIABLES, settings_table
from sessions_app.engine.policy import Policy
from sessions_app.engine.policy_fields import FIELDS, PolicyField, show
from sessions_app.engine.terms import CoverageStatus, Profile, SkipReason
from sessions_app.management.exits import ERROR_CODES
from sessions_app.providers.registry import KEYS
from sessions_app.services.compactions import transitions as attempts
from sessions_app.services.turns import transitions as turns
from tests.documents import DOCUMENTS, HOW_TO, ROOT, examples

OWN_COMMANDS = {"test", "help"}  # answered by manage.py and by Django itself
WIRING = {"DJANGO_SETTINGS_MODULE", "CELERY_SKIP_CHECKS", "TIKTOKEN_CACHE_DIR"}
"""Variables that the product sets for libraries in its own process; nobody else does."""


def of_documents(test):
    return pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))(test)


def test_the_settings_table_is_the_one_that_the_settings_give():
    assert settings_table() in (HOW_TO / "admin.md").read_text(), f"docs/how-to/admin.md should hold:\n\n{settings_table()}"


def test_every_variable_of_the_environment_that_the_product_reads_is_told_to_those_who_run_it():
    read = {PREFIX + variable.name for variable in VARIABLES} | {variable.name for variable in VARIABLES if variable.has_short_name}
    read |= {name for names in KEYS.values() for name in names}
    for text in map(Path.read_text, sources(".py")):
        if "environ" in text or "home_variable" in text:
            read |= {name for node in ast.walk(ast.parse(text)) for name in asked_for(node)}
    told = "\n".join(path.read_text() for path in DOCUMENTS)
    assert len(read) > len(VARIABLES) + len(KEYS)
    assert [name for name in sorted(read - WIRING) if f"`{name}`" not in told] == []


def asked_for(node: ast.AST) -> list[str]:
    """The names that an expression reads from the environment, and those that are written down as an agent's own."""
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Attribute(attr="environ"), attr="get" | "setdefault"), args=[ast.Constant(value=str(name)), *_]
        ):
            return [name]
        case ast.Subscript(value=ast.Attribute(attr="environ"), slice=ast.Constant(value=str(name))):
            return [name]
        case ast.keyword(arg="home_variable", value=ast.Constant(value=str(name))):
            return [name]
    return []


@pytest.mark.parametrize("field", FIELDS.values(), ids=lambda field: field.name)
def test_every_field_of_a_policy_is_explained_as_the_page_shows_it(field):
    assert row_of(field) in (HOW_TO / "policies.md").read_text().splitlines(), f"docs/how-to/policies.md should hold:\n\n{row_of(field)}\n"


def row_of(field: PolicyField) -> str:
    default = show(field, getattr(Policy(), field.name)) or "none"
    of = f" {field.of}" if field.of else ""
    values = ", ".join(f"`{choice}`" for choice in field.choices) or field.range_words
    return f"| `{field.name}` | {field.label} | {default}{of} | {values} | {field.help} |"


def test_each_word_that_an_attempt_ends_with_is_explained():
    told = (HOW_TO / "troubleshooting.md").read_text()
    assert [reason.value for reason in SkipReason if f"`{reason.value}`" not in told] == []
    policies = (HOW_TO / "policies.md").read_text()
    assert [word.value for word in (*CoverageStatus, *Profile) if f"`{word.value}`" not in policies] == []


@of_documents
def test_every_command_that_a_document_names_exists(document):
    named = set(re.findall(r"manage\.py ([a-z_]+)", document.read_text()))
    assert named - OWN_COMMANDS - set(get_commands()) == set()


def test_every_command_has_an_example_and_a_place_in_the_table():
    own = {name for name, app in get_commands().items() if app == "sessions_app"}
    shown = {example.name for document in DOCUMENTS for example in examples(document)}
    assert own - shown == set()
    table = (HOW_TO / "command-line.md").read_text()
    assert [name for name in sorted(own) if not re.search(rf"^\|[^|]*`{name}\b", table, re.MULTILINE)] == []


@of_documents
def test_every_example_is_one_that_its_command_understands(document):
    for example in examples(document):
        if example.name in OWN_COMMANDS:
            continue
        command = load_command_class(get_commands()[example.name], example.name)
        try:
            command.create_parser("manage.py", example.name).parse_args(example.arguments)
        except CommandError as error:
            pytest.fail(f"{example}: {error}")


@of_documents
def test_every_link_inside_the_repository_leads_somewhere(document):
    text = re.sub(r"```.*?```", "", document.read_text(), flags=re.DOTALL)
    lost = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, heading = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        there = document.parent / path if path else document
        if not there.exists() or (heading and heading not in anchors(there)):
            lost.append(target)
    assert lost == []


@lru_cache
def anchors(document: Path) -> frozenset[str]:
    """What headings of a document are called in links to them."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", document.read_text(), flags=re.DOTALL), re.MULTILINE)
    return frozenset(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings)


def test_the_sentences_that_are_looked_up_are_those_that_the_product_says():
    quoted = re.findall(r"“([^”]+)”", (HOW_TO / "troubleshooting.md").read_text())
    said = what_the_product_says()
    assert len(quoted) > 40
    assert [sentence for sentence in quoted if not all(piece.strip() in said for piece in " ".join(sentence.split()).split("…"))] == []


def test_the_buttons_and_pages_that_are_named_are_there():
    said = what_the_product_says()
    named = [name for path in HOW_TO.glob("*.md") for name in re.findall(r"\*\*([^*\n]+)\*\*", path.read_text())]
    parts = {part.strip(" …:.") for name in named for part in name.split("→")}
    assert len(parts) > 30
    assert [part for part in sorted(parts) if part not in said] == []


@lru_cache
def what_the_product_says() -> str:
    """All texts of the product's source: its strings, the words of its pages."""
    texts = []
    for path in sources(".py"):
        texts += [
            node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
    texts += [unescape(re.sub(r"\s+", " ", path.read_text())) for path in [*sources(".html"), *sources(".js")]]
    return "\n".join(texts)


def sources(ending: str) -> list[Path]:
    folders = [ROOT / name for name in ("sessions_app", "project", "templates", "static/js")]
    return [ROOT / "manage.py"] * (ending == ".py") + sorted(path for folder in folders for path in folder.rglob(f"*{ending}"))


def test_the_words_that_scripts_depend_on_are_all_told():
    told = (HOW_TO / "command-line.md").read_text()
    source = "\n".join(path.read_text() for path in (ROOT / "sessions_app/management").rglob("*.py"))
    words = {*re.findall(r'"object": "(\w+)"', source), *re.findall(r'\bcode="(\w+)"', source), *ERROR_CODES.values()}
    assert len(words) > 20
    assert [word for word in sorted(words) if f"`{word}`" not in told and f'"{word}"' not in told] == []


def test_the_keys_that_are_told_are_those_of_the_pages():
    section = re.search(r"## Keys\n(.*?)(?=\n## |\Z)", (HOW_TO / "operator.md").read_text(), re.DOTALL)
    told = set(re.findall(r"`([^`\s]+)`", section.group(1)))
    pages = [path.read_text() for path in sources(".html") if "styleguide" not in path.parts]
    helped = [block for text in pages for block in re.findall(r"<d[td]>(.*?)</d[td]>", text)]
    shown = {key for block in helped for key in re.findall(r"<kbd>([^<]+)</kbd>", block)}
    assert told == shown


@of_documents
def test_every_file_of_the_source_that_is_named_is_there(document):
    named = re.findall(r"`((?:[\w.*-]+/)*[\w*-]+\.(?:py|toml|lock|html|css|js|md))`", document.read_text())
    made = {"check.py", "summary.md", "legacy.py"}  # by whoever follows the document, or in its examples
    places = [ROOT, ROOT / "sessions_app", ROOT / "project", document.parent, *(ROOT / "sessions_app").glob("*/")]
    assert [name for name in named if name not in made and not any(any(place.glob(name)) for place in places)] == []


@pytest.mark.parametrize("transitions", [attempts.TRANSITIONS, turns.TRANSITIONS], ids=["attempts", "turns"])
def test_the_states_of_the_architecture_are_those_of_the_code(transitions):
    told = (ROOT / "docs/architecture.md").read_text()
    assert [state for state in {*transitions, *itertools.chain(*transitions.values())} if not re.search(rf"\b{state.value}\b", told)] == []
    if transitions is attempts.TRANSITIONS:
        rows = re.findall(
            r"^\| `(\w+)` \| (.+) \|$", re.search(r"\| from \| may become \|\n(.*?)\n\n", told, re.DOTALL).group(1), re.MULTILINE
        )
        assert {source: set(re.findall(r"`(\w+)`", targets)) for source, targets in rows} == {
            source.value: {target.value for target in targets} for source, targets in transitions.items()
        }


def test_every_package_has_its_line_in_the_architecture():
    told = (ROOT / "docs/architecture.md").read_text()
    packages = {path.parent.relative_to(ROOT) for name in ("project", "sessions_app") for path in (ROOT / name).glob("*/__init__.py")}
    assert [
        str(package)
        for package in sorted(packages - {Path("project/settings")})
        if f"`{package.name}/`" not in told and f"`{package}/`" not in told
    ] == []


def test_decisions_are_numbered_without_a_gap_and_say_what_follows():
    records = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
    assert [int(path.name[:4]) for path in records] == list(range(1, len(records) + 1))
    for path in records:
        assert {"## Context", "## Decision", "## Consequences"} <= set(path.read_text().splitlines()), path.name
