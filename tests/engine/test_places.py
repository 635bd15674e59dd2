"""A root that paths share is named once."""

import pytest

from sessions_app.engine.places import DEEPEST, common_root, under


@pytest.mark.parametrize(
    ("paths", "cwd", "root"),
    [
        ([], "", ""),
        (["a.py", "b/c.py"], "/srv/app", ""),
        (["/srv/app/a.py", "/srv/app/b/c.py"], "", "/srv/app/"),
        (["/srv/app/a.py", "/srv/app/b/c.py", "/etc/hosts"], "", "/srv/app/"),
        (["/srv/app/a.py", "/etc/ssl/b", "/etc/hosts"], "", ""),
        (["/srv/a.py", "/srv/b.py"], "", ""),  # one directory is no root worth naming
        (["/srv/app/lib/a.py", "/srv/app/lib/b.py"], "/srv/app", "/srv/app/"),
        (["/srv/app/lib/a.py", "/srv/app/lib/b.py"], "/home/ben", "/srv/app/lib/"),
    ],
)
def test_the_root_is_the_working_directory_or_what_most_paths_share(paths, cwd, root):
    assert common_root(paths, cwd) == root


def test_a_path_of_nothing_but_directories_costs_no_more_than_it_is_deep():
    deep = "/d" * 250
    root = common_root([f"{deep}/{name}" for name in "abc"])
    assert root == "/d" * DEEPEST + "/"
    assert under(root, f"{deep}/a") == "d/" * (250 - DEEPEST) + "a"
