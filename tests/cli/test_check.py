from __future__ import annotations

import subprocess
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.cli.check import Plan, make_plan
from pytest_golden.manifest.model import GoldenProjectConfig, Quarantine
from tests.cli.watched import run_watched

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Golden, GoldenProcess


def test_valid_manifest_is_shown_in_order_with_what_would_be_run(golden_process: GoldenProcess, folder: Path) -> None:
    (folder / "sales").mkdir()
    (folder / "sales" / "etl.py").touch()
    (folder / "run.sh").touch()
    (folder / "golden_projects.yaml").write_text(
        "golden_projects:\n"
        "  - {name: second, path: run.sh, timeout: 90s, memory_limit: 1GiB, cpu_limit: 30s, process_limit: 8, disk_limit: 2GiB, network: false}\n"
        "  - {name: first, path: sales/etl.py, expected_outcome: 'specific_error:boom', needs: [second]}\n"
        "retired: [{name: old, reason: replaced}]\n"
    )
    ran = golden_process("check")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("golden_projects.yaml: valid, 2 golden projects, 1 retired\n")
    assert ran.out.index("second") < ran.out.index("first")
    for told in (
        "python etl.py",
        "sh run.sh",
        "in ., at most 90s, 1GiB, 30s of CPU time, 8 processes, 2GiB of disk, no network",
        "in sales, at most 10m",
        "must end as specific_error:boom",
        "needs second",
    ):
        assert told in ran.out.replace("python3", "python")


def test_real_writes_and_baselines_that_nothing_uses_are_shown(golden_process: GoldenProcess, folder: Path) -> None:
    (folder / "lake").mkdir()
    (folder / "run.sh").touch()
    (folder / "golden_projects.yaml").write_text(
        "golden_projects:\n"
        "  - {path: run.sh, project_dir: ., outputs: [{path: a.csv}], mounts: [{path: lake, mode: write}, {path: lib}]}\n"
    )
    (folder / "lib").mkdir()
    (folder / "golden_baselines" / "run").mkdir(parents=True)
    (folder / "golden_baselines" / "run" / "b.csv").touch()
    ran = golden_process("check")
    assert "really writes lake\n" in ran.out
    (note,) = golden_process("check", "--json").json["notes"]
    assert note.startswith("run: golden_baselines/run has baselines that no output is compared with (b.csv)")
    assert "note: run: golden_baselines/run has baselines" in ran.out


def test_projects_that_pass_also_with_an_empty_input_are_named(golden: Golden, folder: Path) -> None:
    for name in ("quiet", "writes", "compared", "refuses"):
        (folder / f"{name}.sh").touch()
    (folder / "golden_projects.yaml").write_text(
        "golden_projects:\n"
        "  - path: quiet.sh\n"
        "  - {path: writes.sh, outputs: [{path: a.csv, compare: exists}]}\n"
        "  - {path: compared.sh, outputs: [{path: a.csv, compare: exists}, {path: b.csv}]}\n"
        "  - {path: refuses.sh, expected_outcome: 'exit_code:3'}\n"
    )
    (note,) = golden("check", "--json").json["notes"]
    assert note == "quiet, writes: passes also with an empty input, since no output is compared"


def test_what_is_not_hidden_is_shown(golden: Golden, folder: Path) -> None:
    (folder / "run.sh").touch()
    (folder / "golden_projects.yaml").write_text(
        "golden_projects: [{path: run.sh, pass_env: [DB_HOST, PATH], not_secret: [DB_HOST]}]\n"
    )
    assert "hidden only under secret names: DB_HOST" in golden("check").out


def test_outputs_are_shown_with_how_they_are_compared(golden_process: GoldenProcess, folder: Path) -> None:
    (folder / "run.sh").touch()
    (folder / "golden_projects.yaml").write_text(
        "golden_projects:\n"
        "  - {path: run.sh, max_slowdown: 2.5, outputs: [{path: out/*.csv}, {path: logs/**}, {path: m, compare: exists}]}\n"
    )
    ran = golden_process("check")
    assert ran.code == 0
    assert "at most 10m, 2.5 times its own median\n" in ran.out
    assert "outputs out/*.csv (table), logs/** (by suffix), m (exists)\n" in ran.out
    (project,) = golden_process("check", "--json").json["projects"]
    assert [output["path"] for output in project["outputs"]] == ["out/*.csv", "logs/**", "m"]
    assert project["max_slowdown"] == 2.5


def test_mistakes_of_outputs_are_told_with_their_place(golden_process: GoldenProcess, folder: Path) -> None:
    (folder / "golden_projects.yaml").write_text(
        "golden_projects:\n  - path: run.sh\n    max_slowdown: 1\n    outputs: [{path: ../a.csv}, {path: a.txt, key: id}]\n"
    )
    ran = golden_process("check", "--json")
    assert ran.code == 2
    assert [(one["line"], one["column"]) for one in ran.json["errors"]] == [(3, 19), (4, 22), (4, 52)]


def test_piped_lines_end_without_blanks(golden_process: GoldenProcess, three_projects: Path) -> None:
    lines = golden_process("check").out.splitlines()
    assert len(lines) > 4
    assert [line for line in lines if line != line.rstrip()] == []


def test_nothing_is_run_by_checking(golden: Golden, folder: Path, three_projects: Path) -> None:
    golden("check")
    assert sorted(path.name for path in folder.iterdir()) == [".git", "bad.py", "golden_projects.yaml", "good.py"]


def test_missing_path_is_named_with_its_line_and_exit_code_1(golden: Golden, three_projects: Path) -> None:
    ran = golden("check")
    assert ran.code == 1
    assert "golden_projects.yaml:4: gone: path gone/etl.py does not exist" in ran.out
    as_json = golden("check", "--json")
    assert as_json.code == 1
    assert as_json.json["errors"] == []
    assert [(problem["project"], problem["line"]) for problem in as_json.json["problems"]] == [("gone", 4)]
    assert [project["name"] for project in as_json.json["projects"]] == ["good", "bad", "gone"]
    assert as_json.json["projects"][0]["command"][-1] == "{path}"


def test_mistakes_are_listed_with_file_line_and_column(golden: Golden, folder: Path) -> None:
    (folder / "golden_projects.yaml").write_text("golden_projects:\n  - path: a.py\n    timout: 3\n    retries: x\n")
    ran = golden("check")
    assert (ran.code, ran.out) == (2, "")
    lines = ran.err.splitlines()
    assert lines[0].startswith("golden_projects.yaml:3:5: unknown key 'timout'; did you mean 'timeout'?")
    assert lines[1].startswith("golden_projects.yaml:4:14: retries: ")
    as_json = golden("check", "--json")
    assert as_json.code == 2
    assert [(error["line"], error["column"]) for error in as_json.json["errors"]] == [(3, 5), (4, 14)]
    assert "did you mean 'timeout'" in as_json.json["errors"][0]["message"]


def test_no_manifest_is_exit_code_2_and_names_init(golden: Golden) -> None:
    ran = golden("check")
    assert (ran.code, ran.out) == (2, "")
    assert "golden init" in ran.err
    (error,) = golden("check", "--json").json["errors"]
    assert (error["file"], error["line"], error["column"]) == ("golden_projects.yaml", 1, 1)


def test_empty_manifest_is_valid_and_says_what_to_do(golden: Golden, folder: Path) -> None:
    (folder / "golden_projects.yaml").write_text("version: 1\n")
    ran = golden("check")
    assert ran.code == 0
    assert "declare a pipeline" in ran.out


def test_required_projects_that_are_not_there_are_a_problem(golden: Golden, folder: Path) -> None:
    (folder / "golden_projects.yaml").write_text("require_golden_projects: true\n")
    ran = golden("check")
    assert ran.code == 1
    assert "golden_projects.yaml:1: golden projects are required, but none is declared" in ran.out


def test_workspace_root_that_is_not_there_is_a_problem(golden: Golden, folder: Path) -> None:
    (folder / "golden_projects.yaml").write_text("workspace_root: nowhere\n")
    assert "nowhere is not a folder" in golden("check").out


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_no_line_is_wider_than_the_terminal(folder: Path, three_projects: Path, columns: int) -> None:
    ran = run_watched(folder, ["check"], columns=columns, environment={"NO_COLOR": "1"})
    assert ran.code == 1
    assert "\x1b" not in ran.out
    lines = ran.out.splitlines()
    assert max(len(line) for line in lines) <= columns
    assert "gone" in ran.out


def test_colours_are_for_terminals(folder: Path, three_projects: Path, golden_process: GoldenProcess) -> None:
    assert "\x1b[" in run_watched(folder, ["check"]).out
    assert "\x1b[" not in golden_process("check").out


def test_control_characters_of_a_manifest_do_not_reach_the_terminal(golden: Golden, folder: Path) -> None:
    (folder / "golden_projects.yaml").write_text('golden_projects:\n  - {name: x, path: "a\\e[31m.py"}\n')
    ran = golden("check")
    assert "\x1b" not in ran.out + ran.err


def test_retired_and_secret_arguments_are_handled_with_care(golden: Golden, folder: Path) -> None:
    (folder / "etl.py").touch()
    (folder / "golden_projects.yaml").write_text(
        "golden_projects:\n  - {path: etl.py, args: [--password, hunter2secret9]}\n"
        "retired: [{name: old, reason: replaced}]\n"
    )
    for words in (("check",), ("check", "--json")):
        ran = golden(*words)
        assert "hunter2secret9" not in ran.out
        assert "REDACTED" in ran.out
    assert golden("check", "--json").json["retired"] == [{"name": "old", "reason": "replaced"}]


def plan(folder: Path, path: str, **keys: Any) -> Plan:
    return make_plan(GoldenProjectConfig("x", path, **keys), folder)


def test_command_is_shown_by_names(folder: Path) -> None:
    (folder / "deep").mkdir()
    (folder / "deep" / "etl.py").touch()
    made = plan(folder, "deep/etl.py", project_dir=".", args=("--day", "first of May"))
    assert made.runner == "python"
    assert made.shown_command().split(" ", 1)[1] == "deep/etl.py --day 'first of May'"


def test_missing_program_is_a_problem(folder: Path) -> None:
    (folder / "etl.py").touch()
    made = plan(folder, "etl.py", command=("nothing_like_it", "{path}"))
    assert made.problem is not None
    assert made.problem.startswith("`nothing_like_it` is not on PATH")
    assert made.to_dict()["problem"] == made.problem


def test_unknown_runner_may_come_from_a_conftest(folder: Path) -> None:
    (folder / "etl.py").touch()
    made = plan(folder, "etl.py", runner="pyton")
    assert made.runner == "pyton"
    assert made.problem is not None
    assert "did you mean python" in made.problem
    assert "conftest" in made.problem


def test_project_that_would_be_skipped_is_no_problem(folder: Path) -> None:
    (folder / "etl.py").touch()
    made = plan(folder, "etl.py", command=("nothing_like_it",), skip_if_missing=("nothing_like_it",))
    assert made.problem is None
    assert made.notes == ("would be SKIPPED: nothing_like_it not installed here",)


def test_unset_variables_and_quarantine_are_noted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "etl.py").touch()
    monkeypatch.delenv("UNSET_HERE", raising=False)
    monkeypatch.setenv("SET_HERE", "1")
    quarantine = Quarantine(date(2099, 1, 1), "flaky")
    made = plan(folder, "etl.py", pass_env=("UNSET_HERE", "SET_HERE"), quarantine=quarantine)
    assert made.notes == ("not set here, so not passed: UNSET_HERE", "in quarantine until 2099-01-01: flaky")


def test_a_project_that_sees_what_git_tracks_is_told(golden: Golden, folder: Path) -> None:
    (folder / ".git").rmdir()
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    (folder / "Makefile").write_text("all:\n\ttrue\n")
    manifest = "golden_projects:\n  - {path: Makefile}\n  - {name: wide, path: Makefile, view: all}\n"
    (folder / "golden_projects.yaml").write_text(manifest)
    assert "seeing what git tracks" not in golden("check").out
    subprocess.run(["git", "add", "Makefile"], cwd=folder, check=True)
    assert golden("check").out.count("seeing what git tracks") == 1
    assert [project["view"] for project in golden("check", "--json").json["projects"]] == ["tracked", "all"]


def test_an_environment_that_uv_has_not_made_yet_is_no_problem(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder / "home"))
    (folder / "run.py").touch()
    (folder / "uv.lock").write_text("version = 1\n")
    plan = make_plan(GoldenProjectConfig("a", "run.py", venv="uv:.", skip_if_missing=("pandas",)), folder)
    assert (plan.runner, plan.problem) == ("python", None)
    assert plan.notes == ("uv makes its environment before it runs for the first time",)
    (folder / "uv.lock").unlink()
    assert "uv.lock cannot be read" in str(make_plan(GoldenProjectConfig("a", "run.py", venv="uv:."), folder).problem)
