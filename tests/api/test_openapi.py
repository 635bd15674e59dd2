"""The document that describes the API to programs: it is served, whole, and true."""

import re

from django.test import Client
from django.urls import get_resolver

from sessions_app.api.root import api, urlpatterns


def test_it_is_served_to_anybody_and_knows_its_own_address(db):
    answer = Client().get("/v1/openapi.json")
    assert answer.status_code == 200
    document = answer.json()
    assert document["openapi"].startswith("3.1")
    assert {path for path in document["paths"] if not path.startswith("/v1/")} == set()
    assert set(document["components"]["securitySchemes"]) == {"Token", "Browser"}


def test_every_address_stands_in_it_and_every_call_has_a_name_of_its_own():
    paths = api.get_openapi_schema(path_prefix="/v1/")["paths"]
    named = {re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", str(pattern.pattern)) for pattern in urlpatterns}
    assert {path.removeprefix("/v1/") for path in paths} == named - {"", "openapi.json", "{rest}"}
    calls = [call["operationId"] for methods in paths.values() for call in methods.values()]
    assert len(calls) == len(set(calls)) > 20
    assert all(call.get("description") for methods in paths.values() for call in methods.values())


def test_every_reference_leads_somewhere():
    document = api.get_openapi_schema(path_prefix="/v1/")
    referred = set(re.findall(r"#/components/schemas/(\w+)", str(document)))
    assert referred <= set(document["components"]["schemas"])
    assert get_resolver().resolve("/v1/openapi.json")


def test_calls_that_answer_files_say_so():
    paths = api.get_openapi_schema(path_prefix="/v1/")["paths"]
    for path in ("/v1/events/export", "/v1/sessions/{session_id}/export"):
        assert list(paths[path]["get"]["responses"][200]["content"]) == ["application/octet-stream"]
