"""Every component with its states, for those who build pages."""

from django.conf import settings
from django.http import Http404, HttpResponse
from django.views.decorators.http import require_safe

from sessions_app.selectors.samples import samples
from sessions_app.views.pages import PageRequest, render_page


@require_safe
def styleguide(request: PageRequest) -> HttpResponse:
    if not settings.DEBUG:
        raise Http404
    return render_page(request, "styleguide/styleguide.html", {"samples": samples()})
