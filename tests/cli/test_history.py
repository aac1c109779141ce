from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import insert

from pytest_golden.cli.history import _draws_unicode
from pytest_golden.cli.screen import open_console
from pytest_golden.storage.columns import to_ms
from pytest_golden.storage.schema import entries, gate_results, gate_runs
from pytest_golden.storage.store import Store
from tests.history.past_results import results_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_golden.history.changes import PastResult
    from tests.cli.conftest import Golden, GoldenProcess

A, B = "a" * 40, "b" * 40


def _entry(entry_id: str) -> dict[str, Any]:
    texts = {"agent_id": "golden", "intent": "x", "immediate_result": "success", "assessment": "success"}
    return {"id": entry_id, **texts, "actions": [], "created_at": 0, "updated_at": 0}


def _run(result: PastResult, run_id: str) -> dict[str, Any]:
    names = {"workspace_root": "/", "manifest": "m", "environment_digest": "x", "host": "h"}
    checkout = {"commit": result.commit, "branch": result.branch, "dirty": result.dirty}
    started = to_ms(result.created_at)
    return {"entry_id": run_id, **names, **checkout, "command_line": [], "pid": 1, "started_at": started}


def keep(store: Store, project: str, results: Sequence[PastResult]) -> None:
    """Put results, given newest first, into the store; each belongs to a run of its own."""
    plain = (
        "status",
        "exit_code",
        "execution_time_seconds",
        "attempts",
        "is_flaky",
        "is_regression",
        "is_narrowed",
        "pass_streak",
    )
    rows = []
    for number, result in enumerate(reversed(results)):
        own = {name: getattr(result, name) for name in plain}
        ids = {"entry_id": f"entry_{project}_{number}", "run_id": f"run_{project}_{number}", "project": project}
        reasons = [{"kind": "interrupted", "message": "x"}] if result.is_interrupted else []
        plain_result = {"error_message": result.message, "output_summary": "x" * 500, "reasons": reasons}
        about = {"declaration_digest": "x", "result": plain_result}
        rows.append({**own, **ids, **about, "created_at": to_ms(result.created_at)})
    runs = [_run(result, row["run_id"]) for result, row in zip(reversed(results), rows, strict=True)]
    with store.write() as connection:
        connection.execute(insert(entries), [_entry(row[key]) for row in rows for key in ("run_id", "entry_id")])
        connection.execute(insert(gate_runs), runs)
        connection.execute(insert(gate_results), rows)


@pytest.fixture
def store(folder: Path) -> Path:
    """A store where the manifest's commands look for it, with the past of two projects; a third has none."""
    (folder / "golden_projects.yaml").write_text("golden_projects: [{path: sales.py}, {path: new.py}]\n")
    with Store.open(folder / ".golden" / "golden.db") as opened:
        seconds = [1.0, 2.0, 1.5, 0.0, 1.2]
        keep(opened, "sales", results_of("P~F-P", execution_time_seconds=seconds, commit=[A, A, A, B, B]))
        keep(opened, "old", results_of("P" * 12, commit=None, dirty=None))
        assert opened.path is not None
        return opened.path


def test_history_of_one_project_as_json(golden: Golden, store: Path) -> None:
    ran = golden("history", "sales", "--json")
    assert (ran.code, ran.err) == (0, "")
    told = ran.json
    assert (told["name"], told["flakiness"]) == ("sales", 0.5)
    assert told["median_seconds"] == pytest.approx(1.2)
    assert told["mad_seconds"] == pytest.approx(0.2)
    assert [run["status"] for run in told["runs"]] == ["PASSED", "SKIPPED", "FAILED", "PASSED", "PASSED"]
    assert [run["is_flaky"] for run in told["runs"]] == [False, False, False, True, False]
    newest, failed = told["runs"][0], told["runs"][2]
    assert newest["created_at"] == "2026-11-20T16:00:00.000000Z"
    assert (newest["commit"], newest["attempts"], newest["execution_time_seconds"]) == (B, 1, 1.2)
    assert (failed["exit_code"], failed["is_regression"]) == (1, True)
    assert failed["message"].startswith("exit code 1, expected 0")


def test_flakiness_is_null_without_two_runs_on_one_commit(golden: Golden, store: Path) -> None:
    assert golden("history", "old", "--json").json["flakiness"] is None
    assert golden("history", "sales", "--json", "--limit", "1").json["flakiness"] is None
    assert golden("history", "old", "--json", "--limit", "3").json["streak"] == "12th pass in a row"
    assert len(golden("history", "old", "--json", "--limit", "3").json["runs"]) == 3


def test_project_without_a_run_has_an_empty_history(golden: Golden, store: Path) -> None:
    told = golden("history", "new", "--json").json
    assert told == {
        "name": "new",
        "runs": [],
        "streak": "",
        "flakiness": None,
        "median_seconds": None,
        "mad_seconds": None,
        "trend": {
            "pass_count": 0,
            "median_seconds": None,
            "mad_seconds": None,
            "max_slowdown": None,
            "limit_seconds": None,
        },
    }
    assert golden("history", "new").out == "new has no run yet: `pytest --golden -k new` makes the first\n"


def test_history_of_one_project_for_people(golden: Golden, store: Path) -> None:
    ran = golden("history", "sales")
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "sales: passes again after 1 failure",
        "runs       ✓~✗-✓   (✓ passed, ✗ failed, ! error, ~ passed after a retry, - skipped, ^ interrupted)",
        "durations  ▁█▅ ▂   (usually 1.20s, half of the passes within 200ms of it)",
        "flakiness  50% of consecutive results on one commit differ; passed only after a retry in 1 of 4 runs",
        "       2.00s │    ███",
        "             │    ███ ▄▄▄",
        "median 1.20s │    ███ ███     ▅▅▅",
        "             │███ ███ ███     ███",
        "             │███ ███ ███     ███",
        "             │███ ███ ███     ███",
        "when (UTC)        status    time  commit   tries  reason",
        "2026-11-20 16:00  PASSED   1.20s  bbbbbbb      1",
        "2026-11-20 15:00  SKIPPED      -  bbbbbbb      1  exit code 1, expected 0",
        "2026-11-20 14:00  FAILED   1.50s  aaaaaaa      1  exit code 1, expected 0",
        "2026-11-20 13:00  PASSED   2.00s  aaaaaaa      2",
        "2026-11-20 12:00  PASSED   1.00s  aaaaaaa      1",
    ]


def test_all_projects_are_listed_in_the_manifests_order_first(golden: Golden, store: Path) -> None:
    ran = golden("history", "--limit", "4")
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "project  runs, newest right  last    usual",
        "sales    ~✗-✓                PASSED  1.60s  passes again after 1 failure",
        "new                          -           -  no run yet",
        "old      ✓✓✓✓                PASSED  1.00s  12th pass in a row (no longer declared)",
        "✓ passed, ✗ failed, ! error, ~ passed after a retry, - skipped, ^ interrupted",
        "last run (2026-11-20 23:00): NOT FINISHED: 1 passed",
    ]
    told = golden("history", "--json").json["projects"]
    assert [project["name"] for project in told] == ["sales", "new", "old"]
    assert told[2]["median_seconds"] == 1.0


def test_the_slowest_projects_are_listed_first(golden: Golden, store: Path) -> None:
    with Store.open(store) as opened:
        keep(opened, "slow", results_of("PP", execution_time_seconds=[9.0, 9.0]))
    told = golden("history", "--slowest", "--json").json["projects"]
    usual = [project["median_seconds"] or 0.0 for project in told]
    assert told[0]["name"] == "slow"
    assert usual == sorted(usual, reverse=True)
    assert {project["name"] for project in told} == {"sales", "new", "old", "slow"}


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        ("100", f"sales    {'✓' * 28}✗✗✓✓  PASSED  1.00s  2nd pass in a row, failed 2 of the last 10"),
        ("60", "sales    ✓✓✓✓✓✓✗✗✓✓  PASSED  2nd pass in a row, failed 2..."),
        ("30", "sales    ✓✓✓✓✓✓✗✗✓✓  PASSED"),
    ],
)
def test_narrow_terminal_shows_the_newest_runs(
    golden: Golden, folder: Path, monkeypatch: pytest.MonkeyPatch, columns: str, shown: str
) -> None:
    with Store.open(folder / "golden.db") as opened:
        keep(opened, "sales", results_of(f"{'P' * 40}FFPP"))
    monkeypatch.setenv("COLUMNS", columns)
    out = golden("history", "--store", "golden.db", "--limit", "44").out.splitlines()
    assert out[1] == shown


def test_past_is_told_without_a_manifest(golden: Golden, store: Path, folder: Path) -> None:
    (folder / "golden_projects.yaml").unlink()
    assert [project["name"] for project in golden("history", "--json").json["projects"]] == ["old", "sales"]
    (folder / "golden_projects.yaml").write_text("golden_projects: 3\n")
    assert golden("history", "--store", str(store)).code == 0


def test_milliseconds_are_not_shown_as_nothing(golden: Golden, folder: Path) -> None:
    with Store.open(folder / "golden.db") as opened:
        keep(opened, "a", results_of("PPP", execution_time_seconds=[0.012, 0.016, 0.02]))
    out = golden("history", "a", "--store", "golden.db").out.splitlines()
    assert out[2] == "durations  ▁▅█   (usually 16ms, half of the passes within 4ms of it)"
    assert [line.split()[3] for line in out[-3:]] == ["20ms", "16ms", "12ms"]
    assert "  16ms  " in golden("history", "--store", "golden.db").out


def test_edits_and_unknown_commits_are_marked(golden: Golden, folder: Path) -> None:
    with Store.open(folder / "golden.db") as opened:
        keep(opened, "a", results_of("FE", commit=[None, A], dirty=[None, True], message=["a\x1b[31mb", None]))
    out = golden("history", "a", "--store", "golden.db").out.splitlines()
    assert out[0] == "a: failed 2 times in a row"
    assert out[2] == "durations  ▁▁   (no pass among them)"
    assert out[3] == "flakiness  not known: no commit has two runs without edits"
    assert out[-2].split() == ["2026-11-20", "13:00", "ERROR", "1.00s", "aaaaaaa+edits", "1"]
    assert out[-1].split() == ["2026-11-20", "12:00", "FAILED", "1.00s", "-", "1", "ab"]


def test_flakiness_that_may_be_edits_is_none(golden: Golden, folder: Path) -> None:
    with Store.open(folder / "golden.db") as opened:
        keep(opened, "a", results_of("PF", dirty=[False, True]))
    assert (
        golden("history", "a", "--store", "golden.db").out.splitlines()[2] == "durations  ▁▁   (1.00s in the one pass)"
    )
    told = "flakiness  not known: no commit has two runs without edits"
    assert golden("history", "a", "--store", "golden.db").out.splitlines()[3] == told


def test_interrupted_run_has_a_sign_of_its_own_and_counts_nowhere(golden: Golden, folder: Path) -> None:
    with Store.open(folder / "golden.db") as opened:
        keep(opened, "a", results_of("FP^P"))
    out = golden("history", "a", "--store", "golden.db").out.splitlines()
    assert out[0] == "a: 2nd pass in a row, failed 1 of the last 3"
    assert out[1].startswith("runs       ✗✓^✓")
    assert out[2].startswith("durations  ▁▁ ▁")
    assert out[3] == "flakiness  50% of consecutive results on one commit differ"
    runs = golden("history", "a", "--store", "golden.db", "--json").json["runs"]
    assert [one["is_interrupted"] for one in runs] == [False, True, False, False]


def test_skipped_project_has_no_streak(golden: Golden, folder: Path) -> None:
    with Store.open(folder / "golden.db") as opened:
        keep(opened, "a", results_of("-"))
    assert golden("history", "a", "--store", "golden.db").out.splitlines()[0] == "a"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("sale",), "no golden project called 'sale' has a run in"),
        (("sale",), "did you mean 'sales'?"),
        (("xyzzy",), "`golden history` lists all"),
        (("--limit", "0"), "--limit 0 cannot be used; give a number from 1 to 100000"),
        (("--limit", "x"), "--limit x cannot be used"),
        (("sales", "--slowest"), "give it without a NAME"),
        (("--limit", "-3"), "--limit"),
        (("--limit", "9" * 5000), "cannot be used"),
        (("--store", "elsewhere.db"), "elsewhere.db"),
    ],
)
def test_bad_input_is_one_sentence(golden: Golden, store: Path, words: tuple[str, ...], said: str) -> None:
    ran = golden("history", *words)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert ran.err.count("\n") == 1


def test_empty_store_is_said(golden: Golden, folder: Path) -> None:
    Store.open(folder / "golden.db").close()
    ran = golden("history", "--store", "golden.db")
    assert (ran.code, ran.out) == (0, "no golden project has a run here yet: `pytest --golden` makes the first\n")
    assert golden("history", "--store", "golden.db", "--json").json == {"last_run": None, "projects": []}


def test_terminal_that_knows_no_signs_gets_letters(golden_process: GoldenProcess, store: Path) -> None:
    ran = golden_process("history", "sales", environment={"PYTHONIOENCODING": "ascii"})
    assert ran.out.splitlines()[1].startswith("runs       P~F-P   (P passed")
    assert not _draws_unicode(open_console(io.TextIOWrapper(io.BytesIO(), encoding="latin-1")))


def test_history_is_told_of_many_results(golden: Golden, folder: Path) -> None:
    results = results_of("P") * 10_000
    with Store.open(folder / "golden.db") as opened:
        keep(opened, "one", results)
    for words in ((), ("one",)):
        assert golden("history", *words, "--store", "golden.db").code == 0
