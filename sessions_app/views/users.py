"""Users: who may sign in, as what, and who is locked out."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from sessions_app.account_forms import LockForm, NewUserForm, RoleForm
from sessions_app.events import log
from sessions_app.events.actors import Actor
from sessions_app.permissions import Action, actor_of, require, unknown
from sessions_app.selectors import users
from sessions_app.services import accounts, sign_ins
from sessions_app.views.pages import PageRequest, render_page


@require_http_methods(["GET", "HEAD", "POST"])
def user_list(request: PageRequest) -> HttpResponse:
    actor = _admin(request)
    form = NewUserForm(request.POST if request.method == "POST" else None, initial={"role": "operator"})
    if form.is_bound and form.is_valid():
        data, password = form.cleaned_data, accounts.make_password()
        try:
            user = accounts.create_user(actor=actor, name=data["name"], role=data["role"], password=password, is_one_time=True)
        except accounts.AccountError as error:
            form.add_error("name", str(error))
        else:
            return _told_once(request, user.username, password)
    context = {"form": form, "page": users.users_page(at=timezone.now())}
    return render_page(request, "users/list.html", context, status=422 if form.errors else 200)


@require_safe
def user_detail(request: PageRequest, user_id: int) -> HttpResponse:
    _admin(request)
    return _detail(request, user_id)


@require_POST
def user_role(request: PageRequest, user_id: int) -> HttpResponse:
    actor, form = _admin(request), RoleForm(request.POST)
    role = form.cleaned_data["role"] if form.is_valid() else ""
    try:
        accounts.change_role(actor=actor, user_id=_row(actor, user_id).id, role=role)
    except accounts.AccountError as error:
        return _detail(request, user_id, refusal=str(error))
    return redirect("user-detail", user_id)


@require_POST
def user_switch(request: PageRequest, user_id: int) -> HttpResponse:
    actor = _admin(request)
    try:
        accounts.switch_user(actor=actor, user_id=_row(actor, user_id).id, is_active=request.POST.get("active") == "on")
    except accounts.AccountError as error:
        return _detail(request, user_id, refusal=str(error))
    return redirect("user-detail", user_id)


@require_POST
def user_reset(request: PageRequest, user_id: int) -> HttpResponse:
    actor = _admin(request)
    row = _row(actor, user_id)
    try:
        password = accounts.reset_password(actor=actor, user_id=row.id)
    except accounts.AccountError as error:
        return _detail(request, user_id, refusal=str(error))
    return _told_once(request, row.name, password)


@require_POST
def lock_lift(request: PageRequest) -> HttpResponse:
    actor, form = _admin(request), LockForm(request.POST)
    lifted = sign_ins.lift_locks(actor=actor, key=form.cleaned_data["key"]) if form.is_valid() else []
    messages.success(request, "The lock is lifted." if lifted else "There was no lock any more.")
    return redirect("user-list")


def _admin(request: PageRequest) -> Actor:
    actor = actor_of(request)
    require(actor, Action.MANAGE_USERS, stream=log.SECURITY)
    return actor


def _row(actor: Actor, user_id: int) -> users.UserRow:
    row = users.user_row(user_id, at=timezone.now())
    if row is None:
        raise unknown(actor, "user", user_id, Action.MANAGE_USERS)
    return row


def _detail(request: PageRequest, user_id: int, refusal: str = "") -> HttpResponse:
    row = _row(actor_of(request), user_id)
    context = {"row": row, "form": RoleForm(initial={"role": row.role}), "refusal": refusal, "is_self": row.id == request.user.pk}
    return render_page(request, "users/detail.html", context, status=422 if refusal else 200)


def _told_once(request: PageRequest, name: str, password: str) -> HttpResponse:
    """Answers the form itself: a redirect would have to keep the password somewhere."""
    return render_page(request, "users/password.html", {"name": name, "password": password})
