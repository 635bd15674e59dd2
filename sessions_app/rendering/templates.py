"""Templates of the pages, filled in."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest
from django.template.context import make_context
from django.template.loader import get_template
from django.utils.safestring import SafeString


def rendered(template: str, context: Mapping[str, object], request: HttpRequest | None = None) -> SafeString:
    """The template as text. Numbers are written as they are: what should read otherwise goes through a filter of ours.

    Django would ask for the format of each, and a page of a session has two thousand.
    """
    page = make_context(dict(context), request)
    page.use_l10n = False
    loaded: Any = get_template(template)  # Django's wrapper of the template, which would make a context of its own
    return SafeString(loaded.template.render(page))
