"""The objects that commands give under `--json`: the API's."""

from sessions_app.shapes import (
    Shape,
    attempt_shape,
    detail_shape,
    entry_shape,
    event_shape,
    iso,
    ledger_shape,
    message_shape,
    session_shape,
    tokens,
)

__all__ = [
    "Shape",
    "attempt_shape",
    "detail_shape",
    "entry_shape",
    "event_shape",
    "iso",
    "ledger_shape",
    "message_shape",
    "session_shape",
    "tokens",
]
