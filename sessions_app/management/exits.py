"""How commands end: one number for each way, the same everywhere, and the error behind it in a stable shape.

`docs/how-to/command-line.md` lists them; scripts depend on them.
"""

from collections.abc import Callable
from enum import IntEnum

from django.core.exceptions import BadRequest, ValidationError
from django.core.management.base import CommandError
from django.db import DatabaseError

from sessions_app.permissions import ActionRefused, NoAccess
from sessions_app.selectors.keyset import CursorError
from sessions_app.selectors.plans import BrokenPlan
from sessions_app.services.accounts import AccountError
from sessions_app.services.compactions.automatic import NotOurs
from sessions_app.services.compactions.cancel import UnknownCompaction
from sessions_app.services.compactions.drafts import DraftBlocked, DraftChanged, InvalidSummary, NotADraft
from sessions_app.services.compactions.request import CompactUnavailable, InvalidRequest, SessionBusy
from sessions_app.services.compactions.revert import CompactionUnderWay, UnknownGeneration
from sessions_app.services.forks import InvalidFork
from sessions_app.services.model_choice import InvalidChoice
from sessions_app.services.overrides import CannotOverride
from sessions_app.services.policies import ChangedMeanwhile
from sessions_app.services.turns.send import InvalidMessage, KeyReused, TurnRefused, UnknownTurn
from sessions_app.services.turns.sessions import InvalidSession


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


_ENDS: dict[type[Exception], Exit] = {
    NoAccess: Exit.NOT_FOUND,
    ActionRefused: Exit.REFUSED,
    UnknownGeneration: Exit.NOT_FOUND,
    UnknownCompaction: Exit.NOT_FOUND,
    LookupError: Exit.NOT_FOUND,
    BrokenPlan: Exit.FAILED,
    InvalidRequest: Exit.USAGE,
    CompactUnavailable: Exit.USAGE,
    InvalidFork: Exit.USAGE,
    InvalidSummary: Exit.USAGE,
    CannotOverride: Exit.USAGE,
    NotADraft: Exit.NOTHING_TO_DO,
    DraftChanged: Exit.BUSY,
    DraftBlocked: Exit.FAILED,
    InvalidMessage: Exit.USAGE,
    KeyReused: Exit.USAGE,
    InvalidSession: Exit.USAGE,
    InvalidChoice: Exit.USAGE,
    NotOurs: Exit.USAGE,
    UnknownTurn: Exit.NOT_FOUND,
    TurnRefused: Exit.BUSY,
    CursorError: Exit.USAGE,
    BadRequest: Exit.USAGE,
    ChangedMeanwhile: Exit.BUSY,
    AccountError: Exit.USAGE,
    SessionBusy: Exit.BUSY,
    CompactionUnderWay: Exit.BUSY,
}
_DATABASE: Callable[[Exception], str] = lambda error: f"The database could not be used ({error}). Nothing was changed. Try again."  # noqa: E731


def failure_of(error: Exception) -> CommandFailure | None:
    """What a command ends with when a layer below raised this; None for what nobody foresaw."""
    if isinstance(error, CommandFailure):
        return error
    if isinstance(error, CommandError):
        return CommandFailure(str(error), Exit.USAGE if error.returncode == Exit.USAGE else Exit.FAILED)
    if isinstance(error, ValidationError):
        return CommandFailure(" ".join(error.messages), Exit.USAGE)
    if isinstance(error, DatabaseError):
        return CommandFailure(_DATABASE(error), Exit.FAILED, code="database_error")
    end = _ENDS.get(type(error))
    if end is None:
        return None
    return CommandFailure(str(error), end, field=getattr(error, "field", ""), code=getattr(error, "code", ""))
