from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.cli.drafting import DraftedProject, write_draft
from pytest_golden.cli.trial import (
    draft_outputs,
    find_covered,
    generalise_writes,
    split_command,
    try_command,
    try_pipeline,
)
from pytest_golden.errors import SettingsError
from pytest_golden.gateway.write_set import WrittenFiles
from pytest_golden.manifest.model import DeclaredOutput
from pytest_golden.manifest.reader import parse_manifest

if TYPE_CHECKING:
    from pathlib import Path


def test_new_folder_is_one_pattern_and_files_in_an_old_one_are_named(folder: Path) -> None:
    (folder / "data").mkdir()
    written = ["a.txt", "data/new/deep/x.csv", "data/new/y.csv", "data/old.csv", "out/z.csv"]
    assert generalise_writes(written, folder) == ("a.txt", "data/new/**", "data/old.csv", "out/**")


def _draft(name: str, code: dict[str, int] | None) -> DraftedProject:
    return DraftedProject(name, f"{name}.py", "prefect", "", code=code)


def test_what_nine_tenths_of_are_read_by_others_is_covered() -> None:
    library = {"lib/a.py": 500, "lib/b.py": 400}
    drafted = [
        _draft("close", {**library, "close.py": 100}),
        _draft("far", {**library, "far.py": 101}),
        _draft("whole", {**library, "whole.py": 900}),
        _draft("own", {"own.py": 5}),
        _draft("empty", {}),
        _draft("unknown", None),
    ]
    assert find_covered(drafted) == {"close": 90}
    assert find_covered(drafted[1:3]) == {}


def test_two_that_read_the_same_are_one() -> None:
    assert find_covered([_draft(name, {"lib.py": 10}) for name in ("a", "b", "c")]) == {"a": 100, "b": 100}


def test_a_large_one_that_two_smaller_ones_cover_is_left_out() -> None:
    drafted = [
        _draft("all", {"x.py": 100, "y.py": 100}),
        _draft("left", {"x.py": 100, "left.py": 50}),
        _draft("right", {"y.py": 100, "right.py": 60}),
    ]
    assert find_covered(drafted) == {"all": 100}


def test_what_is_left_out_stays_covered_by_those_that_stay() -> None:
    small, large = _draft("small", {"a.py": 11, "b.py": 89}), _draft("large", {"b.py": 89, "c.py": 100, "d.py": 50})
    middle = _draft("middle", {"a.py": 11, "b.py": 89, "c.py": 100})
    # `large` reads 94 % of `middle`, but only 89 % of `small`, which is left out already.
    assert find_covered([middle, large]) == {"middle": 94}
    assert find_covered([small, middle, large]) == {"small": 100}


def test_many_files_in_one_folder_are_one_pattern(folder: Path) -> None:
    (folder / "data").mkdir()
    written = [f"data/{number}.csv" for number in range(11)] + [f"{number}.txt" for number in range(11)]
    assert generalise_writes(written, folder) == ("data/*", "*")


def test_words_are_split_as_a_shell_does() -> None:
    assert split_command("python -c 'a; b' \"c d\"") == ("python", "-c", "a; b", "c d")


def test_command_without_a_file_of_its_own_is_about_the_folder(folder: Path) -> None:
    result, project = try_command("true --fast", folder, "auto")
    assert result.status == "PASSED"
    assert (project.name, project.path, project.runner) == ("true", ".", "command")


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


# What SQLMesh does with its tables, as far as `golden init` sees it.
SQLMESH = """
import os
import duckdb

def cli():
    place = os.environ.get("SQLMESH__GATEWAYS__GOLDEN__CONNECTION__DATABASE", DEFAULT)
    with duckdb.connect(place) as connection:
        connection.execute("CREATE TABLE orders AS SELECT 1 AS id")
"""


@pytest.mark.parametrize(
    ("default", "output", "said"),
    [(":memory:", "golden.duckdb", "it keeps its tables in memory"), ("shop.duckdb", "shop.duckdb", "")],
)
def test_tables_that_an_engine_keeps_in_memory_are_put_into_a_file(
    folder: Path, default: str, output: str, said: str
) -> None:
    (folder / "config.yaml").write_text("model_defaults: {dialect: duckdb}\n")
    (folder / "sqlmesh" / "cli").mkdir(parents=True)
    (folder / "sqlmesh" / "cli" / "main.py").write_text(SQLMESH.replace("DEFAULT", repr(default)))
    program = folder / "bin" / "sqlmesh"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\n")
    program.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
        tried = try_pipeline(DraftedProject("shop", "config.yaml", "sqlmesh", "found"), folder, "auto")
    assert [(one.path, one.tables) for one in tried.outputs] == [(output, ("*",))]
    assert [told.startswith(said) for told in tried.told] == [True] * bool(said)
    (project,) = parse_manifest(write_draft([tried]), "golden_projects.yaml", folder).projects
    assert bool(project.set_env) is bool(said)


@pytest.mark.parametrize(
    ("files", "drafted"),
    [
        (["shop.duckdb", "target/manifest.json", "target/x.sql", "logs/dbt.log"], [{"dbt": ("*",)}]),
        (["shop.duckdb", "out/a.csv"], [{"path": "shop.duckdb", "tables": ("*",)}, {"path": "out/a.csv"}]),
        (["a.sqlite3", "b.db"], [{"path": "a.sqlite3", "tables": ("*",)}, {"path": "b.db", "tables": ("*",)}]),
        (["target/manifest.json", "empty.db", "link.db"], []),
    ],
)
def test_tables_of_databases_and_models_of_dbt_are_drafted(
    tmp_path: Path, files: list[str], drafted: list[dict[str, Any]]
) -> None:
    for path in files:
        place = tmp_path / path
        place.parent.mkdir(exist_ok=True)
        if path == "link.db":
            (tmp_path / "elsewhere").write_bytes(b"SQLite format 3\0")
            place.symlink_to(tmp_path / "elsewhere")
        else:
            place.write_bytes(
                b"\0" * 8 + b"DUCK"
                if "duckdb" in path or path == "b.db"
                else b"SQLite format 3\0"[: 99 * (path != "empty.db")]
            )
    written = WrittenFiles(tmp_path, tuple(sorted(files)), str)
    outputs = draft_outputs(written)
    assert [output for output in outputs if not output.path.startswith("target/")] == [
        DeclaredOutput(**one) for one in drafted
    ]
    text = write_draft([DraftedProject("a", "a.sh", "shell", "tried", outputs=outputs)])
    assert parse_manifest(text, "m.yaml", "/w").projects[0].outputs == outputs


@pytest.mark.parametrize(
    ("command", "name"),
    [("env printenv PATH", "env_printenv"), ("ls --all -l", "ls"), ("/bin/true 2026-01-01", "true")],
)
def test_a_command_without_a_file_is_called_by_its_words(folder: Path, command: str, name: str) -> None:
    assert try_command(command, folder, "copy")[1].name == name


@pytest.mark.parametrize(
    ("name", "text", "has_header"),
    [
        ("a.csv", "id,amount\n1,2\n", True),
        ("a.csv", "1,2\n3,4\n", False),
        ("a.tsv", "x7\t0\ttext\n", False),
        ("a.csv", "country,2019,2020\n", True),
        ("a.csv", "DE,2019,2019\n", False),
        ("a.csv", '"0","1","2"\n', True),
        ("a.csv", "0,1,3\n", False),
        ("a.csv", "year 2019,q1\n", True),
        ("a.csv", "", True),
        ("a.txt", "1,2\n", True),
    ],
)
def test_a_table_whose_first_line_has_a_number_has_no_header(
    tmp_path: Path, name: str, text: str, has_header: bool
) -> None:
    (tmp_path / name).write_text(text)
    (output,) = draft_outputs(WrittenFiles(tmp_path, (name,), str))
    assert (output.path, output.header) == (name, has_header)


def test_what_the_engine_tracks_beside_git_is_no_output(tmp_path: Path) -> None:
    for name in ("raw.csv", "out.csv"):
        (tmp_path / name).write_text("id\n")
    written = WrittenFiles(tmp_path, ("out.csv", "raw.csv"), str)
    assert [output.path for output in draft_outputs(written, {"raw.csv"})] == ["out.csv"]


@pytest.mark.parametrize(
    ("name", "content", "compare"),
    [
        ("customers", b"PAR1\x15\x00", "table"),
        ("test.out", b"chr1\t5\n", "text"),
        ("README", "été\n".encode(), "text"),
        ("model.bin", b"\x00\x01", None),
        ("latin.out", b"\xe9t\xe9\n", None),
        ("empty.done", b"", None),
        ("run.log", b"started\n", None),
        ("big.out", b"x" * (1 << 20), None),
    ],
)
def test_a_file_with_another_suffix_is_drafted_by_what_it_holds(
    tmp_path: Path, name: str, content: bytes, compare: str | None
) -> None:
    (tmp_path / name).write_bytes(content)
    drafted = draft_outputs(WrittenFiles(tmp_path, (name,), str))
    assert [(output.path, output.compare) for output in drafted] == ([] if compare is None else [(name, compare)])
