from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.cycle.proposal_floor import (
    OwnFiles,
    ProposalGuard,
    ProtectedFloor,
    list_edits,
    read_base_floor,
)
from pytest_golden.errors import GoldenError, ManifestError

if TYPE_CHECKING:
    from tests.repository import Repository

MANIFEST = """\
golden_projects:
  - {name: etl, path: etl.sh, outputs: [{path: out.txt}]}
  - {name: sales, path: sales/run.sh}
  - {name: whole, path: sales/whole.sh, project_dir: ..}
"""
FLOOR = ProtectedFloor(
    "jobs/golden_projects.yaml",
    "jobs/golden_baselines",
    (OwnFiles("etl", "jobs/etl.py", None), OwnFiles("sales", "jobs/sales/run.py", "jobs/sales")),
)


@pytest.fixture
def jobs(repository: Repository) -> Repository:
    """A checkout whose manifest is in a folder, with a baseline."""
    repository.write(
        jobs___golden_projects__yaml=MANIFEST,
        jobs___etl__sh="cat ../value > out.txt 2>/dev/null || cp value out.txt\n",
        jobs___value="1\n",
        jobs___golden_baselines___etl___out__txt="1\n",
        jobs___sales___run__sh="echo fine\n",
        jobs___sales___whole__sh="echo fine\n",
        jobs___conftest__py="import rules\n",
        jobs___rules__py="LIMIT = 1\n",
        pyproject__toml="[tool.pytest.ini_options]\n",
    )
    repository.commit("jobs")
    return repository


def make_guard(repository: Repository, seconds: float = 1000.0) -> tuple[ProposalGuard, list[str]]:
    base = repository.git("rev-parse", "HEAD")
    floor = read_base_floor(repository.folder, base, repository.folder / "jobs" / "golden_projects.yaml")
    lines: list[str] = []
    guard = ProposalGuard(
        floor, store="none", environment=dict(os.environ), seconds_left=lambda: seconds, show=lines.append
    )
    return guard, lines


def check(guard: ProposalGuard, repository: Repository) -> Any:
    commit = repository.commit("proposal")
    return guard.check(commit, tuple(repository.git("diff", "--name-only", "HEAD~1", "HEAD").splitlines()))


def test_a_projects_own_folder_is_one_that_holds_nothing_of_all(jobs: Repository) -> None:
    floor = read_base_floor(jobs.folder, "HEAD", jobs.folder / "jobs" / "golden_projects.yaml")
    assert floor.protect().manifest == "jobs/golden_projects.yaml"
    assert floor.protect().baselines == "jobs/golden_baselines"
    assert floor.protect().projects == (
        OwnFiles("etl", "jobs/etl.sh", None),
        OwnFiles("sales", "jobs/sales/run.sh", "jobs/sales"),
        OwnFiles("whole", "jobs/sales/whole.sh", None),
    )


def test_a_base_without_a_manifest_declares_nothing_and_a_bad_one_is_refused(repository: Repository) -> None:
    floor = read_base_floor(repository.folder, "HEAD", repository.folder / "other.yaml")
    assert floor.manifest is None
    assert floor.root == Path(os.path.realpath(repository.folder))
    assert floor.protect().projects == ()
    guard = ProposalGuard(floor, store="none", environment={}, seconds_left=lambda: 1.0, show=print)
    with pytest.raises(GoldenError, match="no manifest"):
        guard.check("HEAD", ())
    repository.write(other__yaml="golden_projects: 3\n")
    repository.commit("bad")
    with pytest.raises(ManifestError):
        read_base_floor(repository.folder, "HEAD", repository.folder / "other.yaml")


def test_the_bases_baselines_and_manifest_judge_what_a_proposal_made_of_them(jobs: Repository, tmp_path: Path) -> None:
    guard, lines = make_guard(jobs)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    jobs.git("rm", "-rq", "jobs/golden_baselines")
    (jobs.folder / "jobs" / "golden_baselines").symlink_to(outside)
    jobs.write(
        jobs___value="2\n",
        jobs___golden_projects__yaml="golden_projects:\n  - {name: sales, path: sales/run.sh}\n",
        pyproject__toml="[tool.pytest.ini_options]\naddopts = '-k sales'\n",
    )
    found = check(guard, jobs)
    statuses = {result.name: str(result.status) for result in found["regression_check"].results}
    assert statuses == {"etl": "FAILED", "sales": "PASSED", "whole": "PASSED"}
    kinds = {(one["project"], one["kind"]) for one in found["weakened_floor"]}
    assert {("etl", "project_gone"), (None, "manifest"), (None, "gate_configuration")} <= kinds
    assert (None, "baseline") in kinds or ("etl", "baseline") in kinds
    assert (outside / "kept").exists()
    assert any(line.startswith("gate | ") for line in lines)


def test_an_output_that_is_another_than_the_bases_baseline_is_a_regression_whatever_judges(jobs: Repository) -> None:
    guard, _ = make_guard(jobs)
    jobs.write(jobs___value="2\n", jobs___golden_baselines___etl___out__txt="2\n", jobs___rules__py="LIMIT = 2\n")
    found = check(guard, jobs)
    assert found["regression_check"].failed_count == 1
    assert [one["kind"] for one in found["weakened_floor"]] == ["baseline"]


def test_what_was_red_before_for_the_same_reason_does_not_condemn_a_proposal(jobs: Repository) -> None:
    jobs.write(jobs___sales___run__sh="echo no such table: orders >&2; exit 1\n", jobs___value="2\n")
    jobs.commit("a red base")
    guard, _ = make_guard(jobs)
    jobs.write(
        jobs___sales___run__sh="# Another comment.\necho no such table: orders >&2; exit 1\n", jobs___value="3\n"
    )
    found = check(guard, jobs)
    results = {result.name: result for result in found["regression_check"].results}
    assert (results["sales"].regression_kind, results["sales"].is_regression) == ("known", False)
    assert (results["etl"].regression_kind, results["etl"].is_regression) == (None, True)
    assert found["warnings"] == ("sales failed on the base too, for the same reason: the proposal did not break it",)
    jobs.write(jobs___value="2\n")
    assert check(guard, jobs)["regression_check"].failed_count == 0


def test_a_proposal_cannot_reach_its_judge(jobs: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    witness = tmp_path / "witness"
    monkeypatch.setenv("WITNESS", str(witness))
    guard, _ = make_guard(jobs)
    acts = "import os\nopen(os.environ['WITNESS'], 'a').write(__name__)\n"
    for module in ("yaml", "sitecustomize", "pytest", "jobs/rules", "jobs/helper", "conftest", "jobs/conftest"):
        jobs.write(**{f"{module.replace('/', '___')}__py": acts})
    jobs.write(jobs___value="2\n", jobs___pytest__ini="[pytest]\naddopts = -p helper --collect-only\npythonpath = .\n")
    found = check(guard, jobs)
    assert found["regression_check"].failed_count == 1
    assert not witness.exists()
    assert {one["message"].partition(":")[0] for one in found["weakened_floor"]} == {
        "conftest.py",
        "jobs/conftest.py",
        "jobs/pytest.ini",
        *("yaml.py", "pytest.py", "sitecustomize.py"),
    }


def test_a_failure_for_want_of_ignored_files_is_said_and_one_that_has_them_is_not(jobs: Repository) -> None:
    guard, _ = make_guard(jobs)
    jobs.write(_gitignore="data/\n", jobs___data___in__txt="1\n")
    (jobs.folder / "_gitignore").rename(jobs.folder / ".gitignore")
    jobs.write(jobs___etl__sh="cat data/in.txt > out.txt\n")
    found = check(guard, jobs)
    assert found["regression_check"].failed_count == 1
    (told,) = found["warnings"]
    assert told.startswith("etl may have failed for this alone: what git ignores is not there (jobs/data/in.txt)")
    jobs.write(jobs___etl__sh="cat value > out.txt\n")
    assert check(guard, jobs)["warnings"] == ()


def test_a_gate_that_breaks_down_or_takes_too_long_is_an_error(jobs: Repository) -> None:
    late, _ = make_guard(jobs, seconds=0.0)
    jobs.write(lib__py="")
    with pytest.raises(GoldenError, match="the time limit was reached"):
        check(late, jobs)
    jobs.write(conftest__py="raise SystemExit(7)\n")
    jobs.commit("a base that does not judge")
    guard, _ = make_guard(jobs)
    with pytest.raises(GoldenError, match="the gate of the proposal "):
        guard.check(jobs.git("rev-parse", "HEAD"), ())
    assert jobs.worktrees() == [str(jobs.folder)]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("lib.py", []),
        ("jobs/lib.py", []),
        ("golden_projects.yaml", []),
        ("jobs/golden_projects.yaml", [(None, "manifest")]),
        ("jobs/golden_baselines/etl/out.csv", [("etl", "baseline")]),
        ("jobs/golden_baselines", [(None, "baseline")]),
        ("jobs/golden_baselines_of_others/x", []),
        ("jobs/etl.py", [("etl", "project_files")]),
        ("jobs/sales/helper.py", [("sales", "project_files")]),
        ("jobs/sales2/helper.py", []),
        ("conftest.py", []),
    ],
)
def test_what_belongs_to_the_floor_is_told_from_the_rest(path: str, found: list[tuple[str | None, str]]) -> None:
    edits = tuple(list_edits([path], FLOOR))
    assert [(one["project"], one["kind"]) for one in edits] == found
    assert all(path in one["message"] for one in edits)
