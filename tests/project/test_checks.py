"""Combinations of settings that the product refuses before they do harm."""

import pytest
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured

from project import checks

MEMORY, REDIS = "memory://localhost/", "redis://127.0.0.1/0"
SQLITE, POSTGRESQL = "project.sqlite", "project.postgresql"
ONE_PROCESS, CROSSING = "project.layers.LoopSafeInMemoryChannelLayer", "channels_redis.pubsub.RedisPubSubChannelLayer"


class SyncOnly:
    """A middleware as many are: it can't be awaited."""

    async_capable = False


def ids(messages) -> list[str]:
    return [message.id for message in messages]


@pytest.fixture
def form(settings, monkeypatch):
    """Sets the parts of a form; left out, they are those of the embedded one."""

    def set_up(broker: str = MEMORY, database: str = SQLITE, layer: str = ONE_PROCESS) -> None:
        settings.CELERY_BROKER_URL = broker
        monkeypatch.setitem(settings.DATABASES["default"], "ENGINE", database)
        settings.CHANNEL_LAYERS = {"default": {"BACKEND": layer}}

    return set_up


def found_by_all() -> list[str]:
    return ids(run_checks(tags=[checks.OURS]))


def test_both_forms_have_nothing_to_complain_about(form):
    form()
    assert found_by_all() == []
    form(REDIS, POSTGRESQL, CROSSING)
    assert found_by_all() == []


def test_a_sync_only_middleware_is_an_error(settings):
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "tests.project.test_checks.SyncOnly"]
    assert ids(checks.middleware_is_async_capable()) == ["palimpsest.E001"]


@pytest.mark.parametrize(
    ("broker", "database", "said"), [(REDIS, POSTGRESQL, "the broker is shared"), (MEMORY, POSTGRESQL, "the database is shared")]
)
def test_anything_shared_with_a_layer_for_one_process_is_an_error_that_names_it(form, broker, database, said):
    form(broker, database)
    messages = checks.live_updates_reach_every_process()
    assert ids(messages) == ["palimpsest.E002"]
    assert said in messages[0].msg


def test_a_shared_database_with_a_queue_in_memory_is_an_error(form):
    form(MEMORY, POSTGRESQL, CROSSING)
    assert found_by_all() == ["palimpsest.E005"]


def test_a_shared_queue_with_a_database_for_one_machine_is_an_error(form):
    form(REDIS, SQLITE, CROSSING)
    assert found_by_all() == ["palimpsest.E006"]


@pytest.mark.parametrize("layer", ["channels_redis.pubsub.NoSuchLayer", "no_such_package.Layer"])
def test_a_layer_that_cannot_be_made_is_an_error(form, layer):
    form(layer=layer)
    assert found_by_all() == ["palimpsest.E007"]


def test_redis_core_layer_is_an_error_because_it_drops_messages(form):
    form(REDIS, POSTGRESQL, checks.CORE_REDIS_LAYER)
    assert found_by_all() == ["palimpsest.E008"]


def test_a_process_that_no_command_starts_is_refused_in_the_same_words(form):
    form(MEMORY, POSTGRESQL, CROSSING)
    with pytest.raises(ImproperlyConfigured, match=r"no worker would ever see them\. Name a broker .* Nothing was started\.$"):
        checks.refuse_unsafe_settings()
    with pytest.raises(ImproperlyConfigured, match=r"Pages alone need a database and a broker .* Nothing was started\.$"):
        checks.refuse_work_that_nobody_does()


def test_pages_are_refused_until_their_files_are_collected(settings, tmp_path):
    settings.STATIC_ROOT = tmp_path
    with pytest.raises(ImproperlyConfigured, match=r"Run: python3 manage\.py collectstatic"):
        checks.refuse_missing_static_files()
    (tmp_path / "staticfiles.json").touch()
    checks.refuse_missing_static_files()


def test_allowing_every_host_is_an_error_because_it_ends_the_origin_check(settings):
    settings.ALLOWED_HOSTS = ["*"]
    assert ids(checks.origins_are_checked()) == ["palimpsest.E003"]


@pytest.mark.parametrize(("hosts", "expected"), [(["127.0.0.1"], []), (["console.example"], ["palimpsest.W004"])])
def test_debug_with_other_hosts_is_a_warning(settings, hosts, expected):
    settings.DEBUG, settings.ALLOWED_HOSTS = True, hosts
    assert ids(checks.debug_stays_at_home()) == expected
