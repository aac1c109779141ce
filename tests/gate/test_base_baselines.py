from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pytest_golden.errors import GoldenError
from pytest_golden.history import base as base_baselines
from pytest_golden.history.base import find_changed_baselines
from pytest_golden.regression.verdict import ChangedBaseline
from tests.gate.test_base_manifest import git

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pytest_golden.regression.floor import ChangedBaseline as Changed


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        file = folder / "golden_baselines" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of a manifest inside a repository, whose baselines are committed."""
    git(tmp_path, "init", "-q", "-b", "main")
    folder = tmp_path / "gate"
    write(folder, {"sales/out/a.csv": "1\n", "sales/b.csv": "2\n", "other/a.csv": "3\n", "sales/ü \n.csv": "4\n"})
    (folder / "golden_baselines" / "sales" / "link.csv").symlink_to("b.csv")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "first")
    return folder


def find(folder: Path, *names: str, head: Path | None = None) -> tuple[Changed, ...]:
    commit = git(folder, "rev-parse", "main")
    return find_changed_baselines(folder, commit, head or folder, names or ("sales", "other"))


def test_same_and_new_baselines_are_nothing(folder: Path) -> None:
    write(folder, {"sales/new.csv": "5\n", "new/a.csv": "6\n"})
    assert find(folder) == ()


def test_changed_baselines_are_found_whether_they_are_committed_or_not(folder: Path) -> None:
    write(folder, {"sales/out/a.csv": "10\n"})
    git(folder, "checkout", "-q", "-b", "change")
    git(folder, "commit", "-qam", "change")
    write(folder, {"sales/ü \n.csv": "40\n", "other/a.csv": "30\n"})
    assert find(folder, "sales") == (
        ChangedBaseline("sales", "out/a.csv"),
        ChangedBaseline("sales", "ü \n.csv"),
    )
    assert find(folder, "other") == (ChangedBaseline("other", "a.csv"),)


def test_removed_baselines_are_told_apart(folder: Path) -> None:
    (folder / "golden_baselines" / "sales" / "b.csv").unlink()
    assert find(folder) == (ChangedBaseline("sales", "b.csv", is_gone=True),)


def test_what_git_is_told_not_to_look_at_is_seen(folder: Path) -> None:
    git(folder, "update-index", "--skip-worktree", "golden_baselines/sales/b.csv")
    git(folder, "update-index", "--assume-unchanged", "golden_baselines/other/a.csv")
    write(folder, {"sales/b.csv": "20\n", "other/a.csv": "30\n"})
    assert {baseline.path for baseline in find(folder)} == {"b.csv", "a.csv"}


def test_another_kind_of_file_is_a_change(folder: Path) -> None:
    sales = folder / "golden_baselines" / "sales"
    (sales / "b.csv").unlink()
    (sales / "b.csv").symlink_to("out/a.csv")
    (sales / "link.csv").unlink()
    (sales / "link.csv").write_text("2\n")
    (sales / "out" / "a.csv").unlink()
    os.mkfifo(sales / "out" / "a.csv")
    assert {baseline.path for baseline in find(folder)} == {"b.csv", "link.csv", "out/a.csv"}


def test_a_symlink_that_leads_elsewhere_is_a_change(folder: Path) -> None:
    link = folder / "golden_baselines" / "sales" / "link.csv"
    link.unlink()
    link.symlink_to("out/a.csv")
    assert find(folder) == (ChangedBaseline("sales", "link.csv"),)


def test_a_moved_manifest_takes_its_baselines_along(folder: Path) -> None:
    moved = folder.parent / "elsewhere"
    assert {baseline.is_gone for baseline in find(folder, head=moved)} == {True}
    (folder / "golden_baselines").rename(folder / "old")
    moved.mkdir()
    (folder / "old").rename(moved / "golden_baselines")
    assert find(folder, head=moved) == ()


def test_line_ends_that_git_converts_are_no_change(folder: Path) -> None:
    (folder / ".gitattributes").write_text("*.csv text eol=crlf\n")
    write(folder, {"sales/b.csv": "2\r\n"})
    assert find(folder) == ()


def test_a_base_without_baselines_has_none_to_change(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "nothing")
    write(tmp_path, {"sales/a.csv": "1\n"})
    assert find(tmp_path) == ()
    below = tmp_path / "new"
    below.mkdir()
    assert find(below) == ()


@pytest.mark.parametrize(
    ("place", "changed"),
    [
        ("golden_baselines/sales/data", [ChangedBaseline("sales", "data")]),
        ("golden_baselines/new", [ChangedBaseline("new", "")]),
        ("below/golden_baselines", [ChangedBaseline("sales", ""), ChangedBaseline("new", "")]),
    ],
)
def test_a_submodule_is_compared_by_its_commit(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, place: str, changed: list[Changed]
) -> None:
    data = tmp_path_factory.mktemp("data")
    git(data, "init", "-q", "-b", "main")
    git(data, "commit", "-q", "--allow-empty", "-m", "data")
    (folder / place).parent.mkdir(exist_ok=True)
    git(folder, "clone", "-q", str(data), str(folder / place))
    git(folder, "add", place)
    git(folder, "commit", "-q", "-m", "with data")
    here = folder / "below" if place.startswith("below") else folder
    assert find(here, "sales", "new") == ()
    git(folder / place, "commit", "-q", "--allow-empty", "-m", "more data")
    assert find(here, "sales", "new") == tuple(changed)


def test_a_file_in_the_place_of_the_baselines_holds_none(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "golden_baselines").write_text("no folder")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "a file")
    (tmp_path / "golden_baselines").write_text("changed")
    assert find(tmp_path) == ()


def test_many_baselines_fit_no_single_command_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base_baselines, "_MOST_CHARACTERS", 20)
    assert find(folder) == ()
    write(folder, {"sales/b.csv": "20\n"})
    assert find(folder) == (ChangedBaseline("sales", "b.csv"),)


def test_a_baseline_that_git_cannot_name_is_a_change_and_hides_no_other(folder: Path) -> None:
    git(folder, "config", "filter.broken.clean", "false")
    git(folder, "config", "filter.broken.required", "true")
    (folder / ".gitattributes").write_text("b.csv filter=broken\n")
    write(folder, {"sales/out/a.csv": "10\n"})
    assert {baseline.path for baseline in find(folder)} == {"b.csv", "out/a.csv"}


def test_a_commit_that_is_not_there_is_said(folder: Path) -> None:
    with pytest.raises(GoldenError, match="the baselines at 000000000000 cannot be listed"):
        find_changed_baselines(folder, "0" * 40, folder, ["sales"])
