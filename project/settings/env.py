"""Every environment variable of the product, declared once: name, type, default, meaning."""

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

PREFIX = "PALIMPSEST_"


@dataclass(frozen=True)
class Variable:
    """One variable. `kind` is a method of `environ.Env`."""

    name: str
    kind: str
    default: object
    meaning: str
    has_short_name: bool = False
    """Whether it is also read under its name without the prefix, as hosting platforms give it."""


VARIABLES = (
    Variable("HOST", "str", "127.0.0.1", "Address that `manage.py up` listens on."),
    Variable("PORT", "int", 8000, "Port that `manage.py up` listens on."),
    Variable("DATA_DIR", "str", "", "Folder for the database, uploads and keys. Default: `data` in the checkout."),
    Variable(
        "PUBLIC_URL", "str", "", "Address under which browsers reach the product, if not host and port; with https, cookies are secure."
    ),
    Variable("ALLOWED_HOSTS", "list", [], "Further host names to answer to, separated by commas."),
    Variable("DEBUG", "bool", False, "Shows tracebacks and the style guide. Never with real data."),
    Variable(
        "DATABASE_URL", "str", "", "`postgres://user:password@host:5432/name`. Any of these three chooses the distributed form.", True
    ),
    Variable(
        "REDIS_URL", "str", "", "`redis://host:6379/0`: carries live updates between processes, and tasks if no broker is named.", True
    ),
    Variable("BROKER_URL", "str", "", "Broker of background work: `redis://…` or `amqp://user:password@host:5672/vhost`.", True),
    Variable("SECRET_KEY", "str", "", "Signs sign-ins; the distributed form needs one of 50 characters, the same in all its processes."),
    Variable("DATABASE_POOL", "int", 10, "Most database connections of one web process in the distributed form."),
    Variable("LOG_FORMAT", "str", "", "`console` or `json`. Without it, `json` in the distributed form and `console` otherwise."),
    Variable("LOG_LEVEL", "str", "INFO", "Lowest level that is logged."),
    Variable("UPLOAD_MAX_MB", "int", 512, "Largest file that the upload page takes, in megabytes. The command line takes any size."),
    Variable("PROXIES", "int", 0, "How many proxies stand in front, whose `X-Forwarded-For` is believed. 0: the header is not looked at."),
    Variable("SESSION_IDLE_MINUTES", "int", 120, "A sign-in ends after so many minutes without a page being asked for."),
    Variable("SESSION_HOURS", "int", 12, "A sign-in ends after so many hours in any case."),
    Variable("SIGN_IN_FAILURES", "int", 5, "After so many wrong passwords, sign-in with that name from that address is locked."),
    Variable("SIGN_IN_LOCK_MINUTES", "int", 15, "How long that lock lasts. An admin can lift it."),
    Variable(
        "SESSION_FLUSH", "str", "", "`0`, `false`, `no` or `off`: no facts are kept in any project's memory, whatever the policies say."
    ),
    Variable(
        "RUNNER_HOSTS",
        "list",
        [],
        "Hosts that runners may be on beside this machine, separated by commas: names, `.suffixes`, addresses, networks.",
    ),
    Variable("USER", "str", "", "Name under which commands act; without it they act as `cli:<system user>` with admin rights."),
)


class Env:
    """Typed access to the declared variables. Raises `ImproperlyConfigured` on unknown or malformed ones."""

    def __init__(self, environment: dict[str, str] | None = None) -> None:
        self._environment = dict(os.environ if environment is None else environment)
        known = {PREFIX + variable.name for variable in VARIABLES}
        unknown = sorted(name for name in self._environment if name.startswith(PREFIX) and name not in known)
        if unknown:
            raise ImproperlyConfigured(f"Unknown setting {', '.join(unknown)}. Known are: {', '.join(sorted(known))}. Nothing was started.")
        self._reader = environ.Env()
        self._reader.ENVIRON = self._environment
        self._values = {variable.name: self._read(variable) for variable in VARIABLES}

    def _read(self, variable: Variable) -> object:
        name = PREFIX + variable.name
        if variable.has_short_name and name not in self._environment:
            name = variable.name
        try:
            return getattr(self._reader, variable.kind)(name, default=variable.default)
        except (ValueError, ImproperlyConfigured) as error:
            raise ImproperlyConfigured(f"{name} is not a valid {variable.kind}: {self._environment.get(name)!r}.") from error

    def text(self, name: str) -> str:
        return str(self._values[name])

    def number(self, name: str) -> int:
        value = self._values[name]
        assert isinstance(value, int)
        return value

    def positive(self, name: str) -> int:
        """A number of at least 1. Raises `ImproperlyConfigured` on a smaller one."""
        value = self.number(name)
        if value < 1:
            raise ImproperlyConfigured(f"{PREFIX}{name} must be at least 1, and it is {value}. Nothing was started.")
        return value

    def flag(self, name: str) -> bool:
        return bool(self._values[name])

    def items(self, name: str) -> list[str]:
        value = self._values[name]
        assert isinstance(value, list)
        return [str(item) for item in value]


def is_on(written: str) -> bool:
    """Whether a switch that is on by default was left so: anything but `0`, `false`, `no` and `off`."""
    return written.strip().lower() not in {"0", "false", "no", "off"}


def settings_table() -> str:
    """All variables as a Markdown table; the documents hold it as it is."""
    rows = "\n".join(f"| `{PREFIX}{variable.name}` | {_default_text(variable)} | {variable.meaning} |" for variable in VARIABLES)
    return f"| variable | default | meaning |\n| --- | --- | --- |\n{rows}\n"


def _default_text(variable: Variable) -> str:
    if variable.kind == "bool":
        return "on" if variable.default else "off"
    return f"`{variable.default}`" if variable.default not in ("", []) else ""


def public_address(env: Env) -> SplitResult | None:
    """The address under which browsers reach the product, if one is given. Raises `ImproperlyConfigured` on half a one."""
    given = env.text("PUBLIC_URL")
    if not given:
        return None
    try:
        address = urlsplit(given)
        is_whole = address.scheme in {"http", "https"} and address.hostname and (address.port or True)
    except ValueError:
        is_whole = False
    if not is_whole:
        raise ImproperlyConfigured(f"PALIMPSEST_PUBLIC_URL must be like https://console.example, not {given!r}. Nothing was started.")
    return address


def data_directory(env: Env, root: Path) -> Path:
    """The folder that holds everything the product writes; it need not exist yet."""
    return Path(env.text("DATA_DIR") or root / "data").expanduser().resolve()
