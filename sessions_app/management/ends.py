"""The exit code of each error that a service tells in its own words."""

from django.core.exceptions import BadRequest

from sessions_app.management.exits import Exit
from sessions_app.permissions import ActionRefused, NoAccess
from sessions_app.selectors.keyset import CursorError
from sessions_app.selectors.plans import BrokenEntry, BrokenPlan, PrefixChanged
from sessions_app.services.accounts import AccountError
from sessions_app.services.compactions.automatic import NotOurs
from sessions_app.services.compactions.cancel import UnknownCompaction
from sessions_app.services.compactions.drafts import DraftBlocked, DraftChanged, InvalidSummary, NotADraft
from sessions_app.services.compactions.request import CompactUnavailable, InvalidRequest, SessionBusy, Undecided
from sessions_app.services.compactions.revert import CompactionUnderWay, UnknownGeneration
from sessions_app.services.forks import InvalidFork
from sessions_app.services.goals import InvalidGoal
from sessions_app.services.model_choice import InvalidChoice
from sessions_app.services.overrides import CannotOverride
from sessions_app.services.policies import ChangedMeanwhile
from sessions_app.services.runners.binding import InvalidBinding
from sessions_app.services.runners.table import InvalidRunner
from sessions_app.services.tokens import InvalidToken, UnknownToken
from sessions_app.services.turns.send import InvalidMessage, KeyReused, TurnRefused, UnknownTurn
from sessions_app.services.turns.sessions import InvalidSession

ENDS: dict[type[Exception], Exit] = {
    NoAccess: Exit.NOT_FOUND,
    ActionRefused: Exit.REFUSED,
    UnknownGeneration: Exit.NOT_FOUND,
    UnknownCompaction: Exit.NOT_FOUND,
    LookupError: Exit.NOT_FOUND,
    BrokenPlan: Exit.FAILED,
    BrokenEntry: Exit.FAILED,
    PrefixChanged: Exit.FAILED,
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
    InvalidGoal: Exit.USAGE,
    NotOurs: Exit.USAGE,
    UnknownTurn: Exit.NOT_FOUND,
    TurnRefused: Exit.BUSY,
    CursorError: Exit.USAGE,
    BadRequest: Exit.USAGE,
    ChangedMeanwhile: Exit.BUSY,
    AccountError: Exit.USAGE,
    InvalidToken: Exit.USAGE,
    UnknownToken: Exit.NOT_FOUND,
    SessionBusy: Exit.BUSY,
    Undecided: Exit.BUSY,
    InvalidRunner: Exit.USAGE,
    InvalidBinding: Exit.USAGE,
    CompactionUnderWay: Exit.BUSY,
}
