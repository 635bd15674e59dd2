"""Which form of the product a process runs in: the environment alone decides, and every way in asks here."""

from collections.abc import Mapping

SERVICES = ("DATABASE_URL", "REDIS_URL", "BROKER_URL")
EMBEDDED, SERVER = "project.settings.embedded", "project.settings.server"


def settings_module(environment: Mapping[str, str]) -> str:
    """The settings to load: those of the distributed form when any service is named, else those of the embedded one."""
    names = {prefix + name for name in SERVICES for prefix in ("PALIMPSEST_", "")}
    return SERVER if any(environment.get(name) for name in names) else EMBEDDED
