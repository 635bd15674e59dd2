"""Paths as a reader wants them: under a common root that is named once."""

from collections.abc import Iterable

DEEPEST = 40
"""Directories below which no root is looked for: each is counted for every path that lies in it."""


def common_root(paths: Iterable[str], cwd: str = "") -> str:
    """The directory under which most of the paths lie: the working directory when it holds some, else what they share.

    Ends with a slash; empty when there is nothing worth naming once.
    """
    absolute = [path for path in paths if path.startswith("/")]
    root = cwd.rstrip("/") + "/" if cwd.startswith("/") and cwd.strip("/") else ""
    if root and any(path.startswith(root) for path in absolute):
        return root
    counts: dict[str, int] = {}
    for path in absolute:
        parents = path.split("/", DEEPEST + 1)[:-1][: DEEPEST + 1]
        for depth in range(3, len(parents) + 1):
            parent = "/".join(parents[:depth])
            counts[parent] = counts.get(parent, 0) + 1
    shared = [parent for parent, count in counts.items() if count >= 2 and count * 3 >= len(absolute) * 2]
    return max(shared, key=lambda parent: (len(parent), parent)) + "/" if shared else ""


def under(root: str, path: str) -> str:
    """The path from the root on; as it is when it lies elsewhere."""
    return path[len(root) :] if root and path.startswith(root) and len(path) > len(root) else path
