from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from pytest_golden.cli.trajectory import print_step, shorten, show_duration
from pytest_golden.storage.store import Store
from pytest_golden.trajectory.jsonlines import read_trajectory, write_trajectory
from pytest_golden.trajectory.model import Trajectory
from pytest_golden.trajectory.recorder import recording
from pytest_golden.trajectory.store import insert_trajectory

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Golden, GoldenProcess

HOSTILE = "load \x1b[31mred\x1b[0m \x9b2J\u202eevil\nsecond\x07"


def a_trajectory(name: str, outcome: str, rows: int) -> Trajectory:
    grown = Trajectory.new({"runner": "python"}, id=f"traj_{name}").add_step("action", HOSTILE, duration_ms=1500)
    above = grown.steps[0].id
    grown = grown.add_step("tool_call", "query", parent_step_id=above, metadata={"rows": rows}, importance="high")
    if outcome == "failure":
        about = {"error": "boom \x9b2J"}
        grown = grown.add_step("observation", {"a": [1]}, importance="critical", metadata=about)
    return grown.add_snapshot({"n": 1}).complete(outcome, "boom\x1b[2J" if outcome == "failure" else None)


@pytest.fixture
def store(folder: Path) -> Path:
    """A store where the manifest's commands look for it: of sales two successes, then a failure; of other a failure."""
    with Store.open(folder / ".golden" / "golden.db") as opened:
        runs = [("a1", "sales", "success"), ("a2", "sales", "success"), ("b1", "other", "failure")]
        for rows, (name, project, outcome) in enumerate([*runs, ("a3", "sales", "failure")]):
            with opened.write() as connection:
                kept = a_trajectory(name, outcome, rows)
                insert_trajectory(connection, kept, entry_id=f"entry_{name}", project=project, agent_id="golden")
        assert opened.path is not None
        return opened.path


@pytest.fixture
def long_file(folder: Path) -> Path:
    with recording(folder / "long.jsonl", metadata={"agent": "me"}) as recorder, recorder.span("action", "all"):
        for number in range(2000):
            recorder.step("action", f"step {number}")
    return folder / "long.jsonl"


def test_show_tells_the_newest_run_of_a_project(golden: Golden, store: Path) -> None:
    ran = golden("trajectory", "show", "sales")
    assert (ran.code, ran.err) == (0, "")
    first, error, *steps = ran.out.splitlines()
    assert first.startswith("sales: failure, 3 steps in ")
    assert first.endswith("UTC, traj_a3")
    assert error == "error: boom"
    assert steps[0].split("  ")[-2:] == ["load red \\u202eevil second\\x07", "1.5s"]
    assert steps[2].endswith('{"a": [1]}  boom')


@pytest.mark.parametrize("action", ["show", "tree", "query", "stats", "diff", "export"])
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_no_control_character_gets_through(golden: Golden, store: Path, action: str, more: tuple[str, ...]) -> None:
    words = {"query": ["importance>=low"], "diff": ["traj_b1"]}.get(action, [])
    ran = golden("trajectory", action, "sales", *words, *more)
    assert ran.code == 0
    assert not {sign for sign in ran.out if sign != "\n" and not sign.isprintable()}
    if more and action != "export":
        assert ran.json
    if action in {"show", "query"} and more:
        assert ran.json["steps"][0]["content"] == HOSTILE


@pytest.mark.parametrize("run", ["traj_a2", "entry_a2"])
def test_run_is_found_by_its_ids(golden: Golden, store: Path, run: str) -> None:
    ran = golden("trajectory", "show", run, "--json")
    told = ran.json
    assert (told["id"], told["project"], told["outcome"], told["total_steps"]) == ("traj_a2", "sales", "success", 2)
    assert (told["left_out"], len(told["steps"]), told["metadata"]) == (0, 2, {"runner": "python"})
    assert (told["total_snapshots"], "state_snapshots" in told) == (1, False)
    assert [(one["reason"], one["state"]) for one in told["snapshots"]] == [("checkpoint", {"n": 1})]


def test_snapshots_stand_below_the_steps(golden: Golden, folder: Path) -> None:
    grown = Trajectory.new(id="traj_x").add_step("action", "load").add_step("action", "save")
    for number in range(4):
        step = grown.steps[1].id if number == 0 else None
        grown = grown.add_snapshot({"rows": number}, reason=f"after {number}", step_id=step)
    write_trajectory(folder / "run.jsonl", grown.complete())
    lines = golden("trajectory", "show", "run.jsonl").out.splitlines()
    assert [line.split(maxsplit=2) for line in lines[3:5]] == [
        ["2", "snapshot", 'after 0: {"rows": 0}'],
        ["snapshot", "after", '1: {"rows": 1}'],
    ]
    told = golden("trajectory", "show", "run.jsonl", "--limit", "2")
    assert "... 2 more snapshots ..." in told.out
    assert len(golden("trajectory", "show", "run.jsonl", "--limit", "2", "--json").json["snapshots"]) == 2


def test_beginning_of_an_id_must_be_the_only_one(golden: Golden, store: Path) -> None:
    assert golden("trajectory", "show", "traj_b", "--json").json["id"] == "traj_b1"
    ran = golden("trajectory", "show", "entry_a")
    assert (ran.code, ran.out) == (2, "")
    assert "several ids begin with 'entry_a': traj_a3, traj_a2, traj_a1; give more of one" in ran.err
    assert golden("trajectory", "show", "traj%").code == 2


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ("saels", "did you mean 'sales'?"),
        ("nothing at all", "give a golden project's name, an id or its beginning, or a file"),
        (" ", "RUN is blank"),
        ("gone.jsonl", "there is no file gone.jsonl"),
        ("golden_projects.yaml", "is not a trajectory"),
    ],
)
def test_run_that_is_not_there_is_refused_in_one_sentence(
    golden: Golden, store: Path, folder: Path, run: str, said: str
) -> None:
    (folder / "golden_projects.yaml").write_text("golden_projects: []\n")
    ran = golden("trajectory", "show", run)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert said in ran.err
    assert golden("trajectory", "stats", run, "--json").json["error"]


def test_trajectory_of_a_newer_program_is_refused(golden: Golden, store: Path) -> None:
    with Store.open(store) as opened, opened.write() as connection:
        newer = {**Trajectory.new(id="traj_new").to_dict(), "schema_version": 99}
        insert_trajectory(connection, newer, project="new")
    ran = golden("trajectory", "show", "new")
    assert (ran.code, "schema_version 99" in ran.err) == (2, True)


def test_long_trajectory_is_shown_from_both_ends(golden: Golden, long_file: Path) -> None:
    ran = golden("trajectory", "show", "long.jsonl", "--limit", "9")
    lines = ran.out.splitlines()
    assert len(lines) == 11
    assert lines[0].startswith("trajectory: success, 2,001 steps in ")
    assert lines[7] == "      ... 1,992 more steps; --limit shows more ..."
    assert [line.split()[0] for line in lines[1:7] + lines[8:]] == [
        "1",
        "2",
        "3",
        "4",
        "5",
        "6",
        "1999",
        "2000",
        "2001",
    ]
    told = golden("trajectory", "show", "long.jsonl", "--limit", "2", "--json").json
    assert (told["left_out"], len(told["steps"]), told["metadata"]) == (1999, 2, {"agent": "me"})
    assert len(golden("trajectory", "show", "long.jsonl").out.splitlines()) == 52


def test_tree_is_indented_and_bounded(golden: Golden, store: Path, long_file: Path) -> None:
    lines = golden("trajectory", "tree", "traj_a1").out.splitlines()
    assert lines[1].index("load") + 2 == lines[2].index("query")
    told = golden("trajectory", "tree", "traj_a3", "--json").json
    assert [node["depth"] for node in told["tree"]] == [0, 1, 0]
    lines = golden("trajectory", "tree", "long.jsonl", "--limit", "3").out.splitlines()
    assert (len(lines), lines[-1]) == (5, "      ... 1,998 more steps; --limit shows more ...")


def test_diff_compares_with_the_last_success_or_with_another(golden: Golden, store: Path, long_file: Path) -> None:
    ran = golden("trajectory", "diff", "sales")
    assert ran.out.splitlines() == [
        "left   traj_a2",
        "right  traj_a3",
        "they part at step 2, 'query': metadata.rows 1 -> 3",
    ]
    told = golden("trajectory", "diff", "sales", "--json").json
    assert (told["left"], told["right"], told["index"], told["identical"]) == ("traj_a2", "traj_a3", 1, False)
    assert "identical" in golden("trajectory", "diff", "long.jsonl", "long.jsonl").out
    assert "there is no success of other before traj_b1" in golden("trajectory", "diff", "other").err
    assert "name the OTHER" in golden("trajectory", "diff", "long.jsonl").err


def test_stats_counts(golden: Golden, store: Path, long_file: Path) -> None:
    told = golden("trajectory", "stats", "sales", "--json").json
    assert (told["id"], told["project"], told["total_steps"], told["error_count"]) == ("traj_a3", "sales", 3, 1)
    assert (told["max_depth"], told["total_snapshots"], told["duration_ms_by_type"]) == (2, 1, {"action": 1500.0})
    assert "  action       1 in 1.5s\n" in golden("trajectory", "stats", "sales").out
    told = golden("trajectory", "stats", "long.jsonl", "--json").json
    assert (told["total_steps"], told["max_depth"], told["outcome"]) == (2001, 2, "success")


def test_query_shows_what_is_asked_for(golden: Golden, store: Path, long_file: Path) -> None:
    ran = golden("trajectory", "query", "sales", "type=tool_call", "or", "error~BOOM")
    assert [line.split()[0] for line in ran.out.splitlines()] == ["2", "3", "2"]
    assert ran.out.splitlines()[-1] == "2 of 3 steps"
    ran = golden("trajectory", "query", "long.jsonl", 'content~"step 19"', "--limit", "1")
    assert ran.out.splitlines()[-1] == "111 of 2,001 steps; 110 are not shown, --limit shows more"
    told = golden("trajectory", "query", "long.jsonl", "content~'step 19'", "--limit", "1", "--json").json
    assert (told["query"], told["total_found"], told["left_out"]) == ('content~"step 19"', 111, 110)
    assert [step["content"] for step in told["steps"]] == ["step 19"]
    ran = golden("trajectory", "query", "sales", "importance>=hi")
    assert (ran.code, "QUERY, column 13: importance 'hi' is unknown" in ran.err) == (2, True)


def test_export_gives_all_of_it(golden: Golden, store: Path, folder: Path) -> None:
    lines = golden("trajectory", "export", "traj_a3").out
    (folder / "printed.jsonl").write_text(lines)
    told = golden("trajectory", "export", "traj_a3", "--json").json
    assert read_trajectory(folder / "printed.jsonl") == Trajectory.from_dict(told)
    ran = golden("trajectory", "export", "traj_a3", "made.jsonl")
    assert ran.out == "wrote 3 steps of traj_a3 to made.jsonl\n"
    assert read_trajectory(folder / "made.jsonl").to_dict() == told
    ran = golden("trajectory", "export", "traj_a3", "made.jsonl")
    assert (ran.code, "made.jsonl already exists" in ran.err) == (2, True)
    ran = golden("trajectory", "export", "traj_a3", "other.jsonl", "--json")
    assert ran.json == {"id": "traj_a3", "file": "other.jsonl", "total_steps": 3}


def test_lost_steps_are_told(golden: Golden, folder: Path) -> None:
    with recording(folder / "t.jsonl"):
        pass
    text = (folder / "t.jsonl").read_text().splitlines()
    text[1] = json.dumps({**json.loads(text[1]), "lost_steps": 7})
    (folder / "t.jsonl").write_text("\n".join(text))
    assert "lost: 7 steps could not be written or read" in golden("trajectory", "show", "t.jsonl").out


@pytest.mark.parametrize("action", ["show", "tree"])
def test_step_that_cannot_be_read_is_told_as_such_and_no_limit_is_blamed(
    golden: Golden, folder: Path, action: str
) -> None:
    with recording(folder / "t.jsonl") as recorder:
        for number in range(3):
            recorder.step("action", f"step {number}")
    file = folder / "t.jsonl"
    file.write_text(file.read_text().replace('"content": "step 1"', '"content": "step 1'))
    lines = golden("trajectory", action, "t.jsonl").out.splitlines()
    assert (len(lines), lines[-1]) == (4, "lost: 1 step of the file cannot be read")
    *_, gap, lost = golden("trajectory", action, "t.jsonl", "--limit", "1").out.splitlines()
    assert gap == "      ... 1 more step; --limit shows more ..."
    assert lost == "lost: 1 step of the file cannot be read"


def test_without_a_store_it_says_what_makes_one(golden: Golden) -> None:
    ran = golden("trajectory", "show", "sales")
    assert (ran.code, "nothing is recorded yet" in ran.err) == (2, True)


def test_export_needs_a_folder_that_is_there(golden: Golden, store: Path) -> None:
    ran = golden("trajectory", "export", "sales", "nowhere/sales.jsonl")
    assert (ran.code, ran.err) == (2, "golden: nowhere is not a folder; create it, or give a file in another folder\n")


@pytest.mark.parametrize("words", [(), ("show",), ("look", "sales"), ("show", "sales", "--limit", "0")])
def test_wrong_words_are_refused(golden: Golden, store: Path, words: tuple[str, ...]) -> None:
    assert golden("trajectory", *words).code == 2


def test_colours_tell_what_matters(store: Path) -> None:
    step = a_trajectory("x", "failure", 1).steps[2]
    console = Console(file=io.StringIO(), force_terminal=True, color_system="standard", width=200)
    with console.capture() as captured:
        print_step(console, step, 1, step.timestamp, depth=50)
    assert "\x1b[1;31m" in captured.get()
    assert "observation " + "  " * 20 in captured.get()


def test_step_that_is_too_long_for_the_terminal_goes_on_below_its_content() -> None:
    step = Trajectory.new().add_step("action", "word " * 8).steps[0]
    stream = io.StringIO()
    print_step(Console(file=stream, width=61), step, 1, step.timestamp)
    assert stream.getvalue().splitlines() == [
        f"    1    +0.0s  {step.type:<12}  word word word word word word",
        f"{' ' * 30}word word",
    ]


def test_values_are_shortened() -> None:
    assert shorten({"a": "x" * 10_000_000}).endswith("...")
    assert len(shorten("x" * 10_000_000)) == 160
    assert shorten(None) == "null"
    assert [show_duration(one) for one in (3.2, 999, 1500, 65_000)] == ["3ms", "999ms", "1.5s", "1m 05s"]


def test_as_a_process_of_its_own(golden_process: GoldenProcess, long_file: Path) -> None:
    ran = golden_process("trajectory", "show", "long.jsonl", "--limit", "1", environment={"PYTHONIOENCODING": "ascii"})
    assert (ran.code, ran.err) == (0, "")
    assert len(ran.out.splitlines()) == 3
