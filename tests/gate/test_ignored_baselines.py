from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_golden.history.base import list_ignored_baselines, warn_of_ignored_baselines
from tests.gate.test_base_manifest import git

if TYPE_CHECKING:
    from pathlib import Path


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
