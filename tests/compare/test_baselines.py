"""Where baselines lie, and which outputs they belong to."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.compare.baselines import (
    ProjectBaselines,
    describe_kind,
    find_baselines_folder,
    find_unused_baselines,
    match_outputs,
)
from pytest_golden.manifest.model import DeclaredOutput, GoldenProjectConfig, Manifest


@pytest.fixture
def baselines(tmp_path: Path) -> ProjectBaselines:
    found = ProjectBaselines(tmp_path / "golden_baselines", "sales")
    (found.root / "out").mkdir(parents=True)
    (found.root / "out/a.csv").write_text("a")
    return found


def test_baselines_lie_beside_the_manifest_and_without_one_in_the_workspace_root() -> None:
    assert find_baselines_folder(Path("/a/b/golden_projects.yaml"), Path("/c")) == Path("/a/b/golden_baselines")
    assert find_baselines_folder(None, Path("/c")) == Path("/c/golden_baselines")


def test_baseline_is_found_or_missing(baselines: ProjectBaselines) -> None:
    assert baselines.find("out/a.csv") == baselines.root / "out/a.csv"
    assert baselines.find("out/b.csv") is None
    assert baselines.find("out/a.csv/below") is None
    assert baselines.find("out/" + "long" * 2000) is None


@pytest.mark.parametrize("leads_to", ["/etc/passwd", "../../other", "../../golden_baselines/other/x", "/nowhere"])
def test_symlink_out_of_the_folder_is_refused(baselines: ProjectBaselines, leads_to: str) -> None:
    (baselines.folder / "other").mkdir()
    (baselines.folder / "other/x").touch()
    (baselines.root / "link").symlink_to(leads_to)
    with pytest.raises(OSError, match="symlink that leads out of its folder"):
        baselines.find("link")


def test_symlinked_folder_on_the_way_is_refused_and_one_inside_is_followed(
    baselines: ProjectBaselines, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/a.csv").write_text("x")
    (baselines.root / "away").symlink_to(tmp_path / "elsewhere")
    (baselines.root / "near").symlink_to("out")
    with pytest.raises(OSError, match="leads out"):
        baselines.find("away/a.csv")
    assert baselines.find("near/a.csv") == baselines.root / "out/a.csv"
    assert baselines.list_paths() == ("away", "near", "out/a.csv")


@pytest.mark.parametrize("part", ["golden_baselines", "golden_baselines/sales"])
def test_folder_that_is_itself_a_symlink_is_refused(tmp_path: Path, part: str) -> None:
    real = tmp_path / "real"
    (real / "sales").mkdir(parents=True)
    for folder in (real, real / "sales"):
        (folder / "a.csv").touch()
    link = tmp_path / part
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(real)
    baselines = ProjectBaselines(tmp_path / "golden_baselines", "sales")
    with pytest.raises(OSError, match="leads out"):
        baselines.find("a.csv")
    assert baselines.list_paths() == ()
    with pytest.raises(OSError, match="is a symlink, and baselines are only written into real folders"):
        baselines.refuse_symlinks("a.csv")


def test_manifest_may_itself_lie_behind_a_symlink(tmp_path: Path, baselines: ProjectBaselines) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    seen = ProjectBaselines(tmp_path / "link/golden_baselines", "sales")
    assert seen.find("out/a.csv") == baselines.root / "out/a.csv"
    assert seen.list_paths() == ("out/a.csv",)
    seen.refuse_symlinks("out/a.csv")


def test_what_is_no_file_is_no_baseline(baselines: ProjectBaselines) -> None:
    os.mkfifo(baselines.root / "pipe")
    (baselines.root / "loop").symlink_to("loop")
    with pytest.raises(OSError, match=r"^it is a folder, not a file$"):
        baselines.find("out")
    with pytest.raises(OSError, match=r"^it is a named pipe, not a file$"):
        baselines.find("pipe")
    with pytest.raises(OSError, match=r".+"):
        baselines.find("loop")


def test_names_of_every_kind_are_listed(baselines: ProjectBaselines) -> None:
    for name in (b"two\nlines", b"b\xffd"):
        (baselines.root / os.fsdecode(name)).touch()
    assert baselines.list_paths() == ("b\udcffd", "out/a.csv", "two\nlines")
    assert ProjectBaselines(baselines.folder, "nobody").list_paths() == ()


def test_kinds_of_things_have_names(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("x")
    (tmp_path / "file").touch()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(tmp_path / "socket"))
    told = {name: describe_kind((tmp_path / name).lstat().st_mode) for name in ("link", "file", "socket", ".")}
    assert told == {"link": "a symlink", "file": "a file", "socket": "a socket", ".": "a folder"}
    assert describe_kind(Path("/dev/null").stat().st_mode) == "a device"


PATHS = st.lists(st.sampled_from(["a.csv", "b.csv", "out/a.csv", "out/deep/b.json", "c", "x y\nz"]), unique=True)
ENTRIES = st.lists(
    st.sampled_from(["*.csv", "**/*.csv", "out", "out/**", "**", "c", "out/*", "never/*"]).flatmap(
        lambda path: st.sampled_from([DeclaredOutput(path), DeclaredOutput(path, compare="exists")])
    ),
    max_size=4,
)


def test_patterns_stay_in_a_folder_or_cross_them() -> None:
    outputs = (DeclaredOutput("*.csv"), DeclaredOutput("out/**/*.json"), DeclaredOutput("logs"))
    written = ("a.csv", "deep/a.csv", "out/a.json", "out/x/y/b.json", "logs/1.txt", "other.txt")
    matched = match_outputs(outputs, written, ())
    assert [file.path for file in matched.files] == ["a.csv", "logs/1.txt", "out/a.json", "out/x/y/b.json"]
    assert matched.unmatched == ()


def test_file_is_held_to_every_entry_that_names_it() -> None:
    outputs = (DeclaredOutput("**/*.csv"), DeclaredOutput("out/a.csv", compare="exists", min_bytes=3))
    (file,) = match_outputs(outputs, ("out/a.csv",), ()).files
    assert file.entries == outputs
    assert file.needs_baseline


def test_baseline_of_what_was_not_written_is_expected_and_one_that_nothing_wants_is_unused() -> None:
    outputs = (DeclaredOutput("out/*.csv"), DeclaredOutput("seen/*", compare="exists"), DeclaredOutput("gone.txt"))
    kept = ("out/a.csv", "out/b.csv", "seen/x", "stale.txt")
    matched = match_outputs(outputs, ("out/a.csv", "seen/x"), kept)
    assert [(file.path, file.is_written) for file in matched.files] == [
        ("out/a.csv", True),
        ("out/b.csv", False),
        ("seen/x", True),
    ]
    assert [entry.path for entry in matched.unmatched] == ["gone.txt"]
    assert matched.unused == ("seen/x", "stale.txt")


@given(ENTRIES, PATHS, PATHS)
def test_every_entry_every_baseline_and_every_named_path_is_accounted_for(
    outputs: list[DeclaredOutput], written: list[str], kept: list[str]
) -> None:
    matched = match_outputs(outputs, written, kept)
    paths = [file.path for file in matched.files]
    assert paths == sorted(set(paths))
    compared = {file.path for file in matched.files if file.needs_baseline}
    assert sorted(kept) == sorted([*matched.unused, *(path for path in kept if path in compared)])
    for entry in outputs:
        assert (entry in matched.unmatched) != any(entry in file.entries for file in matched.files)
    for file in matched.files:
        assert file.is_written == (file.path in written)
        assert file.is_written or (file.needs_baseline and file.path in kept)


def test_baselines_of_projects_and_outputs_that_are_gone_are_named(tmp_path: Path) -> None:
    for path in ("sales/a.csv", "sales/old.csv", "renamed/a.csv", ".accepting-x/1", "stock/a.csv"):
        file = tmp_path / "golden_baselines" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    projects = (
        GoldenProjectConfig("sales", "s.py", outputs=(DeclaredOutput("a.csv"), DeclaredOutput("b.csv"))),
        GoldenProjectConfig("stock", "s.py"),
    )
    told = list(find_unused_baselines(Manifest(projects, tmp_path, path=tmp_path / "golden_projects.yaml")))
    assert told == [
        "golden_baselines/renamed belongs to no golden project: remove it, or rename it to the project's present name",
        "sales: golden_baselines/sales has baselines that no output is compared with (old.csv): --golden-update removes them",
        "stock: golden_baselines/stock has baselines that no output is compared with (a.csv): --golden-update removes them",
    ]


def test_without_baselines_nothing_is_unused(tmp_path: Path) -> None:
    assert list(find_unused_baselines(Manifest((), tmp_path))) == []
