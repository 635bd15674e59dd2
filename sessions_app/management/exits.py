"""How commands end: one number for each way, the same everywhere, and the error behind it in a stable shape.

`docs/how-to/command-line.md` lists them; scripts depend on them.
"""

from collections.abc import Callable
from enum import IntEnum

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError
from django.db import DatabaseError

from sessions_app.events.deferred import NotRecorded


class Exit(IntEnum):
    """The exit codes."""

    OK = 0
    FAILED = 1
    USAGE = 2  # an argument or option that cannot be met
    NOTHING_TO_DO = 3  # there was nothing to fold, or it is so already
    NOT_FOUND = 4
    REFUSED = 5  # the role may not
    BUSY = 6  # a turn or a compaction is under way; try again later
    CANCELLED = 130  # by Ctrl-C here, or by somebody elsewhere
    OUTPUT_CLOSED = 141  # who read the output went away, as `| head` does


EXIT_WORDS = {
    Exit.OK: "done",
    Exit.FAILED: "failed",
    Exit.USAGE: "not understood",
    Exit.NOTHING_TO_DO: "nothing to do",
    Exit.NOT_FOUND: "not found",
    Exit.REFUSED: "refused",
    Exit.BUSY: "busy",
    Exit.CANCELLED: "cancelled",
}
ERROR_CODES = {
    Exit.FAILED: "failed",
    Exit.USAGE: "invalid_input",
    Exit.NOTHING_TO_DO: "nothing_to_do",
    Exit.NOT_FOUND: "not_found",
    Exit.REFUSED: "forbidden",
    Exit.BUSY: "conflict",
    Exit.CANCELLED: "cancelled",
}


class CommandFailure(CommandError):  # noqa: N818  it says what is the matter
    """The end of a command that could not do what it was asked. The text says what happened and what did not change.

    `field` names the argument that is at fault, where one is. `code` is the error's word under `--json`.
    """

    def __init__(self, message: str, end: Exit = Exit.FAILED, *, field: str = "", code: str = "") -> None:
        super().__init__(message, returncode=end)
        self.end = end
        self.field = field
        self.code = code or ERROR_CODES[end]


_DATABASE: Callable[[Exception], str] = lambda error: f"The database could not be used ({error}). Nothing was changed. Try again."  # noqa: E731

_UNRECORDED: Callable[[Exception], str] = lambda error: (  # noqa: E731
    f"Who reads this is written down first, and that was not possible ({error}). So nothing was shown. Mend that, and try again."
)


def failure_of(error: Exception) -> CommandFailure | None:
    """What a command ends with when a layer below raised this; None for what nobody foresaw."""
    if isinstance(error, CommandFailure):
        return error
    if isinstance(error, CommandError):
        return CommandFailure(str(error), Exit.USAGE if error.returncode == Exit.USAGE else Exit.FAILED)
    if isinstance(error, ValidationError):
        return CommandFailure(" ".join(error.messages), Exit.USAGE)
    if isinstance(error, NotRecorded):
        return CommandFailure(_UNRECORDED(error), Exit.FAILED, code="database_error")
    if isinstance(error, DatabaseError):
        return CommandFailure(_DATABASE(error), Exit.FAILED, code="database_error")
    from sessions_app.management.ends import ENDS  # noqa: PLC0415  it needs every service, and most commands end well

    end = ENDS.get(type(error))
    if end is None:
        return None
    return CommandFailure(str(error), end, field=getattr(error, "field", ""), code=getattr(error, "code", ""))
