from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_golden.cli.init import generalise_writes, split_command, try_command
from pytest_golden.errors import SettingsError

if TYPE_CHECKING:
    from pathlib import Path


def test_new_folder_is_one_pattern_and_files_in_an_old_one_are_named(folder: Path) -> None:
    (folder / "data").mkdir()
    written = ["a.txt", "data/new/deep/x.csv", "data/new/y.csv", "data/old.csv", "out/z.csv"]
    assert generalise_writes(written, folder) == ("a.txt", "data/new/**", "data/old.csv", "out/**")


def test_many_files_in_one_folder_are_one_pattern(folder: Path) -> None:
    (folder / "data").mkdir()
    written = [f"data/{number}.csv" for number in range(11)] + [f"{number}.txt" for number in range(11)]
    assert generalise_writes(written, folder) == ("data/*", "*")


def test_words_are_split_as_a_shell_does() -> None:
    assert split_command("python -c 'a; b' \"c d\"") == ("python", "-c", "a; b", "c d")


def test_command_without_a_file_of_its_own_is_about_the_folder(folder: Path) -> None:
    result, project = try_command("true --fast", folder, "auto")
    assert result.status == "PASSED"
    assert (project.name, project.path, project.runner) == ("true_--fast", ".", "command")


def test_script_that_is_called_by_its_path_is_the_pipeline(folder: Path) -> None:
    script = folder / "run.sh"
    script.write_text("#!/bin/sh\necho ran\n")
    script.chmod(0o755)
    result, project = try_command("./run.sh /etc/passwd", folder, "auto")
    assert result.status == "PASSED"
    assert (project.name, project.path) == ("run", "run.sh")


def test_command_that_cannot_be_declared_is_refused(folder: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be declared"):
        try_command("'' etl", folder, "auto")
