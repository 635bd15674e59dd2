"""The environment alone chooses the form of the product, for every way in; half a choice is refused in one sentence."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from project.form import EMBEDDED, SERVER, settings_module

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
WHOLE = {
    "PALIMPSEST_DATABASE_URL": "postgres://palimpsest@127.0.0.1:1/palimpsest",
    "PALIMPSEST_REDIS_URL": "redis://127.0.0.1:1/0",
    "PALIMPSEST_SECRET_KEY": "k" * 50,
}


def run(*command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    names = ("PALIMPSEST_", "DJANGO_", "PYTEST_", "DATABASE_URL", "REDIS_URL", "BROKER_URL")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(names)}
    return subprocess.run(
        [str(part) for part in command], cwd=ROOT, env=kept | environment, capture_output=True, text=True, timeout=150, check=False
    )


def settings_of(expression: str, **environment: str) -> str:
    code = f"import project; from django.conf import settings as s; import django; django.setup(); print(({expression}))"
    done = run(sys.executable, "-c", code, **environment)
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize("name", ["DATABASE_URL", "REDIS_URL", "BROKER_URL", "PALIMPSEST_DATABASE_URL"])
def test_any_service_chooses_the_distributed_form(name):
    assert settings_module({name: "x://y"}) == SERVER
    assert settings_module({name: ""}) == settings_module({}) == EMBEDDED


def test_the_short_names_of_hosting_platforms_are_read_and_the_long_ones_win(tmp_path):
    short = {name.removeprefix("PALIMPSEST_"): value for name, value in WHOLE.items() if not name.endswith("KEY")}
    given = short | {
        "PALIMPSEST_SECRET_KEY": "k" * 50,
        "PALIMPSEST_REDIS_URL": "redis://127.0.0.1:2/3",
        "PALIMPSEST_DATA_DIR": str(tmp_path),
    }
    assert settings_of("s.DATABASES['default']['NAME'], s.CELERY_BROKER_URL", **given) == "('palimpsest', 'redis://127.0.0.1:2/3')"


def test_the_distributed_form_has_a_pool_a_crossing_layer_and_both_queues(tmp_path):
    given = WHOLE | {"PALIMPSEST_BROKER_URL": "amqp://127.0.0.1:1//", "PALIMPSEST_DATA_DIR": str(tmp_path)}
    found = "s.DATABASE_POOL, s.CHANNEL_LAYERS['default']['BACKEND'], s.CELERY_BROKER_URL"
    assert settings_of(found, **given) == "(10, 'channels_redis.pubsub.RedisPubSubChannelLayer', 'amqp://127.0.0.1:1//')"
    assert (
        settings_of("[queue.name for queue in s.CELERY_TASK_QUEUES], s.LOGGING['format']", **given)
        == "(['compactions', 'imports', 'turns'], 'json')"
    )


def test_behind_https_browsers_are_told_to_use_it_for_a_year(tmp_path):
    given = WHOLE | {"PALIMPSEST_PUBLIC_URL": "https://console.example", "PALIMPSEST_DATA_DIR": str(tmp_path)}
    assert settings_of("s.SECURE_HSTS_SECONDS, s.SESSION_COOKIE_SECURE", **given) == "(31536000, True)"


def test_djangos_own_checks_of_a_deployment_find_nothing(tmp_path):
    key = "check_6Qd1Zs8Lr3Wm5Tx7Bn9Vc2Kf4Hg0Jp-Ya_Eu" * 2
    given = WHOLE | {"PALIMPSEST_PUBLIC_URL": "https://console.example", "PALIMPSEST_DATA_DIR": str(tmp_path), "PALIMPSEST_SECRET_KEY": key}
    done = run(sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING", **given)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"PALIMPSEST_DATABASE_URL": ""}, "PALIMPSEST_DATABASE_URL is missing"),
        ({"PALIMPSEST_DATABASE_URL": "sqlite:///x"}, "PALIMPSEST_DATABASE_URL must begin with postgres://"),
        ({"PALIMPSEST_DATABASE_URL": "postgres://127.0.0.1/"}, "names no database"),
        ({"PALIMPSEST_REDIS_URL": ""}, "PALIMPSEST_REDIS_URL is missing"),
        ({"PALIMPSEST_BROKER_URL": "sqla+sqlite:///x"}, "PALIMPSEST_BROKER_URL must begin with redis://"),
        ({"PALIMPSEST_SECRET_KEY": ""}, "PALIMPSEST_SECRET_KEY is missing"),
        ({"PALIMPSEST_SECRET_KEY": "short"}, "it needs 50"),
        ({"PALIMPSEST_DATABASE_POOL": "0"}, "PALIMPSEST_DATABASE_POOL must be at least 1"),
    ],
)
def test_half_a_distributed_form_is_refused_in_one_sentence(changed, said):
    done = run(sys.executable, "manage.py", "sweep", **(WHOLE | changed))
    assert done.returncode == 1
    assert said in done.stderr
    assert "Nothing was started." in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


def test_a_server_for_pages_alone_is_refused_where_no_worker_would_see_its_requests(tmp_path):
    done = run(BIN / "daphne", "-p", "0", "project.asgi:application", PALIMPSEST_DATA_DIR=str(tmp_path))
    assert done.returncode != 0
    assert "manage.py up` runs the whole product" in done.stderr


def test_a_database_that_is_away_is_one_sentence_that_says_what_to_do(tmp_path):
    done = run(sys.executable, "manage.py", "sweep", **(WHOLE | {"PALIMPSEST_DATA_DIR": str(tmp_path)}))
    assert done.returncode == 1
    assert "Start its server, or correct PALIMPSEST_DATABASE_URL." in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
