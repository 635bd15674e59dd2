"""Starts a product of its own for a measurement, with a folder and a port of its own, and stops it again."""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
START_S = 60


@dataclass(frozen=True)
class Product:
    """A running product: where it is, who may sign in, and the environment in which its commands find its data."""

    url: str
    name: str
    password: str
    environment: dict[str, str]
    pid: int

    def command(self, *arguments: str) -> str:
        """Runs `manage.py` with these arguments on its data; answers what it printed."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments], cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(done.stdout + done.stderr)
        return done.stdout


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(data_dir: Path, *paths: Path, watch: Path | None = None) -> Iterator[Product]:
    """A product whose database holds the demo and the sessions under `paths`, and which follows the folder `watch`."""
    port = free_port()
    environment = {**os.environ, "PALIMPSEST_DATA_DIR": str(data_dir), "PALIMPSEST_LOG_LEVEL": "WARNING", "PYTHONUNBUFFERED": "1"}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    follows = ("--watch", str(watch)) if watch else ()
    process = subprocess.Popen(
        [sys.executable, "manage.py", "up", "--port", str(port), *follows],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        name, password = _sign_in(process)
        product = Product(f"http://127.0.0.1:{port}", name, password, environment, process.pid)
        if paths:
            product.command("import_sessions", *map(str, paths))
        yield product
    finally:
        process.terminate()
        process.wait(15)


def _sign_in(process: "subprocess.Popen[str]") -> tuple[str, str]:
    assert process.stdout is not None
    deadline = time.monotonic() + START_S
    for line in process.stdout:
        said = re.search(r"sign in as (\w+) \(operator\) with the password (\S+)", line)
        if said:
            return said.group(1), said.group(2)
        if time.monotonic() > deadline:
            break
    raise RuntimeError("the product did not start")
