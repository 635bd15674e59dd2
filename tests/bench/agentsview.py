"""A peer for comparisons, agentsview, in a home of its own."""

import json
import os
import re
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.product import free_port

START_S = 300
"""Ten thousand sessions take a minute on an idle machine."""


class AgentsView:
    """The program with a folder of its own. Serve a folder of sessions, then ask for the page of one."""

    def __init__(self, program: Path, home: Path) -> None:
        self._program, self._home = program, home
        self.url = ""

    def environment(self, data: Path) -> dict[str, str]:
        home = str(self._home)
        return {**os.environ, "HOME": home, "AGENTSVIEW_DATA_DIR": f"{home}/data", "CLAUDE_PROJECTS_DIR": str(data)}

    @contextmanager
    def serving(self, data: Path) -> Iterator["AgentsView"]:
        """Serves the sessions below `data` until the end of the block."""
        shutil.rmtree(self._home, ignore_errors=True)
        self._home.mkdir(parents=True)
        port = free_port()
        environment = self.environment(data)
        command = [str(self._program), "serve", "--host", "127.0.0.1", "--port", str(port), "--no-browser"]
        with (self._home / "log").open("wb") as log:
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
        try:
            self.url = f"http://127.0.0.1:{port}"
            self._wait()
            yield self
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()

    def session_ids(self) -> list[str]:
        with urllib.request.urlopen(f"{self.url}/api/v1/sessions?limit=50") as answer:
            told = json.load(answer)
        found = told.get("sessions", told) if isinstance(told, dict) else told
        return [session["id"] for session in found]

    def session_url(self) -> str:
        """The page of the session with the most messages."""
        return f"{self.url}/sessions/{self.session_ids()[0]}"

    def _wait(self) -> None:
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            log = (self._home / "log").read_text(errors="replace")
            if (said := re.search(r"http://127\.0\.0\.1:(\d+)", log)) is not None:
                self.url = said.group(0)
            try:
                if self.session_ids():
                    return
            except OSError:
                pass
            time.sleep(0.3)
        raise RuntimeError(f"agentsview did not start: {(self._home / 'log').read_text(errors='replace')[-500:]}")
