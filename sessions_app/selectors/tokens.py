"""Access tokens as the page and the commands list them. Nothing here could open anything."""

import uuid
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.db.models import F, Q

from sessions_app.models import AccessToken
from sessions_app.permissions import ROLE_BY_GROUP

PAGE_ROWS = 500


@dataclass(frozen=True)
class TokenRow:
    """One token. `state`: active, expired, revoked, or what keeps its owner from using it."""

    id: uuid.UUID
    name: str
    owner: str
    role: str  # its owner's, now
    scopes: tuple[str, ...]
    hint: str
    state: str
    created_by: str
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None

    @property
    def is_active(self) -> bool:
        return self.state == "active"

    @property
    def may_be_revoked(self) -> bool:
        return self.revoked_at is None


@dataclass(frozen=True)
class TokensPage:
    """Tokens that may still be used first, then the newest; `owners`: whom one can be made for."""

    tokens: tuple[TokenRow, ...]
    owners: tuple[str, ...]
    unlisted: int


def tokens_page(*, at: datetime) -> TokensPage:
    """Everything that the page of tokens shows. Four queries."""
    rows = token_rows(at=at)
    owners = User.objects.filter(is_active=True, groups__name__in=ROLE_BY_GROUP).order_by("username").values_list("username", flat=True)
    return TokensPage(rows, tuple(owners.distinct()[:PAGE_ROWS]), max(0, AccessToken.objects.count() - len(rows)))


def token_rows(*, at: datetime, limit: int = PAGE_ROWS) -> tuple[TokenRow, ...]:
    """The tokens that are not revoked first, each half by when it was made, the newest first. Two queries."""
    found = AccessToken.objects.select_related("owner").prefetch_related("owner__groups")
    ordered = found.order_by(F("revoked_at").desc(nulls_first=True), "-created_at", "-id")[:limit]
    return tuple(_row(token, at) for token in ordered)


def token_named(text: str) -> uuid.UUID | None:
    """The id of the token with this name that is not revoked, or with this id; None when there is none. One query."""
    condition = Q(name=text, revoked_at__isnull=True)
    try:
        condition |= Q(pk=uuid.UUID(text))
    except ValueError:
        if "\0" in text:
            return None
    return AccessToken.objects.filter(condition).values_list("pk", flat=True).first()


def _row(token: AccessToken, at: datetime) -> TokenRow:
    groups = {group.name for group in token.owner.groups.all()}
    return TokenRow(
        id=token.pk,
        name=token.name,
        owner=token.owner.get_username(),
        role=next((role for group, role in ROLE_BY_GROUP.items() if group in groups), ""),
        scopes=tuple(token.scopes),
        hint=token.hint,
        state=_state(token, at),
        created_by=token.created_by,
        created_at=token.created_at,
        expires_at=token.expires_at,
        last_used_at=token.last_used_at,
        revoked_at=token.revoked_at,
    )


def _state(token: AccessToken, at: datetime) -> str:
    if token.revoked_at is not None:
        return "revoked"
    if token.expires_at is not None and token.expires_at <= at:
        return "expired"
    return "active" if token.owner.is_active else "owner switched off"
