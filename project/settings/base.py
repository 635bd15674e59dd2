"""Settings that every form of the product shares."""

from datetime import timedelta
from pathlib import Path

from csp.constants import NONE, SELF

from project.settings.env import Env, is_on, public_address

ROOT = Path(__file__).resolve().parent.parent.parent
ENV = Env()

DEBUG = ENV.flag("DEBUG")
_public = public_address(ENV)
IS_HTTPS = _public is not None and _public.scheme == "https"

ALLOWED_HOSTS = ["127.0.0.1", "localhost", "[::1]", *ENV.items("ALLOWED_HOSTS")]
if _public is not None and _public.hostname:
    ALLOWED_HOSTS.append(_public.hostname)
CSRF_TRUSTED_ORIGINS = [f"{_public.scheme}://{_public.netloc}"] if _public is not None else []

INSTALLED_APPS = [
    "project.serving.Server",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "axes",
    "channels",
    "csp",
    "django_htmx",
    "template_partials",
    "sessions_app",
]
MIDDLEWARE = [
    "project.middleware.request_context",
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "sessions_app.api.middleware.error_shape",
    "sessions_app.views.request_size.bounded_bodies",
    "sessions_app.views.sign_in_middleware.SlidingSessions",
    "django.middleware.common.CommonMiddleware",
    "sessions_app.views.unseen.VisibleText",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "sessions_app.views.sign_in_middleware.SignInRequired",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "sessions_app.views.errors.refusals",
]
ROOT_URLCONF = "project.urls"
ASGI_APPLICATION = "project.application.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [ROOT / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "sessions_app.views.context.shell",
            ],
        },
    },
]
# Rendered entries and the counts of lists, in each process: what is lost is made again.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        "OPTIONS": {"MAX_ENTRIES": 4_000, "CULL_FREQUENCY": 4},
    },
}
STATIC_URL = "/static/"
STATICFILES_DIRS = [ROOT / "static"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
USE_I18N = False

LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "session-list"
LOGOUT_REDIRECT_URL = "sign-in"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
AXES_HANDLER = "sessions_app.services.throttle.Throttle"
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_FAILURE_LIMIT = ENV.positive("SIGN_IN_FAILURES")
AXES_COOLOFF_TIME = timedelta(minutes=ENV.positive("SIGN_IN_LOCK_MINUTES"))
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_RESET_ON_SUCCESS = True
AXES_DISABLE_ACCESS_LOG = True  # the event log tells of sign-ins
AXES_USERNAME_CALLABLE = "sessions_app.services.throttle.name_key"
AXES_CLIENT_IP_CALLABLE = "sessions_app.services.throttle.address_of"
AXES_VERBOSE = False
AXES_ENABLE_ADMIN = False
SILENCED_SYSTEM_CHECKS = ["axes.W002"]  # the page itself says what a lock means, without the middleware
PROXIES = ENV.number("PROXIES")

SESSION_ENGINE = "sessions_app.services.sign_in_store"
SESSION_IDLE = timedelta(minutes=ENV.positive("SESSION_IDLE_MINUTES"))
SESSION_COOKIE_AGE = ENV.positive("SESSION_HOURS") * 3600
SESSION_COOKIE_NAME = "palimpsest_session"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = IS_HTTPS
CSRF_COOKIE_SECURE = IS_HTTPS
CSRF_COOKIE_HTTPONLY = True  # pages carry the token themselves
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_FAILURE_VIEW = "sessions_app.views.errors.csrf_failed"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SECURE_HSTS_SECONDS = 31_536_000 if IS_HTTPS else 0  # said by `project.middleware`
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    },
}

CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_DEFAULT_QUEUE = "compactions"
CELERY_TASK_ROUTES = {"sessions_app.import_sessions": {"queue": "imports"}, "sessions_app.run_turn": {"queue": "turns"}}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True

UPLOAD_MAX_BYTES = ENV.number("UPLOAD_MAX_MB") * 1_000_000
DATA_UPLOAD_MAX_MEMORY_SIZE = 2_500_000
FILE_UPLOAD_HANDLERS = ["django.core.files.uploadhandler.TemporaryFileUploadHandler"]
SESSION_FLUSH = is_on(ENV.text("SESSION_FLUSH"))
RUNNER_HOSTS = ENV.items("RUNNER_HOSTS")
COMMAND_USER = ENV.text("USER")
HOST = ENV.text("HOST")
PORT = ENV.number("PORT")
SETS_ITSELF_UP = True
TASK_APPLICATION = "project.celery.with_tasks"
BACKGROUND_WORK = "project.embedded.BackgroundWork"
STATIC_FILES = "project.static_files.StaticFiles"
LOGGING_CONFIG = "project.logging.set_up"
LOGGING = {"format": ENV.text("LOG_FORMAT") or "console", "level": ENV.text("LOG_LEVEL")}
