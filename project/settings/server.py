"""The distributed form: PostgreSQL, Redis, a broker, and any number of web processes and workers."""

from project.settings.base import *  # noqa: F403
from project.settings.base import ENV, MIDDLEWARE, ROOT, SILENCED_SYSTEM_CHECKS
from project.settings.env import data_directory
from project.settings.services import broker_url, channel_layers, database, secret_key, task_queues

DATA_DIR = data_directory(ENV, ROOT)
# The database belongs to others as well: nothing migrates it without being asked, and it is filled with no demo.
SETS_ITSELF_UP = False
DATABASES = {"default": database(ENV)}
DATABASE_POOL = ENV.positive("DATABASE_POOL")
CHANNEL_LAYERS = channel_layers(ENV)
SECRET_KEY = secret_key(ENV)

CELERY_BROKER_URL = broker_url(ENV)
# A worker that is told no queues takes from both.
CELERY_TASK_QUEUES = task_queues()
# A broker that is away comes back: a worker waits for it, for as long as it takes.
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_WORKER_CONSUMER = "project.consumer:Consumer"
# Whoever asks for something does not wait for it: the sweep queues what could not be queued.
CELERY_TASK_PUBLISH_RETRY_POLICY = {"max_retries": 1, "interval_start": 0.0, "interval_step": 0.2, "interval_max": 0.2}
CELERY_BROKER_CONNECTION_TIMEOUT = 3
# One at a time: what a worker holds ahead waits behind its long tasks while another worker has nothing to do.
CELERY_WORKER_PREFETCH_MULTIPLIER = 1

MIDDLEWARE = [*MIDDLEWARE]
MIDDLEWARE.insert(MIDDLEWARE.index("django.middleware.security.SecurityMiddleware") + 1, "servestatic.middleware.ServeStaticMiddleware")
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "servestatic.storage.CompressedManifestStaticFilesStorage"},
}
STATIC_ROOT = ROOT / "staticfiles"
STATIC_FILES = "project.static_files.served_by_middleware"

SERVESTATIC_ALLOW_ALL_ORIGINS = False
# TLS ends at a proxy, which sends those who come without it to https; subdomains and browsers' own lists are for whoever owns the domain.
SILENCED_SYSTEM_CHECKS = [*SILENCED_SYSTEM_CHECKS, "security.W005", "security.W008", "security.W021"]
FILE_UPLOAD_TEMP_DIR = None
LOGGING = {"format": ENV.text("LOG_FORMAT") or "json", "level": ENV.text("LOG_LEVEL")}
