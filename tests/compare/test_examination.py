from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.compare.examination import BaselineKeeper, OutputExamination, put_causes_first
from pytest_golden.compare.tables.database_outputs import Exports
from pytest_golden.gate.service import RegressionGuard, choose_keeping
from pytest_golden.gateway.model import Ending, OutputFinding, PipelineOutcome
from pytest_golden.gateway.service import ExecutionGateway
from pytest_golden.gateway.write_set import WrittenFiles
from pytest_golden.manifest.model import DeclaredOutput, Mount
from pytest_golden.regression.model import Reason, ReasonKind, ResultStatus
from pytest_golden.regression.rules import assess_outcome
from tests.compare.conftest import kinds
from tests.permissions import without_powers

if TYPE_CHECKING:
    from tests.compare.conftest import Workspace


def test_output_without_a_baseline_fails_with_the_command_that_accepts_it(workspace: Workspace) -> None:
    result = workspace.check(workspace.declare("mkdir out; echo 1 > out/a.txt", "out/*.txt"))
    assert result.status is ResultStatus.FAILED
    assert kinds(result) == [("baseline_missing", "out/a.txt")]
    assert "`golden accept sales`" in str(result.error_message)
    assert not (workspace.path / "golden_baselines").exists()


def test_output_equal_to_its_baseline_passes_also_when_it_was_there_before(workspace: Workspace) -> None:
    workspace.keep("a.txt", "1\n")
    (workspace.path / "a.txt").write_text("1\n")
    assert workspace.check(workspace.declare("echo 1 > a.txt", "a.txt")).status is ResultStatus.PASSED


def test_a_narrowed_run_leaves_out_the_files_and_folders_that_its_engine_names(workspace: Workspace) -> None:
    for path in ("a.txt", "b.txt", "c/1.txt", "model/{run}/m.txt"):
        workspace.keep(path, "1\n")
    outputs = [DeclaredOutput("*.txt"), DeclaredOutput("c/*.txt"), DeclaredOutput("model/{run}/m.txt")]
    told = """printf %s '["b.txt", "c", "model", "a"]' > .golden-left-out.json"""
    part = workspace.declare(f"echo 1 > a.txt; {told}", *outputs)
    result = workspace.check(part, changed=("a.py",))
    assert result.status is ResultStatus.PASSED, result.reasons
    assert sorted(result.left_out) == ["b.txt", "c/1.txt", "model/{run}/m.txt"]
    assert not result.warnings
    # A run of all of it may leave out nothing.
    assert len(kinds(workspace.check(part))) == len(result.left_out)
    # What is there is judged, and so is what is not named.
    wrong = workspace.declare(f"mkdir -p model/now; echo 2 > model/now/m.txt; echo 2 > b.txt; {told}", *outputs)
    found = sorted(kinds(workspace.check(wrong, changed=("a.py",))))
    differing = [("output_differs", "b.txt"), ("output_differs", "model/{run}/m.txt")]
    assert found == [*differing, ("output_missing", "a.txt")]


def test_old_file_that_this_run_did_not_write_is_missing(workspace: Workspace) -> None:
    workspace.keep("a.txt", "1\n")
    (workspace.path / "a.txt").write_text("1\n")
    result = workspace.check(workspace.declare("cat a.txt", "a.txt", "b.txt"))
    assert kinds(result) == [("output_missing", "b.txt"), ("output_missing", "a.txt")]
    assert [reason.message for reason in result.reasons] == [
        "this run did not write b.txt; it wrote nothing at all",
        "a.txt has a baseline, and this run did not write it",
    ]


def test_difference_is_shown_below_one_sentence_and_says_how_it_is_accepted(workspace: Workspace) -> None:
    workspace.keep("a.txt", "one\ntwo\nthree\n")
    result = workspace.check(workspace.declare("printf 'one\\n2\\nthree\\n' > a.txt", "a.txt"))
    assert kinds(result) == [("output_differs", "a.txt")]
    headline, *difference = result.reasons[0].message.splitlines()
    assert result.error_message == headline
    assert any("two" in line for line in difference)
    assert difference[-1] == "if this is right, accept it with `golden accept sales`"


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        ("out/*.csv", "nothing that this run wrote matches `out/*.csv`; it wrote 1.csv, 2.csv, 3.csv, ..."),
        ("out/a.csv", "this run did not write out/a.csv; it wrote 1.csv, 2.csv, 3.csv, ..."),
    ],
)
def test_entry_that_nothing_matches_is_missing(workspace: Workspace, pattern: str, told: str) -> None:
    result = workspace.check(workspace.declare("touch 1.csv 2.csv 3.csv 4.csv", pattern))
    assert [(reason.kind, reason.message, reason.path) for reason in result.reasons] == [
        ("output_missing", told, pattern)
    ]


def test_output_behind_a_symlinked_folder_is_told_as_such(workspace: Workspace) -> None:
    workspace.keep("out/now/a.txt", "1\n")
    script = "mkdir -p out/2026; echo 1 > out/2026/a.txt; ln -s 2026 out/now"
    result = workspace.check(workspace.declare(script, "out/now/a.txt"))
    assert kinds(result) == [("output_missing", "out/now/a.txt")]
    assert result.error_message == (
        "out/now/a.txt has a baseline, and this run did not write it:"
        " out/now is a symlink, and none is followed; declare the file behind it"
    )


def test_baseline_whose_output_a_pattern_no_longer_finds_is_missing(workspace: Workspace) -> None:
    workspace.keep("out/a.txt", "1\n")
    workspace.keep("out/b.txt", "1\n")
    result = workspace.check(workspace.declare("mkdir out; echo 1 > out/a.txt", "out/*"))
    assert kinds(result) == [("output_missing", "out/b.txt")]


def test_files_of_a_stamped_folder_are_compared_under_a_stable_path(workspace: Workspace) -> None:
    workspace.keep("plots/{run}/rmse.json", "1\n")
    workspace.keep("plots/{run}/more/log.txt", "1\n")
    script = "mkdir -p plots/{0}/more; echo {1} > plots/{0}/rmse.json; echo 1 > plots/{0}/more/log.txt"
    named = "plots/{run}/**"
    for stamp in ("2024-01-01", "2026-11-26"):
        assert (
            workspace.check(workspace.declare(script.format(stamp, 1), named, unexpected_files="fail")).status
            is ResultStatus.PASSED
        )
    result = workspace.check(workspace.declare(script.format("other", 2), named, unexpected_files="fail"))
    assert kinds(result) == [("output_differs", "plots/{run}/rmse.json")]
    both = f"{script.format('a', 1)}; {script.format('b', 1)}"
    result = workspace.check(workspace.declare(both, named, unexpected_files="fail"))
    assert ("output_missing", "plots/{run}/**") in kinds(result)
    assert "stands for one name, and this run wrote 2: a, b" in result.reasons[0].message
    result = workspace.check(workspace.declare("true", named, unexpected_files="fail"))
    assert ("output_missing", "plots/{run}/rmse.json") in kinds(result)


def test_a_stamp_may_be_a_part_of_a_name_and_stand_twice(workspace: Workspace) -> None:
    named = "{run}/report-{run}.txt"
    workspace.keep("{run}/report-{run}.txt", "1\n")
    for stamp in ("x", "a-b"):
        script = f"mkdir {stamp}; echo 1 > {stamp}/report-{stamp}.txt"
        assert workspace.check(workspace.declare(script, named)).status is ResultStatus.PASSED
    result = workspace.check(workspace.declare("mkdir x; echo 1 > x/report-y.txt", named))
    assert kinds(result) == [("output_missing", "{run}/report-{run}.txt")]


def test_a_file_with_the_same_content_elsewhere_is_told_as_moved(workspace: Workspace) -> None:
    workspace.keep("out/a.txt", "1\n")
    workspace.keep("out/b.txt", "2\n")
    result = workspace.check(workspace.declare("mkdir out; echo 1 > out/c.txt; echo 3 > out/d.txt", "out/*"))
    told = {reason.path: reason.message for reason in result.reasons}
    assert told["out/a.txt"] == "out/a.txt was moved to out/c.txt, with the same content"
    assert told["out/b.txt"].startswith("out/b.txt has a baseline, and this run did not write it")


def test_of_several_files_that_differ_the_one_written_first_comes_first(workspace: Workspace) -> None:
    for name in ("a", "b", "c"):
        workspace.keep(f"{name}.txt", "1\n")
    script = "echo 2 > c.txt; sleep 0.05; echo 2 > a.txt; sleep 0.05; echo 1 > b.txt"
    assert kinds(workspace.check(workspace.declare(script, "*.txt"))) == [
        ("output_differs", "c.txt"),
        ("output_differs", "a.txt"),
    ]


def test_what_follows_from_a_model_that_differs_says_so(tmp_path: Path) -> None:
    def differs(path: str) -> OutputFinding:
        return OutputFinding(ReasonKind.OUTPUT_DIFFERS, f"{path} differs\nin rows", path)

    exports = Exports(dict.fromkeys("abcd", tmp_path), upstream={"a": ("b", "c", "z"), "b": ("c",), "c": (), "d": ()})
    written = exports.add_to(WrittenFiles(tmp_path, (), str))
    other = OutputFinding(ReasonKind.OUTPUT_MISSING, "x is missing", "x")
    found = put_causes_first([differs("a"), other, differs("b"), differs("c"), differs("d")], exports, written)
    assert [(one.path, one.message) for one in found] == [
        ("c", "c differs\nin rows"),
        ("x", "x is missing"),
        ("d", "d differs\nin rows"),
        ("b", "b differs\nthis follows from c, which differs too"),
        ("a", "a differs\nthis follows from c, which differs too"),
    ]
    assert put_causes_first([differs("a"), other], exports, written) == (differs("a"), other)


def test_outputs_of_a_run_that_failed_say_nothing(workspace: Workspace) -> None:
    result = workspace.check(workspace.declare("echo 1 > a.txt; exit 3", "a.txt", "b.txt"))
    assert kinds(result) == [("exit_code", None)]


def test_a_run_that_failed_names_the_first_output_that_differs(workspace: Workspace) -> None:
    for name in ("a", "b", "c"):
        workspace.keep(f"{name}.txt", "1\n")
    script = "echo 1 > a.txt; echo 2 > c.txt; sleep 0.05; echo 2 > b.txt; echo 3 > new.txt; exit 3"
    result = workspace.check(workspace.declare(script, "*.txt"))
    assert kinds(result) == [("exit_code", None), ("output_differs", "c.txt")]
    assert result.reasons[1].message.startswith("c.txt differs from its baseline")
    assert "\n" not in result.reasons[1].message


def test_of_a_run_that_took_too_long_no_output_is_told(workspace: Workspace) -> None:
    workspace.keep("a.txt", "1\n")
    result = workspace.check(workspace.declare("echo 2 > a.txt; sleep 60", "a.txt", timeout=0.5))
    assert [reason.path for reason in result.reasons] == [None]


def test_pipeline_that_must_fail_may_have_outputs(workspace: Workspace) -> None:
    workspace.keep("rejected.txt", "1\n")
    script = "echo {} > rejected.txt; echo three invalid rows >&2; exit 1"
    keys = {"expected_outcome": "specific_error:invalid rows"}
    assert workspace.check(workspace.declare(script.format(1), "rejected.txt", **keys)).status is ResultStatus.PASSED
    result = workspace.check(workspace.declare(script.format(2), "rejected.txt", **keys))
    assert kinds(result) == [("output_differs", "rejected.txt")]


def test_declared_outputs_are_expected_files(workspace: Workspace) -> None:
    workspace.keep("out/a.txt", "1\n")
    script = "mkdir out; echo 1 > out/a.txt; echo > stray"
    result = workspace.check(workspace.declare(script, "out/**", unexpected_files="fail"))
    assert kinds(result) == [("unexpected_file", "stray")]


def test_existence_and_size_need_no_baseline(workspace: Workspace) -> None:
    entry = DeclaredOutput("model.bin", compare="exists", min_bytes=3)
    assert workspace.check(workspace.declare("echo 123 > model.bin", entry)).status is ResultStatus.PASSED
    result = workspace.check(workspace.declare("echo > model.bin", entry))
    assert kinds(result) == [("output_differs", "model.bin")]


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("ln -s /etc/passwd out", "out cannot be compared: it is a symlink; declare the file that it leads to"),
        ("ln -s run.sh out", "out cannot be compared: it is a symlink; declare the file that it leads to"),
        ("mkfifo out", "out cannot be compared: it is a named pipe, not a file"),
        (
            "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"out\")'",
            "out cannot be compared: it is a socket, not a file",
        ),
    ],
)
@pytest.mark.parametrize("accepts", [False, True])
def test_output_that_is_no_file_is_unreadable_and_never_followed(
    workspace: Workspace, script: str, told: str, *, accepts: bool
) -> None:
    if not accepts:
        workspace.keep("out", "x")
    result = workspace.check(workspace.declare(script, DeclaredOutput("out", compare="bytes")), accepts=accepts)
    assert result.status is ResultStatus.FAILED
    assert (kinds(result), result.error_message) == (([("output_unreadable", "out")], told))


def test_names_with_line_ends_and_bytes_that_are_no_text_are_compared(workspace: Workspace) -> None:
    script = "printf 1 > \"$(printf 'two\\nlines.txt')\"; printf 1 > \"$(printf 'b\\377d.txt')\""
    project = workspace.declare(script, "*.txt")
    missing = workspace.check(project)
    assert kinds(missing) == [("baseline_missing", "b\udcffd.txt"), ("baseline_missing", "two\nlines.txt")]
    assert "two\\nlines.txt has no baseline" in str(missing.reasons[1].message)
    assert missing.reasons[1].message.splitlines()[1:] == ["look at it, then accept it with `golden accept sales`"]
    workspace.accept(project)
    assert workspace.check(project).status is ResultStatus.PASSED
    assert (workspace.baselines / os.fsdecode(b"b\xffd.txt")).read_text() == "1"


def test_closed_output_is_compared(workspace: Workspace) -> None:
    workspace.keep("a.txt", "1\n")
    assert workspace.check(workspace.declare("echo 1 > a.txt; chmod 0 a.txt", "a.txt")).status is ResultStatus.PASSED


def test_huge_sparse_output_is_no_news_of_the_project(workspace: Workspace) -> None:
    workspace.keep("a.bin", "1\n")
    result = workspace.check(workspace.declare("truncate -s 1T a.bin", "a.bin"))
    assert result.status is ResultStatus.ERROR
    assert kinds(result) == [("harness", None)]


@pytest.mark.parametrize(
    ("kind", "told"), [("symlink", "leads out of its folder"), ("folder", "it is a folder"), ("pipe", "a named pipe")]
)
def test_baseline_that_is_no_file_of_its_folder_is_unreadable(workspace: Workspace, kind: str, told: str) -> None:
    place = workspace.keep("a.txt", "x")
    place.unlink()
    if kind == "symlink":
        place.symlink_to("/etc/passwd")
    elif kind == "folder":
        place.mkdir()
    else:
        os.mkfifo(place)
    result = workspace.check(workspace.declare("echo 1 > a.txt", "a.txt"))
    assert kinds(result) == [("baseline_unreadable", "a.txt")]
    assert str(result.error_message).startswith("golden_baselines/sales/a.txt is not a usable baseline: ")
    assert told in str(result.error_message)
    assert "root:" not in str(result.to_dict())


def test_what_a_pipeline_writes_among_the_baselines_of_its_view_judges_nothing(workspace: Workspace) -> None:
    workspace.keep("a.txt", "1\n")
    script = "echo 2 > a.txt; mkdir -p golden_baselines/sales; echo 2 > golden_baselines/sales/a.txt"
    result = workspace.check(workspace.declare(script, "a.txt"))
    assert kinds(result) == [("output_differs", "a.txt")]
    assert workspace.kept() == {"sales/a.txt": "1\n"}


def test_what_is_written_among_the_baselines_is_no_output(workspace: Workspace) -> None:
    script = "mkdir -p golden_baselines/sales; echo 2 > golden_baselines/sales/b.txt; echo 1 > a.txt"
    result = workspace.check(workspace.declare(script, "**/*.txt"))
    assert kinds(result) == [("baseline_missing", "a.txt")]


def test_baselines_that_are_really_changed_by_a_run_make_it_an_error(workspace: Workspace) -> None:
    baseline = workspace.keep("a.txt", "1\n")
    script = f"echo 2 > a.txt; echo 2 > {baseline}"
    mount = Mount(str(workspace.baselines), "write")
    result = workspace.check(workspace.declare(script, "a.txt", mounts=(mount,)))
    assert baseline.read_text() == "2\n"
    assert result.status is ResultStatus.ERROR
    assert kinds(result) == [("project_changed", "a.txt")]


def test_what_a_killed_update_left_is_gone_with_the_next_gate_run_and_is_nobodys_baseline(workspace: Workspace) -> None:
    workspace.keep("a.txt", "1\n")
    left = workspace.baselines.parent / ".accepting-left"
    left.mkdir()
    (left / "1").write_text("half")
    os.utime(left, (1, 1))
    keeper = BaselineKeeper(workspace.path / "golden_baselines")
    keeper.pin()
    result = RegressionGuard(workspace.gateway, baselines=keeper).check_one(
        workspace.declare("echo 1 > a.txt", "a.txt"), {}
    )
    assert (result.status, result.warnings) == (ResultStatus.PASSED, ())
    assert not left.exists()


def test_pinned_baselines_may_not_change_before_their_project_runs(workspace: Workspace) -> None:
    baseline = workspace.keep("a.txt", "1\n")
    keeper = BaselineKeeper(workspace.path / "golden_baselines")
    guard = RegressionGuard(workspace.gateway, baselines=keeper)
    project = workspace.declare("echo 2 > a.txt", "a.txt")
    keeper.pin()
    baseline.write_text("2\n")
    assert kinds(guard.check_one(project, {})) == [("project_changed", "a.txt")]


def test_baselines_that_nothing_uses_are_noted(workspace: Workspace) -> None:
    for name in ("a.txt", *(f"old{number}.txt" for number in range(7))):
        workspace.keep(name, "1\n")
    result = workspace.check(workspace.declare("echo 1 > a.txt", "a.txt"))
    assert result.status is ResultStatus.PASSED
    assert result.warnings == (
        "golden_baselines/sales has baselines that no output is compared with"
        " (old0.txt, old1.txt, old2.txt, old3.txt, old4.txt and 2 more): --golden-update removes them",
    )


def test_many_findings_are_bounded_and_each_file_is_named(workspace: Workspace) -> None:
    for number in range(30):
        workspace.keep(f"{number:02d}.txt", "1\n")
    script = "for n in 0 1 2; do for m in 0 1 2 3 4 5 6 7 8 9; do echo 2 > $n$m.txt; done; done"
    result = workspace.check(workspace.declare(script, "*.txt"))
    assert len(kinds(result)) == 30
    assert ["\n" in reason.message for reason in result.reasons] == [True] * 20 + [False] * 10
    script = "i=0; while [ $i -lt 1010 ]; do echo > $i.log; i=$((i+1)); done"
    result = workspace.check(workspace.declare(script, "*.log"))
    assert len(result.reasons) == 1001
    assert (result.reasons[-1].message, result.reasons[-1].path) == ("10 more outputs do not hold", None)


def test_secret_in_a_difference_is_redacted(workspace: Workspace) -> None:
    workspace.keep("a.txt", "1\n")
    project = workspace.declare('echo "$API_TOKEN" > a.txt', "a.txt", set_env={"API_TOKEN": "opensesame123"})
    result = workspace.check(project)
    assert "[REDACTED]" in result.reasons[0].message
    assert "opensesame123" not in str(result.to_dict())


class _Swallowing:
    """A plugged-in gateway that takes any keyword and examines nothing."""

    def run_pipeline(self, *_: Any, **__: Any) -> PipelineOutcome:
        return PipelineOutcome(Ending.EXITED, 0)


class _Older:
    """A plugged-in gateway that knows nothing of outputs."""

    def run_pipeline(self, project: Any, *, role: Any, permissions: Any) -> PipelineOutcome:
        return PipelineOutcome(Ending.EXITED, 0)


@pytest.mark.parametrize("gateway", [_Swallowing(), _Older()])
def test_gateway_that_examines_nothing_runs_what_has_no_outputs_and_refuses_the_rest(
    workspace: Workspace, gateway: Any
) -> None:
    guard = RegressionGuard(gateway)
    assert guard.check_one(workspace.declare("true"), {}).status is ResultStatus.PASSED
    refused = guard.check_one(workspace.declare("true", "a.txt"), {})
    assert refused.status is ResultStatus.ERROR
    assert kinds(refused) == [("harness", None)]
    assert str(refused.error_message).startswith(
        "this project declares `outputs:`, but the gateway of a plug-in does not"
    )


def test_guard_without_baselines_takes_those_in_the_workspace_root(workspace: Workspace) -> None:
    workspace.keep("a.txt", "1\n")
    guard = RegressionGuard(workspace.gateway)
    assert guard.check_one(workspace.declare("echo 1 > a.txt", "a.txt"), {}).status is ResultStatus.PASSED


def test_further_judge_sees_what_was_found(workspace: Workspace) -> None:
    seen: list[str] = []

    def judge(_: object, outcome: PipelineOutcome) -> tuple[Reason, ...]:
        seen.extend(finding.kind for finding in outcome.output_findings)
        return ()

    RegressionGuard(workspace.gateway, further_judge=judge).check_one(workspace.declare("echo > a.txt", "a.txt"), {})
    assert seen == ["baseline_missing"]


def test_output_that_is_gone_before_it_is_compared_is_missing(workspace: Workspace) -> None:
    workspace.keep("a.txt", "1\n")
    project = workspace.declare("true", "a.txt")
    (workspace.path / "upper").mkdir()
    examination = BaselineKeeper(workspace.path / "golden_baselines").begin(project)
    assert isinstance(examination, OutputExamination)
    written = WrittenFiles(workspace.path / "upper", ("a.txt",), str)
    (found,) = examination(PipelineOutcome(Ending.EXITED, 0), written)
    assert (found.kind, found.message) == ("output_missing", "a.txt was written, and is gone now")


@pytest.mark.parametrize("accepts", [False, True])
@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            "grow",
            "a.txt changed while it was compared: something that this run started, or someone else, still writes it",
        ),
        (
            "replace",
            "a.txt changed while it was compared: something that this run started, or someone else, still writes it",
        ),
        ("remove", "a.txt was written, and is gone now"),
    ],
)
def test_output_that_changes_while_it_is_compared_is_told_and_never_accepted(
    workspace: Workspace, change: str, told: str, *, accepts: bool
) -> None:
    workspace.keep("a.txt", "1\n")
    project = workspace.declare("true", "a.txt")
    (workspace.path / "upper").mkdir()
    output, other = workspace.path / "upper" / "a.txt", workspace.path / "other"
    output.write_text("2\n")
    other.write_text("2\n")

    def redact(text: str) -> str:
        # A difference is redacted while the file is compared: that is when something else gets at it.
        if change == "grow":
            output.write_text("2\n3\n")
        elif change == "replace":
            output.unlink(missing_ok=True)
            output.symlink_to(other)
        else:
            output.unlink(missing_ok=True)
        return text

    examination = BaselineKeeper(workspace.path / "golden_baselines", accepts=accepts).begin(project)
    outcome = PipelineOutcome(Ending.EXITED, 0)
    (found,) = examination(outcome, WrittenFiles(workspace.path / "upper", ("a.txt",), redact))
    expected = "output_missing" if change == "remove" else "output_unreadable"
    assert (str(found.kind), found.message) == (expected, told)
    examination.settle(assess_outcome(project, replace(outcome, output_findings=(found,))))
    assert workspace.kept() == {"sales/a.txt": "1\n"}


@without_powers
@pytest.mark.parametrize(("accepts", "status"), [(False, ResultStatus.FAILED), (True, ResultStatus.ERROR)])
def test_closed_folder_of_all_baselines_is_one_sentence(
    workspace: Workspace, *, accepts: bool, status: ResultStatus
) -> None:
    workspace.keep("a.txt", "1\n")
    workspace.baselines.parent.chmod(0)
    keeper = BaselineKeeper(workspace.baselines.parent, accepts=accepts)
    keeper.pin()
    guard = RegressionGuard(workspace.gateway, baselines=keeper)
    result = guard.check_one(workspace.declare("echo 1 > a.txt", "a.txt"), {})
    workspace.baselines.parent.chmod(0o755)
    assert result.status is status
    assert result.error_message == "the baselines in golden_baselines/sales cannot be looked at: Permission denied"
    assert workspace.kept() == {"sales/a.txt": "1\n"}


def test_view_of_a_project_whose_output_differs_is_kept_as_of_any_that_failed(workspace: Workspace) -> None:
    workspace.keep("a.txt", "1\n")
    project = workspace.declare("echo 2 > a.txt", "a.txt")
    with ExecutionGateway(workspace.path, view="copy", keep_if=choose_keeping("failed")) as gateway:
        result = RegressionGuard(gateway).check_one(project, {})
    assert result.kept_view is not None
    assert (Path(result.kept_view) / "a.txt").read_text() == "2\n"


def test_table_without_duckdb_is_an_error_that_says_what_to_install(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So that its import fails, whether it is installed or not.
    monkeypatch.setitem(sys.modules, "duckdb", None)
    workspace.keep("a.csv", "id\n1\n")
    result = workspace.check(workspace.declare("printf 'id\\n1\\n' > a.csv", "a.csv"))
    assert result.status is ResultStatus.ERROR
    assert "pip install 'pytest-golden-projects[tables]'" in str(result.error_message)
