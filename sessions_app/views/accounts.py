"""Signing in and out, and changing one's own password."""

import math

from django.contrib import messages
from django.contrib.auth import login, logout, update_session_auth_hash
from django.contrib.auth.decorators import login_not_required
from django.http import HttpResponse
from django.shortcuts import redirect, resolve_url
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from sessions_app.account_forms import PasswordForm
from sessions_app.forms import SignInForm
from sessions_app.permissions import actor_of
from sessions_app.selectors import users
from sessions_app.services import accounts, sign_ins, throttle
from sessions_app.services.sign_in_store import MUST_CHANGE
from sessions_app.views.pages import PageRequest, render_page, wants_fragment
from sessions_app.views.sign_in_middleware import lead_to_sign_in


@login_not_required
@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: PageRequest) -> HttpResponse:
    if wants_fragment(request):
        return lead_to_sign_in(request)
    if request.user.is_authenticated:
        return redirect(_destination(request))
    if request.method != "POST":
        context: dict[str, object] = {"form": SignInForm(request), "next": request.GET.get("next", ""), "ended": "ended" in request.GET}
        return render_page(request, "accounts/sign_in.html", context)
    form = SignInForm(request, request.POST)
    if not form.is_valid():
        return _refused(request, form)
    login(request, form.get_user())
    sign_ins.record_sign_in(actor=actor_of(request))
    if users.has_one_time_password(form.get_user().pk):
        request.session[MUST_CHANGE] = True
    return redirect(_destination(request))


def _refused(request: PageRequest, form: SignInForm) -> HttpResponse:
    """The same for names that exist and names that don't: 422 for what is wrong, 429 once it was wrong too often."""
    typed = form.cleaned_data.get("username") or request.POST.get("username", "")
    user_id, failures = users.id_of_user_named(typed), getattr(request, "axes_failures_since_start", None)
    if failures is not None:  # while a lock lasts, nothing is counted any more
        sign_ins.record_failed_sign_in(actor=actor_of(request), user_id=user_id)
    context: dict[str, object] = {"form": form, "next": request.POST.get("next", "")}
    if not getattr(request, "axes_locked_out", False):
        return render_page(request, "accounts/sign_in.html", context, status=422)
    if failures is not None:
        sign_ins.record_lock(actor=actor_of(request), user_id=user_id, failures=failures)
    key = throttle.name_key(request, {"username": typed})
    left_s = max(1, math.ceil(users.lock_ends_in(key, throttle.address_of(request), at=timezone.now()).total_seconds()))
    response = render_page(request, "accounts/sign_in.html", context | {"locked_minutes": math.ceil(left_s / 60)}, status=429)
    response["Retry-After"] = str(left_s)
    return response


@login_not_required
@require_POST
def sign_out(request: PageRequest) -> HttpResponse:
    if request.user.is_authenticated:
        sign_ins.record_sign_out(actor=actor_of(request))
        logout(request)
    return redirect("sign-in")


@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
def password_change(request: PageRequest) -> HttpResponse:
    form = PasswordForm(request, request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid():
        try:
            user = accounts.change_password(actor=actor_of(request), user_id=request.user.pk or 0, password=form.cleaned_data["new"])
        except accounts.AccountError as error:
            form.add_error("new", str(error))
        else:
            update_session_auth_hash(request, user)
            request.session.pop(MUST_CHANGE, None)
            messages.success(request, "The password is changed. Every other sign-in of yours has ended.")
            return redirect(_destination(request))
    context = {"form": form, "next": _asked_for(request), "must": bool(request.session.get(MUST_CHANGE))}
    return render_page(request, "accounts/password.html", context, status=422 if form.errors else 200)


def _asked_for(request: PageRequest) -> str:
    return request.POST.get("next") or request.GET.get("next") or ""


def _destination(request: PageRequest) -> str:
    """Where the person wanted to go, if that is on this site; else the list."""
    wanted = _asked_for(request)
    is_ours = url_has_allowed_host_and_scheme(wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure())
    return wanted if is_ours and wanted else resolve_url("session-list")
