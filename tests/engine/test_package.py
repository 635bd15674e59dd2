"""The package as a way in: every name is there, and none costs anything before it is asked for."""

import subprocess
import sys

import pytest

from sessions_app import engine


@pytest.mark.parametrize("name", engine.__all__)
def test_every_name_is_there(name):
    assert getattr(engine, name) is getattr(engine, name)
    assert name in dir(engine)


def test_another_name_is_told_as_python_tells_it():
    with pytest.raises(AttributeError, match="has no attribute 'no_such_thing'"):
        engine.no_such_thing  # noqa: B018  asking is what is tested
    assert not hasattr(engine, "no_such_thing")


def test_who_needs_a_word_of_it_loads_nothing_else():
    look = (
        "import sys; import sessions_app.engine.terms; "
        "print(sorted(name.rpartition('.')[2] for name in sys.modules if name.startswith('sessions_app.engine.')))"
    )
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['terms']"


def test_the_function_run_is_no_module():
    look = "import sessions_app.engine.attempt; from sessions_app.engine import run; print(callable(run))"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"
