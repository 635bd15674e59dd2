"""`manage.py pin SESSION ENTRY`: keeps an entry word for word in every view."""

from sessions_app.management.deciding import DecidingCommand
from sessions_app.permissions import Action
from sessions_app.services.overrides import pin, unpin


class Command(DecidingCommand):
    help = (
        "Keeps an entry word for word in every view, whatever is folded. A call and its results go together. "
        "Taken back, it stays until the next compaction folds it."
    )
    action = Action.PIN
    examples = (("pin 44c5e046 58", "entry 58 stays"), ("pin 44c5e046 58 --undo", "it may be folded again"))
    decide = staticmethod(pin)
    take_back = staticmethod(unpin)
