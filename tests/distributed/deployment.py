"""A whole deployment as processes of its own: servers that a test may kill and start again, pages, workers, a signed-in person."""

import http.cookiejar
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg

from tests.distributed.held_model import SUMMARISERS, HeldModel
from tests.distributed.processes import PATIENCE_S, ROOT, Process, free_port, web, worker

POSTGRES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
REDIS = shutil.which("redis-server")
RABBITMQ = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
LONG = "Split the checkout page into partials"
"""The session of the demo that has much to fold."""


def until(condition: Callable[[], Any], timeout_s: float = PATIENCE_S) -> Any:
    """What the condition answers once it is true. It may fail meanwhile: servers are away."""
    end, last = time.monotonic() + timeout_s, None
    while time.monotonic() < end:
        try:
            if last := condition():
                return last
        except (psycopg.OperationalError, OSError) as error:
            last = error
        time.sleep(0.1)
    raise AssertionError(f"it did not come about; the last answer was {last!r}")


class Server:
    """A server on a port of its own that keeps its data when it is killed."""

    def __init__(self, folder: Path, name: str, command: list[str], port: int, environment: dict[str, str] | None = None) -> None:
        self.port = port
        self._log, self._command = folder / f"{name}.log", command
        self._environment = os.environ | (environment or {})
        self._process: Process | None = None

    def start(self) -> "Server":
        self._process = Process(self._command, dict(self._environment), self._log, self.port)
        self._process.wait_for_port()
        return self

    def kill(self, number: int | None = None) -> None:
        """Ends it at once, by SIGKILL or the signal that is given."""
        if self._process is not None:
            self._process.kill() if number is None else self._process.end_by(number)


def postgres(folder: Path) -> Server:
    """It refuses to run as the superuser, so there it becomes `postgres`."""
    binaries, home, port = POSTGRES[-1], folder / "postgres", free_port()
    home.mkdir()
    become = []
    if os.geteuid() == 0:
        shutil.chown(home, "postgres")
        become = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--init-groups", "--pdeathsig", "KILL"]
    options = ["--auth", "trust", "--username", "postgres", "--encoding", "UTF8", "--locale", "C.UTF-8"]
    subprocess.run([*become, binaries / "initdb", "--pgdata", home / "data", *options], check=True, capture_output=True)
    # What a killed server has written, the machine still has: nothing need reach the disk.
    listen = ["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off"]
    return Server(folder, "postgres", [*become, str(binaries / "postgres"), "-D", str(home / "data"), "-p", str(port), *listen], port)


def redis(folder: Path) -> Server:
    port = free_port()
    return Server(folder, "redis", [str(REDIS), "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--dir", str(folder)], port)


def rabbitmq(folder: Path) -> tuple[Server, Server]:
    """Its port mapper, which would otherwise become a daemon on all addresses, and itself."""
    home, port = folder / "rabbitmq", free_port()
    home.mkdir()
    mapping = {"ERL_EPMD_ADDRESS": "127.0.0.1", "ERL_EPMD_PORT": str(free_port())}
    mapper = Server(folder, "epmd", ["epmd"], int(mapping["ERL_EPMD_PORT"]), mapping)
    own = {
        "RUNNING_UNDER_SYSTEMD": "1",  # its script becomes the server
        "HOME": str(home),
        "RABBITMQ_NODENAME": "killed@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_MNESIA_BASE": str(home / "data"),
        "RABBITMQ_LOG_BASE": str(home / "log"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "plugins"),
        "RABBITMQ_CONFIG_FILE": str(home / "none"),
        "RABBITMQ_CONF_ENV_FILE": "/dev/null",
        "RABBITMQ_PID_FILE": str(home / "pid"),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
    }
    return mapper, Server(folder, "rabbitmq", [str(RABBITMQ)], port, mapping | own)


class Person:
    """Somebody with a browser that runs no scripts: cookies, forms and pages."""

    def __init__(self, name: str, password: str) -> None:
        self._name, self._password = name, password
        self._jar = http.cookiejar.CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self._jar))
        self.at = ""

    def sign_in(self, process: Process) -> "Person":
        self.turn_to(process)
        self.get("/sign-in/")
        self.post("/sign-in/", username=self._name, password=self._password)
        return self

    def turn_to(self, process: Process) -> None:
        """Goes on with another web process, as behind a proxy: cookies belong to the host, whatever the port."""
        self.at = f"http://127.0.0.1:{process.port}"

    def get(self, path: str) -> str:
        with self._opener.open(self.at + path, timeout=PATIENCE_S) as answer:
            return str(answer.read().decode())

    def post(self, path: str, **fields: str) -> str:
        body = urllib.parse.urlencode(fields | {"csrfmiddlewaretoken": self._token}).encode()
        return self._send(path, body, "application/x-www-form-urlencoded")

    def upload(self, path: str, field: str, name: str, data: bytes) -> str:
        """Sends a form with a file in it."""
        edge = "an-edge-that-no-transcript-holds"
        token = f'--{edge}\r\nContent-Disposition: form-data; name="csrfmiddlewaretoken"\r\n\r\n{self._token}\r\n'
        head = f'--{edge}\r\nContent-Disposition: form-data; name="{field}"; filename="{name}"\r\n\r\n'
        body = token.encode() + head.encode() + data + f"\r\n--{edge}--\r\n".encode()
        return self._send(path, body, f"multipart/form-data; boundary={edge}")

    @property
    def _token(self) -> str:
        return next(cookie.value or "" for cookie in self._jar if cookie.name == "csrftoken")

    def _send(self, path: str, body: bytes, kind: str) -> str:
        request = urllib.request.Request(self.at + path, body, {"Content-Type": kind, "Referer": self.at + path, "Origin": self.at})
        with self._opener.open(request, timeout=PATIENCE_S) as answer:
            return str(answer.read().decode())


class Deployment:
    """Servers, and processes that work on them. `stop` ends everything."""

    def __init__(self, *, has_rabbitmq: bool = False) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="palimpsest-deployment-"))
        self.folder.chmod(0o755)
        self.model = HeldModel()
        self.postgres, self.redis = postgres(self.folder), redis(self.folder)
        self._servers = [self.postgres, self.redis]
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PALIMPSEST_", "DJANGO_", "PYTEST_"))}
        self.environment = kept | {
            "PALIMPSEST_DATABASE_URL": f"postgres://postgres@127.0.0.1:{self.postgres.port}/postgres",
            "PALIMPSEST_REDIS_URL": f"redis://127.0.0.1:{self.redis.port}/0",
            "PALIMPSEST_SECRET_KEY": "k" * 50,
            "PALIMPSEST_DATA_DIR": str(self.folder / "data"),
            "PALIMPSEST_LOG_FORMAT": "console",
            **self.model.environment,
        }
        if has_rabbitmq:
            mapper, self.broker = rabbitmq(self.folder)
            self._servers += [mapper, self.broker]
            self.environment["PALIMPSEST_BROKER_URL"] = f"amqp://guest:guest@127.0.0.1:{self.broker.port}//"
        else:
            self.broker = self.redis
        self.processes: list[Process] = []
        self.passwords: dict[str, str] = {}

    def start(self) -> "Deployment":
        self.model.__enter__()
        for server in self._servers:
            server.start()
        self.run("migrate", "--verbosity", "0")
        self.run("collectstatic", "--no-input", "--verbosity", "0")
        self.passwords = dict(re.findall(r"(\w+) +\w+ +password (\S+)", self.run("demo")))
        return self

    def stop(self) -> None:
        self.end_processes()
        self.model.__exit__()
        for server in reversed(self._servers):
            server.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def end_processes(self) -> None:
        while self.processes:
            self.processes.pop().kill()

    def run(self, *arguments: str) -> str:
        """`manage.py` with these arguments: what it said. Raises when it failed."""
        command = [sys.executable, str(ROOT / "manage.py"), *arguments]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False, cwd=ROOT)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def worker(self, pool: str = "prefork") -> Process:
        started = worker(self.environment, self._log("worker"), pool)
        self.processes.append(started)
        started.wait_for("worker_ready")
        return started

    def web(self) -> Process:
        started = web(self.environment, self._log("web"))
        self.processes.append(started)
        started.wait_for_port()
        return started

    def person(self, process: Process, name: str = "ana") -> Person:
        return Person(name, self.passwords[name]).sign_in(process)

    def query(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Rows of the database. Raises `psycopg.OperationalError` while it is away."""
        with psycopg.connect(f"host=127.0.0.1 port={self.postgres.port} user=postgres connect_timeout=60") as connection:
            return connection.execute(statement, values).fetchall()

    def change(self, statement: str, *values: object) -> None:
        with psycopg.connect(f"host=127.0.0.1 port={self.postgres.port} user=postgres connect_timeout=60") as connection:
            connection.execute(statement, values)

    def held_session(self) -> str:
        """The session whose summaries come from the model, which is held from now on."""
        self.model.hold()
        session = str(self.query("SELECT id FROM sessions_app_session WHERE title = %s", LONG)[0][0])
        change = "UPDATE sessions_app_policyvalue SET value = %s WHERE scope_id = %s AND field = 'summarisers'"
        self.change(change, json.dumps(SUMMARISERS), session)
        return session

    def lapse(self) -> None:
        """Half a minute of silence, shortened: the leases of workers that are gone run out."""
        self.change("UPDATE sessions_app_lease SET expires_at = now() WHERE token IS NOT NULL")

    def attempts(self, session: str) -> list[tuple[Any, ...]]:
        """(status, reason, phase) of a session's attempts of this console, the latest first."""
        columns = "SELECT status, reason, phase FROM sessions_app_compaction WHERE session_id = %s AND lineage = 'console'"
        return self.query(f"{columns} ORDER BY attempt DESC", session)

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}-{time.monotonic_ns()}.log"
