"""Combinations of settings that the product refuses before they do harm."""

import pytest

from project import checks


class SyncOnly:
    """A middleware as many are: it can't be awaited."""

    async_capable = False


def ids(messages) -> list[str]:
    return [message.id for message in messages]


def test_the_default_form_has_nothing_to_complain_about():
    found = [checks.middleware_is_async_capable(), checks.live_updates_reach_every_process(), checks.origins_are_checked()]
    assert [ids(messages) for messages in found] == [[], [], []]


def test_a_sync_only_middleware_is_an_error(settings):
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "tests.project.test_checks.SyncOnly"]
    assert ids(checks.middleware_is_async_capable()) == ["palimpsest.E001"]


def test_a_shared_broker_with_a_layer_for_one_process_is_an_error(settings):
    settings.CELERY_BROKER_URL = "redis://127.0.0.1/0"
    assert ids(checks.live_updates_reach_every_process()) == ["palimpsest.E002"]


def test_allowing_every_host_is_an_error_because_it_ends_the_origin_check(settings):
    settings.ALLOWED_HOSTS = ["*"]
    assert ids(checks.origins_are_checked()) == ["palimpsest.E003"]


@pytest.mark.parametrize(("hosts", "expected"), [(["127.0.0.1"], []), (["console.example"], ["palimpsest.W004"])])
def test_debug_with_other_hosts_is_a_warning(settings, hosts, expected):
    settings.DEBUG, settings.ALLOWED_HOSTS = True, hosts
    assert ids(checks.debug_stays_at_home()) == expected
