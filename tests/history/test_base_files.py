from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pytest_golden.errors import GoldenError
from pytest_golden.history import base_files as base_baselines
from pytest_golden.history.base_files import (
    find_changed_baselines,
    list_ignored_baselines,
    read_base_manifest,
    warn_of_ignored_baselines,
)
from pytest_golden.regression.verdict import ChangedBaseline
from tests.repository import git

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pytest_golden.regression.verdict import ChangedBaseline as Changed


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "golden_projects.yaml").write_text("version: 1\n# first, ä\n", encoding="utf-8")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "first")
    return tmp_path


def test_text_at_the_base_is_given_and_nothing_is_checked_out(repository: Path) -> None:
    manifest = repository / "sub" / "golden_projects.yaml"
    manifest.write_text("version: 1\n# second\n")
    base = read_base_manifest(manifest, "main")
    assert base.text == "version: 1\n# first, ä\n"
    assert base.commit == git(repository, "rev-parse", "main")
    assert manifest.read_text() == "version: 1\n# second\n"


def test_base_without_a_manifest_is_told_apart(repository: Path) -> None:
    assert read_base_manifest(repository / "golden_projects.yaml", "main").text is None


def test_unknown_ref_says_what_to_fetch(repository: Path) -> None:
    manifest = repository / "sub" / "golden_projects.yaml"
    with pytest.raises(
        GoldenError, match=r"no such commit here\. Check its name, or fetch it first: git fetch origin gone"
    ):
        read_base_manifest(manifest, "gone")
    with pytest.raises(GoldenError, match=r"git fetch upstream release/1"):
        read_base_manifest(manifest, "upstream/release/1")


@pytest.mark.parametrize("ref", ["", "--output=x"])
def test_ref_that_git_would_take_for_an_option_is_refused(repository: Path, ref: str) -> None:
    with pytest.raises(GoldenError, match="is not a git ref"):
        read_base_manifest(repository / "sub" / "golden_projects.yaml", ref)


def test_folder_outside_git_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(GoldenError, match="is not in a git repository"):
        read_base_manifest(tmp_path / "golden_projects.yaml", "main")


def test_missing_git_is_said(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repository))
    with pytest.raises(GoldenError, match="--golden-base main: there is no git on PATH: install it"):
        read_base_manifest(repository / "sub" / "golden_projects.yaml", "main")


def test_folder_in_the_manifests_place_is_no_manifest(repository: Path) -> None:
    assert read_base_manifest(repository / "sub", "main").text is None


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
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "with line ends of Windows")
    write(folder, {"sales/b.csv": "2\r\n"})
    assert find(folder) == ()


@pytest.mark.parametrize(
    ("attributes", "content", "names"),
    [
        ("*.csv text eol=crlf\n", "2\r\n", "eol, text"),
        ("*.csv working-tree-encoding=UTF-16LE\n", "2\0\n\0", "working-tree-encoding"),
        ("*.csv filter=quiet\n", "anything\n", "filter"),
    ],
)
@pytest.mark.parametrize("place", [".gitattributes", "golden_baselines/sales/.gitattributes", "../.gitattributes"])
def test_attributes_cannot_make_another_file_out_of_a_baseline(
    folder: Path, attributes: str, content: str, names: str, place: str
) -> None:
    git(folder, "config", "filter.quiet.clean", "echo 2")
    (folder / place).write_text(attributes)
    write(folder, {"sales/b.csv": content})
    found = {baseline.path: baseline.cause for baseline in find(folder)}
    assert found == {"b.csv": f"its git attributes changed: {names}"}


def test_attributes_that_convert_nothing_or_speak_of_other_files_are_no_change(folder: Path) -> None:
    (folder / ".gitattributes").write_text(
        "*.png binary\n*.csv text=auto diff=csv\nsales/** -crlf linguist-generated\n"
    )
    assert find(folder) == ()


def test_baseline_that_is_no_longer_kept_by_a_filter_is_a_change(folder: Path) -> None:
    git(folder, "config", "filter.kept.clean", "sed s/^big/small/")
    (folder / ".gitattributes").write_text("*.csv filter=kept\n")
    write(folder, {"sales/b.csv": "big\n"})
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "with a filter")
    assert find(folder) == ()
    git(folder, "rm", "-q", ".gitattributes")
    write(folder, {"sales/b.csv": "small\n"})
    causes = {baseline.path: baseline.cause for baseline in find(folder)}
    assert causes == dict.fromkeys(("out/a.csv", "a.csv", "b.csv", "ü \n.csv"), "its git attributes changed: filter")


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
    monkeypatch.setattr(base_baselines, "_PATHS_AT_ONCE", 2)
    assert find(folder) == ()
    write(folder, {"sales/b.csv": "20\n"})
    assert find(folder) == (ChangedBaseline("sales", "b.csv"),)


def test_a_baseline_that_git_cannot_name_is_a_change_and_hides_no_other(folder: Path) -> None:
    git(folder, "config", "filter.broken.clean", "false")
    git(folder, "config", "filter.broken.required", "true")
    (folder / ".gitattributes").write_text("b.csv filter=broken\n")
    write(folder, {"sales/out/a.csv": "10\n", "sales/b.csv": "20\n"})
    assert {baseline.path for baseline in find(folder)} == {"b.csv", "out/a.csv"}


def test_a_commit_that_is_not_there_is_said(folder: Path) -> None:
    with pytest.raises(GoldenError, match="the baselines at 000000000000 cannot be listed"):
        find_changed_baselines(folder, "0" * 40, folder, ["sales"])


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository whose baselines, below gate/, are not committed yet."""
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "config", "core.excludesFile", str(tmp_path.parent / f"{tmp_path.name}-of-everywhere"))
    for path in ("sales/out/a.csv", "sales/data/b.txt", "sales/c.txt", ".accepting-1/d.csv"):
        file = tmp_path / "gate" / "golden_baselines" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("1\n")
    return tmp_path


def ignore(checkout: Path, file: str, *patterns: str) -> None:
    place = checkout.parent / f"{checkout.name}-of-everywhere" if file == "everywhere" else checkout / file
    place.parent.mkdir(exist_ok=True)
    place.write_text("".join(f"{pattern}\n" for pattern in ("# first", *patterns)))


@pytest.mark.parametrize(
    ("file", "pattern", "told"),
    [
        (
            ".gitignore",
            "*.csv",
            "sales/out/a.csv is ignored by .gitignore:2 (`*.csv`): add `!gate/golden_baselines/**` below it",
        ),
        (
            ".gitignore",
            "data/",
            "sales/data/b.txt is ignored by .gitignore:2 (`data/`): add `!gate/golden_baselines/**` below it",
        ),
        (
            ".gitignore",
            "out/",
            "sales/out/a.csv is ignored by .gitignore:2 (`out/`): add `!gate/golden_baselines/**` below it",
        ),
        (
            "gate/.gitignore",
            "*.csv",
            "a.csv is ignored by gate/.gitignore:2 (`*.csv`): add `!golden_baselines/**` below it",
        ),
        (
            ".git/info/exclude",
            "*.csv",
            "by .git/info/exclude:2 (`*.csv`): add `!gate/golden_baselines/**` to .gitignore",
        ),
        ("everywhere", "*.csv", "-of-everywhere:2 (`*.csv`): add `!gate/golden_baselines/**` to .gitignore"),
        (
            ".gitignore",
            "golden_*/",
            "sales/c.txt, golden_baselines/sales/data/b.txt, golden_baselines/sales/out/a.csv are ignored by "
            ".gitignore:2 (`golden_*/`): add `!gate/golden_baselines/` and `!gate/golden_baselines/**` below it",
        ),
        ("gate/golden_baselines/.gitignore", "sales/", "/.gitignore:2 (`sales/`): add `!**` below it"),
        (".gitignore", "gate/", "(`gate/`): add them with `git add --force golden_baselines`"),
    ],
)
def test_rule_is_named_with_what_really_makes_git_take_the_baselines(
    checkout: Path, file: str, pattern: str, told: str
) -> None:
    ignore(checkout, file, pattern)
    folder = checkout / "gate" / "golden_baselines"
    warning = warn_of_ignored_baselines(folder)
    assert warning is not None
    assert warning.startswith("golden_baselines/sales/")
    assert told in warning
    assert "\n" not in warning
    advice = warning.rpartition(": add ")[2]
    if "--force" in advice:
        git(folder.parent, "add", "--force", "golden_baselines")
    else:
        target = checkout / (file if "below it" in advice else ".gitignore")
        with target.open("a") as stream:
            stream.writelines(f"{word}\n" for word in advice.split("`") if word.startswith("!"))
        git(checkout, "add", "-A")
    assert warn_of_ignored_baselines(folder) is None
    assert "gate/golden_baselines/sales/out/a.csv" in git(checkout, "ls-files")


def test_several_rules_and_many_baselines_are_one_bounded_line(checkout: Path) -> None:
    ignore(checkout, ".gitignore", "out/", "*.txt")
    folder = checkout / "gate" / "golden_baselines"
    for number in range(9):
        (folder / "sales" / f"{number}.txt").write_text("1\n")
    warning = warn_of_ignored_baselines(folder)
    assert warning == (
        "golden_baselines/sales/0.txt, golden_baselines/sales/1.txt, golden_baselines/sales/2.txt and 9 more are ignored by "
        ".gitignore:3 (`*.txt`), .gitignore:2 (`out/`): add `!gate/golden_baselines/**` at the end of .gitignore and commit "
        "the baselines"
    )


def test_what_git_holds_or_takes_and_what_is_in_no_checkout_is_not_ignored(
    checkout: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = checkout / "gate" / "golden_baselines"
    assert list_ignored_baselines(folder) == ()
    git(checkout, "add", "-A")
    ignore(checkout, ".gitignore", "*.csv", "*.txt")
    assert list_ignored_baselines(folder) == ()
    outside = tmp_path_factory.mktemp("outside") / "golden_baselines"
    assert list_ignored_baselines(outside) == ()
    outside.mkdir()
    (outside / "a.csv").touch()
    assert warn_of_ignored_baselines(outside) is None


def test_names_that_are_no_text_and_blanks_are_shown_as_escapes(checkout: Path) -> None:
    ignore(checkout, ".gitignore", "*.odd")
    (checkout / "gate" / "golden_baselines" / "sales" / "a\n\x1b[31m.odd").touch()
    warning = warn_of_ignored_baselines(checkout / "gate" / "golden_baselines")
    assert warning is not None
    assert warning.isprintable()
