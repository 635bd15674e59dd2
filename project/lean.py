"""Loads `structlog` without what it looks for on its own and this product does not use.

It would load `rich` (for tracebacks that show values, which logs here never do) and `twisted`, where they are installed:
more than half of the time that it takes, in every command.
"""

import importlib
import sys
from types import ModuleType
from typing import cast

UNUSED = ("rich", "twisted")


def load_structlog() -> None:
    """Before anything else imports it."""
    hidden = [name for name in UNUSED if name not in sys.modules]
    modules = cast("dict[str, ModuleType | None]", sys.modules)
    for name in hidden:
        modules[name] = None  # an import of it fails as if it were not installed
    try:
        importlib.import_module("structlog")
    finally:
        for name in hidden:
            del modules[name]
