"""Tokens and the page of the API in a real browser: by keyboard and label, without violations, in both schemes."""

import re

from tests.api.conftest import Api


def test_an_admin_makes_a_token_that_works_and_takes_it_back(open_as, admin, watch):
    page = open_as(admin)
    page.goto("/tokens/")
    page.get_by_label("Name", exact=True).fill("ci")
    page.get_by_label("Acts for").select_option("ada")
    page.get_by_label("steer").check()
    page.get_by_role("button", name="Make").click()
    secret = page.get_by_text(re.compile(r"^plm_")).first.inner_text()
    assert Api(secret).get("/sessions").status_code == 200
    page.get_by_role("link", name="Back to the tokens").click()
    page.get_by_role("button", name="Revoke ci").click()
    page.get_by_text("ci is revoked").wait_for()
    assert Api(secret).get("/sessions").status_code == 401


def test_the_page_of_the_api_opens_a_call(open_as, admin, watch):
    page = open_as(admin)
    page.goto("/v1/docs")
    page.get_by_text("GET /v1/sessions/{session_id}/items").click()
    page.get_by_role("region", name="What GET /v1/sessions/{session_id}/items takes").wait_for()
