"""Terminal output and edits: colours as classes, lines as they changed."""

from hypothesis import given
from hypothesis import strategies as st

from sessions_app.rendering.ansi import MAX_COLOURED_CHARS, ansi_html, strip_ansi
from sessions_app.rendering.diffs import SHOWN_LINES, diff_html, diff_of, diff_of_hunks, diff_of_patch
from sessions_app.rendering.plain import clip, first_line
from sessions_app.rendering.tools import arguments_of, diffs_of, subject_of
from tests.security.markup import violations

LINES = st.lists(st.text(alphabet="ab<>&\"'\x1b[3m;", max_size=6), max_size=12)


def test_colours_are_classes_and_the_text_stays():
    html = str(ansi_html("\x1b[31mred\x1b[0m plain"))
    assert '<span class="ansi31">red</span> plain' in html


def test_a_terminal_link_leaves_its_words_and_no_link():
    html = str(ansi_html("\x1b]8;;https://a.example/\x07press\x1b]8;;\x07\x1b[1m!\x1b[0m"))
    assert "press" in html
    assert "a.example" not in html
    assert "<a" not in html


@given(st.text(alphabet="\x1b[]0123456789;mHJK?\x07\x9b<b>\"'&", max_size=80))
def test_no_output_at_all_becomes_an_element_that_acts(text):
    html = str(ansi_html(text))
    assert violations(html) == []
    assert "\x1b" not in html


def test_a_huge_output_loses_its_colours_and_nothing_else():
    text = "\x1b[32mok\x1b[0m\n" * (MAX_COLOURED_CHARS // 4)
    assert "<span" not in str(ansi_html(text))
    assert strip_ansi(text) == "ok\n" * (MAX_COLOURED_CHARS // 4)


def rebuilt(lines, *kinds: str) -> str:
    return "\n".join(line.text for line in lines if line.kind in kinds)


@given(LINES, LINES)
def test_a_diff_of_short_texts_holds_every_line_that_was_added_and_removed(before, after):
    old, new = "\n".join(["same", *before]), "\n".join(["same", *after])
    diff = diff_of(old, new)
    assert diff.added - diff.removed == new.count("\n") - old.count("\n")
    assert violations(str(diff_html(diff))) == []


def test_a_new_file_is_all_added():
    diff = diff_of("", "a\nb")
    assert (diff.added, diff.removed) == (2, 0)


def test_a_long_diff_folds_its_rest_and_says_how_long_it_is():
    html = str(diff_html(diff_of("", "x\n" * 60)))
    assert f"{61 - SHOWN_LINES} more lines" in html


def test_an_agents_own_patch_keeps_its_line_numbers():
    diff = diff_of_hunks([{"oldStart": 40, "newStart": 41, "lines": [" same", "-old", "+new"]}, "foreign"])
    assert [(line.kind, line.old, line.new) for line in diff.lines[1:]] == [("", 40, 41), ("del", 41, 0), ("add", 0, 42)]


def test_a_patch_text_is_read_by_its_signs():
    diff = diff_of_patch("*** Begin Patch\n*** Update File: a.py\n@@\n-old\n+new\n*** End Patch")
    assert (diff.added, diff.removed) == (1, 1)


def test_several_edits_of_one_call_are_several_diffs():
    edits = {"file_path": "a", "edits": [{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "d"}, 7]}
    assert len(diffs_of(edits, {})) == 2


def test_a_call_is_named_by_its_command_file_or_pattern():
    assert subject_of({"timeout": 3, "command": "ls"}) == "ls"
    assert subject_of({"command": ["bash", "-lc", "ls"]}) == "ls"
    assert subject_of(arguments_of("not json")) == "not json"
    assert subject_of(arguments_of("[1]")) == ""


def test_a_quiet_line_is_one_line_and_says_when_it_was_cut():
    assert first_line("\n\n  first\nsecond") == "first"
    assert first_line("x" * 300, 10) == "x" * 9 + "…"


@given(st.text(max_size=200), st.integers(1, 50))
def test_a_clipped_text_is_a_beginning_and_says_whether_something_is_missing(text, limit):
    shown, is_cut = clip(text, limit)
    assert text.startswith(shown)
    assert len(shown) <= limit
    assert is_cut == (shown != text)


def test_a_call_is_named_by_the_files_of_its_patch_and_by_the_command_in_its_shell():
    patch = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-1\n+2\n*** Add File: b.md\n+text\n*** End Patch"
    assert subject_of(arguments_of(patch)) == "src/a.py, b.md"
    assert subject_of({"input": "*** Begin Patch\n"}) == "*** Begin Patch\n"
    assert subject_of({"command": ["bash", "-lc", "rg --files | head"]}) == "rg --files | head"
    assert subject_of({"command": ["git", "log", "-3"]}) == "git log -3"
