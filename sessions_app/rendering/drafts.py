"""A draft as its page shows it: the block that the model would read, and what one version changed of the one before."""

from dataclasses import dataclass

from django.utils.safestring import SafeString

from sessions_app.engine import revision
from sessions_app.engine.summary import ORDER, parse
from sessions_app.rendering.block_html import SectionView, section_views
from sessions_app.rendering.diffs import diff_html, diff_of
from sessions_app.selectors.drafts_page import DraftPage, result_of

MAX_SECTION_CHARS = 60_000


@dataclass(frozen=True)
class DraftView:
    """`block`: what the model would read, by section. `diff` is empty for the first version.

    `sections`: the eight headings, and whether the shown version has them.
    """

    block: tuple[SectionView, ...]
    block_tokens: int
    diff: SafeString
    diff_words: str
    added: int
    removed: int
    sections: tuple[tuple[str, bool], ...]


def _diff_words(page: DraftPage, *, is_unsaved: bool) -> str:
    """What is compared; empty for the first version, before which there is none."""
    if is_unsaved:
        return f"Yours against version {page.latest.version}"
    return f"Version {page.shown.version} against {page.shown.version - 1}" if page.before_shown else ""


def draft_view(page: DraftPage, *, worded: str | None = None) -> DraftView:
    """The version that is shown; with `worded`, a text that could not be saved, compared with the latest version."""
    made = result_of(page.compaction)
    text = page.shown.text if worded is None else worded
    reworded = revision.reworded(made, text) if made.block and text.strip() else made
    before = page.latest.text if worded is not None else page.before_shown.text if page.before_shown else None
    diff = diff_of(before, "\n".join(text.splitlines())) if before is not None else None
    there = parse(text).bodies
    return DraftView(
        block=section_views(reworded.block, limit=MAX_SECTION_CHARS) if reworded.block else (),
        block_tokens=reworded.block_tokens,
        diff=diff_html(diff, label="What changed") if diff and diff.lines else SafeString(""),
        diff_words=_diff_words(page, is_unsaved=worded is not None),
        added=diff.added if diff else 0,
        removed=diff.removed if diff else 0,
        sections=tuple((section.value, section in there) for section in ORDER),
    )
