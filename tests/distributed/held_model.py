"""A model for processes of their own, whose summaries come when the test lets them."""

import threading

from tests.fakes.model_server import Answer, Asked, ModelServer, say

SUMMARISERS = ["openai:scripted-model@60000"]
SUMMARY = "## Primary request and intent\nFix the builds.\n\n## Next step\nRun the tests. " + "The builds of all steps fail. " * 8
LONGEST_S = 240.0
"""A request is never held for longer, so that a test which fails does not keep its workers."""


class HeldModel(ModelServer):
    """Answers at once, but for the time between `hold` and `let`."""

    def __init__(self) -> None:
        super().__init__(self._answer)
        self._is_let = threading.Event()
        self._is_let.set()

    @property
    def environment(self) -> dict[str, str]:
        """What lets a process take it for its provider."""
        return {"OPENAI_API_KEY": "sk-of-a-test", "OPENAI_BASE_URL": self.openai_url}

    def hold(self) -> None:
        self._is_let.clear()

    def let(self) -> None:
        self._is_let.set()

    def _answer(self, _asked: Asked) -> Answer:
        self._is_let.wait(LONGEST_S)
        return say(SUMMARY)

    def __exit__(self, *error: object) -> None:
        self.let()
        super().__exit__(*error)
