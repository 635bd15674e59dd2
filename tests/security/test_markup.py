"""The inspector itself: it must see what it is there to see, or the other tests prove nothing."""

import pytest

from tests.security.markup import violations


@pytest.mark.parametrize(
    "html",
    [
        "<script>1</script>",
        "<script src=//evil.example/x></script>",
        "<p onclick=x>",
        "<p style='color:red'>",
        "<a href='javascript:x'>",
        "<a href='&#106;avascript:x'>",
        "<a href='https://evil.example/'>",
        "<img src='data:image/svg+xml,x'>",
        "<img src=//evil.example/x>",
        "<iframe src=/>",
        "<svg><use href='https://evil.example/#x'/></svg>",
        "<base href=/>",
        "<meta http-equiv=refresh>",
        "<form action='https://evil.example/'>",
        "<button formaction='//evil.example/'>",
        "<div hx-get='//evil.example/'>",
        "<div hx-on::load='x'>",
    ],
)
def test_it_sees(html):
    assert violations(html) != []


def test_it_leaves_text_and_our_own_files_alone():
    assert (
        violations(
            "&lt;script&gt; onclick=<b>x</b><script src=/static/js/x.js></script><a href='?page=2'>more</a><img src='/sessions/x/image/'>"
        )
        == []
    )
