"""Kind and size of an image from its first bytes. What a source says about its images is not believed."""

import struct

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""The only media types under which an image is ever shown."""

MAX_SIDE = 100_000
_JPEG_FRAMES = frozenset({0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF})


def identify(data: bytes) -> tuple[str, int, int]:
    """(media type, width, height) of a PNG, JPEG, GIF or WebP; `("application/octet-stream", 0, 0)` for all else.

    Width and height are pixels, 0 where the header does not tell. Never raises.
    """
    try:
        media_type, width, height = _identify(data)
    except (struct.error, IndexError):
        return "application/octet-stream", 0, 0
    if width > MAX_SIDE or height > MAX_SIDE:
        return "application/octet-stream", 0, 0
    return media_type, width, height


def _identify(data: bytes) -> tuple[str, int, int]:
    if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR":
        return "image/png", *struct.unpack(">II", data[16:24])
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif", *struct.unpack("<HH", data[6:10])
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg", *_jpeg_size(data)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp", *_webp_size(data)
    return "application/octet-stream", 0, 0


def _jpeg_size(data: bytes) -> tuple[int, int]:
    position = 2
    while position + 9 < len(data):
        if data[position] != 0xFF:
            return 0, 0
        marker = data[position + 1]
        if marker in _JPEG_FRAMES:
            height, width = struct.unpack(">HH", data[position + 5 : position + 9])
            return width, height
        if marker == 0xFF:  # a fill byte
            position += 1
            continue
        if marker == 0x01 or 0xD0 <= marker <= 0xD8:  # markers without a length
            position += 2
            continue
        position += 2 + max(2, struct.unpack(">H", data[position + 2 : position + 4])[0])
    return 0, 0


def _webp_size(data: bytes) -> tuple[int, int]:
    kind = data[12:16]
    if kind == b"VP8X":
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if kind == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        width, height = struct.unpack("<HH", data[26:30])
        return width & 0x3FFF, height & 0x3FFF
    return 0, 0
