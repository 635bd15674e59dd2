"""Credentials are taken out; what only looks a little like one stays."""

import pytest

from sessions_app.engine.redaction import PLACEHOLDER, redact, redact_entry
from tests.engine.histories import Story

SECRET = "aB3" * 12


@pytest.mark.parametrize(
    "text",
    [
        f"sk-ant-{SECRET}",
        f"ghp_{SECRET}",
        "AKIAABCDEFGHIJKLMNOP",
        f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET}\n-----END RSA PRIVATE KEY-----",
        f"Authorization: Bearer {SECRET}",
        f"password={SECRET}",
        f'"api_key": "{SECRET}"',
        f'{{\\"client_secret\\": \\"{SECRET}\\"}}',
        f"DB_PASSWORD: {SECRET}",
        f"postgres://app:{SECRET}@db.example.org/app",
        f"xoxb-{SECRET}",
        f"eyJ{SECRET}.eyJ{SECRET}.{SECRET}",
    ],
)
def test_well_known_credentials_are_removed(text):
    redacted, count = redact(f"Before {text} after.")
    assert count == 1
    assert SECRET not in redacted
    assert "AKIAABC" not in redacted
    assert PLACEHOLDER in redacted
    assert redacted.startswith("Before ")


@pytest.mark.parametrize(
    "text",
    [
        "The password must be hashed.",
        "task-skill-based routing",
        "password = os.environ[name]",
        "https://example.org/a:b",
        "Use password=$PASSWORD",
        "password = get_password(user)",
        "the password: something that nobody guesses",
        "commit 8f3a2b1c9d4e5f6a7b8c9d0e1f2a3b4c5d6e7f8a",
    ],
)
def test_ordinary_text_stays_as_it_is(text):
    assert redact(text) == (text, 0)


def test_redacting_twice_changes_and_counts_nothing_more():
    once, _ = redact(f"password={SECRET} and Bearer {SECRET}")
    assert redact(once) == (once, 0)


def test_an_entry_without_credentials_is_the_same_object():
    entry = Story().user("Hello").entries[0]
    assert redact_entry(entry) == (entry, 0)
    assert redact_entry(entry)[0] is entry


def test_all_parts_of_an_entry_are_looked_at():
    entry = Story().result("a", words=f"token: ghp_{SECRET}").entries[0]
    assert redact_entry(entry)[1] == 1
