"""The ASGI application itself: pages, and websockets behind an origin check and the session's sign-in."""

import django
from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter

django.setup(set_prefix=False)

from django.conf import settings  # noqa: E402

from project.backpressure import Backpressure  # noqa: E402
from project.celery import with_tasks  # noqa: E402
from project.handler import Handler  # noqa: E402
from project.origins import ByToken, SameOriginOnly  # noqa: E402
from project.proxies import ForwardedAddress  # noqa: E402
from project.request_bodies import bound_bodies  # noqa: E402
from sessions_app.live.routing import token_urlpatterns, websocket_urlpatterns  # noqa: E402  needs the loaded applications
from sessions_app.views.request_size import largest_body  # noqa: E402

bound_bodies(largest_body)
with_tasks()  # the first click that queues one should not wait for it
pages = SameOriginOnly(AuthMiddlewareStack(URLRouter(websocket_urlpatterns)))  # type: ignore[arg-type]  # any pattern will do
programs = URLRouter(token_urlpatterns)  # type: ignore[arg-type]
application = ForwardedAddress(
    Backpressure(ProtocolTypeRouter({"http": Handler(), "websocket": ByToken(programs, pages)})),
    settings.PROXIES,
)
