"""How asking a runner fails. The texts are for people; they quote nothing that a runner sent."""


class RunnerError(Exception):
    """Something that was asked of a runner did not come about, or nobody knows whether it did.

    `code` is the word under which an interface tells it; `is_retryable`: asking again is safe, and may succeed.
    """

    code = "runner_unavailable"
    is_retryable = True


class RunnerUnavailable(RunnerError):
    """The runner was not reached: nothing was sent, so nothing happened there."""


class UnknownOutcome(RunnerError):
    """The request may have been received, and no answer came: whether it was carried out is not known."""

    code = "unknown_outcome"
    is_retryable = False


class RunnerRefused(RunnerError):
    """The runner answered that it did not do it. `status` is its HTTP status."""

    code = "internal_error"
    is_retryable = False

    def __init__(self, status: int, words: str = "") -> None:
        self.status = status
        super().__init__(words or f"The runner answered {status}.")


class RunnerBusy(RunnerRefused):
    """A turn or a compaction is under way there."""

    is_retryable = True


class UnknownRunnerSession(RunnerRefused):
    """The runner holds no session of this id."""


_KINDS: dict[int, tuple[type[RunnerRefused], str]] = {
    401: (RunnerRefused, "it does not accept the credential"),
    403: (RunnerRefused, "it does not accept the credential"),
    404: (UnknownRunnerSession, "it knows no such session"),
    409: (RunnerBusy, "it is busy"),
}


def refused(status: int) -> RunnerRefused:
    """The error of an answer that is neither done nor left to the console. The text names the status."""
    kind, why = _KINDS.get(status, (RunnerRefused, ""))
    redirects = "redirects are not followed" if 300 <= status < 400 else ""
    told = why or redirects
    return kind(status, f"The runner answered {status}{f': {told}' if told else ''}.")
