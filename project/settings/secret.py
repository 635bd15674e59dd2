"""The signing key, made once and kept in the data directory."""

import os
import secrets
from pathlib import Path


def secret_key(data_dir: Path) -> str:
    """The installation's key. Made on first use, readable by its owner alone.

    A folder that can't be written gets a key for this process only: the command that needs the folder says so itself.
    """
    path = data_dir / "secret_key"
    try:
        return path.read_text()
    except OSError:
        pass
    key = secrets.token_urlsafe(48)
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)  # the transcripts come to lie here as well
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:
        # Another process was first, or the folder is none.
        return path.read_text() if path.is_file() else key
    with os.fdopen(descriptor, "w") as file:
        file.write(key)
    return key
