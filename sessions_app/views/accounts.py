"""Signing in and out."""

from django.contrib.auth import login, logout
from django.contrib.auth.decorators import login_not_required
from django.http import HttpResponse
from django.shortcuts import redirect, resolve_url
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from sessions_app.forms import SignInForm
from sessions_app.permissions import actor_of
from sessions_app.selectors.users import id_of_user_named
from sessions_app.services import sign_ins
from sessions_app.views.pages import PageRequest, render_page, wants_fragment


@login_not_required
@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: PageRequest) -> HttpResponse:
    if wants_fragment(request):
        # A part was asked for after the session had ended: the whole page must go to the sign-in.
        back = urlencode({"next": request.htmx.current_url_abs_path or "/", "ended": "1"})
        return HttpResponse(headers={"HX-Redirect": f"{resolve_url('sign-in')}?{back}"})
    if request.user.is_authenticated:
        return redirect(_destination(request))
    if request.method != "POST":
        context: dict[str, object] = {"form": SignInForm(request), "next": request.GET.get("next", ""), "ended": "ended" in request.GET}
        return render_page(request, "accounts/sign_in.html", context)
    form = SignInForm(request, request.POST)
    if form.is_valid():
        login(request, form.get_user())
        sign_ins.record_sign_in(actor=actor_of(request))
        return redirect(_destination(request))
    sign_ins.record_failed_sign_in(actor=actor_of(request), user_id=id_of_user_named(request.POST.get("username", "")))
    return render_page(request, "accounts/sign_in.html", {"form": form, "next": request.POST.get("next", "")}, status=422)


@login_not_required
@require_POST
def sign_out(request: PageRequest) -> HttpResponse:
    if request.user.is_authenticated:
        sign_ins.record_sign_out(actor=actor_of(request))
        logout(request)
    return redirect("sign-in")


def _destination(request: PageRequest) -> str:
    """Where the person wanted to go, if that is on this site; else the list."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    is_ours = url_has_allowed_host_and_scheme(wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure())
    return wanted if is_ours and wanted else resolve_url("session-list")
