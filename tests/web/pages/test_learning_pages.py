from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from pytest_golden.learning.gate_learning import learn_from_results
from pytest_golden.learning.lessons.model import SkillMemory
from pytest_golden.learning.outcome_logger import log_agent_outcome
from tests.web.conftest import form_token
from tests.web.pages.test_journal_pages import HOSTILE, SHOWN
from tests.web.recorded import record_run

if TYPE_CHECKING:
    from starlette.testclient import TestClient

    from pytest_golden.web.services import Services

API = "/api/v1"


def learn(services: Services, lesson: str, **more: object) -> str:
    skill = SkillMemory(
        lesson=lesson,
        context="when the orders table is read",
        what_failed="select customer from orders",
        what_worked="select customer_id from orders",
        **{"evidence": {"error": "no such column: customer", "project": "orders"}, **more},  # type: ignore[arg-type]
    )
    verdict = services.lessons.add(skill, "builder")
    assert verdict.kept, verdict.reason
    assert verdict.skill is not None
    return verdict.skill.id


@pytest.fixture
def lesson(services: Services) -> str:
    """A lesson that waits for a person."""
    return learn(services, "Use customer_id instead of customer in the orders table", approved=False, source="model")


def test_lessons_are_listed_and_searched(client: TestClient, services: Services, lesson: str) -> None:
    timeout = "Set the timeout of the pricing service to ninety seconds before the nightly backfill"
    other = learn(services, timeout, evidence={"error": "deadline of pricing exceeded", "project": "prices"})
    page = client.get("/lessons").text
    assert lesson in page
    assert other in page
    found = client.get("/lessons?q=instead+timeoutless").text
    assert lesson in found
    assert other not in found
    assert lesson not in client.get("/lessons?filter=shown").text
    assert lesson in client.get("/lessons?filter=waits").text
    assert "Nothing fits" in client.get("/lessons?q=zzzz").text
    items = client.get(f"{API}/lessons", params={"q": "instead"}).json()["items"]
    assert [one["id"] for one in items] == [lesson]


def test_person_approves_rejects_and_deletes_a_lesson(client: TestClient, services: Services, lesson: str) -> None:
    token = form_token(client.get(f"/lessons/{lesson}").text)
    fields = {"csrf_token": token}
    assert client.post(f"/lessons/{lesson}/approve", data=fields).headers["location"] == f"/lessons/{lesson}"
    assert services.lessons.get(lesson).approved
    assert client.post(f"/lessons/{lesson}/reject", data=fields).status_code == 303
    assert services.lessons.get(lesson).rejected
    assert client.post(f"/lessons/{lesson}/delete", data=fields).headers["location"] == "/lessons"
    assert client.get(f"/lessons/{lesson}").status_code == 404
    assert client.post(f"/lessons/{lesson}/approve", data=fields).status_code == 404


def test_lesson_is_judged_by_json_too(client: TestClient, services: Services, lesson: str) -> None:
    assert client.post(f"{API}/lessons/{lesson}/approve", json={"by": "ada"}).json()["approved"] is True
    assert services.lessons.get(lesson).judged_by == "ada"
    assert client.post(f"{API}/lessons/{lesson}/reject", json={}).json()["rejected"] is True
    assert client.delete(f"{API}/lessons/{lesson}").json()["id"] == lesson
    assert client.delete(f"{API}/lessons/{lesson}").status_code == 404


def test_lesson_shows_its_evidence(client: TestClient, lesson: str) -> None:
    page = client.get(f"/lessons/{lesson}").text
    for told in (
        "when the orders table is read",
        "no such column: customer",
        'href="/projects/orders"',
        "worded by a model",
    ):
        assert told in page


def test_hostile_lesson_is_shown_and_never_taken_for_html(client: TestClient, services: Services) -> None:
    skill = SkillMemory(
        lesson=f"Use customer_id instead of customer: {HOSTILE}", context=HOSTILE, evidence={"error": HOSTILE}
    )
    verdict = services.lessons.add(skill, "<b>")
    assert verdict.skill is not None
    for path in ("/lessons", f"/lessons/{verdict.skill.id}"):
        page = client.get(path).text
        assert SHOWN in page
        for raw in ("<script>alert", "<b>", "\x1b", "\u202e", "49'"):
            assert raw not in page


def test_plans_are_listed_searched_and_shown(client: TestClient, services: Services) -> None:
    asyncio.run(
        log_agent_outcome(
            services.store, "Rebuild orders", {"rows": 3}, True, ["read", "join", "write"], "builder", 1.5
        )
    )
    (item,) = client.get(f"{API}/plans").json()["items"]
    assert client.get(f"{API}/plans/{item['id']}").json()["outcome"]["task_description"] == "Rebuild orders"
    for path in ("/plans", "/plans?q=orders", f"/plans/{item['id']}"):
        assert item["id"] in client.get(path).text
    shown = client.get(f"/plans/{item['id']}").text
    assert shown.index("read") < shown.index("join")
    assert "Nothing fits" in client.get("/plans?q=zzzz").text


def test_gate_leaves_no_plan_which_the_empty_page_says(client: TestClient, services: Services) -> None:
    record_run(services.store, 0, orders={})
    assert learn_from_results(services.store).learned == 1
    assert "Gates leave none here" in client.get("/plans").text
