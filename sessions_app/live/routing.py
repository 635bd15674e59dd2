"""Addresses of the sockets."""

from django.urls import path, re_path

from sessions_app.live.consumers import ListConsumer, SessionConsumer, UnknownConsumer

websocket_urlpatterns = [
    path("ws/sessions/", ListConsumer.as_asgi()),  # type: ignore[arg-type]  # the stubs know of views only
    path("ws/sessions/<uuid:session_id>/", SessionConsumer.as_asgi()),  # type: ignore[arg-type]
    re_path(r"", UnknownConsumer.as_asgi()),  # type: ignore[arg-type]
]
