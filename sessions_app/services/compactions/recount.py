"""What an attempt counts its view with: the stored numbers, or a vocabulary where its policy asks for that. For workers."""

from collections.abc import Sequence

import structlog
from django.conf import settings

from sessions_app.engine.bpe import BpeCounter
from sessions_app.engine.policy import Policy
from sessions_app.engine.recounting import recounted
from sessions_app.engine.shapes import EntryShape
from sessions_app.engine.steps import ShouldStop
from sessions_app.engine.terms import Estimator
from sessions_app.models import Session
from sessions_app.selectors import plans
from sessions_app.services.compactions import lease
from sessions_app.services.compactions.lease import Claim

logger = structlog.get_logger(__name__)


def count_view(
    held: Claim, session: Session, shapes: Sequence[EntryShape], policy: Policy, should_stop: ShouldStop
) -> Sequence[EntryShape]:
    """The shapes as the policy wants them counted; the attempt's row then says by what.

    Where the vocabulary can't be used here, the stored numbers stand, and the log says why. Raises `Stopped`, `LeaseLost`.
    """
    if policy.estimator is not Estimator.BPE:
        return shapes
    try:
        counter = BpeCounter(settings.DATA_DIR / "vocabulary")
    except (OSError, RuntimeError) as error:
        logger.warning("vocabulary_unusable", error=str(error))
        return shapes
    chain = plans.load_chain(session)
    load = lambda first, last: plans.load_entries(session.pk, first, last)  # noqa: E731  as a task takes it
    found = recounted(shapes, chain[-1] if chain else None, load, counter.count, should_stop)
    lease.write(held, estimator=Estimator.BPE)
    return found
