from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.storage.store import Store
from pytest_golden.web.api import answer_encodable
from tests.web.conftest import TOKEN

if TYPE_CHECKING:
    from starlette.testclient import TestClient

    from pytest_golden.web.services import Services
    from tests.web.conftest import Visit


API = "/api/v1"


def begin(client: TestClient, **more: Any) -> dict[str, Any]:
    answer = client.post(f"{API}/entries", json={"intent": "Rebuild orders", "agent_id": "builder", **more})
    assert answer.status_code == 201, answer.text
    told: dict[str, Any] = answer.json()
    return told


def test_entry_goes_its_way_by_json(client: TestClient, services: Services) -> None:
    entry = begin(client, intent_type="deploy", session_key="s1", job_id="j1")
    assert (entry["assessment"], entry["immediate_result"]) == ("open", "unknown")
    asked = [{"description": "quiet", "match_hint": {"source": "pager"}, "expires_minutes": 60}]
    outcome = {"agent_id": "builder", "result": "success", "notes": "done", "actions": ["x"], "expectations": asked}
    told = client.post(f"{API}/entries/{entry['id']}/outcome", json=outcome).json()
    assert [one["description"] for one in told["expectations"]] == ["quiet"]
    news = {"source": "pager", "signal_type": "positive", "summary": "quiet", "agent_id": "builder"}
    heard = client.post(f"{API}/signals", json=news)
    assert (heard.status_code, heard.json()["routed_by"]) == (201, "match_hint")
    routed = client.get(f"{API}/signals/{heard.json()['id']}").json()
    assert routed["routing"]["rule"] == "match_hint"
    assert routed["routing"]["candidates"][0]["taken"] is True
    assert client.get(f"{API}/entries/{entry['id']}").json()["assessment"] == "success"
    word = {"assessment": "partial", "notes": "late", "by": "ada"}
    assert client.post(f"{API}/entries/{entry['id']}/assessment", json=word).json()["assessment"] == "partial"
    assert services.journal.get(entry["id"]).history[-1].who == "ada"
    summary = client.get(f"{API}/summary", params={"agent": "builder", "since": "7d"}).json()
    assert (summary["n"], summary["success_rate"]) == (1, 0.0)
    assert summary["by_time"][0]["n"] == 1
    assert [agent["agent_id"] for agent in client.get(f"{API}/agents").json()["items"]] == ["builder"]


def test_half_a_character_that_was_recorded_spoils_no_list(client: TestClient) -> None:
    half = '{"source": "pager", "signal_type": "neutral", "summary": "quiet", "data": {"a\\udfff": ["\\ud800", 1.5]}}'
    heard = client.post(f"{API}/signals", content=half, headers={"Content-Type": "application/json"})
    assert heard.status_code == 201
    for answer in (
        client.get(f"{API}/signals").json()["items"][0],
        client.get(f"{API}/signals/{heard.json()['id']}").json(),
    ):
        assert answer["data"] == {"a\\udfff": ["\\ud800", 1.5]}


@pytest.mark.parametrize(
    "asked", ["summary?since", "entries?filter", "signals?routed_by", "lessons?filter", "runs?limit", "runs?cursor"]
)
def test_what_is_wrong_is_told_without_signs_that_a_terminal_obeys(client: TestClient, asked: str) -> None:
    answer = client.get(f"{API}/{asked}=x%E2%80%AE%C2%9B31m%1B")
    assert answer.status_code in {400, 422}
    assert answer.json()["detail"].isprintable()


def test_lists_are_paged_by_their_cursor(client: TestClient) -> None:
    begun = [begin(client)["id"] for _ in range(5)]
    first = client.get(f"{API}/entries", params={"limit": 3, "agent": "builder"}).json()
    rest = client.get(f"{API}/entries", params={"limit": 3, "agent": "builder", "cursor": first["next_cursor"]}).json()
    assert [one["id"] for one in first["items"] + rest["items"]] == begun[::-1]
    assert rest["next_cursor"] is None
    for other in ("agent=x", "filter=open", ""):
        foreign = client.get(f"{API}/entries?limit=3&cursor={first['next_cursor']}&{other}")
        assert foreign.status_code == 400
        assert "cursor" in foreign.json()["detail"]


@pytest.mark.parametrize("kind", ["entries", "expectations", "signals", "agents"])
def test_lists_of_an_empty_store_are_empty(client: TestClient, kind: str) -> None:
    assert client.get(f"{API}/{kind}").json() == {"items": [], "next_cursor": None}
    for limit in ("0", "201", "-1", "x", "1.5"):
        assert client.get(f"{API}/{kind}?limit={limit}").status_code == 422
    assert client.get(f"{API}/{kind}?cursor=x").status_code == 400


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("entries", {}, 422),
        ("entries", {"intent": "x"}, 422),
        ("entries", {"intent": 1, "agent_id": "a"}, 422),
        ("entries", {"intent": " ", "agent_id": "a"}, 400),
        ("entries", {"intent": "x\0", "agent_id": "a"}, 400),
        ("entries", {"intent": "x", "agent_id": "a", "more": 1}, 422),
        ("entries", {"intent": "x", "agent_id": "a", "parent_id": "entry_x"}, 400),
        ("entries/entry_x/outcome", {"result": "success"}, 404),
        ("entries/entry_x/outcome", {"result": "great"}, 422),
        ("entries/entry_x/assessment", {"assessment": "open"}, 422),
        ("entries/entry_x/assessment", {"assessment": "success"}, 404),
        ("signals", {"source": "human", "signal_type": "positive", "summary": "x"}, 400),
        ("signals", {"source": "golden", "signal_type": "positive", "summary": "x"}, 400),
        ("signals", {"source": "x", "signal_type": "positive", "summary": "x", "entry_id": "entry_x"}, 400),
        ("entries", [], 422),
        ("entries", "x", 422),
    ],
)
def test_body_of_the_wrong_shape_is_refused_as_a_problem(client: TestClient, path: str, body: Any, code: int) -> None:
    answer = client.post(f"{API}/{path}", json=body)
    assert answer.status_code == code, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert set(answer.json()) == {"type", "title", "status", "detail"}


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", "application/jsonx"])
def test_what_is_not_said_to_be_json_is_refused(client: TestClient, kind: str) -> None:
    body = b'{"intent": "x", "agent_id": "a"}'
    assert client.post(f"{API}/entries", content=body, headers={"Content-Type": kind}).status_code == 415
    assert client.post(f"{API}/entries", content=b"{", headers={"Content-Type": "application/json"}).status_code == 422


def test_token_opens_the_api_and_nothing_else_does(visit: Visit) -> None:
    client = visit(demands_token=True)
    body = {"intent": "x", "agent_id": "a"}
    assert client.post(f"{API}/entries", json=body).status_code == 401
    assert client.post(f"{API}/entries", json=body, headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 201


def test_what_is_written_while_another_writes_is_to_be_sent_again(client: TestClient, services: Services) -> None:
    assert services.store.path is not None
    with Store.open(services.store.path) as other, other.write():
        answer = client.post(f"{API}/entries", json={"intent": "x", "agent_id": "a"})
        assert client.get(f"{API}/entries").status_code == 200
        assert client.get("/journal").status_code == 200
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert str(services.store.path) not in answer.text


def test_description_names_every_address_and_its_problems(client: TestClient) -> None:
    told = client.get(f"{API}/openapi.json").json()
    assert told["openapi"].startswith("3.")
    assert told["servers"] == [{"url": API}]
    assert {"/entries", "/entries/{id}", "/signals", "/signals/{id}", "/expectations", "/agents", "/summary"} <= set(
        told["paths"]
    )
    for path in told["paths"].values():
        for operation in path.values():
            assert {"401", "422", "503"} <= set(operation["responses"])
            assert operation["description"]


@pytest.mark.parametrize(
    "content",
    [
        {"steps": [{"content": "ä 😀", "metadata": {"row": 1, "at": None}}], "share": 0.5},
        {"created_at": datetime(2026, 1, 1, tzinfo=UTC), "tags": ("a", "b")},
        [],
        None,
    ],
)
def test_what_can_be_written_is_given_as_it_is_and_not_copied(content: object) -> None:
    assert answer_encodable(content) is content


def test_halves_of_characters_become_escapes_wherever_they_are() -> None:
    told = {"a\ud800": ["😀", ("\udfff",)], "at": datetime(2026, 1, 1, tzinfo=UTC), "b": {"c": 1.5}}
    assert answer_encodable(told) == {
        "a\\ud800": ["😀", ["\\udfff"]],
        "at": datetime(2026, 1, 1, tzinfo=UTC),
        "b": {"c": 1.5},
    }


PAGE = Path(__file__).parents[2] / "docs" / "reference" / "json-api.md"
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
