"""A store with more, and longer, than a page has room for."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import iso_utc
from pytest_golden.gate.store import record_event
from pytest_golden.learning.lessons.model import SkillMemory
from pytest_golden.learning.outcome_logger import log_agent_outcome
from pytest_golden.storage.store import Store
from pytest_golden.web.services import Services
from tests.gate.gate_events import START, begin, end, judge

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_golden.gate.events import GateEvent, RunBegun

RESULTS, ITEMS = 200, 60
STEPS, MOST_STEPS = 500, 200
_LONG = "n" * 190
_MIB = 1024 * 1024


def seed_many(folder: Path) -> tuple[str, ...]:
    """Fill a workspace, and give the addresses of its lists and of a result that is as long."""
    (folder / ".golden").mkdir()
    manifest = folder / "golden_projects.yaml"
    with Store.open(folder / ".golden" / "golden.db") as store:
        services = Services.on(store, manifest)
        run, result = _record(store)
        for number in range(ITEMS):
            _log(services, number)
        asyncio.run(_learn(services))
    lists = ("/projects", "/journal", "/expectations", "/signals", "/lessons", "/plans", f"/runs/{run}")
    return (*lists, f"/results/{result}")


def _record(store: Store) -> tuple[str, str]:
    names = [f"{number:03}{_LONG}" for number in range(RESULTS)]
    begun = begin(*names)
    judged = [judge(begun, name) for name in names]
    judged[0] = replace(judged[0], result=replace(judged[0].result, **_make_long(begun)))
    events: list[GateEvent] = [begun, *judged, end(begun)]
    with store.write() as connection:
        for event in events:
            record_event(connection, event)
    return begun.run_id, judged[0].entry_id


def _make_long(begun: RunBegun) -> dict[str, Any]:
    steps = tuple(
        {
            "id": f"step_{number}",
            "type": "action",
            "content": f"{number} {_LONG}",
            "timestamp": iso_utc(START + timedelta(seconds=number)),
            "duration_ms": 1000,
            "metadata": {},
        }
        for number in range(STEPS)
    )
    line = "0123456789 " * 9 + "\n"
    return {
        "steps": steps,
        "steps_total": STEPS,
        "output_summary": line * (_MIB // len(line)),
        "command": ("python", *begun.expectations),
    }


def _log(services: Services, number: int) -> None:
    journal, name = services.journal, f"{number:03}{_LONG}"
    entry = journal.log_intent(name, name, agent_id=name)
    journal.log_outcome(entry.id, "success", expectations=[{"description": name, "expires_minutes": 600}])
    journal.add_signal(name, "neutral", name, agent_id=name)


async def _learn(services: Services) -> None:
    for number in range(ITEMS):
        name = f"column{number:03}{_LONG}"
        skill = SkillMemory(lesson=f"Use {name} in the orders table", evidence={"error": f"no such {name}"})
        services.lessons.add(skill, "builder")
        await log_agent_outcome(services.store, name, {}, True, [name], f"agent{number}", 1.5)
