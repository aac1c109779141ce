from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest
from jsonschema import Draft202012Validator

from pytest_golden.gate.state_folder import hold_gate_lock
from pytest_golden.report.gate_report import report_schema
from tests.cli.watched import run_watched

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.conftest import Golden, GoldenProcess


def test_passing_project_is_exit_code_0_and_says_what_it_wrote(
    golden_process: GoldenProcess, folder: Path, three_projects: Path
) -> None:
    ran = golden_process("run", "good")
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[0].startswith("running good: python")
    assert lines[1].startswith("PASSED good  ")
    assert "created: out.txt" in lines
    assert "  all well" in lines
    assert not (folder / "out.txt").exists()


def test_failing_project_is_exit_code_1_and_starts_with_the_reason(golden: Golden, three_projects: Path) -> None:
    ran = golden("run", "bad")
    assert ran.code == 1
    lines = ran.out.splitlines()
    assert lines[1].startswith("FAILED bad  ")
    assert lines[2].startswith("exit code 1, expected 0")
    assert "no such column: amount" in ran.out
    assert "golden run bad --shell" in ran.out


def test_missing_path_is_an_error_of_the_result_and_exit_code_1(golden: Golden, three_projects: Path) -> None:
    ran = golden("run", "gone")
    assert ran.code == 1
    assert "ERROR gone" in ran.out
    assert "does not exist" in ran.out


def test_json_is_a_gate_report_of_one_result(golden: Golden, three_projects: Path) -> None:
    for name, code in (("good", 0), ("bad", 1)):
        ran = golden("run", name, "--json")
        assert ran.code == code
        Draft202012Validator(report_schema()).validate(ran.json)
        assert [result["name"] for result in ran.json["results"]] == [name]


def test_full_log_is_kept(golden: Golden, three_projects: Path, folder: Path) -> None:
    (log,) = [line.removeprefix("full log: ") for line in golden("run", "good").out.splitlines() if "full log" in line]
    assert "all well" in (folder / log).read_text()


def test_what_it_wrote_is_kept_on_demand(
    golden: Golden, three_projects: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = folder / ".golden" / "kept" / "good"
    monkeypatch.setenv("GOLDEN_KEEP", "failed")
    golden("run", "good")
    assert not kept.exists()
    assert f"kept view: {kept}" in golden("run", "good", "--keep").out
    assert (kept / "out.txt").read_text() == "1"


def test_failed_is_what_is_judged_so_when_it_comes_to_keeping(
    golden: Golden, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOLDEN_KEEP", "failed")
    for name, code in (("as_expected", 3), ("surprise", 0)):
        (folder / f"{name}.py").write_text(f"import sys\nopen('out.txt', 'w').close()\nsys.exit({code})\n")
    (folder / "golden_projects.yaml").write_text(
        "defaults: {expected_outcome: 'exit_code:3'}\ngolden_projects: [path: as_expected.py, path: surprise.py]\n"
    )
    golden("run", "as_expected")
    golden("run", "surprise")
    assert [path.name for path in (folder / ".golden" / "kept").iterdir()] == ["surprise"]


def test_expected_failure_that_took_no_steps_shows_none(golden: Golden, folder: Path) -> None:
    (folder / "etl.py").write_text("raise SystemExit('no rows')")
    (folder / "golden_projects.yaml").write_text(
        "golden_projects: [{path: etl.py, expected_outcome: 'specific_error:no rows'}]\n"
    )
    ran = golden("run", "etl")
    assert ran.code == 0
    assert "steps:" not in ran.out


def test_next_move_names_a_manifest_that_would_not_be_found(
    golden: Golden, three_projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = three_projects.rename(three_projects.with_name("other.yaml"))
    assert "golden run bad --shell --manifest other.yaml  " in golden("run", "bad", "--manifest", "other.yaml").out
    monkeypatch.setenv("GOLDEN_MANIFEST", str(other))
    assert "golden run bad --shell --manifest other.yaml  " in golden("run", "bad").out


def test_steps_and_notes_are_shown(golden: Golden, folder: Path) -> None:
    (folder / "etl.py").write_text(
        "import pathlib\nfrom pytest_golden.steps import step\n"
        "for number in range(10):\n    step(f's{number}')\npathlib.Path('new.txt').touch()\n"
    )
    (folder / "golden_projects.yaml").write_text("golden_projects:\n  - {path: etl.py, unexpected_files: warn}\n")
    out = golden("run", "etl").out
    assert "steps: s0, s1, s2, s3, s4, s5, s6, s7 and 2 more" in out
    assert "note: wrote files that no pattern of `writes:` or `outputs:` names: new.txt" in out


def test_flaky_pass_says_so(golden: Golden, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (folder / "etl.py").write_text(
        "import pathlib, sys\nmark = pathlib.Path(sys.argv[1])\n"
        "if not mark.exists():\n    mark.touch()\n    sys.exit(1)\n"
    )
    (folder / "golden_projects.yaml").write_text(
        "golden_projects:\n"
        f"  - {{path: etl.py, retries: 1, args: ['{tmp_path}/state/mark'], "
        f"mounts: [{{path: '{tmp_path}/state', mode: write}}]}}\n"
    )
    ran = golden("run", "etl")
    assert ran.code == 0
    assert "flaky: passed on attempt 2" in ran.out


def test_skipped_and_quarantined_projects_end_as_in_the_gate(golden: Golden, folder: Path) -> None:
    (folder / "bad.py").write_text("raise SystemExit(3)")
    (folder / "golden_projects.yaml").write_text(
        "golden_projects:\n"
        "  - {name: skipped, path: bad.py, skip_if_missing: [nothing_like_it]}\n"
        "  - {name: resting, path: bad.py, quarantine: {until: 2099-01-01, reason: upstream is down}}\n"
    )
    skipped = golden("run", "skipped")
    assert skipped.code == 0
    assert "SKIPPED skipped" in skipped.out
    assert "nothing_like_it is not installed here" in skipped.out
    resting = golden("run", "resting")
    assert resting.code == 0
    assert "quarantined: upstream is down" in resting.out


def test_shell_goes_with_no_result(golden: Golden, three_projects: Path) -> None:
    for option in ("--json", "--keep"):
        ran = golden("run", "good", "--shell", option)
        assert ran.code == 2
        assert "--shell cannot be used with --json or --keep" in ran.err


def test_live_line_shows_the_project_and_its_step_and_goes_away(folder: Path) -> None:
    (folder / "etl.py").write_text(
        "import pathlib, time\nfrom pytest_golden.steps import step\nstep('transform')\n"
        "while not pathlib.Path('marks/go').exists():\n    time.sleep(0.01)\n"
    )
    (folder / "marks").mkdir()
    (folder / "golden_projects.yaml").write_text(
        "golden_projects:\n  - {path: etl.py, mounts: [{path: marks, mode: write}]}\n"
    )
    ran = run_watched(folder, ["run", "etl"], typed=[("s  transform", (folder / "marks" / "go").touch)])
    assert ran.code == 0
    assert re.search(r"etl  \d+\.", ran.out)
    assert "s  transform" in ran.out
    assert "running etl" not in ran.out


def test_live_line_is_left_out_on_a_dumb_terminal(folder: Path, three_projects: Path) -> None:
    ran = run_watched(folder, ["run", "good"], environment={"TERM": "dumb"})
    assert ran.code == 0
    assert "\x1b" not in ran.out


@contextmanager
def start_waiting_run(folder: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-m", "pytest_golden", "run", "good"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        assert process.stderr is not None
        assert "another gate" in process.stderr.readline()
        try:
            yield process
        finally:
            process.kill()


def test_run_waits_for_a_gate_in_the_same_workspace_and_says_so(folder: Path, three_projects: Path) -> None:
    with ExitStack() as gate:
        gate.enter_context(hold_gate_lock(folder, print))
        with start_waiting_run(folder) as process:
            gate.close()
            assert process.wait(60) == 0


def test_waiting_run_can_be_interrupted(folder: Path, three_projects: Path) -> None:
    with hold_gate_lock(folder, print), start_waiting_run(folder) as process:
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert (process.returncode, said) == (130, "")


BASH = {"SHELL": shutil.which("bash") or ""}
needs_bash = pytest.mark.skipif(not BASH["SHELL"], reason="needs bash")


@needs_bash
def test_shell_is_in_the_view_and_keeps_nothing(folder: Path, three_projects: Path) -> None:
    typed = [("to leave", "touch trace; python good.py; echo see''n $(ls); exit 7\n")]
    ran = run_watched(folder, ["run", "good", "--shell"], typed=typed, environment=BASH)
    assert ran.code == 7
    assert "Nothing that is written here is kept" in ran.out
    assert str(folder) in ran.out
    assert "good.py" in ran.out
    assert "all well" in ran.out
    assert "seen bad.py golden_projects.yaml good.py out.txt trace" in ran.out
    assert not (folder / "trace").exists()


@needs_bash
def test_interrupt_is_for_what_runs_in_the_shell(folder: Path, three_projects: Path) -> None:
    typed = [
        # Not bash's own `sleep`: a Ctrl-C that bash catches just before it becomes the sleep is forgotten there.
        ("to leave", """sh -c 'trap "exit 130" INT; echo sleep""ing; while :; do sleep 0.1; done'\n"""),
        ("sleeping", "\x03"),
        ("^C", "echo still he''re; exit 0\n"),
    ]
    ran = run_watched(folder, ["run", "good", "--shell"], typed=typed, environment=BASH)
    assert ran.code == 0
    assert "still here" in ran.out
    assert "Traceback" not in ran.out


def test_shell_needs_a_terminal(golden_process: GoldenProcess, three_projects: Path) -> None:
    ran = golden_process("run", "good", "--shell")
    assert (ran.code, ran.out) == (2, "")
    assert "--shell needs a terminal" in ran.err
    assert ran.err.count("\n") == 1


def test_project_without_a_view_is_a_sentence(folder: Path, three_projects: Path) -> None:
    ran = run_watched(folder, ["run", "gone", "--shell"])
    assert ran.code == 2
    assert "gone/etl.py does not exist" in ran.out
    assert "Traceback" not in ran.out


def test_failing_before_command_is_told(folder: Path) -> None:
    (folder / "etl.py").touch()
    (folder / "golden_projects.yaml").write_text(
        "golden_projects:\n  - {path: etl.py, before: [\"sh -c 'echo no seed >&2; exit 3'\"]}\n"
    )
    ran = run_watched(folder, ["run", "etl", "--shell"])
    assert ran.code == 2
    assert "no seed" in ran.out
    assert "Traceback" not in ran.out


@needs_bash
def test_shell_has_a_terminal_of_its_own(folder: Path, three_projects: Path) -> None:
    # On the user's own, a program inside could type into the shell outside (TIOCSTI).
    ask = "python -c \"import os; print('device', os.fstat(0).st_rdev, os.isatty(0))\""
    ran = run_watched(folder, ["run", "good", "--shell"], typed=[("to leave", f"{ask}; exit 0\n")], environment=BASH)
    found = re.search(r"device (\d+) True", ran.out)
    assert found is not None
    assert ran.terminal_device is not None
    assert int(found[1]) != ran.terminal_device
