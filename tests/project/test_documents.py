"""The documents say what is so: settings, commands, links, examples."""

import re
from pathlib import Path

import pytest
from django.core.management import get_commands

from project.settings.env import settings_table

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
OWN_COMMANDS = {"test"}  # answered by manage.py itself


def test_the_settings_table_is_the_one_that_the_settings_give():
    assert settings_table() in (ROOT / "docs/how-to/admin.md").read_text(), f"docs/how-to/admin.md should hold:\n\n{settings_table()}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_that_a_document_names_exists(document):
    named = set(re.findall(r"manage\.py ([a-z_]+)", document.read_text()))
    assert named - OWN_COMMANDS - set(get_commands()) == set()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_inside_the_repository_leads_somewhere(document):
    targets = [target.split("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text())]
    local = [target for target in targets if target and not re.match(r"[a-z]+:", target)]
    assert [target for target in local if not (document.parent / target).exists()] == []


def test_decisions_are_numbered_without_a_gap_and_say_what_follows():
    records = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
    assert [int(path.name[:4]) for path in records] == list(range(1, len(records) + 1))
    for path in records:
        assert {"## Context", "## Decision", "## Consequences"} <= set(path.read_text().splitlines()), path.name
