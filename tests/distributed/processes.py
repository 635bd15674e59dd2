"""Processes of the distributed form, started as the README says."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
PATIENCE_S = 150


# Even when the tests themselves are killed, nothing that they started remains.
UNTIL_I_DIE = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []


class Process:
    """One running program and what it printed. It leads a group, so that its children end with it."""

    def __init__(self, arguments: list[str], environment: dict[str, str], log: Path, port: int = 0) -> None:
        self.port = port
        self._log = log
        with log.open("w") as output:
            self._process = subprocess.Popen(
                [*UNTIL_I_DIE, *arguments],
                cwd=ROOT,
                env=environment | {"PYTHONUNBUFFERED": "1"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def said(self) -> str:
        return self._log.read_text()

    def wait_for(self, text: str) -> None:
        until = time.monotonic() + PATIENCE_S
        while text not in self.said:
            assert self._process.poll() is None, self.said
            assert time.monotonic() < until, self.said
            time.sleep(0.05)

    def wait_for_port(self) -> None:
        until = time.monotonic() + PATIENCE_S
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            assert self._process.poll() is None, self.said
            assert time.monotonic() < until, self.said
            time.sleep(0.05)

    def end_by(self, number: int) -> None:
        self._process.send_signal(number)
        self.wait_for_end()

    def ask_to_end(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def wait_for_end(self) -> int:
        return self._process.wait(PATIENCE_S)

    def kill(self) -> None:
        """The whole group at once, as a machine that loses its power."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(PATIENCE_S)


def worker(environment: dict[str, str], log: Path, pool: str, *options: str) -> Process:
    command = [str(BIN / "celery"), "-A", "project", "worker", "--pool", pool, "--concurrency", "2"]
    return Process([*command, "--hostname", f"{log.stem}@test", *options], environment, log)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def web(environment: dict[str, str], log: Path) -> Process:
    port = free_port()
    return Process([str(BIN / "daphne"), "-b", "127.0.0.1", "-p", str(port), "project.asgi:application"], environment, log, port)
