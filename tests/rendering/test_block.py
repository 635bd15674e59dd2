"""The block as sections: what a person wants to know is open, long lists and what code adds are folded."""

from sessions_app.rendering.block_html import HEAD_CHARS, section_views

PARAGRAPH = "Every parcel is booked once, whatever the carrier sends. "


def sections(text: str):
    return {section.title: section for section in section_views(text)}


def test_what_was_asked_and_decided_is_open_and_what_code_adds_is_folded():
    shown = sections(
        "This stands for it.\n\n## Primary request and intent\nBook once.\n\n## Key concepts and decisions\nOne key.\n\n"
        "## State, as recorded by code\n- `a.py`\n\n## How to go on\nCarry on."
    )
    assert [title for title, section in shown.items() if section.is_open] == ["Primary request and intent", "Key concepts and decisions"]


def test_a_long_section_shows_whole_paragraphs_and_keeps_the_rest_behind_more():
    paragraphs = [f"{number}. {PARAGRAPH * 4}" for number in range(6)]
    section = sections("## Key concepts\n" + "\n\n".join(paragraphs) + "\n\n## Next step\nGo.")["Key concepts"]
    assert section.is_open
    assert len(section.html) < 2 * HEAD_CHARS
    assert (section.html + section.more).count(PARAGRAPH.strip()) == 24


def test_a_fence_is_never_cut_in_two():
    code = "```\n" + "\n".join(f"line {number}\n" for number in range(200)) + "\n```"
    section = sections(f"## Key concepts\n{code}\n\nAfter it.\n\n## Next step\nGo.")["Key concepts"]
    assert "line 199" in section.html
    assert "After it" in section.more


def test_a_long_list_is_folded_and_says_how_much_it_holds():
    listed = "\n".join(f"- file {number}" for number in range(12))
    section = sections(f"## Artifacts and files\n{listed}\n\n## Next step\nGo.")["Artifacts and files"]
    assert not section.is_open
    assert section.count == "12 listed"


def test_the_users_messages_are_counted_as_listed_of_all():
    text = (
        "## All user messages\n7 messages by the user, 6 answered; all are listed by position further below.\n\n"
        "## What the user said before this point\n7 messages, oldest first.\n" + "\n".join(f"- #{number}: Go on." for number in range(7))
    )
    assert sections(text)["All user messages"].count == "7 of 7"
    assert sections("## All user messages\n- One.\n- Two.\n\n## Next step\nGo.")["All user messages"].count == "2"
