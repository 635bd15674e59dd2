import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.readers.images import identify

PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + struct.pack(">II", 640, 480) + b"\x08\x02\0\0\0"
GIF = b"GIF89a" + struct.pack("<HH", 12, 34)
APP0 = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0" + b"\0" * 9
JPEG = b"\xff\xd8" + APP0 + b"\xff\xc0" + struct.pack(">HBHHB", 17, 8, 200, 300, 3) + b"\0" * 12
VP8X = b"RIFF\0\0\0\0WEBPVP8X" + b"\0" * 8 + (99).to_bytes(3, "little") + (49).to_bytes(3, "little")
VP8L = b"RIFF\0\0\0\0WEBPVP8L" + b"\0\0\0\0\x2f" + ((7 - 1) | (9 - 1) << 14).to_bytes(4, "little")
VP8 = b"RIFF\0\0\0\0WEBPVP8 " + b"\0" * 10 + struct.pack("<HH", 70, 90)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (PNG, ("image/png", 640, 480)),
        (GIF, ("image/gif", 12, 34)),
        (JPEG, ("image/jpeg", 300, 200)),
        (VP8X, ("image/webp", 100, 50)),
        (VP8L, ("image/webp", 7, 9)),
        (VP8, ("image/webp", 70, 90)),
        (b"<svg onload=alert(1)>", ("application/octet-stream", 0, 0)),
        (PNG[:18], ("application/octet-stream", 0, 0)),
        (b"", ("application/octet-stream", 0, 0)),
    ],
)
def test_kind_and_size_come_from_the_bytes_alone(data, expected):
    assert identify(data) == expected


@given(st.sampled_from([PNG, GIF, JPEG, VP8X, VP8L, VP8]), st.integers(0, 40), st.binary(max_size=60))
def test_no_bytes_make_it_raise(head, kept, tail):
    media_type, width, height = identify(head[:kept] + tail)
    assert isinstance(media_type, str)
    assert width >= 0
    assert height >= 0
