"""The marks of the map beside a long history, as SVG. Written at once: there are up to 300, and templates take each number alone."""

from django.utils.safestring import SafeString, mark_safe

from sessions_app.selectors.outline import Minimap


def marks_svg(minimap: Minimap | None) -> SafeString:
    """A rectangle for each mark, with the entry that it leads to; empty without a map."""
    marks = minimap.marks if minimap else ()
    return mark_safe(  # noqa: S308  numbers, and names of forms
        "".join(
            f'<rect class="map--{mark.form}" data-at="{mark.index}" y="{mark.y}" width="{mark.width}" height="{mark.height}"/>'
            for mark in marks
        )
    )
