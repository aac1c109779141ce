"""The report of a period, on both databases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from pytest_golden.gate.store import record_event
from pytest_golden.journal.service import Journal
from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.verdict import judge_run
from pytest_golden.report.period import describe_gates, describe_waiting, period_html, sum_up_period
from pytest_golden.storage.store import Store
from tests.gate.gate_events import START, begin, end, judge

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 3, 20, 12, 0, tzinfo=UTC)
HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e"


@pytest.mark.parametrize("location", ["sqlite", "postgresql"], indirect=True)
def test_failures_agents_and_what_waits_are_told(location: str | Path) -> None:
    with Store.open(location) as store:
        old = Journal(store, clock=lambda: NOW - timedelta(days=9))
        new = Journal(store, clock=lambda: NOW - timedelta(hours=3))
        for journal, name in ((old, "long ago"), (new, HOSTILE)):
            entry = journal.log_intent(f"mend {name}", agent_id="fixer")
            journal.log_outcome(entry.id, "failure", f"no disk {HOSTILE}")
        for _ in range(3):
            new.log_outcome(new.log_intent("send", agent_id="reporter").id, "success")
        report = sum_up_period(store, new, None, NOW - timedelta(days=7), NOW)
        quiet = sum_up_period(store, new, None, NOW - timedelta(hours=1), NOW)
    assert [(one.agent, one.assessed, one.success_rate) for one in report.agents] == [
        ("fixer", 1, 0.0),
        ("reporter", 3, 1.0),
    ]
    ((failure,), count) = (report.failures, report.failure_count)
    assert (failure.agent, failure.why.startswith("the agent reported failure: no disk"), count) == ("fixer", True, 1)
    assert (report.runs, report.is_red, describe_gates(report)) == (0, None, "No gate was run.")
    assert describe_waiting(report) == "failures that nobody has judged: 2"
    page = period_html(report)
    assert page.startswith("<!doctype html>")
    assert "the agent reported failure: no disk" in page
    for raw in ("<script", "\x1b", "\u202e"):
        assert raw not in page
    assert (quiet.agents, quiet.failures) == ((), ())
    assert "<table" not in period_html(quiet)


def test_gate_runs_are_counted_and_the_last_one_colours_the_report(tmp_path: Path) -> None:
    with Store.open(tmp_path / "golden.db") as store:
        journal = Journal(store)
        for number, status in enumerate((ResultStatus.PASSED, ResultStatus.FAILED)):
            run = begin("one", minute=number)
            result = judge(run, "one", status)
            verdict = judge_run([result.result]).to_dict()
            with store.write() as connection:
                for event in (run, result, end(run, verdict=verdict)):
                    record_event(connection, event)
        report = sum_up_period(store, journal, None, START - timedelta(days=1), NOW)
        before = sum_up_period(store, journal, None, NOW - timedelta(days=1), NOW)
    assert (report.runs, report.red_runs, report.is_red) == (2, 1, True)
    assert describe_gates(report) == f"2 gate runs, 1 red. The last one: {report.last_verdict}."
    assert "<strong>Red. </strong>" in period_html(report)
    assert before.runs == 0
