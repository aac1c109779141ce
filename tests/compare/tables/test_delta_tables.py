"""Delta tables that a run wrote: the rows of the newest version, and never a file outside the table."""

from __future__ import annotations

import json
import shlex
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.compare.tables.delta_tables import export_delta, list_delta_tables
from pytest_golden.gateway.service import ExecutionGateway
from pytest_golden.gateway.write_set import WrittenFiles
from pytest_golden.manifest.model import DeclaredOutput
from pytest_golden.regression.model import ResultStatus
from tests.compare.conftest import Workspace, kinds

if TYPE_CHECKING:
    from pathlib import Path

duckdb: Any = import_module("duckdb")

SCHEMA = {"id": "long", "day": "date", "amount": "decimal(10,2)"}


class Table:
    """A Delta table that is written by hand, one version after another."""

    def __init__(self, folder: Path, *partitions: str, **configuration: str) -> None:
        self.folder = folder
        self.versions = 0
        (folder / "_delta_log").mkdir(parents=True)
        fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in SCHEMA.items()]
        self._metadata = {
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": list(partitions),
            "configuration": configuration,
        }

    def commit(self, *actions: dict[str, Any]) -> None:
        given = actions if self.versions else ({"metaData": self._metadata}, *actions)
        lines = "".join(f"{json.dumps(action)}\n" for action in ({"commitInfo": {"operation": "WRITE"}}, *given))
        (self.folder / "_delta_log" / f"{self.versions:020}.json").write_text(lines)
        self.versions += 1

    def add(self, path: str, select: str, **told: Any) -> dict[str, Any]:
        place = self.folder / path.replace("%20", " ")
        place.parent.mkdir(parents=True, exist_ok=True)
        duckdb.sql(f"COPY ({select}) TO '{place}' (FORMAT parquet)")
        return {"add": {"path": path, "partitionValues": {}, **told}}


def read(root: Path, before: Path | None = None) -> list[tuple[Any, ...]] | str:
    """Return the rows of the table `dim` in `wh`, or why it cannot be read."""
    paths = tuple(sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if not path.is_dir()))
    out = root.parent / "exported"
    out.mkdir(exist_ok=True)

    def find_file(path: str) -> Path | None:
        return before / path if before is not None and (before / path).is_file() else None

    written = WrittenFiles(root, paths, str, find_file=find_file)
    (table,) = export_delta(written, "wh", ["dim"], lambda _: (), out)
    return table.trouble or duckdb.sql(f"SELECT * FROM '{table.file}'").fetchall()


def row(number: int) -> str:
    return f"SELECT {number}::BIGINT AS id, DATE '2026-01-0{number}' AS day, {number}.5::DECIMAL(10, 2) AS amount"


def test_the_newest_version_counts(tmp_path: Path) -> None:
    table = Table(tmp_path / "v/wh/dim")
    table.commit(table.add("a.parquet", row(1)), table.add("sub%20dir/b.parquet", row(2)))
    table.commit({"remove": {"path": "a.parquet"}}, table.add("c.parquet", row(3)))
    rows = read(tmp_path / "v")
    assert [(one[0], str(one[1]), str(one[2])) for one in rows] == [
        (2, "2026-01-02", "2.50"),
        (3, "2026-01-03", "3.50"),
    ]


def test_values_of_partitions_are_columns_of_their_type(tmp_path: Path) -> None:
    table = Table(tmp_path / "v/wh/dim", "day")
    without = "SELECT 7::BIGINT AS id, 1::DECIMAL(10, 2) AS amount"
    table.commit(
        table.add("day=2026-01-02/a.parquet", without, partitionValues={"day": "2026-01-02"}),
        table.add("day=null/b.parquet", "SELECT 8::BIGINT AS id", partitionValues={"day": None}),
    )
    rows = read(tmp_path / "v")
    assert [(one[0], str(one[1]), one[2] is None) for one in rows] == [(7, "2026-01-02", False), (8, "None", True)]


def test_a_table_without_rows_has_its_columns(tmp_path: Path) -> None:
    Table(tmp_path / "v/wh/dim").commit()
    assert read(tmp_path / "v") == []


def test_files_that_were_there_before_the_run_count(tmp_path: Path) -> None:
    before, view = tmp_path / "project", tmp_path / "v"
    table = Table(before / "wh/dim")
    table.commit(table.add("a.parquet", row(1)))
    # What the run adds is in its view alone.
    (view / "wh/dim/_delta_log").mkdir(parents=True)
    table.folder = view / "wh/dim"
    table.commit(table.add("b.parquet", row(2)))
    assert len(read(view, before)) == 2
    assert read(view) == "one of its files is missing or cannot be read: No such file or directory"


def test_a_table_that_is_made_anew_has_nothing_of_the_old_one(tmp_path: Path) -> None:
    old = Table(tmp_path / "project/wh/dim")
    for number in (1, 2, 3):
        old.commit(old.add(f"{number}.parquet", row(number)))
    new = Table(tmp_path / "v/wh/dim")
    new.commit(new.add("new.parquet", row(9)))
    assert len(read(tmp_path / "v", tmp_path / "project")) == 1


@pytest.mark.parametrize(
    ("action", "told"),
    [
        ({"add": {"path": "../../secret.parquet"}}, "its log names files outside its folder"),
        ({"add": {"path": "/etc/secret.parquet"}}, "its log names files outside its folder"),
        ({"add": {"path": "%2Fetc%2Fsecret.parquet"}}, "its log names files outside its folder"),
        ({"add": {"path": "s3://bucket/a.parquet"}}, "its log names files outside its folder"),
        ({"add": {"path": "link.parquet"}}, "one of its files is missing or cannot be read: Too many levels"),
        ({"add": {"path": "gone.parquet"}}, "one of its files is missing or cannot be read: No such file"),
        ({"add": {"path": "a", "deletionVector": {"x": 1}}}, "it has deletion vectors, which are not read"),
        ({"add": 7}, "its log cannot be read: AttributeError"),
        (
            {"metaData": {"schemaString": '{"fields": []}', "partitionColumns": ["x"]}},
            "it has no columns",
        ),
        ({"add": {"path": "a.parquet", "partitionValues": 7}}, "its log cannot be read: TypeError"),
        ({"metaData": {"schemaString": "["}}, "its log cannot be read: JSONDecodeError"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(tmp_path: Path, action: dict[str, Any], told: str) -> None:
    table = Table(tmp_path / "v/wh/dim")
    duckdb.sql(f"COPY (SELECT 'nobody may see this' AS id) TO '{tmp_path}/secret.parquet' (FORMAT parquet)")
    (table.folder / "link.parquet").symlink_to(tmp_path / "secret.parquet")
    table.commit(action)
    found = read(tmp_path / "v")
    assert str(found).startswith(told)


def test_mapped_columns_and_gaps_are_said(tmp_path: Path) -> None:
    table = Table(tmp_path / "v/wh/dim", **{"delta.columnMapping.mode": "name"})
    table.commit()
    assert str(read(tmp_path / "v")).startswith("its columns are mapped to other names")
    table.versions = 2
    table.commit()
    assert read(tmp_path / "v") == "its log has gaps, or more than 100,000 versions"


def test_a_partition_that_is_no_column_is_said(tmp_path: Path) -> None:
    table = Table(tmp_path / "v/wh/dim", "x")
    table.commit(table.add("a.parquet", row(1), partitionValues={"x": "1"}))
    assert read(tmp_path / "v") == "its log cannot be read: KeyError"


def test_a_log_of_any_size_or_number_costs_little(tmp_path: Path) -> None:
    log = tmp_path / "v/wh/dim/_delta_log"
    log.mkdir(parents=True)
    (log / f"{'9' * 20}.json").write_text("{}\n")
    assert read(tmp_path / "v") == "its log has gaps, or more than 100,000 versions"
    (log / f"{'9' * 20}.json").unlink()
    with (log / f"{0:020}.json").open("wb") as file:
        file.truncate((64 << 20) + 1)
    assert read(tmp_path / "v") == "its log is larger than 64MiB"


def test_tables_are_found_by_their_logs_and_hidden_ones_are_passed_over() -> None:
    log = "_delta_log/00000000000000000000.json"
    paths = [
        f"wh/dim/{log}",
        f"wh/gold/fact/{log}",
        f"wh/_system/meta/{log}",
        f"x/_hidden/{log}",
        f"top/{log}",
        log,
        "a",
    ]
    assert list_delta_tables(paths) == {"": ["top"], "wh": ["dim"], "wh/gold": ["fact"]}


def delta_script(tmp_path: Path, name: str, select: str) -> str:
    table = Table(tmp_path / name / "wh/dim")
    table.commit(table.add(f"part-{name}.parquet", select))
    (tmp_path / name / "wh/notes.txt").write_text(name)
    code = f"import shutil; shutil.copytree({str(tmp_path / name)!r}, '.', dirs_exist_ok=True)"
    return f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}"


def test_delta_tables_of_a_folder_are_outputs(workspace: Workspace, tmp_path: Path) -> None:
    output = DeclaredOutput("wh", tables=("*",))
    mounts = {"mounts": ({"path": str(tmp_path), "mode": "read"},)}
    accepted = workspace.accept(workspace.declare(delta_script(tmp_path, "first", row(1)), output, **mounts))
    assert accepted.status is ResultStatus.PASSED
    assert [file.name for file in (workspace.baselines / "wh").iterdir()] == ["main.dim.parquet"]
    again = workspace.check(workspace.declare(delta_script(tmp_path, "again", row(1)), output, **mounts))
    assert again.status is ResultStatus.PASSED
    differing = workspace.check(workspace.declare(delta_script(tmp_path, "other", row(2)), output, **mounts))
    assert kinds(differing) == [("output_differs", "wh/main.dim.parquet")]
    absent = workspace.check(
        workspace.declare(delta_script(tmp_path, "last", row(1)), DeclaredOutput("wh", table="fact"), **mounts)
    )
    assert absent.reasons[0].message == "wh has not the table `fact`; it has main.dim"
    itself = DeclaredOutput("wh/dim", tables=("*",))
    told = workspace.check(workspace.declare(delta_script(tmp_path, "itself", row(1)), itself, **mounts))
    assert [reason.message for reason in told.reasons] == [
        "wh/dim is a Delta table: name the folder that holds it, `path: wh`, and `table: dim`"
    ]


@pytest.mark.parametrize("view", ["copy", "overlay"])
def test_a_file_that_the_run_removed_is_gone(workspace: Workspace, tmp_path: Path, view: str) -> None:
    before = Table(workspace.path / "wh/dim")
    before.commit(before.add("a.parquet", row(1)))
    given = tmp_path / "given"
    added = Table(given / "wh/dim")
    added.versions = 1
    added.commit(added.add("b.parquet", row(2)))
    code = f"import shutil; shutil.copytree({str(given)!r}, '.', dirs_exist_ok=True)"
    script = f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}"
    keys: dict[str, Any] = {"mounts": ({"path": str(given), "mode": "read"},)}
    output = DeclaredOutput("wh", table="dim")
    with ExecutionGateway(workspace.path, view=view) as gateway:
        viewed = Workspace(gateway, workspace.path)
        (whole,) = viewed.check(viewed.declare(script, output, **keys)).reasons
        (gone,) = viewed.check(viewed.declare(f"{script}; rm wh/dim/a.parquet", output, **keys)).reasons
    assert whole.kind == "baseline_missing"
    assert "one of its files is missing" in gone.message
