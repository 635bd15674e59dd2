"""The objects that commands give under `--json`: the API's."""

from sessions_app.shapes import Shape, attempt_shape, event_shape, iso, session_shape, tokens

__all__ = ["Shape", "attempt_shape", "event_shape", "iso", "session_shape", "tokens"]
