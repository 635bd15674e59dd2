"""Addresses of the sockets."""

from django.urls import path, re_path

from sessions_app.live.consumers import ListConsumer, SessionConsumer, UnknownConsumer
from sessions_app.live.event_consumer import EventConsumer

_events = path("v1/sessions/<uuid:session_id>/ws", EventConsumer.as_asgi())  # type: ignore[arg-type]  # the stubs know of views only
_nothing = re_path(r"", UnknownConsumer.as_asgi())  # type: ignore[arg-type]

token_urlpatterns = [_events, _nothing]
"""What a program may open that sends a token with its handshake."""

websocket_urlpatterns = [
    _events,
    path("ws/sessions/", ListConsumer.as_asgi()),  # type: ignore[arg-type]
    path("ws/sessions/<uuid:session_id>/", SessionConsumer.as_asgi()),  # type: ignore[arg-type]
    _nothing,
]
