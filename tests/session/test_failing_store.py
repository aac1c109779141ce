"""Sessions whose store fails: the exit code is that of the projects."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.session.workspace import FAILS, PASSES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.session.recorded import Recorded
    from tests.session.workspace import Workspace


def damage(path: Path) -> None:
    path.write_bytes(b"this was a database once" * 1000)


def make_newer(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE golden_version SET version_num = '9999'")
    connection.close()


def refuse_writes(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TRIGGER no BEFORE INSERT ON gate_runs BEGIN SELECT RAISE(ABORT, 'no'); END")
    connection.close()


def put_a_folder_there(path: Path) -> None:
    path.unlink()
    path.mkdir()


def break_rows(path: Path) -> None:
    """Leave values there that no reader of ours expects."""
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE documents SET body = '[1, 2]'")
        connection.execute("UPDATE gate_results SET result = '3'")
        connection.execute("UPDATE trajectories SET body = '\"x\"'")
    connection.close()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        yield
    finally:
        holder.close()


@pytest.mark.parametrize(
    ("spoil", "told", "script", "code"),
    [
        (damage, "and a new store is created", PASSES, 0),
        (damage, "and a new store is created", FAILS, 1),
        (make_newer, "newer", PASSES, 0),
        (refuse_writes, "results are kept in the spool", PASSES, 0),
        (refuse_writes, "results are kept in the spool", FAILS, 1),
        (put_a_folder_there, "that is not a file", PASSES, 0),
        (break_rows, "", PASSES, 0),
        (break_rows, "", FAILS, 1),
    ],
    ids=[
        *("damaged-passes", "damaged-fails", "newer", "refusing-passes", "refusing-fails", "folder"),
        *("rows-passes", "rows-fails"),
    ],
)
def test_store_that_fails_changes_no_exit_code(
    workspace: Workspace, recorded: Recorded, spoil: Callable[[Path], None], told: str, script: str, code: int
) -> None:
    workspace.declare({"name": "one"}, {"name": "two"})
    assert workspace.run().ret == 0
    spoil(recorded.path)
    workspace.declare({"name": "one"}, {"name": "two", "script": script})
    result = workspace.run()
    assert result.ret == code
    result.assert_outcomes(passed=2 - code, failed=code)
    text = result.stdout.str() + result.stderr.str()
    assert told in text
    assert "Traceback" not in text
    assert "INTERNALERROR" not in text


def test_locked_store_changes_no_exit_code_and_the_next_gate_takes_the_results_in(
    workspace: Workspace, recorded: Recorded
) -> None:
    workspace.declare({"name": "one"})
    assert workspace.run().ret == 0
    with locked(recorded.path):
        result = workspace.run_apart()
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "golden: WARNING: the store * another process has locked it*; results are kept in the spool, *",
            "WARNING: what the store did not accept waits in *spool; the next gate imports it",
        ]
    )
    assert result.stdout.str().count("has locked it") == 1
    workspace.run().stdout.fnmatch_lines(["golden: 1 earlier run is in the history now"])
    assert len(recorded.past("one")) == 3


@pytest.mark.parametrize(("script", "code"), [(PASSES, 0), (FAILS, 1)], ids=["passes", "fails"])
def test_learning_that_fails_is_said_and_changes_no_exit_code(
    workspace: Workspace, recorded: Recorded, script: str, code: int
) -> None:
    workspace.declare({"name": "one", "script": script})
    assert workspace.run("--golden-learning=off").ret == code
    with sqlite3.connect(recorded.path) as connection:
        connection.execute("CREATE TRIGGER no BEFORE INSERT ON memories BEGIN SELECT RAISE(ABORT, 'no'); END")
    connection.close()
    result = workspace.run()
    assert result.ret == code
    result.stdout.fnmatch_lines(["golden: nothing was learned from this run: *"])
    assert len(recorded.past("one")) == 2


def test_store_that_is_deleted_while_the_gate_runs_is_said_and_made_again(
    workspace: Workspace, recorded: Recorded
) -> None:
    workspace.declare({"name": "one"}, {"name": "two"})
    workspace.pytester.makeconftest(
        """
        import pathlib
        def pytest_golden_result_recorded(result, entry):
            if result.name == "one":
                pathlib.Path(".golden/golden.db").unlink()
        """
    )
    result = workspace.run()
    assert result.ret == 0
    result.stdout.fnmatch_lines(["golden: WARNING: the store *its file was moved, removed or replaced*"])
    assert recorded.results() == {"one": "PASSED", "two": "PASSED"}
