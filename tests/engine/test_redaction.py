"""Credentials are taken out; what only looks a little like one stays."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.engine import plain_letters
from sessions_app.engine.redaction import PLACEHOLDER, redact, redact_entries
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
        f"auth-token: {SECRET}",
        f"accessKey={SECRET}",
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


def test_naming_the_head_of_a_key_does_not_swallow_what_follows():
    text = "We look for -----BEGIN PRIVATE KEY----- in each file and report it."
    assert redact(text) == (text, 0)


def test_redacting_twice_changes_and_counts_nothing_more():
    once, _ = redact(f"password={SECRET} and Bearer {SECRET}")
    assert redact(once) == (once, 0)


def test_entries_without_credentials_are_the_same_objects():
    entries = Story().user("Hello").says("The task-list is ready.").entries
    redacted, count = redact_entries(entries)
    assert count == 0
    assert all(after is before for after, before in zip(redacted, entries, strict=True))


def test_all_parts_of_all_entries_are_looked_at():
    entries = Story().user("Hello").result("a", words=f"token: ghp_{SECRET}").says(f"Bearer {SECRET}").entries
    redacted, count = redact_entries(entries)
    assert count == 2
    assert not any(SECRET in part.text for entry in redacted for part in entry.parts)


def test_what_is_removed_from_an_entry_does_not_depend_on_its_neighbours():
    entries = Story().user(f"auth-token: {SECRET}").user("task-" + SECRET).user(f"sk-{SECRET}").user(f"password={SECRET}").entries
    alone = [redact_entries([entry]) for entry in entries]
    assert [count for _, count in alone] == [1, 0, 1, 1]
    together, count = redact_entries(entries)
    assert together == [clean for page, _ in alone for clean in page]
    assert count == 3


def test_a_credential_is_found_behind_letters_of_any_script():
    story = Story().user("Grüße, 世界 🌍").result("a", words="é" * 999).user(f"Schlüssel: ghp_{SECRET}").says("Ça va, пароль?").entries
    redacted, count = redact_entries(story)
    assert count == 1
    assert PLACEHOLDER in redacted[2].text
    assert [redacted[place] is story[place] for place in (0, 1, 3)] == [True] * 3


def test_a_page_with_one_credential_is_as_clean_as_its_texts_one_by_one():
    words = ["the password", f"password={SECRET}", "AKIA", f"Bearer {SECRET}", "http://a:b", f"x sk-{SECRET}", ""]
    words.append(f"postgres://ö:{SECRET}@db")
    entries = Story().extend(Story().user(word).entries[0] for word in words).entries
    redacted, count = redact_entries(entries)
    assert [entry.text for entry in redacted] == [redact(word)[0] for word in words]
    assert count == sum(redact(word)[1] for word in words) == 4


def wide(text: str) -> str:
    """The text in full-width letters."""
    return "".join(chr(ord(letter) + 0xFEE0) if "!" <= letter <= "~" else letter for letter in text)


@pytest.mark.parametrize(
    "text",
    [
        f"api_\N{KELVIN SIGN}ey={SECRET}",
        f"pa\N{LATIN SMALL LETTER LONG S}\N{LATIN SMALL LETTER LONG S}word={SECRET}",
        f"{wide('password')}={SECRET}",
        f"{wide('password=')}{SECRET}",
        f"密码 password：{SECRET}",
        f"password：“{SECRET}”",
        f"api\N{NON-BREAKING HYPHEN}key: {SECRET}",
        f"𝗮𝗽𝗶_𝗸𝗲𝘆={SECRET}",
        f"ⓢⓔⓒⓡⓔⓣ={SECRET}",
        f"pass\N{ZERO WIDTH SPACE}word={SECRET}",
        f"access\N{SOFT HYPHEN}_token={SECRET}",
        f"\N{ZERO WIDTH NO-BREAK SPACE}Bea\N{ZERO WIDTH JOINER}rer {SECRET}",
        f"ｓｋ－ant-{SECRET}",
        f"gh\N{MODIFIER LETTER SMALL P}_{SECRET}",
        "A\N{KELVIN SIGN}IAABCDEFGHIJKLMNOP",
        f"-----BEGIN PR\N{FULLWIDTH LATIN CAPITAL LETTER I}VATE KEY-----\n{SECRET}\n-----END PRIVATE KEY-----",
    ],
)
def test_a_credential_is_found_however_its_letters_are_written(text):
    entries = Story().user(f"Größe ① ™ {text} 之后。").says("①").entries
    redacted, count = redact_entries(entries)
    assert count == 1
    said = redacted[0].text
    assert SECRET not in said
    assert "ABCDEFGHIJ" not in said
    assert said.startswith("Größe ① ™ ")
    assert said.endswith(" 之后。")
    assert redacted[1] is entries[1]
    assert redact(said) == (said, 0)


def test_a_value_in_letters_that_only_look_otherwise_is_taken_out_whole_and_nothing_beside_it():
    assert redact(f"① sk-{wide(SECRET)}; ② stays") == (f"① {PLACEHOLDER}; ② stays", 1)
    assert redact("pass\u200bword=ﬁve-ﬂoors-㎏ and ﬁne") == (f"pass\u200bword={PLACEHOLDER} and ﬁne", 1)


@pytest.mark.parametrize(
    "text",
    [
        "password：请从环境变量里读取",
        "пароль password: никому не говорить",
        "它的 password 在哪里？ ① 在环境里",
        "ｔａｓｋ－" + "a" * 20,
        "The ﬁle ½ ™ №",
    ],
)
def test_ordinary_text_of_any_script_stays_as_it_is(text):
    assert redact(text) == (text, 0)


PIECES = st.sampled_from(
    ["password", "ｐassword", "=", "：", "sk-", "ſk-", SECRET, wide(SECRET), "\u200b", "①", "㎏", "é", "语", " ", "\n", "://a:", "@"]
)


@given(st.lists(PIECES | st.characters(), max_size=30).map("".join))
def test_what_a_text_reads_as_decides_and_what_stays_of_it_is_as_it_was_written(text):
    redacted, count = redact(text)
    as_read, count_as_read = redact(plain_letters.plain(text))
    assert count == count_as_read
    assert plain_letters.plain(redacted) == as_read
    kept = redacted.split(PLACEHOLDER) if count else [redacted]
    assert text.startswith(kept[0])
    assert text.endswith(kept[-1])


@given(st.text())
def test_a_text_reads_as_it_is_written_unless_something_in_it_reads_otherwise(text):
    reading = plain_letters.read(text)
    assert reading.text == plain_letters.plain(text)
    assert plain_letters.is_plain(text.encode("utf-8", "surrogatepass")) == (reading.text == text)
    assert len(reading.origins) == len(reading.text)
    assert reading.origins == sorted(reading.origins)


def test_all_letters_and_digits_that_unicode_has_a_second_time_read_as_their_plain_ones():
    plain = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
    for letter in map(chr, range(0x80, sys.maxunicode + 1)):
        reads = unicodedata.normalize("NFKC", letter)
        if plain.issuperset(reads):
            assert plain_letters.plain(letter) == reads
