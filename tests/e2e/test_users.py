"""Accounts in a real browser: made by an admin, opened with a one-time password, locked and let in again."""

import pytest

from tests.conftest import PASSWORD

NEW = "a phrase of my own"


def sign_in(page, name: str, password: str) -> None:
    page.get_by_label("User name").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()


def change(page, old: str, new: str) -> None:
    page.get_by_label("Old password").fill(old)
    page.get_by_label("New password", exact=True).fill(new)
    page.get_by_label("New password again").fill(new)
    page.get_by_role("button", name="Change").click()


def test_an_admin_makes_a_user_who_chooses_a_password_and_lands_where_they_wanted(open_as, admin):
    page = open_as(admin)
    page.goto("/users/")
    page.get_by_label("Name", exact=True).fill("maria")
    page.get_by_label("Role").select_option("support")
    page.get_by_role("button", name="Make").click()
    password = page.locator("code").inner_text()
    own = open_as()
    own.goto("/imports/")
    sign_in(own, "maria", password)
    own.get_by_text("made by somebody else").wait_for()
    change(own, password, NEW)
    own.wait_for_url("**/imports/")
    own.get_by_text("The password is changed.").wait_for()


def test_a_locked_user_is_told_and_let_in_by_an_admin(open_as, admin, support, watch):
    watch.expected += ["status of 422", "status of 429"]
    page = open_as()
    page.goto("/")
    for _ in range(5):
        sign_in(page, "ana", "not this one")
        page.get_by_role("alert").wait_for()
    page.get_by_text("Too many failed sign-ins").wait_for()
    desk = open_as(admin)
    desk.goto("/users/")
    desk.get_by_role("link", name="ana").click()
    desk.get_by_role("button", name="Lift").click()
    desk.get_by_text("The lock is lifted.").wait_for()
    sign_in(page, "ana", PASSWORD)
    page.wait_for_url(lambda address: "sign-in" not in address)


def test_changing_the_password_ends_the_other_browser_and_leads_it_back(open_as, support):
    page, other = open_as(support), open_as(support)
    other.goto("/imports/")
    page.goto("/")
    page.get_by_title("Change the password").click()
    change(page, PASSWORD, NEW)
    page.get_by_text("The password is changed.").wait_for()
    other.get_by_role("link", name="Sessions").click()
    sign_in(other, "ana", NEW)
    other.wait_for_url(lambda address: "sign-in" not in address)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_about_accounts_has_an_accessibility_violation(open_as, admin, support, scheme, check_access):
    page = open_as(admin, scheme=scheme)
    for address in ("/users/", f"/users/{support.pk}/", f"/users/{admin.pk}/", "/password/"):
        page.goto(address)
        check_access(page)
