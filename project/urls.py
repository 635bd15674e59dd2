"""All addresses. Pages live in `sessions_app.urls`."""

from django.urls import include, path

urlpatterns = [path("", include("sessions_app.urls"))]

handler400 = "sessions_app.views.errors.bad_request"
handler403 = "sessions_app.views.errors.forbidden"
handler404 = "sessions_app.views.errors.not_found"
handler500 = "sessions_app.views.errors.server_error"
