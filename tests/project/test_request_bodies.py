"""Requests that are too large, on the real server: a sentence, and nothing on the disk."""

import contextlib
import http.client
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIMIT_MB = 3


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[tuple[str, int, Path]]:
    """The product on a port of its own, with a folder for temporary files that is looked into: (host, port, folder)."""
    folder = tmp_path_factory.mktemp("bodies")
    scratch = folder / "tmp"
    scratch.mkdir()
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("PALIMPSEST_", "DJANGO_"))},
        "PALIMPSEST_UPLOAD_MAX_MB": str(LIMIT_MB),
        "TMPDIR": str(scratch),
    }
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "manage.py", "up", "--port", str(port), "--data-dir", str(folder / "data")]
    log = folder / "log"
    # Somebody is there already, so no demo is made.
    made = [*command[:2], "create_user", "ada", "--role", "admin"]
    subprocess.run(made, cwd=ROOT, env={**environment, "PALIMPSEST_DATA_DIR": str(folder / "data")}, check=True, capture_output=True)
    with log.open("wb") as out:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + 100
        while b"Palimpsest is at" not in log.read_bytes():
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield "127.0.0.1", port, scratch
    finally:
        process.terminate()
        process.wait(100)


def post(server, path: str, body, **options) -> tuple[int, str, str]:
    """(status, page, policy) of a request."""
    with contextlib.closing(http.client.HTTPConnection(*server[:2], timeout=100)) as connection:
        connection.request("POST", path, body=body, **options)
        response = connection.getresponse()
        return response.status, response.read().decode(), response.getheader("Content-Security-Policy") or ""


@pytest.mark.parametrize("path", ["/imports/", "/sign-in/"])
@pytest.mark.parametrize("pieces", [False, True], ids=["with its length", "in pieces"])
def test_what_is_too_large_is_answered_413_in_words_whoever_sends_it(server, path, pieces):
    body = b"x" * 1_000_000
    if pieces:
        status, page, policy = post(server, path, iter([body] * 8), encode_chunked=True, headers={"Transfer-Encoding": "chunked"})
    else:
        status, page, policy = post(server, path, body * 8)
    assert (status, "Too large" in page, bool(policy)) == (413, True, True)
    assert ("nothing was imported" if path == "/imports/" else "Nothing was changed") in page
    assert list(server[2].iterdir()) == []


def test_what_is_not_too_large_reaches_its_page(server):
    assert post(server, "/sign-in/", b"x" * 1_000_000)[0] != 413
