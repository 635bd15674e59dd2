"""The download of a session's source."""

import pytest
from django.test import AsyncClient

from sessions_app.services import exports
from tests.readers.rows import SESSION, encode, prompt
from tests.services.import_scenes import take, the_session, write

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def data() -> bytes:
    """Enough for several frames."""
    return encode([prompt(f"u{turn}", f"u{turn - 1}" if turn else None, f"{turn} " * 40_000) for turn in range(30)])


@pytest.fixture
def address(tmp_path, data) -> str:
    take(write(tmp_path, data))
    return f"/sessions/{the_session().pk}/export/"


def test_the_source_comes_whole_and_as_a_file(client, operator, address, data):
    client.force_login(operator)
    answer = client.get(address)
    assert answer.getvalue() == data
    assert answer["Content-Disposition"] == f'attachment; filename="{SESSION}.jsonl"'


async def test_the_server_sends_it_piece_by_piece_and_never_holds_the_whole(operator, address, data, monkeypatch):
    read: list[int] = []
    source_bytes = exports.source_bytes

    def counted(source):
        for chunk in source_bytes(source):
            read.append(len(chunk))
            yield chunk

    monkeypatch.setattr(exports, "source_bytes", counted)
    client = AsyncClient()
    await client.aforce_login(operator)
    answer = await client.get(address)
    pieces = aiter(answer)
    first = await anext(pieces)
    assert read == [len(first)]
    assert first + b"".join([piece async for piece in pieces]) == data
    assert len(read) > 3
