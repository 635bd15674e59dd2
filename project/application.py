"""The ASGI application itself: pages, and websockets behind an origin check and the session's sign-in."""

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application

http_application = get_asgi_application()

from django.conf import settings  # noqa: E402

from project.celery import with_tasks  # noqa: E402
from project.origins import SameOriginOnly  # noqa: E402
from project.proxies import ForwardedAddress  # noqa: E402
from project.request_bodies import bound_bodies  # noqa: E402
from sessions_app.live.routing import websocket_urlpatterns  # noqa: E402  needs the loaded applications
from sessions_app.views.request_size import largest_body  # noqa: E402

bound_bodies(largest_body)
with_tasks()  # the first click that queues one should not wait for it
application = ForwardedAddress(
    ProtocolTypeRouter(
        {
            "http": http_application,
            "websocket": SameOriginOnly(AuthMiddlewareStack(URLRouter(websocket_urlpatterns))),  # type: ignore[arg-type]  # any pattern will do
        },
    ),
    settings.PROXIES,
)
