"""Settings from the environment: typed, complete, and loud when wrong."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from project.settings.env import VARIABLES, Env, data_directory, public_address
from project.settings.secret import secret_key

ROOT = Path(__file__).resolve().parents[2]


def test_defaults_are_those_of_a_single_machine():
    env = Env({})
    assert (env.text("HOST"), env.number("PORT"), env.flag("DEBUG"), env.items("ALLOWED_HOSTS")) == ("127.0.0.1", 8000, False, [])
    assert data_directory(env, Path("/srv/checkout")) == Path("/srv/checkout/data")


def test_a_misspelt_variable_is_refused_with_the_names_that_exist():
    with pytest.raises(ImproperlyConfigured, match=r"Unknown setting PALIMPSEST_PROT.*PALIMPSEST_PORT"):
        Env({"PALIMPSEST_PROT": "9000"})


@pytest.mark.parametrize(("name", "value"), [("PALIMPSEST_PORT", "eight"), ("PALIMPSEST_UPLOAD_MAX_MB", "")])
def test_a_malformed_value_is_refused_by_name(name, value):
    with pytest.raises(ImproperlyConfigured, match=name):
        Env({name: value})


def test_every_variable_says_what_it_is_for():
    assert all(variable.meaning.endswith(".") for variable in VARIABLES)


def test_the_signing_key_is_made_once_and_is_for_its_owner_alone(tmp_path):
    key = secret_key(tmp_path / "data")
    assert secret_key(tmp_path / "data") == key
    assert stat.S_IMODE((tmp_path / "data" / "secret_key").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
    assert len(key) >= 50


def cookie_settings(public_url: str, tmp_path: Path) -> str:
    code = (
        "import django; django.setup(); from django.conf import settings as s; "
        "print(s.SESSION_COOKIE_SECURE, s.CSRF_COOKIE_SECURE, s.CSRF_TRUSTED_ORIGINS, 'console.example' in s.ALLOWED_HOSTS)"
    )
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PALIMPSEST_")} | {
        "DJANGO_SETTINGS_MODULE": "project.settings.embedded",
        "PALIMPSEST_PUBLIC_URL": public_url,
        "PALIMPSEST_DATA_DIR": str(tmp_path),
    }
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_behind_https_cookies_are_secure_and_the_public_host_is_allowed(tmp_path):
    assert cookie_settings("https://console.example", tmp_path) == "True True ['https://console.example'] True"


def test_without_a_public_address_cookies_work_over_plain_http_on_this_machine(tmp_path):
    assert cookie_settings("", tmp_path) == "False False [] False"


@pytest.mark.parametrize(
    "given", ["console.example", "console.example:8000", "https://", "ftp://console.example", "http://[1", "http://a:b/"]
)
def test_half_a_public_address_is_refused_because_it_would_leave_cookies_and_hosts_as_they_are(given):
    with pytest.raises(ImproperlyConfigured, match=r"PALIMPSEST_PUBLIC_URL must be like https://"):
        public_address(Env({"PALIMPSEST_PUBLIC_URL": given}))
