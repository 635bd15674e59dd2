"""How a child process of a command begins, and that it does not outlive its parent."""

import multiprocessing
import os
import threading

import django


def begin() -> None:
    """For `initializer` of a pool. Loads the application, where a fork has not; the process then ends as soon as its parent has.

    A child whose parent was killed would wait for its next task for ever. In a module of its own, which can be imported before
    the application is loaded.
    """
    django.setup()
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # what it had not committed is undone by the database
