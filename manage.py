#!/usr/bin/env python3
"""Palimpsest's command line. On first use it makes `.venv` from the hash lock and goes on inside it.

Only the standard library may be imported before `ensure_environment` has run.
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
ENVIRONMENT = ROOT / ".venv"
DEVELOPMENT_COMMANDS = frozenset({"test", "check_all"})


def ensure_environment(command: str) -> None:
    """Re-executes this program inside `.venv`, making or refreshing it first.

    A person with an active environment of their own (`VIRTUAL_ENV`, or any interpreter that is not the
    machine's) is left alone. Exits with one sentence when Python is too old or `venv` is missing.
    """
    if sys.version_info < (3, 11):
        sys.exit(f"Palimpsest needs Python 3.11 or newer; this is {sys.version.split()[0]}. Nothing was changed.")
    inside = Path(sys.prefix).resolve() == ENVIRONMENT.resolve()
    if sys.prefix != sys.base_prefix and not inside:
        return
    lock = ROOT / ("requirements-dev.lock" if command in DEVELOPMENT_COMMANDS else "requirements.lock")
    wanted = hashlib.sha256(lock.read_bytes()).hexdigest()
    if _is_installed(lock.name, wanted):
        if not inside:
            python = str(ENVIRONMENT / "bin" / "python")
            os.execv(python, [python, *sys.argv])
        return
    if not (ENVIRONMENT / "bin" / "python").exists() and not inside:
        _make_environment()
    python = str(ENVIRONMENT / "bin" / "python")
    print(f"Installing the packages of {lock.name} into .venv; this happens once.", file=sys.stderr)
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "-r", str(lock)]
    if subprocess.run(install, check=False).returncode:
        sys.exit("The packages could not be installed (pip says why above). Nothing else was changed; run the command again to retry.")
    (ENVIRONMENT / f"{lock.name}.sha256").write_text(wanted)
    os.execv(python, [python, *sys.argv])


def _is_installed(lock_name: str, wanted: str) -> bool:
    # The development lock holds everything that the other one does, so its stamp serves for both.
    for name in {lock_name, "requirements-dev.lock"}:
        stamp, lock = ENVIRONMENT / f"{name}.sha256", ROOT / name
        current = wanted if name == lock_name else hashlib.sha256(lock.read_bytes()).hexdigest()
        if stamp.exists() and stamp.read_text() == current:
            return True
    return False


def _make_environment() -> None:
    try:
        import ensurepip  # noqa: F401, PLC0415  Debian splits it off: venv imports, then fails half-way
        import venv  # noqa: PLC0415
    except ImportError:
        sys.exit(
            "Python's venv module is missing, so no environment could be made and nothing was changed. On Debian: apt install python3-venv"
        )
    print("Making the environment .venv.", file=sys.stderr)
    try:
        venv.create(ENVIRONMENT, with_pip=True)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"The environment {ENVIRONMENT} could not be made ({error}). Remove that folder if it is there, and try again.")


def run_tests(arguments: list[str]) -> int:
    """Runs pytest on the test settings, whatever DJANGO_SETTINGS_MODULE says: `manage.py` sets it, and it would win."""
    import pytest  # noqa: PLC0415

    os.environ["DJANGO_SETTINGS_MODULE"] = "project.settings.test"
    return int(pytest.main(arguments))


def version() -> str:
    """The product's version, as `pyproject.toml` has it, and what it runs on."""
    import tomllib  # noqa: PLC0415  an older Python has none, and is told so

    import django  # noqa: PLC0415

    product = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    return f"Palimpsest {product} (Django {django.__version__}, Python {sys.version.split()[0]})"


def apply_data_directory(arguments: list[str]) -> None:
    """Puts the value of `--data-dir` where the settings look for it: they are read before any command is."""
    for place, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name == "--data-dir":
            following = arguments[place + 1 : place + 2]
            os.environ["PALIMPSEST_DATA_DIR"] = value if equals else "".join(following)


def main() -> None:
    command = sys.argv[1] if len(sys.argv) > 1 else ""
    os.chdir(ROOT) if command in DEVELOPMENT_COMMANDS else None
    ensure_environment(command)
    if command == "version" or sys.argv[1:] == ["--version"]:
        print(version())
        return
    if command == "test":
        sys.exit(run_tests(sys.argv[2:]))
    if command == "up":
        apply_data_directory(sys.argv[2:])
    if command == "check_all":
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings.test")
    from django.core.exceptions import ImproperlyConfigured  # noqa: PLC0415
    from django.core.management import execute_from_command_line  # noqa: PLC0415
    from django.db import DatabaseError  # noqa: PLC0415

    try:
        import project  # noqa: F401, PLC0415  it chooses the settings by the environment

        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(str(error))
    except DatabaseError as error:  # of Django's own commands, such as migrate: ours say it themselves
        from sessions_app.management import preflight  # noqa: PLC0415

        if "--traceback" in sys.argv or not preflight.is_about_the_database(error):
            raise
        sys.exit(preflight.unusable(error, "What was not finished by then was not done."))


if __name__ == "__main__":
    main()
