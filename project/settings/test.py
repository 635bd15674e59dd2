"""Settings of the tests: the embedded form on a database of its own, with fast password hashes."""

import tempfile
from pathlib import Path

from project.settings.base import *  # noqa: F403
from project.settings.embedded import CELERY_BROKER_TRANSPORT_OPTIONS, CELERY_BROKER_URL, CHANNEL_LAYERS, DATABASES  # noqa: F401

DATA_DIR = Path(tempfile.mkdtemp(prefix="palimpsest-test-"))
SECRET_KEY = "test"  # noqa: S105
# A file, not memory: the worker's threads and the web's have connections of their own, as in the product.
DATABASES["default"]["NAME"] = DATA_DIR / "unused.sqlite3"
DATABASES["default"]["TEST"] = {"NAME": str(DATA_DIR / "test.sqlite3")}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
LOGGING = {"format": "console", "level": "WARNING"}
