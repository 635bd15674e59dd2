"""What every page does in a real browser: say what was refused, and whether it is still told of changes."""

import pytest


def test_a_refused_part_is_said_in_a_toast_and_the_page_stays(open_as, operator, watch):
    watch.expected.append("status of 400")
    watch.expected.append("Response Status Error Code 400")
    page = open_as(operator)
    page.goto("/")
    page.evaluate("htmx.ajax('GET', '/?after=damaged', {target: '#results', swap: 'outerHTML'})")
    page.get_by_role("alert").get_by_text("Start again from the first page").wait_for()
    assert page.get_by_role("heading", name="Sessions", exact=True).is_visible()
    page.get_by_role("button", name="Dismiss").click()
    page.get_by_role("alert").wait_for(state="detached")


def test_a_lost_connection_is_said_and_so_is_that_the_page_has_caught_up(open_as, operator):
    page = open_as(operator)
    sockets, is_down = [], False

    def connect(socket) -> None:
        if is_down:
            socket.close(code=1012)
        else:
            socket.connect_to_server()
            sockets.append(socket)

    page.route_web_socket("**/ws/sessions/**", connect)
    page.goto("/")
    page.get_by_text("Live", exact=True).first.wait_for()
    is_down = True
    sockets[0].close(code=1012)
    page.get_by_text("Connection lost, reconnecting").wait_for()
    is_down = False
    page.get_by_role("status").get_by_text("this page has caught up").wait_for()
    page.get_by_text("Live", exact=True).first.wait_for()


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("address", ["/nowhere/", "/imports/"])
def test_other_pages_have_no_accessibility_violation_either(open_as, operator, watch, check_access, address, width):
    watch.expected.append("status of 404")
    page = open_as(operator)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(address)
    check_access(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
