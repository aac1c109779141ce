import json
import re
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pytest_golden.gateway.model import Ending, PipelineOutcome
from pytest_golden.regression.cause import find_cause
from pytest_golden.trajectory.model import Trajectory

# What eight engines and plain scripts left behind when they failed, and what a person would quote of it.
FAILURES = Path(__file__).with_name("failures")
QUOTES = json.loads((FAILURES / "quotes.json").read_text())
TRACEBACK = "Traceback (most recent call last):\n"


def _outcome(stderr: str = "", trajectory: Trajectory | None = None, stdout: str = "") -> PipelineOutcome:
    return PipelineOutcome(
        Ending.EXITED,
        1,
        started_at=datetime(2026, 1, 1, tzinfo=UTC),
        stdout=stdout,
        stderr=stderr,
        trajectory=trajectory,
    )


@pytest.mark.parametrize("name", QUOTES)
def test_headline_of_a_real_failure_is_what_a_person_would_quote(name: str) -> None:
    parts = re.split(r"^--- (.+)\n", (FAILURES / f"{name}.txt").read_text(), flags=re.MULTILINE)[1:]
    streams, trajectory = {"stdout": "", "stderr": ""}, Trajectory.new()
    for head, body in zip(parts[::2], parts[1::2], strict=True):
        if head in streams:
            streams[head] = body
        else:
            _, step_type, content = head.split(" ", 2)
            trajectory = trajectory.add_step(step_type, content, metadata={"error": body.strip()})
    cause = find_cause(_outcome(trajectory=trajectory, **streams))
    assert cause is not None
    assert QUOTES[name] in cause


def test_last_line_on_standard_error_is_the_cause() -> None:
    assert find_cause(_outcome("Traceback\n  File x\nValueError: no rows\n\n")) == "ValueError: no rows"


FRAME = '  File "/srv/load.py", line 3, in load\n    run("SELECT")\n    ^^^\n'


@pytest.mark.parametrize(
    ("stderr", "cause"),
    [
        (f"{TRACEBACK}{FRAME}KeyError: 'x'\n", "KeyError: 'x'"),
        (f'{TRACEBACK}{FRAME}db.BinderError: no "x"\nLINE 1: SELECT x\n          ^\n\n', 'db.BinderError: no "x"'),
        (
            f"{TRACEBACK}{FRAME}OneError: 1\n\nDuring ...\n\n{TRACEBACK}{FRAME}TwoError: 2\n[SQL: x]\n(at https://x)",
            "TwoError: 2",
        ),
        (f"  {TRACEBACK}  {FRAME}  KeyError: 'x'\n", "KeyError: 'x'"),
        (f"{TRACEBACK}{FRAME}OldError: x\n" + "going on\n" * 20 + "no rows", "no rows"),
        (f"{TRACEBACK}{FRAME}", "^^^"),
        (TRACEBACK, TRACEBACK.strip()),
    ],
)
def test_exception_itself_is_the_cause_and_not_what_stands_below_it(stderr: str, cause: str) -> None:
    assert find_cause(_outcome(stderr)) == cause


def test_end_of_a_long_message_is_kept() -> None:
    cause = find_cause(_outcome(f"ConnectionError: {'x' * 300} connection refused"))
    assert cause is not None
    assert cause.startswith("ConnectionError: xx")
    assert cause.endswith("xx connection refused")


def test_failed_step_says_more_than_standard_error() -> None:
    trajectory = (
        Trajectory.new().add_step("action", "load").add_step("action", "join", metadata={"error": "no key\n  at"})
    )
    assert find_cause(_outcome("some warning", trajectory)) == "join: no key"


def test_headline_of_a_step_is_told_with_what_follows() -> None:
    error = "Runtime Error in model orders (models/orders.sql)\n  Binder Error: no column\n  LINE 1"
    trajectory = Trajectory.new().add_step("action", "orders", metadata={"error": error})
    cause = "orders: Runtime Error in model orders (models/orders.sql) Binder Error: no column"
    assert find_cause(_outcome("", trajectory)) == cause
    lone = Trajectory.new().add_step("action", "orders", metadata={"error": "Database Error"})
    assert find_cause(_outcome("", lone)) == "orders: Database Error"


@pytest.mark.parametrize(
    ("told", "cause"),
    [
        ("Error: 'customr_id'\n  Type: KeyError", "KeyError: 'customr_id'"),
        ("Error: 'customr_id'", "'customr_id'"),
        ("Error: no such file: a.csv\n  Type: FileNotFoundError", "no such file: a.csv"),
    ],
)
def test_a_bare_name_is_told_with_its_exception(told: str, cause: str) -> None:
    # As Odibi reports a node that failed.
    error = f"[X] Node execution failed: dim_customer\n  Location: a.yaml\n\n  {told}\n"
    trajectory = Trajectory.new().add_step("action", "dim_customer", metadata={"error": error})
    assert find_cause(_outcome("", trajectory)) == f"dim_customer: {cause}"


def test_observation_of_the_harness_is_no_cause() -> None:
    trajectory = Trajectory.new().add_step("observation", "it failed", metadata={"error": "it failed"})
    assert find_cause(_outcome("", trajectory)) is None


def test_silent_standard_error_leaves_it_to_what_sounds_like_an_error() -> None:
    told = "load\nERROR: no rows\n  Permission Denied: out\nDone. PASS=3\n\n"
    assert find_cause(_outcome(stdout=told)) == "Permission Denied: out"
    assert find_cause(_outcome(" \n", stdout=told)) == "Permission Denied: out"
    assert find_cause(_outcome("no rows today", stdout=told)) == "no rows today"
    assert find_cause(_outcome("DeprecationWarning: old\n  load()\n", stdout=told)) == "Permission Denied: out"


def test_last_line_of_standard_output_is_better_than_nothing() -> None:
    assert find_cause(_outcome(stdout="load\n  3 rows, 4 wanted\n\n")) == "3 rows, 4 wanted"


DIRECT = "\nThe above exception was the direct cause of the following exception:\n\n"


@pytest.mark.parametrize(
    ("stderr", "cause"),
    [
        (
            f"{TRACEBACK}{FRAME}OSError: disk full{DIRECT}{TRACEBACK}{FRAME}LoadError: no orders\n",
            "OSError: disk full, raised as LoadError: no orders",
        ),
        (
            f"{TRACEBACK}{FRAME}OSError: disk full{DIRECT}{TRACEBACK}{FRAME}LoadError: {'x' * 200}\n",
            "OSError: disk full",
        ),
        (
            "job aborted\ncom.acme.JobException: stage 3\n\tat com.acme.Job.run(Job.java:7)\n"
            "Caused by: java.io.IOException: no space left\n\tat java.io.File.write(File.java:3)\n\t... 12 more\n",
            "java.io.IOException: no space left",
        ),
        ("load.c:3: error: no header\nmake: *** [Makefile:3: all] Error 1\n", "load.c:3: error: no header"),
        (
            "Errors were found:\n  - rows.csv\n  - cols.csv\nmissing files:\n  a\n  b\n  c",
            "missing files: a (and 2 more)",
        ),
        ("everything failed", "everything failed"),
        (
            'ERROR:  relation "x" does not exist\nLINE 1: select * from x\n          ^\n',
            'ERROR:  relation "x" does not exist',
        ),
        ("cannot open 'x.csv'\nExecution halted\n", "cannot open 'x.csv'"),
        (
            f"{TRACEBACK}{FRAME}ValidationError: 1 validation error for Order\namount\n  Input should be a number [x]\n",
            "ValidationError: 1 validation error for Order amount Input should be a number [x]",
        ),
        (
            "  + Exception Group Traceback (most recent call last):\n  | ExceptionGroup: many (2 sub-exceptions)\n"
            "  +-+------ 1 ------\n    | ValueError: bad row\n    +------------\n",
            "ValueError: bad row",
        ),
        ("Next steps:\n  1. Look at the failed node:\n     show it\n  2. Then:\n     a doctor", "a doctor"),
        (
            "Error: cannot load x.sql:\n\n  Failed to resolve macros for\n\n  SELECT 1\n  Macro 'a' does not exist.\n   at x",
            "Error: cannot load x.sql: Macro 'a' does not exist.",
        ),
    ],
)
def test_innermost_cause_is_told_and_not_that_something_failed(stderr: str, cause: str) -> None:
    assert find_cause(_outcome(stderr)) == cause


@pytest.mark.parametrize(
    "line",
    ["failed tasks of 3 errors " * 80, "A" * 1999, "missing " * 240, "a.B" * 600, "=== " * 500, "=" * 1999 + "."],
)
def test_huge_output_costs_next_to_nothing(line: str) -> None:
    text = f"{line}\n" * 5000
    began = time.process_time()
    assert find_cause(_outcome(text, stdout=text))
    assert time.process_time() - began < 1


def test_silent_failure_has_no_cause() -> None:
    assert find_cause(_outcome()) is None


def test_endless_line_is_cut() -> None:
    cause = find_cause(_outcome("x" * 5000))
    assert cause is not None
    assert len(cause) < 220
