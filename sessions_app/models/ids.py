"""Time-sortable identifiers."""

import os
import time
import uuid


def new_id() -> uuid.UUID:
    """A UUID of version 7 (RFC 9562): milliseconds first, so that keys sort by the time they were made."""
    value = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10), "big")
    value &= ~(0xF << 76) & ~(0x3 << 62)
    return uuid.UUID(int=value | 0x7 << 76 | 0x2 << 62)


def short(identifier: uuid.UUID) -> str:
    """The last eight hex digits: the random part, which tells two apart that were made together."""
    return identifier.hex[-8:]
