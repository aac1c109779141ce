from __future__ import annotations

import json
from typing import TYPE_CHECKING

import jsonschema
import pytest
from sqlalchemy import update

# pytester forgets what an inner session imported, and SQLAlchemy cannot be imported twice.
import pytest_golden.storage.schema  # noqa: F401
from pytest_golden.report.gate_report import report_schema
from pytest_golden.storage.schema import gate_results, gate_runs
from pytest_golden.storage.store import Store
from tests.report.test_report_schema import list_undeclared
from tests.session.workspace import FAILS, Workspace

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Golden

STEPS = 'echo \'{"name": "load"}\' >> "$GOLDEN_STEPS"\necho \'{"name": "merge", "error": "no column"}\' >> "$GOLDEN_STEPS"\n'


@pytest.fixture
def recorded(folder: object, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.chdir(pytester.path)
    workspace = Workspace(pytester)
    workspace.declare({"name": "fine"}, {"name": "broken", "script": STEPS + FAILS}, {"name": "left_out"})
    assert workspace.run("-k", "not left_out", "--golden-json", "gate.json", "--golden-html", "gate.html").ret == 1
    return workspace


def test_the_last_run_is_told(recorded: Workspace, golden: Golden) -> None:
    ran = golden("report")
    assert ran.code == 0
    assert ran.out.startswith("FAILED (partial: 1 deselected)\n1 passed, 1 failed\nentry_")
    assert "FAILED: exit code 3, expected 0: merge: no column\nfailing step: merge\n" in ran.out
    assert "deselected: left_out" in ran.out


def test_the_report_is_read_back_as_the_gate_wrote_it(recorded: Workspace, golden: Golden) -> None:
    written = json.loads((recorded.path / "gate.json").read_text(encoding="utf-8"))
    told = golden("report", "--json").json
    for report in (written, told):
        jsonschema.Draft202012Validator(report_schema()).validate(report)
        assert list(list_undeclared(report, report_schema(), report_schema())) == []
    same = ("entry_id", "commit", "manifest", "mode", "require", "command_line", "deselected", "not_run", "interrupted")
    assert {key: told["gate"][key] for key in same} == {key: written["gate"][key] for key in same}
    assert set(told["gate"]) == set(written["gate"])
    for one, other in zip(told["results"], written["results"], strict=True):
        assert {**one, "known": None} == {**other, "known": None}


def test_any_run_is_found_by_its_entry_by_a_results_and_by_its_beginning(recorded: Workspace, golden: Golden) -> None:
    recorded.run("-q", "-k", "fine")
    assert golden("report").code == 0  # and what the gate printed is out of the way
    last = golden("report", "--json").json
    first = golden("journal", "review", "--agent", "golden", "--json").json["entries"][-1]["id"]
    assert [result["name"] for result in last["results"]] == ["fine"]
    assert golden("report", first, "--json").json["gate"]["entry_id"] != last["gate"]["entry_id"]
    assert golden("report", last["gate"]["entry_id"][:-1], "--json").json == last


def test_the_page_is_written_with_and_without_a_run(recorded: Workspace, golden: Golden) -> None:
    ran = golden("report", "--html", "new/run.html")
    assert ran.out == "wrote new/run.html\n"
    page = (recorded.path / "new" / "run.html").read_text(encoding="utf-8")
    own = (recorded.path / "gate.html").read_text(encoding="utf-8")
    for told in ("FAILED (partial: 1 deselected)", "no column", "it broke", "left_out", "--golden-html gate.html"):
        assert told in page
        assert told in own
    assert golden("report", "--html", "x.html", "--json").json["total_count"] == 2


def test_a_run_that_never_ended_is_no_success(recorded: Workspace, golden: Golden) -> None:
    with Store.open(recorded.path / ".golden" / "golden.db") as store, store.write() as connection:
        connection.execute(update(gate_runs).values(finished_at=None, final_status=None))
    assert golden("report").out.startswith("NOT FINISHED")


def test_a_weakened_floor_and_what_left_no_steps_are_told(recorded: Workspace, golden: Golden) -> None:
    told = {"project": "fine", "kind": "limit", "message": "timeout was raised", "base": "5m", "head": "50m"}
    with Store.open(recorded.path / ".golden" / "golden.db") as store, store.write() as connection:
        connection.execute(update(gate_runs).values(facts={"weakened_floor": [told]}))
        connection.execute(update(gate_results).values(trajectory_id=None))
    ran = golden("report")
    assert ran.out.startswith("FAILED\n")
    assert "weakened floor: fine: timeout was raised" in ran.out
    report = golden("report", "--json").json
    assert report["weakened_floor"] == [told]
    assert {result["trajectory"] for result in report["results"]} == {None}


@pytest.mark.parametrize("words", [("nope",), ("entry_",), ("\udc80",), ("--html", "."), ("--store", "none")])
def test_bad_input_is_one_sentence(recorded: Workspace, golden: Golden, words: tuple[str, ...]) -> None:
    ran = golden("report", *words)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("golden: ")
    assert ran.err.count("\n") == 1


def test_a_period_is_shown_and_written_as_a_page(golden: Golden, folder: Path) -> None:
    entry = golden("journal", "log-intent", "mend <it>", "--agent", "fixer").out.strip()
    golden("journal", "log-outcome", entry, "failure", "--notes", "no disk")
    shown = golden("report", "--since", "1d")
    assert (shown.code, "No gate was run." in shown.out) == (0, True)
    for told in (
        "fixer: 0% of 1 succeeded",
        "fixer: mend <it>",
        "the agent reported failure: no disk",
        "waiting: failures",
    ):
        assert told in shown.out
    assert golden("report", "--since", "1d", "--json").json["failures"][0]["entry_id"] == entry
    assert golden("report", "--since", "7d", "--html", "week.html").out == "wrote week.html\n"
    assert "mend &lt;it&gt;" in (folder / "week.html").read_text()
    assert "leave out --since or ENTRY" in golden("report", entry, "--since", "1d").err
    assert golden("report", "--since", "yesterday-ish").code == 2
