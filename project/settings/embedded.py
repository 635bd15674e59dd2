"""The embedded default: SQLite, one process, no services."""

from project.settings.base import *  # noqa: F403
from project.settings.base import ENV, ROOT
from project.settings.env import data_directory
from project.settings.secret import secret_key

DATA_DIR = data_directory(ENV, ROOT)
SECRET_KEY = secret_key(DATA_DIR)

DATABASES = {
    "default": {
        "ENGINE": "project.sqlite",
        "NAME": DATA_DIR / "palimpsest.sqlite3",
        "OPTIONS": {
            # IMMEDIATE: a transaction that reads and then writes would fail at once where it now waits.
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": (
                "PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;PRAGMA cache_size=-32000;"
                "PRAGMA temp_store=MEMORY;PRAGMA mmap_size=134217728;PRAGMA journal_size_limit=67108864"
            ),
        },
    },
}
CHANNEL_LAYERS = {"default": {"BACKEND": "project.layers.LoopSafeInMemoryChannelLayer"}}
CELERY_BROKER_URL = "memory://localhost/"
# Seconds that a click may wait until a worker looks; looking takes about one per cent of a core.
CELERY_BROKER_TRANSPORT_OPTIONS = {"polling_interval": 0.01}
FILE_UPLOAD_TEMP_DIR = None
SHARE_CONNECTIONS = "project.sqlite.kept.share_connections"
