"""A peer for comparisons, claude-run, in a home of its own. It lists what stands in the agent's own list of prompts, which is made here."""

import json
import os
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.product import free_port

START_S = 60


class ClaudeRun:
    """The program with a folder of its own. Serve a folder of sessions; its first page is the list."""

    def __init__(self, program: Path, home: Path) -> None:
        self._program, self._home = program, home
        self.url = ""

    @contextmanager
    def serving(self, data: Path) -> Iterator["ClaudeRun"]:
        """Serves the sessions below `data`, folders of projects, until the end of the block."""
        shutil.rmtree(self._home, ignore_errors=True)
        self._home.mkdir(parents=True)
        (self._home / "projects").symlink_to(data.resolve())
        (self._home / "history.jsonl").write_text("".join(_prompts(data)))
        self.url = f"http://127.0.0.1:{free_port()}"
        command = [str(self._program), "--port", self.url.rpartition(":")[2], "--dir", str(self._home), "--no-open"]
        with (self._home / "log").open("wb") as log:
            process = subprocess.Popen(command, env={**os.environ, "HOME": str(self._home)}, stdout=log, stderr=subprocess.STDOUT)
        try:
            self._wait()
            yield self
        finally:
            process.terminate()
            process.wait(10)

    def _wait(self) -> None:
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            try:
                with urllib.request.urlopen(f"{self.url}/api/sessions") as answer:
                    if json.load(answer):
                        return
            except OSError:
                pass
            time.sleep(0.3)
        raise RuntimeError(f"claude-run did not start: {(self._home / 'log').read_text(errors='replace')[-500:]}")


def _prompts(data: Path) -> Iterator[str]:
    """A line for each session: its first prompt."""
    for path in sorted(data.glob("*/*.jsonl")):
        with path.open() as lines:
            rows = (json.loads(line) for line in lines)
            first = next((row for row in rows if row.get("type") == "user" and isinstance(row["message"]["content"], str)), None)
        if first is not None:
            prompt = {"display": first["message"]["content"], "timestamp": int(path.stat().st_mtime * 1_000)}
            yield json.dumps(prompt | {"project": first["cwd"], "sessionId": path.stem}) + "\n"
