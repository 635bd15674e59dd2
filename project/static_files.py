"""Serves the product's own CSS and scripts: from the source folders in the embedded form, by a middleware in the distributed one."""

from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.staticfiles.handlers import ASGIStaticFilesHandler
from django.core.exceptions import SuspiciousOperation
from django.core.handlers.exception import response_for_exception
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase


class StaticFiles(ASGIStaticFilesHandler):
    """Answers an address that leads out of the static folders with 404, where Django's own lets the server fail."""

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        try:
            return await super().get_response_async(request)
        except SuspiciousOperation:
            return await sync_to_async(response_for_exception, thread_sensitive=False)(request, Http404())


def served_by_middleware(application: Any) -> Any:
    """The application as it is: it answers for static files itself."""
    return application
