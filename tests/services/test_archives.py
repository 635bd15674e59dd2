"""Archives of session files: taken member by member, or refused as a whole before anything is stored."""

import gzip
import io
import re
import stat
import struct
import tarfile
import zipfile
from pathlib import Path

import pytest
from django.core.management import call_command

from sessions_app.models import ImportRun, Session
from sessions_app.models.import_run import ImportState
from sessions_app.readers import archives
from sessions_app.services import imports
from tests.importing import ACTOR
from tests.readers.rows import SESSION, encode, prompt
from tests.services.import_scenes import rows, the_session

DATA = encode(rows())
OTHER = "22222222-2222-4333-8444-555555555555"
NAME = f"projects/x/{SESSION}.jsonl"


def other() -> bytes:
    return encode([prompt("o1", None, "Another session") | {"sessionId": OTHER}])


def zipped(path: Path, members: dict[str, bytes] | list[tuple[zipfile.ZipInfo | str, bytes]], **options) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, **options) as archive:
        for name, data in members.items() if isinstance(members, dict) else members:
            archive.writestr(name, data, zipfile.ZIP_DEFLATED)
    return path


def tarred(path: Path, members: list[tuple[tarfile.TarInfo | str, bytes]], mode="w:gz", style: int = tarfile.GNU_FORMAT) -> Path:
    with tarfile.open(path, mode, format=style) as archive:
        for told, data in members:
            info = tarfile.TarInfo(told) if isinstance(told, str) else told
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def take(path: Path) -> ImportRun:
    return imports.import_paths(actor=ACTOR, paths=[path])


def by_name(run: ImportRun) -> dict[str, dict]:
    return {file["name"].partition(".zip/")[2] or file["name"].partition(".gz/")[2]: file for file in run.files}


@pytest.fixture(autouse=True)
def data_folder(settings, tmp_path):
    settings.DATA_DIR = tmp_path / "data"
    yield
    uploads = settings.DATA_DIR / "uploads"
    assert not uploads.exists() or list(uploads.iterdir()) == []  # whatever happened, nothing is left lying about


@pytest.fixture
def source(tmp_path) -> Path:
    """A folder for archives, apart from the data."""
    folder = tmp_path / "given"
    folder.mkdir()
    return folder


@pytest.mark.django_db
@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz", "tar-pax", "tar-gnu"])
def test_every_session_of_an_archive_is_imported_and_named(source, kind):
    long = "a/" * 80 + f"{OTHER}.jsonl"
    given = [(NAME, DATA), (long, other()), ("projects/README.md", b"hello")]
    if kind == "zip":
        path = zipped(source / "all.zip", dict(given))
    else:
        formats = {"tar-pax": tarfile.PAX_FORMAT, "tar-gnu": tarfile.GNU_FORMAT}
        path = tarred(source / "all.gz", given, "w:gz" if kind == "tar.gz" else "w", formats.get(kind, tarfile.GNU_FORMAT))
    run = take(path)
    assert run.state == ImportState.COMPLETED
    assert {name: file["state"] for name, file in by_name(run).items()} == {NAME: "new", long: "new", "projects/README.md": "skipped"}
    assert the_session().is_complete
    assert Session.objects.listed().count() == 2
    again = take(path)
    assert again.counts["sources_unchanged"] == 2
    assert Session.objects.listed().count() == 2


@pytest.mark.django_db
def test_one_packed_file_is_taken_as_the_file(source):
    path = source / f"{SESSION}.jsonl.gz"
    path.write_bytes(gzip.compress(DATA))
    run = take(path)
    assert (run.state, run.counts["sources_new"]) == (ImportState.COMPLETED, 1)
    assert the_session().entry_count == 16


@pytest.mark.django_db
def test_sub_agents_of_an_archive_hang_under_their_session_wherever_they_stand(source):
    agent = [prompt("g1", None, "Find totals", isSidechain=True, agentId="abc")]
    path = tarred(source / "all.gz", [(f"p/{SESSION}/subagents/agent-abc.jsonl", encode(agent)), (f"p/{SESSION}.jsonl", DATA)])
    run = take(path)
    assert run.state == ImportState.COMPLETED, run.error
    assert Session.objects.listed().count() == 1


def info(name: str, mode: int = 0, **more) -> zipfile.ZipInfo:
    told = zipfile.ZipInfo(name)
    told.external_attr = mode << 16
    for key, value in more.items():
        setattr(told, key, value)
    return told


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("member", "says"),
    [
        ("../../evil.jsonl", "leads out of the archive"),
        ("..\\..\\evil.jsonl", "leads out of the archive"),
        ("/etc/evil.jsonl", "absolute path"),
        ("C:\\evil.jsonl", "absolute path"),
        (info("link.jsonl", stat.S_IFLNK | 0o777), "a link or a device"),
        (info("device.jsonl", stat.S_IFCHR | 0o600), "a link or a device"),
        ("inner.zip", "an archive inside an archive"),
        ("inner.tar.gz", "an archive inside an archive"),
        (NAME, "a second file of this name"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_with_a_trick_is_refused_by_name_and_the_others_are_taken(source, tmp_path, member, says):
    path = zipped(source / "tricks.zip", [(NAME, DATA), (member, other())])
    run = take(path)
    failed = [file for file in run.files if file["state"] == "failed"]
    assert [says in file["error"] for file in failed] == [True]
    assert run.state == ImportState.FAILED
    assert the_session().is_complete
    assert Session.objects.listed().count() == 1
    assert not list(tmp_path.rglob("evil*"))


@pytest.mark.django_db
@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE])
def test_links_pipes_and_devices_of_a_tar_are_refused_by_name(source, kind):
    trick = tarfile.TarInfo("trick.jsonl")
    trick.type, trick.linkname = kind, "/etc/passwd"
    path = tarred(source / "tricks.gz", [(trick, b""), (NAME, DATA)])
    run = take(path)
    assert "a link or a device" in by_name(run)["trick.jsonl"]["error"]
    assert the_session().is_complete


@pytest.mark.django_db
def test_a_name_with_a_nul_or_control_characters_is_refused_or_made_readable(source):
    path = zipped(source / "names.zip", {"evilX.jsonl": other(), "line\nbreak\x1b[31m.jsonl": DATA})
    path.write_bytes(path.read_bytes().replace(b"evilX.jsonl", b"evil\0.jsonl"))
    run = take(path)
    names = [file["name"] for file in run.files]
    assert not any(char in name for name in names for char in "\0\n\x1b")
    assert any("holds a NUL" in file.get("error", "") for file in run.files)
    assert the_session().is_complete


@pytest.mark.django_db
def test_an_encrypted_member_is_refused_by_name(source):
    path = zipped(source / "secret.zip", {NAME: DATA, "locked.jsonl": other()})
    data = bytearray(path.read_bytes())
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = data.rindex(mark)
        data[at + flags] |= 1
    path.write_bytes(data)
    assert "it is encrypted" in by_name(take(path))["locked.jsonl"]["error"]
    assert the_session().is_complete


def bomb(path: Path) -> Path:
    return zipped(path, {NAME: DATA, "zeros.jsonl": b"\n" * 30_000_000})


def tar_bomb(path: Path) -> Path:
    return tarred(path, [(NAME, DATA), ("zeros.bin", b"\0" * 30_000_000)])


def overlapping(path: Path) -> Path:
    """Two names for the same bytes."""
    zipped(path, {"a.jsonl": DATA, "b.jsonl": other()})
    data = bytearray(path.read_bytes())
    last = data.rindex(b"PK\x01\x02")
    data[last + 42 : last + 46] = struct.pack("<L", 0)
    path.write_bytes(data)
    return path


def lying(path: Path, size: int) -> Path:
    zipped(path, {NAME: DATA})
    data = bytearray(path.read_bytes())
    for mark, place in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = data.rindex(mark)
        data[at + place : at + place + 4] = struct.pack("<L", size)
    path.write_bytes(data)
    return path


def too_many(path: Path) -> Path:
    return zipped(path, {f"{number}.jsonl": b"" for number in range(archives.MAX_MEMBERS + 1)})


def flipped(path: Path) -> Path:
    zipped(path, {"a.jsonl": other(), NAME: DATA})
    data = bytearray(path.read_bytes())
    data[data.index(NAME.encode()) + len(NAME) + 200] ^= 0xFF
    path.write_bytes(data)
    return path


def cut(path: Path, make=tarred, members=None) -> Path:
    made = make(path, members or [(NAME, DATA)])
    made.write_bytes(made.read_bytes()[:-300])
    return made


def cut_tar(path: Path) -> Path:
    tarred(path, [(NAME, DATA)], "w")
    path.write_bytes(path.read_bytes()[:2_000])
    return path


def endless_header(path: Path) -> Path:
    """An extended header that claims a gigabyte."""
    head = tarfile.TarInfo("x")
    head.type, head.size = tarfile.XHDTYPE, 1 << 30
    path.write_bytes(gzip.compress(head.tobuf(tarfile.USTAR_FORMAT) + b"0" * 5_000_000))
    return path


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("make", "says"),
    [
        (bomb, "more than 200 times its size"),
        (tar_bomb, "more than 200 times its size"),
        (overlapping, "overlap"),
        (lambda path: lying(path, len(DATA) * 2), "damaged|says that it has"),
        (lambda path: lying(path, 50), "damaged|says that it has"),
        (too_many, "more than 10,000 files"),
        (flipped, "damaged"),
        (cut, "damaged|cut off"),
        (cut_tar, "cut off"),
        (lambda path: cut(path, zipped, {NAME: DATA}), "cut off|damaged"),
        (endless_header, "longer than a megabyte"),
        (lambda path: zipped(path, {}), "holds no file"),
    ],
)
def test_an_archive_that_cannot_be_trusted_is_refused_as_a_whole(source, make, says, settings):
    run = take(make(source / "bad.zip"))
    assert run.state == ImportState.FAILED
    assert re.search(says, run.error), run.error
    assert "Nothing of it was imported." in run.error
    assert Session.objects.count() == 0


@pytest.mark.django_db
def test_an_archive_without_a_session_says_so(source):
    run = take(zipped(source / "photos.zip", {"a.png": b"x", "b.json": b"{}"}))
    assert run.state == ImportState.FAILED
    assert "No file in" in run.error


@pytest.mark.django_db
def test_an_uploaded_archive_is_taken_the_same_way(operator_actor, settings, source):
    path = zipped(source / "all.zip", {NAME: DATA, "x.jsonl": other()})
    with path.open("rb") as file:
        run = imports.request_upload(actor=operator_actor, upload=file, name="all.zip")
    imports.run_import(run.pk)
    run.refresh_from_db()
    assert run.state == ImportState.COMPLETED
    assert sorted(file["name"] for file in run.files) == [f"all.zip/{NAME}", "all.zip/x.jsonl"]


@pytest.mark.django_db
def test_an_archive_can_be_cancelled_and_goes_on_when_its_process_ended(operator_actor, source):
    path = zipped(source / "all.zip", {NAME: DATA, "x.jsonl": other()})
    with path.open("rb") as file:
        run = imports.request_upload(actor=operator_actor, upload=file, name="all.zip")
    assert imports.run_import(run.pk, must_end=lambda: True) is False
    imports.run_import(run.pk)
    run.refresh_from_db()
    assert (run.state, run.counts["sources_new"]) == (ImportState.COMPLETED, 2)


@pytest.mark.django_db
def test_the_command_takes_archives_and_prints_their_members(source, capsys):
    call_command("import_sessions", str(zipped(source / "all.zip", {NAME: DATA})))
    assert "1 new" in capsys.readouterr().out


@pytest.mark.django_db
def test_memory_stays_small_while_a_large_member_is_taken(source):
    import tracemalloc

    big = encode([prompt("u", None, "x" * 1_000), *(prompt(f"p{number}", "u", f"{number} " * 300) for number in range(20_000))])
    path = zipped(source / "big.zip", {NAME: big})
    tracemalloc.start()
    with path.open("rb") as file:
        total = sum(len(chunk) for member in archives.members(file, "zip", name="big.zip") for chunk in member.chunks)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == len(big)
    assert peak < 5_000_000
