"""Settings of the tests, in either form: the embedded one, or the distributed one where the environment names services."""

import os
import tempfile
from pathlib import Path

from project.form import SERVER, settings_module
from project.settings.base import *  # noqa: F403
from project.settings.base import ENV

DATA_DIR = Path(tempfile.mkdtemp(prefix="palimpsest-test-"))
SECRET_KEY = "test"  # noqa: S105
if settings_module(os.environ) == SERVER:
    from project.settings.services import broker_url, channel_layers, database, task_queues

    DATABASES = {"default": database(ENV)}
    CHANNEL_LAYERS = channel_layers(ENV)
    CELERY_BROKER_URL = broker_url(ENV)
    CELERY_TASK_QUEUES = task_queues()
else:
    from project.settings.embedded import CELERY_BROKER_TRANSPORT_OPTIONS, CELERY_BROKER_URL, CHANNEL_LAYERS, DATABASES  # noqa: F401

    # A file, not memory: the worker's threads and the web's have connections of their own, as in the product.
    DATABASES["default"]["NAME"] = DATA_DIR / "unused.sqlite3"
    DATABASES["default"]["TEST"] = {"NAME": str(DATA_DIR / "test.sqlite3")}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
LOGGING = {"format": "console", "level": "WARNING"}
