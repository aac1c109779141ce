from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.testclient import TestClient

    from pytest_golden.web.services import Services


def test_of_very_many_agents_some_are_offered_and_the_chosen_one_stays(client: TestClient, services: Services) -> None:
    for number in range(205):
        services.journal.log_intent("Rebuild orders", agent_id=f"agent-{number:03}")
    page = client.get("/journal?agent=agent-204").text
    assert page.count("<option") < 220
    assert '<option value="agent-204" selected>' in page
    assert 'value="agent-203"' not in page
    assert page.count(" selected") == 2
