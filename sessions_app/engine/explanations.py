"""Skip reasons as people read them. Each is a whole sentence; what did not change is said by the caller."""

from collections.abc import Mapping

from sessions_app.engine.terms import SkipReason

EXPLANATIONS: Mapping[SkipReason, str] = {
    SkipReason.EMPTY_SESSION: "The session holds no message that a model could see.",
    SkipReason.FEWER_THAN_THREE_ROUNDS: "The view holds fewer than three rounds, so there is nothing that could be folded sensibly.",
    SkipReason.NO_LEGAL_BOUNDARY: (
        "No legal boundary was found: a call still waits for its result, or what is protected reaches too far back."
    ),
    SkipReason.NOTHING_TO_FOLD: "Everything in the view is recent enough to stay word for word.",
    SkipReason.WOULD_NOT_SHRINK: "Folding would not make the view smaller.",
    SkipReason.NON_HISTORY_ENVELOPE_EXHAUSTS_BUDGET: (
        "What has to stay word for word leaves no room for a useful compaction within the target of this policy."
    ),
    SkipReason.STALE_PREIMAGE: "The entries that were to be folded changed in the meantime.",
    SkipReason.UNSAFE_FLUSH_RECEIPT: "What is worth keeping of these entries could not be kept safely in the project's memory.",
    SkipReason.WORKER_LOST: "The worker that ran this compaction was lost.",
    SkipReason.NEVER_IDLE: "The session did not become idle before the deadline.",
}
