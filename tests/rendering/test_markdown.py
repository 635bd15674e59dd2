"""Markdown of a transcript: readable, and able to do nothing."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.rendering.block_html import section_views, with_references
from sessions_app.rendering.markdown import MAX_MARKDOWN_CHARS, markdown_html
from tests.security.hostile import PAYLOADS
from tests.security.markup import violations

PIECES = st.sampled_from(
    [
        "<script>",
        "</p>",
        "](javascript:a)",
        "[x",
        "![",
        "`",
        "```",
        "\n",
        "| a |",
        "> ",
        "# ",
        "- ",
        '"',
        "&#106;",
        "<b onclick=x>",
        "http://a.b",
    ]
)


@given(st.lists(PIECES | st.text(max_size=8), max_size=30).map("".join))
def test_no_text_at_all_becomes_an_element_that_acts(text):
    assert violations(str(markdown_html(text))) == []


@given(st.lists(PIECES | st.text(max_size=8), max_size=30).map("".join))
def test_nothing_is_a_link_or_a_picture_or_has_an_address(text):
    html = str(markdown_html(text))
    assert not any(sign in html for sign in ("<a ", "<img", "href=", "src=", "style="))


@pytest.mark.parametrize("name", PAYLOADS)
def test_known_attacks_are_inert(name):
    assert violations(str(markdown_html(PAYLOADS[name]))) == []


def test_an_address_is_shown_beside_the_words_that_hide_it():
    html = str(markdown_html("[our docs](https://elsewhere.example/x)"))
    assert "our docs" in html
    assert "(https://elsewhere.example/x)" in html


def test_an_address_that_is_its_own_words_is_shown_once():
    assert str(markdown_html("<https://a.example/b>")).count("https://a.example/b") == 1


def test_a_picture_is_named_and_not_fetched():
    html = str(markdown_html("![a cat](https://a.example/cat.png)"))
    assert "a cat" in html
    assert "https://a.example/cat.png" in html
    assert "<img" not in html


def test_headings_do_not_disturb_those_of_the_page():
    html = str(markdown_html("# Big\n\ntext"))
    assert "<h1" not in html
    assert "<strong>Big</strong>" in html


def test_lists_tables_and_line_breaks_look_like_themselves():
    html = str(markdown_html("- a\n- b\n\n| x | y |\n|---|---|\n| 1 | 2 |\n\nline\nline"))
    assert html.count("<li>") == 2
    assert "<td>1</td>" in html
    assert "<br" in html


def test_code_of_a_declared_language_is_marked_by_classes():
    assert 'class="hl-k"' in str(markdown_html("```python\ndef f(): pass\n```"))


def test_code_without_a_language_is_not_guessed_at():
    assert "hl-" not in str(markdown_html("```\ndef f(): pass\n```"))


def test_numbers_of_entries_in_a_block_lead_to_them_and_others_do_not():
    views = section_views("## Done\nFixed (#12), see issue #7 and (#999).\n\n## Next\n- #3 asked")
    html = "".join(view.html for view in with_references(views, uuid.UUID(int=1), before=100))
    assert html.count("<a ") == 2
    assert "/entries/12/" in html
    assert "/entries/3/" in html
    assert violations(html) == []


def test_a_huge_text_is_shown_as_it_is_and_not_parsed():
    html = str(markdown_html("*x* " * (MAX_MARKDOWN_CHARS // 4 + 1)))
    assert "<em>" not in html
    assert "*x*" in html


def test_invisible_characters_are_made_visible():
    html = str(markdown_html("a\u202eb\x00c"))
    assert "\u202e" not in html
    assert html.count("\ufffd") == 2


def test_tags_with_a_namespace_keep_their_brackets_and_addresses_do_not():
    tag = "<" + "ns:call>"
    assert "&lt;ns:call&gt;" in markdown_html(f"Before\n{tag}\nafter")
    for address in ("https://example.org/a", "mailto:a@example.org", "a@example.org"):
        assert f">{address}</span>" in markdown_html(f"See <{address}>.")
