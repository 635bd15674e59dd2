"""The agents' own binaries, run offline against a scripted model: where they are, and how they are started."""

import json
import os
import shutil
import subprocess
import uuid
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from tests.fakes.model_server import ModelServer

TIME_LIMIT_S = 30
QUIET = {
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
}
SMALL_WINDOW = {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "100000"}  # the agent takes no smaller one
CODEX_CONFIG = """\
model = "scripted"
model_provider = "scripted"
model_context_window = {window}
check_for_update_on_startup = false
approval_policy = "never"
sandbox_mode = "danger-full-access"
[model_providers.scripted]
name = "scripted"
base_url = "{url}"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
request_max_retries = 0
stream_max_retries = 0
[analytics]
enabled = false
[projects."{folder}"]
trust_level = "trusted"
"""


def binary_of(variable: str, name: str) -> str:
    """The path of an agent's binary: what the variable says, else what lies on the path; empty where neither is there."""
    return os.environ.get(variable) or shutil.which(name) or ""


CLAUDE = binary_of("TEST_CLAUDE_BINARY", "claude")
CODEX = binary_of("TEST_CODEX_BINARY", "codex")


@dataclass
class Agent(ABC):
    """One agent with a folder of its own and nothing of the person who runs the tests."""

    variable: ClassVar[str]  # names its folder
    home: Path  # its own folder
    folder: Path  # where it works
    server: ModelServer

    @abstractmethod
    def start(self, prompt: str) -> str:
        """Begins a session; returns its id."""

    @abstractmethod
    def resume(self, session_id: str, prompt: str, *, small: bool = False) -> None:
        """Goes on with one. `small`: in a window in which it would compact by what its last answer there measured."""

    def run(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Runs it to its end. Fails with what it said when it does not end well."""
        clean = {"PATH": os.environ["PATH"], "HOME": str(self.home.parent), "LANG": "C.UTF-8", **environment}
        done = subprocess.run(
            command, cwd=self.folder, env=clean, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False
        )
        assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        return done


class ClaudeCode(Agent):
    variable = "CLAUDE_CONFIG_DIR"

    def start(self, prompt: str) -> str:
        session_id = str(uuid.uuid4())
        self._go("--session-id", session_id, prompt)
        return session_id

    def resume(self, session_id: str, prompt: str, *, small: bool = False) -> None:
        self._go("--resume", session_id, prompt, **(SMALL_WINDOW if small else {}))

    def _go(self, *arguments: str, **environment: str) -> None:
        self.run(
            CLAUDE, "-p", "--model", "claude-sonnet-4-5", "--output-format", "json", *arguments,
            CLAUDE_CONFIG_DIR=str(self.home), ANTHROPIC_BASE_URL=self.server.url, ANTHROPIC_API_KEY="none", **QUIET, **environment,
        )  # fmt: skip


class Codex(Agent):
    variable = "CODEX_HOME"

    def start(self, prompt: str) -> str:
        said = self._go(prompt)
        return str(next(json.loads(line)["thread_id"] for line in said.splitlines() if '"thread.started"' in line))

    def resume(self, session_id: str, prompt: str, *, small: bool = False) -> None:
        self._go("resume", session_id, prompt, window=70_000 if small else 400_000)

    def _go(self, *arguments: str, window: int = 400_000) -> str:
        config = CODEX_CONFIG.format(url=self.server.openai_url, folder=self.folder, window=window)
        (self.home / "config.toml").write_text(config)
        return self.run(CODEX, "exec", "--skip-git-repo-check", "--json", *arguments, CODEX_HOME=str(self.home), SCRIPTED_KEY="none").stdout
