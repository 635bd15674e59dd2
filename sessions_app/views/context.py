"""What the shell of every page needs."""

from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

from sessions_app import permissions
from sessions_app.permissions import Action
from sessions_app.selectors import drafts_page


@dataclass(frozen=True)
class NavItem:
    """One entry of the main navigation."""

    label: str
    url: str
    is_current: bool
    waiting: int = 0  # of what it leads to, for somebody to decide


@dataclass(frozen=True)
class Shell:
    """The bar at the top: where one can go, and as whom."""

    role: str
    nav: tuple[NavItem, ...]


_SECTIONS = {
    "Sessions": ("session-list", ("session", "entry", "part", "compaction", "memory"), Action.READ),
    "Drafts": ("draft-list", ("draft",), Action.READ),
    "Imports": ("import-list", ("import",), Action.IMPORT),
    "Policies": ("policy-installation", ("policy",), Action.READ),
    "Audit": ("audit-list", ("audit",), Action.AUDIT),
    "Users": ("user-list", ("user",), Action.MANAGE_USERS),
    "Runners": ("runner-list", ("runner",), Action.MANAGE_RUNNERS),
    "Tokens": ("token-list", ("token",), Action.MANAGE_TOKENS),
}


def shell(request: HttpRequest) -> dict[str, object]:
    """Context processor: `shell`. Costs one query (the user's groups), and every few seconds one more; none before sign-in."""
    user = getattr(request, "user", None)
    role = permissions.role_of(user) if user is not None else ""
    if not role:
        return {"shell": Shell(role="", nav=())}
    here = (request.resolver_match.url_name or "").partition("-")[0] if request.resolver_match else ""
    allowed = permissions.ACTIONS_BY_ROLE[role]
    nav = [
        NavItem(label, reverse(name), here in owned, drafts_page.waiting_count() if name == "draft-list" else 0)
        for label, (name, owned, action) in _SECTIONS.items()
        if action in allowed
    ]
    if settings.DEBUG:
        nav.append(NavItem("Style guide", reverse("styleguide"), here == "styleguide"))
    return {"shell": Shell(role=role, nav=tuple(nav))}
