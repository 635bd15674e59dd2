"""Lists: `{"object": "list", "data", "first_id", "last_id", "has_more"}`, paged by the ids of what stands at their edges."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from ninja import Field, Schema

from sessions_app.api.errors import ApiError

MOST = 1_000
MAX_CURSOR_CHARS = 200


class PageQuery(Schema):
    """Which part of a list. `after` and `before` are ids of its members, of which one may be given."""

    after: Annotated[str, Field(max_length=MAX_CURSOR_CHARS)] = ""
    before: Annotated[str, Field(max_length=MAX_CURSOR_CHARS)] = ""
    limit: Annotated[int, Field(ge=1, le=MOST)] = 100
    order: Literal["asc", "desc"] | None = None

    def cursor(self) -> tuple[str, bool]:
        """(the id at the edge, whether the part lies before it); an empty id is the beginning. Raises `ApiError` for both at once."""
        if self.after and self.before:
            raise ApiError("invalid_input", "Give after or before, not both. Nothing was read.", field="before")
        return (self.before, True) if self.before else (self.after, False)


class ListOut(Schema):
    """A part of a list."""

    object: Literal["list"]
    data: list[dict[str, Any]]
    first_id: str | None
    last_id: str | None
    has_more: bool


def unknown_cursor(field: str) -> ApiError:
    """For an id that is not in the list, which would else be an empty page and look like its end."""
    return ApiError("invalid_input", f"The {field} is the id of nothing in this list. Nothing was read.", field=field)


def list_of(data: Iterable[dict[str, Any]], *, has_more: bool) -> dict[str, Any]:
    """The envelope around members that carry an `id`."""
    rows = list(data)
    ends = (str(rows[0]["id"]), str(rows[-1]["id"])) if rows else (None, None)
    return {"object": "list", "data": rows, "first_id": ends[0], "last_id": ends[1], "has_more": has_more}
