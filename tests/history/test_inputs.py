from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.history import inputs as reading
from pytest_golden.history.checkout import Checkout, read_checkout
from pytest_golden.history.inputs import (
    IgnoredThen,
    InputChange,
    InputReader,
    RunInputs,
    compare_inputs,
    describe_ignored,
    fold_files,
    list_reports,
)
from pytest_golden.manifest.model import GoldenProjectConfig
from tests.repository import git

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SALES = GoldenProjectConfig("sales", "etl/load.py")
KIB = 1024


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A checkout with a project whose data git ignores."""
    folder = tmp_path / "work"
    (folder / "etl" / "data").mkdir(parents=True)
    (folder / "etl" / "load.py").write_text("1")
    (folder / ".gitignore").write_text("data/\n*.csv\n.env\n/other/\n")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    (folder / "etl" / "data" / "orders.csv").write_text("1,2")
    return folder


def read(work: Path, project: GoldenProjectConfig = SALES, *others: GoldenProjectConfig, **environ: str) -> Any:
    return InputReader(work, read_checkout(work), [project, *others], environ=environ).read(project)


def files(work: Path, project: GoldenProjectConfig = SALES, *others: GoldenProjectConfig) -> list[str]:
    return sorted(read(work, project, *others)["files"])


def changes(before: Any, now: Any) -> list[str]:
    return [str(one) for one in compare_inputs(RunInputs(before), RunInputs(now))]


def test_what_git_ignores_in_the_projects_folder_is_an_input_and_what_it_holds_is_none(work: Path) -> None:
    (work / "etl" / "top.csv").touch()
    (work / "etl" / "new.py").touch()
    (work / "outside.csv").touch()
    found = read(work)
    assert sorted(found["files"]) == ["etl/data/orders.csv", "etl/top.csv"]
    assert (found["holds"], found["folder"], found["is_all"]) == (True, "etl/", True)
    assert json.loads(json.dumps(found)) == found


def test_same_content_is_the_same_in_another_checkout_and_at_another_time(work: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    git(tmp_path, "clone", "-q", str(work), str(other))
    (other / "etl" / "data").mkdir()
    (other / "etl" / "data" / "orders.csv").write_text("1,2")
    os.utime(other / "etl" / "data" / "orders.csv", (1, 1))
    before = read(work)
    assert read(other) == before
    (other / "etl" / "data" / "orders.csv").write_text("1,3")
    assert changes(before, read(other)) == ["etl/data/orders.csv changed (3B, other content)"]


def test_large_file_is_known_by_its_size_and_parts_of_it(work: Path) -> None:
    large = work / "etl" / "data" / "orders.csv"
    large.write_bytes(bytes(300 * 1024))
    before = read(work)
    with large.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"1")
    assert changes(before, read(work)) == ["etl/data/orders.csv changed (300KiB, other content)"]


def test_after_four_mebibytes_files_are_read_in_part(work: Path) -> None:
    for number in range(20):
        (work / "etl" / "data" / f"{number:02}.bin").write_bytes(bytes(250 * 1024))
    marks = [name[0] for path, (_, name) in read(work)["files"].items() if path.endswith(".bin")]
    assert (marks.count("w"), marks.count("p")) == (16, 4)


def test_caches_environments_and_logs_are_no_inputs(work: Path) -> None:
    data = work / "etl" / "data"
    for name in ("__pycache__/a.pyc", "node_modules/a.js", "venv/pyvenv.cfg", "venv/bin/python", "run.log", "a.csv~"):
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).touch()
    (work / ".gitignore").write_text("data/\n*.log\n__pycache__/\n")
    (work / "etl" / "__pycache__").mkdir()
    (work / "etl" / "__pycache__" / "x.pyc").touch()
    (work / "etl" / "more.log").touch()
    assert files(work) == ["etl/data/orders.csv"]


def test_folder_of_many_files_is_one_input(work: Path) -> None:
    for number in range(50):
        (work / "etl" / "data" / f"{number}.parquet").write_text("x")
    before = read(work)
    assert before["files"]["etl/data/"][::2] == [53, 51]
    (work / "etl" / "data" / "50.parquet").write_text("xx")
    assert changes(before, read(work)) == ["etl/data/ changed (51 files, 53B -> 52 files, 55B)"]


def test_not_all_of_very_many_is_looked_at(work: Path) -> None:
    for number in range(6):
        (work / "etl" / "data" / str(number)).mkdir()
        for name in range(30):
            (work / "etl" / "data" / str(number) / str(name)).touch()
    found = read(work)
    assert (len(found["files"]), found["is_all"]) == (100, False)
    for number in range(120):
        (work / "etl" / f"{number}.csv").touch()
    assert not read(work)["is_all"]


def test_so_many_names_are_listed_and_no_more(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_golden.history.inputs._MOST_LOOKED_AT", 50)
    for number in range(51):
        (work / "etl" / "data" / str(number)).touch()
    assert not read(work)["is_all"]


def test_what_may_be_a_secret_is_not_read(work: Path) -> None:
    for name in (".env", "data/.pgpass", "data/service.key", "data/api_token.csv", "data/profiles.yml"):
        (work / "etl" / name).write_text("s3cret")
    found = read(work)["files"]
    assert {path: mark for path, mark in found.items() if path != "etl/data/orders.csv"} == {
        f"etl/{name}": [6, None]
        for name in (".env", "data/.pgpass", "data/service.key", "data/api_token.csv", "data/profiles.yml")
    }


def test_passed_files_and_variables_are_known_without_what_they_hold(work: Path, tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text("password=hunter2")
    passed = (str(tmp_path / "credentials"), "../is-not-there")
    project = GoldenProjectConfig("sales", "etl/load.py", pass_files=passed, pass_env=("DB_URL", "TOKEN"))
    found = read(work, project, DB_URL="postgres://u:hunter2@h/db")
    assert found["passed"] == {str(tmp_path / "credentials"): [16, None]}
    assert found["variables"] == {"DB_URL": True, "TOKEN": False}


def test_mounts_are_inputs_unless_a_project_writes_there(work: Path, tmp_path: Path) -> None:
    for name in ("shared/rates.csv", "shared/out/x.csv", "written/x.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    mounts = [{"path": "../shared", "mode": "copy"}, {"path": "../written", "mode": "write"}]
    project = GoldenProjectConfig("sales", "etl/load.py", mounts=mounts)  # type: ignore[arg-type]
    other = GoldenProjectConfig("out", "etl/load.py", mounts=[{"path": "../shared/out", "mode": "write"}])  # type: ignore[arg-type]
    assert files(work, project, other) == ["../shared/rates.csv", "etl/data/orders.csv"]
    assert "../shared/out/x.csv" in files(work, project)


def test_mount_in_the_checkout_holds_only_what_git_ignores(work: Path) -> None:
    (work / "other").mkdir()
    (work / "other" / "rates").write_text("1")
    mounts = [{"path": "etl"}, {"path": "other/rates"}, {"path": "other"}]
    project = GoldenProjectConfig("x", "etl", project_dir="etl", mounts=mounts)  # type: ignore[arg-type]
    assert files(work, project) == ["etl/data/orders.csv", "other/rates"]


def test_outside_git_all_files_are_inputs(tmp_path: Path) -> None:
    (tmp_path / "load.py").write_text("1")
    (tmp_path / "to").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    found = InputReader(tmp_path, Checkout(), []).read(GoldenProjectConfig("sales", "load.py"))
    assert (found["holds"], found["folder"], sorted(found["files"])) == (False, "", ["load.py", "to"])
    (tmp_path / "to").unlink()
    (tmp_path / "to").symlink_to("anywher")
    later = InputReader(tmp_path, Checkout(), []).read(GoldenProjectConfig("sales", "load.py"))
    assert changes(found, later) == ["to changed (7B, other content)"]
    for number in range(60):
        (tmp_path / f"{number}.sql").touch()
    many = InputReader(tmp_path, Checkout(), []).read(GoldenProjectConfig("sales", "load.py"))
    assert list(many["files"]) == ["./"]


def test_checkout_that_git_would_not_describe_tells_of_mounts_alone(work: Path) -> None:
    found = InputReader(work, Checkout(root=work), [SALES], environ={}).read(SALES)
    assert found["files"] == {}


def test_what_cannot_be_read_is_known_by_its_size_or_not_at_all(work: Path) -> None:
    project = GoldenProjectConfig("x", "etl/load.py", mounts=[{"path": "../not-there"}])  # type: ignore[arg-type]
    checkout = read_checkout(work)
    reader = InputReader(work, checkout, [project], environ={})
    (work / "etl" / "data" / "orders.csv").chmod(0)
    if not os.access(work / "etl" / "data" / "orders.csv", os.R_OK):
        assert reader.read(project)["files"] == {"etl/data/orders.csv": [3, None]}
    (work / "etl" / "data" / "orders.csv").unlink()
    (work / "etl" / "data").rmdir()
    assert reader.read(project)["files"] == {}


def test_file_that_two_projects_have_is_read_once(work: Path) -> None:
    reader = InputReader(work, read_checkout(work), [SALES], environ={})
    first = reader.read(SALES)
    data = work / "etl" / "data" / "orders.csv"
    assert reader.read(SALES) == first
    data.write_text("other")
    assert reader.read(SALES)["files"]["etl/data/orders.csv"][0] == 5


def test_reports_of_the_session_are_no_inputs(work: Path) -> None:
    (work / "etl" / "out.csv").touch()
    (work / "etl" / "data" / "out.json").touch()
    reports = [None, work / "etl" / "out.csv", work / "etl" / "data" / "out.json"]
    found = InputReader(work, read_checkout(work), [SALES], reports).read(SALES)
    assert list(found["files"]) == ["etl/data/orders.csv"]


def inputs(files: dict[str, Any] | None = None, written: tuple[str, ...] = (), **more: Any) -> RunInputs:
    plain = {"holds": True, "folder": "etl/", "is_all": True, "files": files or {}, "passed": {}, "variables": {}}
    return RunInputs({**plain, **more}, written)


def told(before: RunInputs, now: RunInputs, *known: str) -> list[str]:
    return [str(one) for one in compare_inputs(before, now, known)]


def test_size_content_arrival_and_loss_of_a_file_are_told() -> None:
    before = inputs({"a.csv": [12 * KIB, "w1"], "b.csv": [KIB, "w1"], "c.csv": [5, "w1"], "d.csv": [KIB * KIB, "p1"]})
    now = inputs({"a.csv": [14 * KIB, "w2"], "b.csv": [KIB, "w2"], "d.csv": [KIB * KIB + 3, "p2"], "e.csv": [9, "w"]})
    assert told(before, now) == [
        "a.csv changed (12KiB -> 14KiB)",
        "b.csv changed (1KiB, other content)",
        "c.csv is gone (5B)",
        "d.csv changed (1,048,576 -> 1,048,579 bytes)",
        "e.csv is new (9B)",
    ]
    assert told(now, now) == []


@pytest.mark.parametrize(("before", "now"), [("w1", "p1"), ("w1", None), (None, "w1"), (None, None), ("p1", "p1")])
def test_contents_that_cannot_be_compared_are_no_change(before: str | None, now: str | None) -> None:
    assert told(inputs({"a": [1, before]}), inputs({"a": [1, now]})) == []


def test_where_not_all_was_seen_nothing_is_new_and_nothing_gone() -> None:
    before, now = inputs({"a": [1, "w1"], "b": [1, "w1"]}, is_all=False), inputs({"a": [2, "w2"], "c": [1, "w1"]})
    assert told(before, now) == ["a changed (1B -> 2B)"]


def test_what_a_run_wrote_and_what_is_told_already_is_no_input() -> None:
    before = inputs({"etl/out.csv": [1, "w1"], "etl/in.csv": [1, "w1"], "x.sql": [1, "w1"]})
    now = inputs({"etl/out.csv": [2, "w2"], "etl/in.csv": [2, "w2"], "x.sql": [2, "w2"]})
    wrote = RunInputs(now.found, ("out.csv",))
    assert told(before, wrote, "x.sql") == ["etl/in.csv changed (1B -> 2B)"]
    assert told(RunInputs(before.found, ("out.csv",)), now, "x.sql") == ["etl/in.csv changed (1B -> 2B)"]


def test_folder_that_a_run_wrote_into_is_no_input() -> None:
    before, now = inputs({"etl/parts/": fold_files({"1": 1})}), inputs({"etl/parts/": fold_files({"1": 2})})
    assert told(before, now) == ["etl/parts/ changed (1 files, 1B -> 1 files, 2B)"]
    assert told(before, RunInputs(now.found, ("parts/1",))) == []
    top = inputs({"./": fold_files({"1": 1})}, folder="")
    changed = inputs({"./": fold_files({"1": 2})}, folder="")
    assert told(top, RunInputs(changed.found, ("1",))) == []


def test_folder_of_many_files_is_compared_with_its_single_files() -> None:
    names = {f"{number}.parquet": 10 for number in range(3)}
    single = inputs({f"parts/{name}": [size, "w"] for name, size in names.items()} | {"parts/x/y": [1, "w"]})
    assert told(single, inputs({"parts/": fold_files(names), "parts/x/y": [1, "w"]})) == []
    more = inputs({"parts/": fold_files({**names, "9.parquet": 5}), "parts/x/y": [1, "w"]})
    assert told(single, more) == ["parts/ changed (3 files, 30B -> 4 files, 35B)"]
    assert told(more, single) == ["parts/ changed (4 files, 35B -> 3 files, 30B)"]
    assert told(inputs(), more) == ["parts/ is new (4 files, 35B)", "parts/x/y is new (1B)"]
    renamed = {**dict(list(names.items())[1:]), "0.csv": 10}
    assert told(inputs({"parts/": fold_files(names)}), inputs({"parts/": fold_files(renamed)})) == [
        "parts/ changed (3 files, 30B, other files)"
    ]


def test_passed_files_are_told_by_size_and_variables_by_being_set() -> None:
    before = inputs(passed={"~/.pgpass": [10, None], "~/key": [1, None]}, variables={"A": True, "B": False, "C": True})
    now = inputs(passed={"~/.pgpass": [12, None]}, variables={"A": False, "B": True, "C": True, "D": True})
    assert told(before, now) == [
        "~/.pgpass changed (10B -> 12B)",
        "~/key is gone (1B)",
        "A is not set any more",
        "B is set now",
    ]
    assert compare_inputs(before, now)[-1] == InputChange("variable", "B", "added")


@pytest.mark.parametrize("unknown", [RunInputs(), RunInputs({}), inputs({"a": [1, "w"]}, holds=False)])
def test_nothing_is_told_where_one_side_is_not_known(unknown: RunInputs) -> None:
    known = inputs({"a": [2, "w2"]})
    assert told(unknown, known) == told(known, unknown) == []


def test_whatever_a_store_holds_is_read() -> None:
    write_set = {"created": ["a"], "changed": ["b"], "removed": None}
    assert RunInputs.read({"files": {}}, write_set) == RunInputs({"files": {}}, ("a", "b"))
    assert RunInputs.read("text", [1]) == RunInputs()
    assert not RunInputs.read({}, None).is_known
    assert told(RunInputs({"files": []}), RunInputs({"files": {"a": [1, "w"]}, "is_all": True})) == []


@given(st.dictionaries(st.text(min_size=1), st.integers(0, 10**12), min_size=1))
def test_folder_is_told_by_names_and_sizes_in_any_order(sizes: dict[str, int]) -> None:
    folded = fold_files(dict(reversed(sizes.items())))
    assert folded == fold_files(sizes)
    assert (folded[0], folded[2]) == (sum(sizes.values()), len(sizes))
    assert folded[1] != fold_files({**sizes, "more than these": 1})[1]


def keep_all(names: Sequence[str]) -> Sequence[str]:
    return names


def test_names_are_noted_without_what_is_nobodys_input(tmp_path: Path) -> None:
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "pyvenv.cfg").touch()
    (tmp_path / "tests.xml").write_text("<testsuites>")
    ignored = ("a.csv", "data/", "x.log", "lib/__pycache__/", ".golden/", "env/", "tests.xml")
    described = describe_ignored(Checkout(root=tmp_path, ignored=ignored), keep_all)
    assert described == {"names": ["a.csv", "data/"], "is_all": True}
    assert IgnoredThen.read(described) == IgnoredThen(("a.csv", "data/"))


def test_of_no_checkout_nothing_is_noted(tmp_path: Path) -> None:
    assert describe_ignored(Checkout(), keep_all) is None
    assert describe_ignored(Checkout(root=tmp_path, ignored=()), lambda _: None) is None
    assert [IgnoredThen.read(plain) for plain in (None, {}, {"names": "a"}, ["a"])] == [None] * 4


def test_no_more_names_are_noted_than_the_store_should_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_MOST_NAMES", 2)
    of_two, of_three = (
        describe_ignored(Checkout(root=tmp_path, ignored=names), keep_all) for names in (("a", "b"), ("a", "b", "c"))
    )
    assert of_two == {"names": ["a", "b"], "is_all": True}
    assert of_three == {"names": ["a", "b"], "is_all": False}


@pytest.mark.parametrize(
    ("name", "text", "is_report"),
    [
        ("a.xml", '<?xml version="1.0"?>\n<testsuites tests="1">', True),
        ("a.xml", "<testsuite name='x'>", True),
        ("a.xml", "<coverage>", True),
        ("a.xml", "<data>", False),
        ("a.json", '{\n "schema_version": 1,\n "final_status": "passed"', True),
        ("a.json", '{"final_status": 1}', False),
        ("a.html", "<!DOCTYPE html>", True),
        ("a.csv", "1", False),
        ("x/__pycache__/a.pyc", "", True),
    ],
)
def test_report_is_known_by_how_it_begins(tmp_path: Path, name: str, text: str, is_report: bool) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text(text)
    assert list_reports(tmp_path, [name]) == ((name,) if is_report else ())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="makes a pipe")
def test_pipe_or_file_that_is_gone_is_none_and_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.xml")
    assert list_reports(tmp_path, ["a.xml", "gone.json"]) == ()
