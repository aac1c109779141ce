"""Every row of the status table, and the sentences that a stranger reads first."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from pytest_golden.gateway.model import Ending, PatternVerdict, PipelineOutcome, Problem, WriteSet
from pytest_golden.manifest.model import GoldenProjectConfig
from pytest_golden.regression.model import GoldenProjectResult, ReasonKind, ResultStatus
from pytest_golden.regression.rules import assess_outcome, judge, wants_pattern_search
from pytest_golden.trajectory.model import Trajectory

PASSED, FAILED, ERROR, SKIPPED = ResultStatus.PASSED, ResultStatus.FAILED, ResultStatus.ERROR, ResultStatus.SKIPPED
PROJECT = GoldenProjectConfig("sales", "sales.py", None, "specific_error:^Negative amounts")


def make_project(expected: str = "success", **keys: Any) -> GoldenProjectConfig:
    return GoldenProjectConfig("sales", "sales/pipeline.py", None, expected, **keys)


def assess(
    exit_code: int | None = 0, expected: str = "success", *, keys: dict[str, Any] | None = None, **facts: Any
) -> GoldenProjectResult:
    outcome = PipelineOutcome(facts.pop("ending", Ending.EXITED), exit_code, **facts)
    return assess_outcome(make_project(expected, **(keys or {})), outcome)


def only_kind(result: GoldenProjectResult) -> str:
    (reason,) = result.reasons
    assert result.error_message == reason.message
    return reason.kind


@pytest.mark.parametrize("sealed", [True, False])
def test_an_end_as_expected_is_passed(sealed: bool) -> None:
    for exit_code, expected in ((0, "success"), (0, "exit_code:0"), (3, "exit_code:3"), (137, "exit_code:137")):
        result = assess(exit_code, expected, sealed=sealed)
        assert result.status is PASSED
        assert result.reasons == ()
        assert result.error_message is None


def test_another_exit_code_is_failed_and_both_are_told() -> None:
    result = assess(3)
    assert (result.status, only_kind(result), result.exit_code) == (FAILED, "exit_code", 3)
    assert result.error_message == "exit code 3, expected 0"
    assert assess(0, "exit_code:4").error_message == "exit code 0, expected 4"
    assert assess(3, "exit_code:4").status is FAILED


@pytest.mark.parametrize("sealed", [True, False])
def test_exit_codes_126_and_127_are_failed_and_explained(sealed: bool) -> None:
    missing = assess(127, sealed=sealed)
    assert missing.status is FAILED
    assert missing.error_message == "exit code 127 (command not found), expected 0"
    assert "may not be executed" in str(assess(126, sealed=sealed).error_message)


@pytest.mark.parametrize("exit_code", [129, 134, 137, 159])
def test_a_death_by_signal_under_a_seal_is_error(exit_code: int) -> None:
    for expected in ("success", "exit_code:1", "specific_error:boom"):
        result = assess(exit_code, expected, sealed=True, pattern_verdict=PatternVerdict.FOUND)
        assert (result.status, only_kind(result)) == (ERROR, "signalled")
        assert f"signal {exit_code - 128}" in str(result.error_message)
    assert assess(exit_code).status is FAILED


@pytest.mark.parametrize("exit_code", [128, 160])
def test_exit_codes_beside_the_signals_are_failed_under_a_seal(exit_code: int) -> None:
    assert assess(exit_code, sealed=True).status is FAILED


def test_a_signal_is_error_even_when_the_expected_error_was_printed() -> None:
    result = assess(
        -9, "specific_error:boom", ending=Ending.SIGNALLED, stderr="boom", pattern_verdict=PatternVerdict.FOUND
    )
    assert (result.status, only_kind(result), result.exit_code) == (ERROR, "signalled", -9)
    assert result.error_message == "ended by signal 9 (SIGKILL)"
    assert "signal 99" in str(assess(-99, ending=Ending.SIGNALLED).error_message)


def test_an_expected_error_passes_only_when_it_is_found_in_a_failed_run() -> None:
    expected = "specific_error:Negative amounts"
    assert assess(1, expected, pattern_verdict=PatternVerdict.FOUND).status is PASSED
    absent = assess(1, expected, pattern_verdict=PatternVerdict.ABSENT)
    assert (absent.status, only_kind(absent)) == (FAILED, "pattern_absent")
    assert "exit code 1, but `specific_error:Negative amounts` was expected" in str(absent.error_message)
    caused = assess(1, expected, pattern_verdict=PatternVerdict.ABSENT, stderr="no such column\n")
    assert str(caused.error_message).startswith(
        "exit code 1: no such column, but `specific_error:Negative amounts` was"
    )
    passed = assess(0, expected, pattern_verdict=PatternVerdict.FOUND)
    assert (passed.status, only_kind(passed)) == (FAILED, "unexpected_success")
    assert passed.error_message == "the pipeline passed, but `specific_error:Negative amounts` was expected"
    slow = assess(1, expected, pattern_verdict=PatternVerdict.TIMED_OUT)
    assert (slow.status, only_kind(slow)) == (ERROR, "pattern_timed_out")
    unsearched = assess(1, expected)
    assert (unsearched.status, only_kind(unsearched)) == (ERROR, "harness")


def test_a_search_is_wanted_only_where_it_decides() -> None:
    project = make_project("specific_error:x")
    assert wants_pattern_search(project, PipelineOutcome(Ending.EXITED, 1))
    assert not wants_pattern_search(project, PipelineOutcome(Ending.EXITED, 0))
    assert not wants_pattern_search(project, PipelineOutcome(Ending.TIMEOUT, -9))
    assert not wants_pattern_search(make_project(), PipelineOutcome(Ending.EXITED, 1))
    found = PipelineOutcome(Ending.EXITED, 1, pattern_verdict=PatternVerdict.FOUND)
    assert not wants_pattern_search(project, found)


@pytest.mark.parametrize(
    ("ending", "facts", "message"),
    [
        (Ending.TIMEOUT, {"duration_seconds": 600.02}, "timed out after 10m"),
        (Ending.MEMORY_LIMIT, {"peak_memory_bytes": 3 << 29}, "used 1.5GiB of memory (memory_limit: 1GiB)"),
        (Ending.CPU_LIMIT, {"cpu_seconds": 301.26}, "used 301.3s of CPU time (cpu_limit: 5m)"),
        (Ending.DISK_LIMIT, {"disk_bytes": 3 << 29}, "wrote 1.5GiB to the disk (disk_limit: 1GiB)"),
        (Ending.PROCESS_LIMIT, {}, "ran more than 64 processes and threads at once (process_limit: 64)"),
        (Ending.INTERRUPTED, {}, "interrupted before it ended"),
        (Ending.INTERRUPTED, {"message": "Ctrl-C"}, "Ctrl-C"),
    ],
)
def test_limits_and_interruptions_are_error(ending: Ending, facts: dict[str, Any], message: str) -> None:
    keys = {"memory_limit": 1 << 30, "cpu_limit": 300, "disk_limit": 1 << 30, "process_limit": 64}
    result = assess(-9, "specific_error:x", keys=keys, ending=ending, stderr="x", **facts)
    assert (result.status, only_kind(result)) == (ERROR, str(ending))
    assert result.error_message == message


@pytest.mark.parametrize("problem", [problem for problem in Problem if problem is not Problem.SKIP_IF_MISSING])
def test_what_could_not_be_run_is_error_of_that_kind(problem: Problem) -> None:
    result = assess(None, ending=Ending.NOT_STARTED, problem=problem, message="why: what to do")
    assert (result.status, only_kind(result), result.exit_code) == (ERROR, str(problem), None)
    assert result.error_message == "why: what to do"
    assert assess(None, ending=Ending.NOT_STARTED, problem=problem).error_message


def test_a_run_that_never_started_without_a_reason_is_error() -> None:
    result = assess(None, ending=Ending.NOT_STARTED)
    assert (result.status, only_kind(result)) == (ERROR, "harness")
    assert only_kind(assess(None)) == "harness"


def test_a_missing_program_that_may_be_missing_is_skipped() -> None:
    result = assess(
        None, ending=Ending.NOT_STARTED, problem=Problem.SKIP_IF_MISSING, message="dbt is not installed here"
    )
    assert (result.status, only_kind(result), result.attempts) == (SKIPPED, "skip_if_missing", 0)
    assert not result.is_regression


def test_a_project_that_changed_underneath_is_error_naming_the_files() -> None:
    files = tuple(f"data/{number}.csv" for number in range(12))
    result = assess(0, changed_underneath=files, problem=Problem.PROJECT_CHANGED)
    assert (result.status, only_kind(result)) == (ERROR, "project_changed")
    assert "data/0.csv, data/1.csv" in str(result.error_message)
    assert "and 2 more" in str(result.error_message)
    assert assess(0, changed_underneath=("a",)).status is ERROR
    both = assess(3, changed_underneath=("a",))
    assert [reason.kind for reason in both.reasons] == ["project_changed", "exit_code"]
    assert both.status is ERROR
    assert str(both.error_message).endswith("(and 1 more reason)")


def test_a_failing_before_or_after_is_error() -> None:
    before = assess(3, problem=Problem.BEFORE_FAILED, message="`before:` command `x` failed (exit code 3)")
    assert (before.status, only_kind(before)) == (ERROR, "before_failed")
    after = assess(0, problem=Problem.AFTER_FAILED, message="`after:` command `x` failed (exit code 3)")
    assert (after.status, only_kind(after)) == (ERROR, "after_failed")
    stopped = assess(-2, ending=Ending.INTERRUPTED, problem=Problem.BEFORE_FAILED, message="before")
    assert [reason.kind for reason in stopped.reasons] == ["before_failed", "interrupted"]


def test_the_pipelines_own_failure_is_the_result_and_a_failed_after_comes_second() -> None:
    told: dict[str, Any] = {"problem": Problem.AFTER_FAILED, "message": "`after:` command `x` failed (exit code 3)"}
    both = assess(1, stderr="KeyError: 'amount'\n", **told)
    assert both.status is FAILED
    assert [reason.kind for reason in both.reasons] == ["exit_code", "after_failed"]
    assert both.error_message == "exit code 1, expected 0: KeyError: 'amount' (and 1 more reason)"
    killed = assess(137, sealed=True, **told)
    assert (killed.status, [reason.kind for reason in killed.reasons]) == (ERROR, ["signalled", "after_failed"])


def test_a_failed_after_is_error_where_the_pipeline_failed_as_expected() -> None:
    told: dict[str, Any] = {"problem": Problem.AFTER_FAILED, "message": "after"}
    met = assess(1, "specific_error:no rows", pattern_verdict=PatternVerdict.FOUND, **told)
    assert (met.status, only_kind(met)) == (ERROR, "after_failed")
    another = assess(1, "specific_error:no rows", pattern_verdict=PatternVerdict.ABSENT, **told)
    assert (another.status, [reason.kind for reason in another.reasons]) == (FAILED, ["pattern_absent", "after_failed"])


def test_what_the_pipeline_printed_gives_no_advice_on_a_failed_after() -> None:
    both = assess(1, stderr="Read-only file system", sealed=True, problem=Problem.AFTER_FAILED, message="after")
    assert [("mounts:" in reason.message) for reason in both.reasons] == [True, False]


def test_unexpected_files_are_failed_or_noted_as_declared() -> None:
    write_set = WriteSet(
        created=("target/a.csv", "stray.txt", "pkg/__pycache__/m.cpython-311.pyc"),
        changed=("config.yml",),
        removed=("x",),
    )
    keys = {"unexpected_files": "fail", "writes": ["target/**"]}
    result = assess(0, keys=keys, write_set=write_set)
    assert result.status is FAILED
    assert [(reason.kind, reason.path) for reason in result.reasons] == [
        ("unexpected_file", "config.yml"),
        ("unexpected_file", "stray.txt"),
    ]
    warned = assess(0, keys={**keys, "unexpected_files": "warn"}, write_set=write_set)
    assert warned.status is PASSED
    assert warned.warnings == ("wrote files that no pattern of `writes:` or `outputs:` names: config.yml, stray.txt",)
    allowed = assess(0, keys={**keys, "unexpected_files": "allow"}, write_set=write_set)
    assert (allowed.status, allowed.warnings) == (PASSED, ())


def test_what_an_engine_keeps_for_itself_is_never_unexpected() -> None:
    write_set = WriteSet(created=("shop/.snakemake/log/a.log", "out.csv"))
    outcome = PipelineOutcome(Ending.EXITED, 0, write_set=write_set, engine_files=("**/.snakemake/**",))
    project = GoldenProjectConfig("sales", "Snakefile", unexpected_files="fail")
    (reason,) = judge(project, outcome).reasons
    assert reason.path == "out.csv"


def test_a_flood_of_unexpected_files_is_counted() -> None:
    write_set = WriteSet(created=tuple(f"f{number:05}" for number in range(10_000)))
    result = assess(0, keys={"unexpected_files": "fail"}, write_set=write_set)
    assert len(result.reasons) == 51
    assert "9950 more files" in result.reasons[-1].message
    warned = assess(0, keys={"unexpected_files": "warn"}, write_set=write_set)
    assert warned.warnings[0].endswith("f00009 and 9990 more")


@pytest.mark.parametrize("said", ["OSError: [Errno 30] Read-only file system: '/data'", "Error: EROFS: open '/data'"])
def test_a_failure_by_the_seal_names_mounts(said: str) -> None:
    printed: list[dict[str, Any]] = [{"stderr": said}, {"stdout": said}]
    for facts in printed:
        assert "`mounts:`" in str(assess(1, sealed=True, **facts).error_message)
        assert "mounts" not in str(assess(1, sealed=False, **facts).error_message)
        assert assess(0, sealed=True, **facts).error_message is None
    absent = assess(1, "specific_error:x", sealed=True, stderr=said, pattern_verdict=PatternVerdict.ABSENT)
    assert "`mounts:`" in str(absent.error_message)


def test_facts_of_the_run_are_handed_on() -> None:
    trajectory = Trajectory.new().add_step("action", "load").complete("success")
    write_set = WriteSet(created=("a",))
    result = assess(
        0,
        started_at=datetime(2026, 1, 1, tzinfo=UTC),
        duration_seconds=1.5,
        stdout="out",
        stderr="err",
        trajectory=trajectory,
        write_set=write_set,
        command=("python", "x.py"),
        log_path="/tmp/log",
        kept_view="/tmp/view",
        warnings=("w",),
    )
    assert (result.execution_time_seconds, result.steps_total, len(result.steps)) == (1.5, 1, 1)
    assert result.steps[0]["content"] == "load"
    assert result.trajectory_id == trajectory.id
    assert result.output_summary == "[stdout]\nout\n[stderr]\nerr"
    assert (result.write_set, result.command, result.warnings) == (write_set, ("python", "x.py"), ("w",))
    assert (result.log_path, result.kept_view, result.attempts) == ("/tmp/log", "/tmp/view", 1)


def test_every_problem_and_ending_has_a_reason_kind() -> None:
    kinds = {str(kind) for kind in ReasonKind}
    assert {str(problem) for problem in Problem} <= kinds
    assert {str(ending) for ending in Ending} - {"exited", "not_started"} <= kinds


def test_an_expected_error_is_found_in_stderr_stdout_or_a_step() -> None:
    text = "first line\nNegative amounts: 3\n"
    steps = Trajectory.new().add_step("action", "check", metadata={"error": text})
    for outcome in (
        PipelineOutcome(Ending.EXITED, 1, stderr=text),
        PipelineOutcome(Ending.EXITED, 1, stdout=text),
        PipelineOutcome(Ending.EXITED, 1, trajectory=steps),
    ):
        assert judge(PROJECT, outcome).status is ResultStatus.PASSED


def test_an_expected_error_that_is_nowhere_is_failed() -> None:
    result = judge(PROJECT, PipelineOutcome(Ending.EXITED, 1, stderr="no Negative amounts at a line's start"))
    assert result.reasons[0].kind == ReasonKind.PATTERN_ABSENT


def test_a_search_already_made_is_believed() -> None:
    outcome = PipelineOutcome(Ending.EXITED, 1, stderr="other", pattern_verdict=PatternVerdict.FOUND)
    assert judge(PROJECT, outcome).status is ResultStatus.PASSED


def test_a_search_that_breaks_down_is_error() -> None:
    # One argument of a program may have 128 KiB.
    project = GoldenProjectConfig("sales", "sales.py", None, "specific_error:" + "a" * 200_000)
    result = judge(project, PipelineOutcome(Ending.EXITED, 1, stderr="x"))
    assert result.status is ResultStatus.ERROR
    assert result.reasons[0].kind == ReasonKind.HARNESS
