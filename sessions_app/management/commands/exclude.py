"""`manage.py exclude SESSION ENTRY`: never sends an entry again."""

from sessions_app.management.deciding import DecidingCommand
from sessions_app.permissions import Action
from sessions_app.services.overrides import exclude, include


class Command(DecidingCommand):
    help = (
        "Lets an entry never be sent, folded or summarised again. A call and its results go together. "
        "What an earlier summary says of it stays there. Taken back, it stands in the view as before."
    )
    action = Action.EXCLUDE
    examples = (("exclude 44c5e046 58", "entry 58 is not sent any more"), ("exclude 44c5e046 58 --undo", "it is sent again"))
    decide = staticmethod(exclude)
    take_back = staticmethod(include)
