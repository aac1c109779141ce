"""A store in which every text that a page shows is of the same bad will, put there through the services."""

from __future__ import annotations

import asyncio
import json
import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from pytest_golden.clock import utc_now
from pytest_golden.gate.live import RunningProject, describe_machine
from pytest_golden.gate.store import record_event, write_beat
from pytest_golden.gateway.model import WriteSet
from pytest_golden.learning.lessons.model import SkillMemory
from pytest_golden.learning.outcome_logger import log_agent_outcome
from pytest_golden.regression.model import Reason, ReasonKind, ResultStatus
from pytest_golden.storage.columns import to_ms
from pytest_golden.storage.store import Store
from pytest_golden.web.services import Services
from tests.gate.gate_events import START, begin, end, judge

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_golden.gate.events import RunBegun

    Ill = Callable[[str], str]

LONG_WORD = "_" * 100_000
FROM_THE_RIGHT = "\N{HEBREW LETTER ALEF}\N{HEBREW LETTER BET} 12 \N{ARABIC LETTER ALEF}"
_LONGEST_NAME, _LONGEST_PROJECT = 780, 200
_SCRIPT = "window.pwned=1;alert(1)"
_BAD = (
    f"<script>{_SCRIPT}</script><img src=x onerror='{_SCRIPT}'>",
    f"\"'><svg onload={_SCRIPT}></svg><a href=javascript:{_SCRIPT}>x</a>" + "</title></pre></option></textarea>{{7*7}}",
    f"\x1b]8;;javascript:{_SCRIPT}\x07link\x1b]8;;\x07\x1b]0;title\x1b\\\x1b[31mred\x1b[999;9Hm\x1b[2J\x9b31mred\x9d8;;x\x9c",
    "\u202eevil\u202d\u2066\u2067\u2068 \u200f\u061c\u200b\u200d\ufeff\u2028\x00\x07\x7f\x85\x90\ud800\udfff &lt;b&gt; %00",
)


def make_ill(field: str) -> str:
    """Return a text that tries what texts can do to a page, and to what stands beside it."""
    return f"{field} {' '.join(_BAD)}"


def make_long(field: str) -> str:
    """Return letters that are written from the right, and one word that no line is long enough for."""
    return f"{field} {FROM_THE_RIGHT}{LONG_WORD}"


def seed_ill(folder: Path, *kinds: Ill) -> tuple[str, ...]:
    """Fill a workspace, and give the addresses of all pages on it."""
    told = _without_refused(make_ill)("declared")
    manifest = folder / "golden_projects.yaml"
    declared = {
        "name": "orders",
        "path": "orders.py",
        "description": told,
        "expected_outcome": f"specific_error:{re.escape(told)}",
    }
    manifest.write_text(json.dumps({"golden_projects": [declared | {"network": False}]}))
    (folder / "orders.py").write_text("")
    (folder / ".golden").mkdir()
    addresses = [
        "/",
        "/projects",
        "/projects/orders",
        "/journal",
        "/expectations",
        "/summary",
        "/signals",
        "/agents",
        "/waiting",
        "/cycles",
        "/plans",
        "/search",
        "/search?q=a",
        "/search?q=orders",
    ]
    with Store.open(folder / ".golden" / "golden.db") as store:
        services = Services.on(store, manifest)
        for ill in kinds:
            addresses += _record(store, ill)
            kept = _without_refused(ill)
            addresses += _log(services, kept)
            _learn(services, kept)
            addresses.append(f"/cycles/{_cycle(services, kept)}")
        learned = services.learned.list_lessons(filter="all").items
        addresses += [f"/lessons/{one.kept.skill.id}" for one in learned]
        addresses += [f"/plans/{one.memory.key}" for one in services.learned.list_plans().items]
        assert len(learned) == len(kinds)
        addresses += [f"/runs/{_begin(store, _without_refused(ill))}" for ill in kinds]
    return (*addresses, "/lessons", "/lessons?filter=all")


def begin_ill(folder: Path, ill: Ill) -> None:
    """Begin one more gate, which tells what it is at."""
    with Store.open(folder / ".golden" / "golden.db") as store:
        _begin(store, _without_refused(ill))


def _begin(store: Store, ill: Ill) -> str:
    """Begin a gate that goes on while this process lives; give its entry."""
    now = utc_now()
    begun = begin(ill("running"), moment=to_ms(now), pid=os.getpid())
    running = (RunningProject(ill("running"), now, ill("step")),)
    with store.write() as connection:
        record_event(connection, begun)
    with store.write_aside() as connection:
        write_beat(connection, begun.run_id, now, running, pid=os.getpid(), machine=describe_machine(), total_count=1)
    return begun.run_id


def _without_refused(ill: Ill) -> Ill:
    """Return what the journal and the learner take: they refuse a NUL and half a pair."""
    return lambda field: ill(field).replace("\x00", "").replace("\ud800\udfff", "")


def _as_name(ill: Ill) -> Ill:
    """Return what can be looked up, which has an end."""
    return lambda field: ill(field).encode()[:_LONGEST_NAME].decode(errors="ignore")


def _name_project(ill: Ill) -> str:
    """Return a name that the gate itself puts into sentences."""
    return _without_refused(ill)("project").replace(FROM_THE_RIGHT, "")[:_LONGEST_PROJECT]


def _record(store: Store, ill: Ill) -> list[str]:
    # No commit and no machine is called like that.
    kept, project = _without_refused(ill), _name_project(ill)
    begun = begin(
        project,
        workspace_root=f"/{ill('root')}",
        manifest=ill("manifest"),
        command_line=("pytest", ill("word")),
        checkout={"commit": kept("commit"), "branch": ill("branch"), "dirty": True, "dirty_files": {ill("file"): None}},
        surroundings={
            "python": ill("python"),
            "platform": ill("platform"),
            "distributions": {ill("package"): ill("version")},
        },
        host=kept("host"),
        facts={
            "mode": ill("mode"),
            "weakened_floor": [{"kind": "project_gone", "project": ill("weak"), "message": ill("weakening")}],
            "not_run": [ill("skipped")],
            "deselected": [ill("deselected")],
        },
    )
    judged = _judge(begun, project, ill)
    events = [begun, judged, end(begun, notes=ill("notes"), facts=begun.facts)]
    for event in events:
        with store.write() as connection:
            record_event(connection, event)
    entries = (f"/journal/{one}" for one in (begun.run_id, judged.entry_id))
    return [f"/projects/{quote(project, safe='')}", f"/runs/{begun.run_id}", f"/results/{judged.entry_id}", *entries]


def _judge(begun: RunBegun, project: str, ill: Ill) -> Any:
    judged = judge(begun, project, ResultStatus.FAILED)
    step = {
        "id": ill("id"),
        "type": "action",
        "content": ill("content"),
        "timestamp": START.isoformat(),
        "duration_ms": 5,
        "metadata": {"error": ill("error")},
    }
    difference = f"{ill('output')}\n- {ill('was')}\n+ {ill('is')}\n@@ {ill('at')}"
    result = replace(
        judged.result,
        path=ill("path"),
        output_summary=f"{ill('line')}\n{ill('line')}",
        output_colours={ill("line"): f"\x1b[31m{ill('line')}"},
        error_message=ill("message"),
        reasons=(
            Reason(ReasonKind.OUTPUT_DIFFERS, difference, ill("output")),
            Reason(ill("reason"), ill("told"), ill("where")),
        ),
        warnings=(ill("warning"),),
        quarantined=ill("quarantine"),
        regression_kind=_without_refused(ill)("regression"),
        command=("python", ill("argument")),
        known=({"kind": ill("kind"), "lines": [ill("known")]},),
        write_set=WriteSet((ill("created"),), (ill("changed"),), (ill("removed"),)),
        log_path=ill("log"),
        steps=(step,),
    )
    return replace(judged, result=result, declaration={"name": project, ill("key"): ill("value")})


def _log(services: Services, ill: Ill) -> list[str]:
    name = _as_name(ill)
    journal, agent = services.journal, name("agent")
    entry = journal.log_intent(
        ill("intent"), name("type"), agent_id=agent, session_key=name("session"), job_id=name("job")
    )
    asked = {
        "description": ill("expected"),
        "match_hint": {"key": ill("value"), "source": name("source")},
        "expires_minutes": 60_000,
        "critical": True,
    }
    journal.log_outcome(
        entry.id, "success", ill("notes"), actions=[ill("action"), {ill("key"): ill("value")}], expectations=[asked]
    )
    child = journal.log_intent(ill("child"), agent_id=agent, parent_id=entry.id)
    signals = [
        journal.add_signal(
            name("source"),
            "positive",
            ill("summary"),
            data={ill("key"): ill("value")},
            session_key=name("session"),
            **more,
        )
        for more in (
            {"entry_id": entry.id, "external_id": name("external")},
            {"agent_id": name("stranger")},
        )
    ]
    journal.assess(child.id, "partial", ill("because"), by=name("person"))
    journal.log_outcome(child.id, "failure", None, expectations=[{"description": ill("open")}])
    timeline = "/journal?" + urlencode({"agent": agent, "type": name("type")})
    return [timeline, f"/journal/{entry.id}", f"/journal/{child.id}", *(f"/signals/{one.id}" for one in signals)]


def _cycle(services: Services, ill: Ill) -> str:
    """Record a cycle as a command that was talked into anything leaves it; give its entry."""
    entry = services.journal.log_intent(ill("task"), "cycle", agent_id="golden", session_key=_as_name(ill)("cycle"))
    step = {"step": "review", "status": "done", "reason": ill("approved"), "seconds": 2}
    note = {
        "branch": "golden/cycle-1",
        "verdict": "flagged",
        "steps": [step],
        "weakened_floor": [{"message": ill("weaker")}],
        "warnings": [ill("warning")],
    }
    wish = {"description": ill("passes"), "match_hint": {"source": "golden", "project": "orders"}}
    services.journal.log_outcome(entry.id, "failure", ill("FAILURE"), actions=[note], expectations=[wish])
    return entry.id


def _learn(services: Services, ill: Ill) -> None:
    agent = _as_name(ill)("agent")
    skill = SkillMemory(
        lesson=ill("Use customer_id instead of customer in the orders table")[:780],
        context=ill("context"),
        what_failed=ill("select customer from orders"),
        what_worked=ill("select customer_id from orders"),
        why=ill("why"),
        tool_name=ill("tool"),
        judged_by=ill("judge"),
        evidence={"error": ill("no such column"), "project": _name_project(ill), ill("key"): ill("value")},
    )
    verdict = services.lessons.add(skill, agent)
    assert verdict.kept, verdict.reason
    path = [ill("read")]
    asyncio.run(log_agent_outcome(services.store, ill("task"), {}, True, path, agent, 1.5, error_message=ill("error")))
