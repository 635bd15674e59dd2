"""Signing in and out, in a real browser."""

import pytest

from tests.conftest import PASSWORD


def sign_in(page, name: str, password: str = PASSWORD) -> None:
    page.get_by_label("User name").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()


def test_a_person_signs_in_lands_where_they_wanted_to_go_and_signs_out(open_as, support):
    page = open_as()
    page.goto("/imports/")
    sign_in(page, "ana")
    page.wait_for_url("**/imports/")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/sign-in/**")


def test_a_wrong_password_is_answered_in_words_and_the_name_stays(open_as, support, watch):
    watch.expected.append("status of 422")
    page = open_as()
    page.goto("/")
    sign_in(page, "ana", "not this one")
    page.get_by_role("alert").get_by_text("do not match").wait_for()
    assert page.get_by_label("User name").input_value() == "ana"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_sign_in_page_has_no_accessibility_violation(open_as, db, scheme, check_access):
    page = open_as(scheme=scheme)
    page.goto("/sign-in/")
    check_access(page)


def test_the_accessibility_check_sees_what_it_is_there_to_see(open_as, db, check_access):
    page = open_as()
    page.goto("/sign-in/")
    page.evaluate("document.querySelector('label').replaceWith(document.querySelector('[name=username]'))")
    with pytest.raises(AssertionError, match="label"):
        check_access(page)
