"""Logs: one line an event, with the request's id, and tracebacks that hold no values.

Django calls `set_up` itself wherever it starts (commands, server, workers), because `LOGGING_CONFIG` names it.
Lines carry ids, counts and names, never the text of a transcript: that is a rule for the callers, and the reason why
tracebacks here show no local variables and why statements to the database are never logged with their values.
"""

import logging
import sys
from typing import Any

import structlog
from django.core.exceptions import ImproperlyConfigured

_SHARED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
]
QUIET = {"django.db.backends": "INFO"} | dict.fromkeys(
    ("asyncio", "axes", "daphne", "celery", "kombu", "amqp", "httpx2", "httpcore2", "anthropic", "openai"), "WARNING"
)


def set_up(options: dict[str, str]) -> None:
    """Sends all logging to standard error. `options`: `format` is `console` or `json`, `level` a name of `logging`.

    Raises `ImproperlyConfigured` on another format or level.
    """
    wanted, level = options["format"], options["level"].upper()
    if wanted not in {"console", "json"}:
        raise ImproperlyConfigured(f"PALIMPSEST_LOG_FORMAT is {wanted!r}; it may be console or json. Nothing was started.")
    if level not in logging.getLevelNamesMapping():
        raise ImproperlyConfigured(
            f"PALIMPSEST_LOG_LEVEL is {options['level']!r}; it may be DEBUG, INFO, WARNING or ERROR. Nothing was started."
        )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=_SHARED, processors=_rendering(wanted)))
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level)
    for name in ("django", "django.server"):  # Django's own handlers would print everything twice
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
    for name, level in QUIET.items():
        logging.getLogger(name).setLevel(level)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_SHARED,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def _rendering(wanted: str) -> list[Any]:
    without_meta = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    if wanted == "json":
        return [without_meta, structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    return [without_meta, structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback)]
