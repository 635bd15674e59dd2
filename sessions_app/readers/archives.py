"""Members of zip, tar and gzip files, one after the other, as streams. Nothing is written, and no name is trusted."""

import contextlib
import gzip
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, cast

CHUNK_BYTES = 1 << 18
MAX_MEMBERS = 10_000
MAX_NAME_BYTES = 4_096
MAX_TAR_HEADER_BYTES = 1 << 20  # of an extended header, which is read into memory
MAX_ZIP_DIRECTORY_BYTES = 8_000_000
_ZIP_END, _ZIP_END_BYTES, _ZIP_COMMENT_BYTES = b"PK\x05\x06", 22, 65_535
_TAR_MAGIC = slice(257, 262)
_NESTED = (".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".7z", ".rar")
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, struct.error, tarfile.TarError, NotImplementedError, UnicodeError, gzip.BadGzipFile)


class ArchiveError(Exception):
    """The archive as a whole can't be taken. The message says why, without a consequence."""


@dataclass
class Member:
    """One file of an archive. `refusal` says why its bytes are not to be had; then `chunks` is empty.

    `chunks` can be read until the next member is asked for, and raises `ArchiveError` when the bytes are not what was promised.
    """

    name: str
    refusal: str = ""
    chunks: Iterable[bytes] = field(default=(), repr=False)


def kind_of(head: bytes) -> str:
    """`zip`, `tar` or `gzip` by the first 512 bytes; empty for anything else."""
    if head.startswith((b"PK\x03\x04", _ZIP_END)):
        return "zip"
    if head.startswith(b"\x1f\x8b\x08"):
        return "gzip"
    return "tar" if head[_TAR_MAGIC] == b"ustar" else ""


def members(file: BinaryIO, kind: str, *, name: str) -> Iterator[Member]:
    """Every file of the archive, in its order. `name` is the archive's own, for a gzip file that holds one file.

    Folders are left out. Raises `ArchiveError` for an archive that is damaged, has too many members or overlapping ones.
    """
    seen: set[str] = set()
    try:
        for number, member in enumerate(_raw_members(file, kind, name), start=1):
            if number > MAX_MEMBERS:
                raise ArchiveError(f"it holds more than {MAX_MEMBERS:,} files; unpack it and import the folder")
            member.name, trick = _plain(member.name)
            member.refusal = member.refusal or trick or ("a second file of this name" if member.name in seen else "")
            if member.refusal:
                member.chunks = ()
            seen.add(member.name)
            yield member
    except _BROKEN as error:
        raise ArchiveError(f"it is damaged ({_said(error)})") from error


def _raw_members(file: BinaryIO, kind: str, name: str) -> Iterator[Member]:
    file.seek(0)
    if kind == "zip":
        yield from _zip_members(file)
    elif kind == "tar":
        yield from _tar_members(file, file.read(512))
    else:
        unpacked = cast("BinaryIO", gzip.GzipFile(fileobj=file, mode="rb"))
        head = unpacked.read(512)
        if head[_TAR_MAGIC] == b"ustar":
            yield from _tar_members(unpacked, head)
        else:
            yield Member(name=name.removesuffix(".gz"), chunks=_guarded(_rest(unpacked, head)))


def _plain(name: str) -> tuple[str, str]:
    """(a name that can be shown and looked up, why a name like that is not taken)."""
    shown = name.replace("\\", "/")
    trick = ""
    if "\0" in shown:
        trick = "its name holds a NUL"
    elif shown.startswith("/") or shown[1:2] == ":":
        trick = "its name is an absolute path"
    elif ".." in shown.split("/"):
        trick = "its name leads out of the archive"
    elif shown.lower().endswith(_NESTED):
        trick = "an archive inside an archive is not opened"
    elif len(shown.encode("utf-8", "replace")) > MAX_NAME_BYTES:
        trick = "its name is too long"
    readable = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in shown)
    return readable.encode("utf-8", "replace").decode()[:MAX_NAME_BYTES], trick


def _zip_members(file: BinaryIO) -> Iterator[Member]:
    _check_zip_directory(file)
    with zipfile.ZipFile(file) as archive:
        infos = [info for info in archive.infolist() if not info.is_dir()]
        _check_overlap(infos)
        for info in infos:
            mode = info.external_attr >> 16
            refusal = ""
            if info.flag_bits & 0x1:
                refusal = "it is encrypted"
            elif mode and not stat.S_ISREG(mode) and stat.S_IFMT(mode):
                refusal = "it is a link or a device, not a file"
            # The name as it stands in the file: what comes after a NUL is cut off in `filename`.
            yield Member(name=info.orig_filename, refusal=refusal, chunks=() if refusal else _guarded(_zip_chunks(archive, info)))


def _check_zip_directory(file: BinaryIO) -> None:
    """Looks at the end of a zip file before its whole directory is read into memory."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _ZIP_END_BYTES - _ZIP_COMMENT_BYTES))
    tail = file.read()
    at = tail.rfind(_ZIP_END)
    if at < 0 or len(tail) - at < _ZIP_END_BYTES:
        raise ArchiveError("it is cut off: the directory at its end is missing")
    entries, directory_bytes = struct.unpack("<HL", tail[at + 10 : at + 16])
    if entries == 0xFFFF or directory_bytes == 0xFFFFFFFF or directory_bytes > MAX_ZIP_DIRECTORY_BYTES or entries > 6 * MAX_MEMBERS:
        raise ArchiveError(f"it holds more than {MAX_MEMBERS:,} files, or its directory says so")


def _check_overlap(infos: list[zipfile.ZipInfo]) -> None:
    end = 0
    for info in sorted(infos, key=lambda info: info.header_offset):
        if info.header_offset < end:
            raise ArchiveError(f"its members overlap at {info.filename[:100]!r}")
        end = info.header_offset + 30 + info.compress_size


def _zip_chunks(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[bytes]:
    unpacked = 0
    with archive.open(info) as stream:
        while chunk := stream.read(CHUNK_BYTES):
            unpacked += len(chunk)
            yield chunk
    if unpacked != info.file_size:
        raise ArchiveError(f"{info.filename[:100]!r} says that it has {info.file_size:,} bytes, and has {unpacked:,}")


def _tar_members(file: BinaryIO, block: bytes) -> Iterator[Member]:
    """Walks the blocks itself: the library reads extended headers into memory, whatever length they claim."""
    name = ""
    while block.strip(b"\0"):
        header = tarfile.TarInfo.frombuf(_whole(block, 512), "utf-8", "surrogateescape")
        if header.size < 0:
            raise ArchiveError("a member claims less than no bytes")
        if header.type in {tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE}:
            name = _extended_name(header, _extended(file, header.size)) or name
        else:
            length = header.size if header.isreg() else 0
            chunks = _Window(file, length)
            if not header.isdir():
                refusal = "" if header.type in {tarfile.REGTYPE, tarfile.AREGTYPE} else "it is a link or a device, not a file"
                yield Member(name=name or header.name, refusal=refusal, chunks=_guarded(chunks))
            name = ""
            chunks.skip()
            _whole(file.read(-length % 512), -length % 512)
        block = file.read(512)


def _extended(file: BinaryIO, size: int) -> bytes:
    if size > MAX_TAR_HEADER_BYTES:
        raise ArchiveError("an extended header is longer than a megabyte")
    data = _whole(file.read(size), size)
    _whole(file.read(-size % 512), -size % 512)
    return data


def _extended_name(header: tarfile.TarInfo, data: bytes) -> str:
    if header.type == tarfile.GNUTYPE_LONGNAME:
        return data.rstrip(b"\0").decode("utf-8", "surrogateescape")
    if header.type != tarfile.XHDTYPE:
        return ""
    found = ""
    while data:
        length_text, _, _ = data.partition(b" ")
        length = int(length_text) if length_text.isdigit() else 0
        if not 0 < length <= len(data):
            raise ArchiveError("an extended header can't be read")
        key, _, value = data[len(length_text) + 1 : length - 1].partition(b"=")
        if key in {b"size", b"GNU.sparse.major"}:
            raise ArchiveError("it holds a sparse or very large file")
        found = value.decode("utf-8", "surrogateescape") if key == b"path" else found
        data = data[length:]
    return found


class _Window:
    """The next bytes of a stream, as chunks."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._left = size

    def __iter__(self) -> Iterator[bytes]:
        while self._left:
            chunk = self._file.read(min(self._left, CHUNK_BYTES))
            if not chunk:
                raise ArchiveError("it is cut off in the middle of a file")
            self._left -= len(chunk)
            yield chunk

    def skip(self) -> None:
        for _ in self:
            pass


def _whole(data: bytes, size: int) -> bytes:
    if len(data) != size:
        raise ArchiveError("it is cut off")
    return data


def _rest(stream: BinaryIO, head: bytes) -> Iterator[bytes]:
    chunk = head
    while chunk:
        yield chunk
        chunk = stream.read(CHUNK_BYTES)


def _guarded(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The chunks, with what the library raises in one kind of error."""
    try:
        yield from chunks
    except _BROKEN as error:
        raise ArchiveError(f"it is damaged ({_said(error)})") from error


def _said(error: BaseException) -> str:
    with contextlib.suppress(Exception):
        return str(error)[:200] or type(error).__name__
    return type(error).__name__
