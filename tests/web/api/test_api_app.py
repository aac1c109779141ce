from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.web.conftest import TOKEN

if TYPE_CHECKING:
    from starlette.testclient import TestClient

    from tests.web.conftest import Visit

API = "/api/v1"
PAGE = Path(__file__).parents[3] / "docs" / "reference" / "json-api.md"
_ROW = re.compile(r"^\| `(GET|POST|DELETE) (/[^`]*)` \|.*\| ([^|]*)\|$", re.MULTILINE)


@pytest.fixture
def described(client: TestClient) -> dict[str, Any]:
    told: dict[str, Any] = client.get(f"{API}/openapi.json").json()
    return told


def list_operations(described: dict[str, Any]) -> dict[tuple[str, str], Any]:
    return {
        (method.upper(), path): operation
        for path, operations in described["paths"].items()
        for method, operation in operations.items()
    }


def test_page_of_the_reference_names_every_address_and_query(described: dict[str, Any]) -> None:
    before = PAGE.read_text(encoding="utf-8").partition("\n## Writing")[0]
    written = {(method, path): set(re.findall(r"`(\w+)`", query)) for method, path, query in _ROW.findall(before)}
    there = {
        key: {one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"}
        for key, operation in list_operations(described).items()
    }
    assert written == there


def test_links_lead_to_operations_that_are_there(described: dict[str, Any]) -> None:
    operations = list_operations(described).values()
    known = {one["operationId"]: {told["name"] for told in one.get("parameters", ())} for one in operations}
    links = [
        link
        for one in operations
        for response in one["responses"].values()
        for link in response.get("links", {}).values()
    ]
    assert len(links) > 5
    for link in links:
        assert set(link["parameters"]) <= known[link["operationId"]]


def test_token_is_described_as_it_is_demanded(visit: Visit) -> None:
    assert visit().get(f"{API}/openapi.json").json()["security"] == [{"token": []}, {}]
    closed = visit(demands_token=True).get(f"{API}/openapi.json", headers={"Authorization": f"Bearer {TOKEN}"}).json()
    assert closed["security"] == [{"token": []}]
    assert closed["components"]["securitySchemes"]["token"]["scheme"] == "bearer"


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        (f"{API}/entries", "GET, POST, HEAD"),
        (f"{API}/lessons/lesson_x", "GET, DELETE, HEAD"),
        (f"{API}/entries/entry_x/outcome", "POST"),
        ("/sign-in", "GET, POST, HEAD"),
        ("/journal/entry_x/assess", "POST"),
        ("/", "GET, HEAD"),
    ],
)
def test_address_tells_its_methods(client: TestClient, path: str, allowed: str) -> None:
    answer = client.options(path)
    assert (answer.status_code, answer.headers["allow"], answer.text) == (204, allowed, "")
    refused = client.request("PATCH", path)
    assert (refused.status_code, refused.headers["allow"]) == (405, allowed)


def test_head_is_answered_as_get_without_the_body(client: TestClient) -> None:
    for path in (f"{API}/entries", f"{API}/openapi.json", f"{API}/nowhere"):
        whole, head = client.get(path), client.head(path)
        assert (head.status_code, head.headers["content-type"]) == (whole.status_code, whole.headers["content-type"])
        assert head.headers["content-length"] == str(len(whole.content))
        assert head.content == b""


def test_what_cannot_be_posted_to_is_told_before_what_is_posted(client: TestClient) -> None:
    assert client.post(f"{API}/runs", content=b"x").status_code == 405
    assert client.post(f"{API}/nowhere", content=b"x").status_code == 404


@pytest.mark.parametrize(
    "expected",
    [
        {},
        {"description": ""},
        {"description": "x", "more": 1},
        {"description": "x", "expires_minutes": 0},
        {"description": "x", "expires_minutes": "60"},
        {"description": "x", "match_hint": {}},
        {"description": "x", "match_hint": {"a": []}},
        {"description": "x", "polarity": "maybe"},
        {"description": "x", "critical": 1},
        "x",
    ],
)
def test_expectation_of_another_shape_is_refused(client: TestClient, expected: Any) -> None:
    outcome = {"result": "success", "expectations": [expected]}
    answer = client.post(f"{API}/entries/entry_x/outcome", json=outcome)
    assert answer.status_code == 422
    assert "expectations.0" in answer.json()["detail"]
