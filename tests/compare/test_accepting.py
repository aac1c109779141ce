"""Outputs become baselines: all of an attempt, or nothing."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from datetime import date
from typing import TYPE_CHECKING

import pytest

from pytest_golden.compare.accepting import WaitingRoom, exchange, replace_at_once, replace_one_by_one
from pytest_golden.compare.baselines import WAITING_PREFIX, ProjectBaselines
from pytest_golden.compare.examination import BaselineKeeper
from pytest_golden.gate.service import RegressionGuard
from pytest_golden.gateway.model import Ending, PipelineOutcome
from pytest_golden.gateway.write_set import WrittenFiles
from pytest_golden.manifest.model import DeclaredOutput, Mount, Quarantine
from pytest_golden.regression.model import OutputChange, Reason, ResultStatus
from pytest_golden.regression.rules import assess_outcome
from tests.compare.conftest import kinds

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_golden.regression.model import GoldenProjectResult
    from tests.compare.conftest import Workspace


TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2


def changes(result: GoldenProjectResult) -> dict[str, str]:
    assert result.accepted is not None
    return {output.path: str(output.change) for output in result.accepted}


def test_new_changed_unchanged_and_removed_outputs_are_accepted_and_told(workspace: Workspace) -> None:
    same = workspace.keep("out/same.txt", "1\n")
    before = same.stat().st_ino
    workspace.keep("out/other.txt", "one\ntwo\n")
    workspace.keep("out/gone/away.txt", "1\n")
    workspace.keep("never/declared.txt", "1\n")
    script = "mkdir out; echo 1 > out/same.txt; echo 1 > out/new.txt; printf 'one\\n2\\n' > out/other.txt"
    project = workspace.declare(script, "out/**")
    result = workspace.accept(project)
    assert result.status is ResultStatus.PASSED
    assert changes(result) == {
        "never/declared.txt": "removed",
        "out/gone/away.txt": "removed",
        "out/new.txt": "new",
        "out/other.txt": "changed",
        "out/same.txt": "unchanged",
    }
    told = {output.path: output.message for output in result.accepted or ()}
    assert told["out/new.txt"] == "2B"
    assert "two" in told["out/other.txt"]
    assert workspace.kept() == {
        "sales/out/new.txt": "1\n",
        "sales/out/other.txt": "one\n2\n",
        "sales/out/same.txt": "1\n",
    }
    assert same.stat().st_ino == before
    assert [entry.name for entry in workspace.baselines.iterdir()] == ["out"]
    again = workspace.check(project)
    assert (again.status, again.accepted) == (ResultStatus.PASSED, None)


def test_project_without_outputs_is_accepted_for_its_duration_and_loses_its_baselines(workspace: Workspace) -> None:
    workspace.keep("a.txt", "1\n")
    assert changes(workspace.accept(workspace.declare("true"))) == {"a.txt": "removed"}
    assert workspace.kept() == {}
    assert not workspace.baselines.exists()
    assert workspace.accept(workspace.declare("true")).accepted == ()


def test_accepted_baseline_is_an_ordinary_file_that_others_may_read(workspace: Workspace) -> None:
    workspace.accept(workspace.declare("echo 1 > a.txt; chmod 4700 a.txt", "a.txt"))
    mode = (workspace.baselines / "a.txt").stat().st_mode & 0o7777
    assert mode == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize(
    "script", ["echo 2 > a.txt; exit 1", "echo 2 > a.txt; kill -9 $$", "echo 2 > a.txt; echo > stray"]
)
def test_what_did_not_run_as_expected_is_not_accepted(workspace: Workspace, script: str) -> None:
    workspace.keep("a.txt", "1\n")
    result = workspace.accept(workspace.declare(script, "a.txt", unexpected_files="fail"))
    assert result.accepted is None
    assert result.is_regression
    assert workspace.kept() == {"sales/a.txt": "1\n"}


def test_what_a_further_judge_speaks_against_is_not_accepted(workspace: Workspace) -> None:
    keeper = BaselineKeeper(workspace.path / "golden_baselines", accepts=True)
    guard = RegressionGuard(
        workspace.gateway, baselines=keeper, further_judge=lambda *_: [Reason("too_few", "too few rows")]
    )
    result = guard.check_one(workspace.declare("echo 1 > a.txt", "a.txt"), {})
    assert (result.status, result.accepted) == (ResultStatus.FAILED, None)
    assert workspace.kept() == {}


def test_pipeline_that_must_fail_is_accepted(workspace: Workspace) -> None:
    project = workspace.declare("echo 1 > a.txt; exit 3", "a.txt", expected_outcome="exit_code:3")
    assert changes(workspace.accept(project)) == {"a.txt": "new"}


def test_attempt_in_which_an_output_is_missing_gives_no_baseline_while_another_may_do_better(
    workspace: Workspace, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    workspace.keep("a.txt", "1\n")
    script = f"echo x >> {notes}/n; n=$(wc -l < {notes}/n); echo $n > a.txt; if [ $n -gt 1 ]; then echo $n > b.txt; fi"
    keys = {"retries": 3, "mounts": (Mount(str(notes), "write"),)}
    result = workspace.accept(workspace.declare(script, "a.txt", "b.txt", **keys))
    assert (result.status, result.attempts, result.is_flaky) == (ResultStatus.PASSED, 2, True)
    assert changes(result) == {"a.txt": "changed", "b.txt": "new"}
    assert workspace.kept() == {"sales/a.txt": "2\n", "sales/b.txt": "2\n"}


def test_last_attempt_gives_no_baselines_either_where_an_output_is_missing(workspace: Workspace) -> None:
    workspace.keep("old.txt", "1\n")
    result = workspace.accept(workspace.declare("echo 1 > a.txt", "a.txt", "b.txt", retries=1))
    assert (result.status, result.attempts) == (ResultStatus.FAILED, 2)
    assert result.accepted is None
    assert workspace.kept() == {"sales/old.txt": "1\n"}


def test_nothing_is_accepted_beside_an_output_that_cannot_be_read(workspace: Workspace) -> None:
    result = workspace.accept(workspace.declare("echo 1 > a.txt; ln -s a.txt b.txt", "a.txt", "b.txt"))
    assert (kinds(result), result.accepted) == ([("output_unreadable", "b.txt")], None)
    assert workspace.kept() == {}


def test_project_in_quarantine_is_accepted_where_it_ran_as_expected_and_not_where_it_failed(
    workspace: Workspace,
) -> None:
    workspace.keep("a.txt", "1\n")
    quarantine = Quarantine(until=date(2999, 1, 1), reason="flaky")
    failed = workspace.accept(workspace.declare("echo 2 > a.txt; exit 1", "a.txt", quarantine=quarantine))
    assert (failed.accepted, failed.quarantined is None) == (None, False)
    assert workspace.kept() == {"sales/a.txt": "1\n"}
    passed = workspace.accept(workspace.declare("echo 2 > a.txt", "a.txt", quarantine=quarantine))
    assert (passed.status, passed.quarantined) == (ResultStatus.PASSED, None)
    assert workspace.kept() == {"sales/a.txt": "2\n"}


def test_what_is_searched_for_secrets_is_what_becomes_the_baseline(workspace: Workspace) -> None:
    (workspace.path / "upper").mkdir()
    output = workspace.path / "upper" / "a.txt"
    output.write_text("harmless\n")

    def redact(text: str) -> str:
        if "harmless" in text:
            output.write_text(f"{TOKEN}\n")
        return text

    project = workspace.declare("true", "a.txt")
    examination = BaselineKeeper(workspace.path / "golden_baselines", accepts=True).begin(project)
    outcome = PipelineOutcome(Ending.EXITED, 0)
    assert examination(outcome, WrittenFiles(workspace.path / "upper", ("a.txt",), redact)) == ()
    examination.settle(assess_outcome(project, outcome))
    assert workspace.kept() == {"sales/a.txt": "harmless\n"}


def test_attempt_that_passed_is_the_one_that_is_accepted(workspace: Workspace, tmp_path_factory: object) -> None:
    project = workspace.declare("echo 1 > a.txt; exit 1", "a.txt", retries=2)
    result = workspace.accept(project)
    assert (result.attempts, result.accepted) == (3, None)
    assert workspace.kept() == {}


def test_missing_output_cannot_be_accepted_and_neither_are_the_others(workspace: Workspace) -> None:
    workspace.keep("b.txt", "1\n")
    result = workspace.accept(workspace.declare("echo 1 > a.txt", "a.txt", "b.txt", "c.txt", "logs/*.log"))
    assert result.status is ResultStatus.FAILED
    assert sorted(kinds(result)) == [
        ("output_missing", "b.txt"),
        ("output_missing", "c.txt"),
        ("output_missing", "logs/*.log"),
    ]
    assert (result.accepted, workspace.kept()) == (None, {"sales/b.txt": "1\n"})


def test_baselines_of_a_pattern_that_finds_nothing_at_all_are_not_removed(workspace: Workspace) -> None:
    workspace.keep("out/b.txt", "1\n")
    result = workspace.accept(workspace.declare("true", "out/*.txt"))
    assert kinds(result) == [("output_missing", "out/b.txt")]
    assert workspace.kept() == {"sales/out/b.txt": "1\n"}


def test_output_with_a_secret_is_refused_and_the_others_are_accepted(workspace: Workspace) -> None:
    workspace.keep("old.txt", "1\n")
    script = f"echo 1 > a.txt; printf 'id\\ntoken {TOKEN}\\n' > new.txt; echo '{TOKEN}' > old.txt"
    result = workspace.accept(workspace.declare(script, "*.txt"))
    assert result.status is ResultStatus.FAILED
    assert kinds(result) == [("baseline_missing", "new.txt"), ("output_differs", "old.txt")]
    assert changes(result) == {"a.txt": "new", "new.txt": "refused", "old.txt": "refused"}
    told = (
        "redaction finds a secret in line 2 (a GitHub token); remove it from the output, or say why it may be there in"
        " `allow_secret` of this output"
    )
    assert [output.message for output in result.accepted or () if output.path == "new.txt"] == [told]
    assert result.error_message == f"new.txt is not accepted: {told} (and 1 more reason)"
    assert workspace.kept() == {"sales/a.txt": "1\n", "sales/old.txt": "1\n"}
    assert TOKEN not in str(result.to_dict())


def test_secret_that_is_allowed_is_accepted_with_its_reason(workspace: Workspace) -> None:
    entry = DeclaredOutput("a.txt", allow_secret="made-up test data")
    result = workspace.accept(workspace.declare(f"echo {TOKEN} > a.txt; echo 1 > b.txt", entry, "b.txt"))
    assert result.status is ResultStatus.PASSED
    assert [output.to_dict() for output in result.accepted or ()] == [
        {
            "path": "a.txt",
            "change": "new",
            "message": "45B",
            "allowed": "redaction finds a secret in line 1 (a GitHub token), allowed: made-up test data",
        },
        {"path": "b.txt", "change": "new", "message": "2B"},
    ]
    assert workspace.kept()["sales/a.txt"] == f"{TOKEN}\n"


def test_secrets_of_the_project_itself_and_behind_an_archive_are_found(workspace: Workspace) -> None:
    script = """
        printf 'a\\nb\\n%s\\n' "$API_TOKEN" > plain.txt; gzip -n < plain.txt > zipped.txt.gz
        echo fine > "$API_TOKEN.txt"; printf 'not gzip' > broken.bin.gz
    """
    result = workspace.accept(workspace.declare(script, "*.txt*", set_env={"API_TOKEN": "opensesame123"}))
    assert changes(result) == {
        "[REDACTED].txt": "refused",
        "plain.txt": "refused",
        "zipped.txt.gz": "refused",
    }
    assert workspace.kept() == {}
    result = workspace.accept(workspace.declare(script, DeclaredOutput("*.bin.gz", compare="bytes")))
    assert list(changes(result)) == ["broken.bin.gz"]


def test_secret_across_two_pieces_of_a_large_output_is_found(workspace: Workspace) -> None:
    script = f"""
        import sys
        text = "x = 1\\n" * 10_916 + "pass: {TOKEN}\\n" + "y = 2\\n" * 50_000
        open("a.txt", "w").write(text)
    """
    lines = "\n".join(line.strip() for line in script.strip().splitlines())
    result = workspace.accept(workspace.declare(f"cat > x.py <<'E'\n{lines}\nE\npython3 x.py", "a.txt"))
    assert "a secret in line 10917 (a GitHub token);" in str(result.error_message)


def test_harmless_outputs_with_colours_or_odd_bytes_are_accepted(workspace: Workspace) -> None:
    script = "printf '\\033[31mred\\033[0m\\n' > a.txt; printf '\\377\\376\\000x' > b.bin; : > empty.txt"
    result = workspace.accept(workspace.declare(script, "a.txt", "b.bin", "empty.txt"))
    assert changes(result) == {"a.txt": "new", "b.bin": "new", "empty.txt": "new"}


def test_secret_in_utf_16_is_found(workspace: Workspace) -> None:
    script = f"python3 -c \"open('a.txt', 'w', encoding='utf-16').write('token\\n{TOKEN}')\""
    assert changes(workspace.accept(workspace.declare(script, "a.txt"))) == {"a.txt": "refused"}


def test_name_that_a_terminal_would_obey_is_refused_for_what_it_is(workspace: Workspace) -> None:
    result = workspace.accept(workspace.declare("touch $(printf 'esc\\033[31mred')", "*red"))
    assert [output.message for output in result.accepted or ()] == [
        "its name holds an escape sequence, which a terminal would obey; rename it"
    ]
    assert workspace.kept() == {}


def test_output_that_would_not_pass_with_itself_is_refused(workspace: Workspace) -> None:
    pytest.importorskip("duckdb")
    script = "printf 'id,x\\n1,2\\n1,3\\n' > a.csv; echo 1 > b.txt"
    result = workspace.accept(workspace.declare(script, DeclaredOutput("a.csv", key=("id",)), "b.txt"))
    assert changes(result) == {"a.csv": "refused", "b.txt": "new"}
    assert "it would not pass with itself as its baseline: " in str(result.error_message)


def test_secrets_in_the_rows_of_a_table_are_found_in_its_text_form(workspace: Workspace) -> None:
    duckdb = pytest.importorskip("duckdb")
    rows = f"SELECT i AS id, CASE WHEN i = 3000 THEN 'see {TOKEN}' ELSE 'fine' END AS note FROM range(5000) t(i)"
    duckdb.sql(f"COPY ({rows}) TO '{workspace.path}/secret.parquet'")
    duckdb.sql(f"COPY (SELECT 1 AS id, 'x' AS note) TO '{workspace.path}/fine.parquet'")
    script = """
        cp -p secret.parquet a.parquet; cp fine.parquet b.parquet; gzip -n < secret.parquet > c.parquet.gz
        printf 'id,password\\n1,hunter2\\n' > d.csv; printf 'id,token_count\\n1,12\\n' > e.csv
    """
    outputs = ("a.parquet", "b.parquet", "c.parquet.gz", "d.csv", "e.csv")
    result = workspace.accept(workspace.declare(script, *outputs))
    assert changes(result) == {
        "a.parquet": "refused",
        "b.parquet": "new",
        "c.parquet.gz": "refused",
        "d.csv": "refused",
        "e.csv": "new",
    }
    told = {output.path: output.message for output in result.accepted or ()}
    assert told["a.parquet"].startswith("redaction finds a secret in row 3001, column note (a GitHub token);")
    assert told["d.csv"].startswith("redaction finds a secret in row 1, column password (the value of password);")


def test_size_that_is_out_of_bounds_is_not_accepted(workspace: Workspace) -> None:
    result = workspace.accept(
        workspace.declare("echo 1 > a.txt", DeclaredOutput("a.txt", compare="exists", min_bytes=9))
    )
    assert kinds(result) == [("output_differs", "a.txt")]
    assert (result.accepted, workspace.kept()) == (None, {})


def test_unusable_baseline_is_replaced_and_nothing_is_written_through_a_link(workspace: Workspace) -> None:
    outside = workspace.path.parent / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("precious")
    workspace.keep("x", "")
    (workspace.baselines / "link.txt").symlink_to(outside / "a.txt")
    (workspace.baselines / "away").symlink_to(outside)
    (workspace.baselines / "folder.txt/empty").mkdir(parents=True)
    script = "mkdir away; echo 1 > away/a.txt; echo 1 > link.txt; echo 1 > folder.txt"
    result = workspace.accept(workspace.declare(script, "**/*.txt"))
    assert changes(result) == {
        "away": "removed",
        "away/a.txt": "changed",
        "folder.txt": "changed",
        "link.txt": "changed",
        "x": "removed",
    }
    assert result.status is ResultStatus.PASSED
    assert (outside / "a.txt").read_text() == "precious"
    assert (workspace.baselines / "link.txt").read_text() == "1\n"
    assert not (workspace.baselines / "link.txt").is_symlink()


def test_symlinked_folder_of_baselines_is_never_written_to(workspace: Workspace) -> None:
    outside = workspace.path.parent / "outside"
    outside.mkdir()
    (workspace.path / "golden_baselines").symlink_to(outside)
    result = workspace.accept(workspace.declare("echo 1 > a.txt", "a.txt"))
    assert result.status is ResultStatus.ERROR
    assert "baselines are only written into real folders" in str(result.error_message)
    assert list(outside.iterdir()) == []


def test_file_that_became_a_folder_is_accepted_and_back(workspace: Workspace) -> None:
    workspace.accept(workspace.declare("echo 1 > a", DeclaredOutput("a/**", compare="text")))
    folder = workspace.declare("mkdir a; echo 1 > a/b", DeclaredOutput("a/**", compare="text"))
    assert changes(workspace.accept(folder)) == {"a": "removed", "a/b": "new"}
    assert workspace.kept() == {"sales/a/b": "1\n"}
    assert changes(workspace.accept(workspace.declare("echo 1 > a", DeclaredOutput("a/**", compare="text")))) == {
        "a": "changed",
        "a/b": "removed",
    }
    assert workspace.kept() == {"sales/a": "1\n"}


def test_nothing_is_left_behind_and_what_a_killed_session_left_goes_in_time(workspace: Workspace) -> None:
    folder = workspace.path / "golden_baselines"
    for name in ("old", "new"):
        (folder / f"{WAITING_PREFIX}{name}").mkdir(parents=True)
    os.utime(folder / f"{WAITING_PREFIX}old", (1, 1))
    workspace.accept(workspace.declare("echo 1 > a.txt", "a.txt"))
    assert sorted(entry.name for entry in folder.iterdir()) == [f"{WAITING_PREFIX}new", "sales"]


def test_archive_is_accepted_as_it_is(workspace: Workspace) -> None:
    workspace.accept(workspace.declare("echo 1 | gzip -n > a.txt.gz", "a.txt.gz"))
    assert gzip.decompress((workspace.baselines / "a.txt.gz").read_bytes()) == b"1\n"
    assert OutputChange("refused") is OutputChange.REFUSED


def test_link_that_lies_where_a_folder_of_baselines_belongs_makes_room_for_it(
    workspace: Workspace,
) -> None:
    (workspace.keep("a/x", "").parent / "link").symlink_to("/")
    entry = DeclaredOutput("a/link/b.txt", compare="text")
    result = workspace.accept(
        workspace.declare("mkdir -p a/link; echo 1 > a/link/b.txt; echo 1 > c.txt", entry, "c.txt")
    )
    assert changes(result) == {"a/link": "removed", "a/link/b.txt": "new", "a/x": "removed", "c.txt": "new"}


def test_what_a_killed_process_leaves_is_ignored_by_git_and_gone_with_the_next(workspace: Workspace) -> None:
    folder = workspace.baselines.parent
    file = workspace.keep("a.txt", "1\n")
    held, left = WaitingRoom(ProjectBaselines(folder, "sales")), folder / f"{WAITING_PREFIX}left"
    waiting = held.copy(file).parent
    assert (waiting / ".gitignore").read_text() == "*\n"
    left.mkdir()
    (left / "alive.lock").touch()
    workspace.accept(workspace.declare("echo 2 > a.txt", "a.txt"))
    assert sorted(entry.name for entry in folder.iterdir()) == sorted([waiting.name, "sales"])
    held.empty()
    assert [entry.name for entry in folder.iterdir()] == ["sales"]


# Kills itself at the first, the second, ... of all calls by which an update can change what is on the disk.
_KILLED = """
import os, shutil, sys
from pathlib import Path
from pytest_golden.compare.baselines import ProjectBaselines
from pytest_golden.compare.accepting import WaitingRoom

top = Path(sys.argv[1])
output = top / "output"
output.write_text("new")
folder = top / "golden_baselines"

def update(last):
    calls = 0
    def count(event, _):
        nonlocal calls
        if event.startswith(("os.", "open", "shutil.", "ctypes.call")):
            calls += 1
            if calls == last:
                os.kill(os.getpid(), 9)
    sys.addaudithook(count)
    room = WaitingRoom(ProjectBaselines(folder, "sales"))
    copies = {path: room.copy(output) for path in ("a", "in/b")}
    room.make_durable()
    room.apply(copies, {"gone"})
    room.empty()

for last in range(1, 1000):
    shutil.rmtree(folder, ignore_errors=True)
    for path in ("a", "in/b", "same", "gone"):
        (folder / "sales" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "sales" / path).write_text("old")
    child = os.fork()
    if not child:
        update(last)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    root = folder / "sales"
    print(*sorted(f"{p.relative_to(root)}={p.read_text()}" for p in root.rglob("*") if p.is_file()))
    if not status:
        break
"""
_OLD, _NEW = "a=old gone=old in/b=old same=old", "a=new in/b=new same=old"


@pytest.fixture
def baselines(tmp_path: Path) -> ProjectBaselines:
    found = ProjectBaselines(tmp_path / "golden_baselines", "sales")
    (found.root / "in").mkdir(parents=True)
    for path in ("a", "in/b", "same"):
        (found.root / path).write_text("old")
    (tmp_path / "copy").write_text("new")
    return found


def _read(baselines: ProjectBaselines) -> dict[str, str]:
    return {path: (baselines.root / path).read_text() for path in baselines.list_paths()}


def _require_exchange(folder: Path) -> None:
    for name in ("one", "other"):
        (folder / name).mkdir()
    if not exchange(folder / "one", folder / "other"):
        pytest.skip("the file system cannot let two folders change places")


@pytest.mark.skipif(sys.platform == "win32", reason="nothing forks there")
def test_update_that_is_killed_leaves_all_old_baselines_or_all_new_ones(tmp_path: Path) -> None:
    _require_exchange(tmp_path)
    done = subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path)], capture_output=True, text=True, check=True)
    states = done.stdout.splitlines()
    assert set(states) == {_OLD, _NEW}
    assert states.index(_NEW) == states.count(_OLD)
    assert len(states) > 10


def test_folders_change_places(tmp_path: Path) -> None:
    _require_exchange(tmp_path)
    (tmp_path / "one/a").touch()
    assert exchange(tmp_path / "one", tmp_path / "other")
    assert (tmp_path / "other/a").exists()
    assert not exchange(tmp_path / "one", tmp_path / "nowhere")


def test_what_cannot_be_placed_is_told_and_its_old_baseline_stays(baselines: ProjectBaselines, tmp_path: Path) -> None:
    _require_exchange(tmp_path)
    copies = {"a": tmp_path / "copy", "same/below": tmp_path / "copy"}
    troubles = replace_at_once(baselines, tmp_path / "staged", copies, ())
    assert list(troubles or {}) == ["same/below"]
    assert _read(baselines) == {"a": "new", "in/b": "old", "same": "old"}
    troubles = replace_one_by_one(baselines, {"same/below": tmp_path / "copy"}, ["in/b", "nothing"])
    assert sorted(troubles) == ["nothing", "same/below"]
    assert _read(baselines) == {"a": "new", "same": "old"}
    assert not (baselines.root / "in").exists()


def test_folder_keeps_its_mode_and_goes_with_its_last_baseline(baselines: ProjectBaselines, tmp_path: Path) -> None:
    _require_exchange(tmp_path)
    (baselines.root / "in").chmod(0o775)
    baselines.root.chmod(0o2775)
    assert replace_at_once(baselines, tmp_path / "staged", {"a": tmp_path / "copy"}, ()) == {}
    assert [(place.stat().st_mode & 0o7777) for place in (baselines.root, baselines.root / "in")] == [0o2775, 0o775]
    assert replace_at_once(baselines, tmp_path / "again", {}, ("a", "in/b", "same")) == {}
    assert not baselines.root.exists()


def test_file_in_the_place_of_the_folder_is_not_replaced(tmp_path: Path) -> None:
    baselines = ProjectBaselines(tmp_path, "sales")
    baselines.root.write_text("mine")
    (tmp_path / "copy").write_text("new")
    assert replace_at_once(baselines, tmp_path / "staged", {"a": tmp_path / "copy"}, ()) is None
    assert list(replace_one_by_one(baselines, {"a": tmp_path / "copy"}, ())) == ["a"]
    assert baselines.root.read_text() == "mine"
