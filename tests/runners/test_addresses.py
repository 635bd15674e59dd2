"""Which addresses a runner may have."""

import pytest

from sessions_app.runners.addresses import InvalidAddress, checked_url, events_url


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("http://127.0.0.1:8900", "http://127.0.0.1:8900"),
        ("  http://127.0.0.1:8900/  ", "http://127.0.0.1:8900"),
        ("http://127.8.9.1", "http://127.8.9.1"),
        ("http://localhost:1/agent/", "http://localhost:1/agent"),
        ("HTTPS://LocalHost/Agent", "https://localhost/Agent"),
        ("http://[::1]:8900", "http://[::1]:8900"),
    ],
)
def test_this_machine_is_always_allowed(given, kept):
    assert checked_url(given) == kept


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://runner.example", ["runner.example"]),
        ("https://Runner.Example", ["runner.EXAMPLE"]),
        ("https://one.agents.example:444", [".agents.example"]),
        ("http://10.1.2.3", ["10.0.0.0/8"]),
        ("http://[fd00::7]", ["fd00::/8"]),
        ("http://192.0.2.4", ["192.0.2.4"]),
    ],
)
def test_others_are_allowed_where_the_installation_names_them(url, allowed):
    assert checked_url(url, allowed)
    with pytest.raises(InvalidAddress, match="PALIMPSEST_RUNNER_HOSTS"):
        checked_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "", "   ", "127.0.0.1:8900", "ftp://127.0.0.1", "file:///etc/passwd", "javascript:alert(1)", "gopher://127.0.0.1", "http://",
        "http:///path", "http://user@127.0.0.1", "http://user:secret@127.0.0.1", "http://127.0.0.1@evil.example", "http://127.0.0.1?a=b",
        "http://127.0.0.1#", "http://127.0.0.1/?", "http://127.0.0.1/a/../b", "http://127.0.0.1/%2e%2e/b", "http://127.0.0.1:99999", "http://127.0.0.1:0",
        "http://127.0.0.1:x", "http://169.254.169.254/latest", "http://0.0.0.0", "http://[::]", "http://[::ffff:10.0.0.1]", "http://[fe80::1%25eth0]",
        "http://2130706433", "http://0x7f.1", "http://127.1", "http://localhost.", "http://localhost.evil.example", "http://evil-localhost",
        "http://127.0.0.1\\@evil.example", "http://127.0.0.1 .evil.example", "http://127.0.0.1\r\nHost: evil", "http://ⅼocalhost", "http://[::1",
        "http://127.0.0.1/" + "a" * 600,
    ],
)  # fmt: skip
def test_nothing_else_is(url):
    with pytest.raises(InvalidAddress):
        checked_url(url, ["runner.example", ".agents.example", "10.0.0.0/8"])


def test_a_suffix_is_not_its_own_name_and_matches_whole_labels_only():
    with pytest.raises(InvalidAddress):
        checked_url("http://agents.example", [".agents.example"])
    with pytest.raises(InvalidAddress):
        checked_url("http://evilagents.example", [".agents.example"])


def test_events_go_below_the_base_address():
    assert events_url("http://127.0.0.1/agent", "a/b") == "http://127.0.0.1/agent/v1/sessions/a%2Fb/events"
