"""Copy-on-write views, and what of this machine they show."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_golden.gateway.view import (
    CopyView,
    HiddenPlaces,
    OverlayView,
    copy_tree,
    find_environment_folders,
    find_git_folders,
    find_interpreter_folders,
    find_linked_sources,
    find_program_folders,
    is_below,
    select_hidden,
    write_kept,
)
from pytest_golden.gateway.write_set import take_fingerprint
from tests.gateway.conftest import VIEWS

if TYPE_CHECKING:
    from tests.gateway.conftest import RunInView


def content(found: Path | None) -> str | None:
    return None if found is None else found.read_text()


@pytest.mark.parametrize("view", VIEWS)
def test_files_are_found_as_the_pipeline_left_them(view: str, run_in_view: RunInView, project_dir: Path) -> None:
    for name in ("kept", "changed", "gone", "becomes_folder"):
        (project_dir / name).write_text("old")
    for folder in ("dropped", "opaque", "deep/er"):
        (project_dir / folder).mkdir(parents=True)
        (project_dir / folder / "x").write_text("old")
    script = """
        echo new > created; echo changed > changed; rm gone; rm becomes_folder; mkdir becomes_folder; rm -r dropped
        rm -r opaque; mkdir opaque; echo y > opaque/y; ln -s kept link; echo z > deep/er/z
    """
    left = run_in_view(view, script).prepared.view
    assert content(left.find_file("kept")) == "old"
    assert content(left.find_file("created")) == "new\n"
    assert content(left.find_file("changed")) == "changed\n"
    assert content(left.find_file("opaque/y")) == "y\n"
    assert content(left.find_file("deep/er/x")) == "old"
    assert content(left.find_file("deep/er/z")) == "z\n"
    for absent in ("gone", "becomes_folder", "dropped/x", "opaque/x", "link", "never", "../workspace", "deep"):
        assert left.find_file(absent) is None


@pytest.mark.parametrize("view", VIEWS)
def test_what_was_written_is_kept_for_people(
    view: str, run_in_view: RunInView, project_dir: Path, tmp_path: Path
) -> None:
    (project_dir / "input").write_text("in")
    run = run_in_view(view, "mkdir -p a/b; echo x > a/b/c; chmod 700 a/b/c; ln -s /nowhere link; chmod 600 input")
    (tmp_path / "kept").mkdir()
    write_kept(run.prepared.view, tmp_path / "kept")
    kept = sorted(str(path.relative_to(tmp_path / "kept")) for path in (tmp_path / "kept").rglob("*"))
    assert kept == ["a", "a/b", "a/b/c", "input", "link"]
    assert (tmp_path / "kept/a/b/c").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "kept/link").readlink() == Path("/nowhere")


def test_copy_has_content_modes_times_and_links_and_nothing_special(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "closed" / "in").mkdir(parents=True)
    (source / "closed" / "in" / "data").write_text("x")
    os.utime(source / "closed" / "in" / "data", (1, 2))
    (source / "tool").touch(mode=0o755)
    (source / "link").symlink_to("gone")
    (source / "closed").chmod(0o500)
    os.mkfifo(source / "pipe")
    for left_out in ("__pycache__", ".git", "env"):
        (source / left_out).mkdir()
        (source / left_out / "pyvenv.cfg").touch()
        (source / left_out / "bin").mkdir()
    target = tmp_path / "target"
    copy_tree(source, target, take_fingerprint(str(source)))
    (source / "closed").chmod(0o700)
    assert sorted(path.name for path in target.iterdir()) == ["closed", "env", "link", "tool"]
    assert list((target / "env").iterdir()) == []
    assert (target / "closed").stat().st_mode & 0o777 == 0o500
    assert (target / "closed/in/data").read_text() == "x"
    assert (target / "closed/in/data").stat().st_mtime == 2
    assert (target / "tool").stat().st_mode & 0o777 == 0o755
    assert (target / "link").readlink() == Path("gone")


def test_folder_that_its_owner_may_not_write_is_writable_in_its_views(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir(mode=0o555)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    overlay = OverlayView(source, tmp_path / "one")
    copy = CopyView(source, tmp_path / "two", take_fingerprint(str(source)), sealed=False)
    assert overlay.upper.stat().st_mode & 0o777 == 0o755
    assert copy.copy.stat().st_mode & 0o777 == 0o755


def test_copy_is_seen_at_the_originals_place_only_in_a_seal(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    fingerprint = take_fingerprint(str(tmp_path / "source"))
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    sealed = CopyView(tmp_path / "source", tmp_path / "one", fingerprint, sealed=True)
    assert sealed.seen_at == str(tmp_path / "source")
    assert sealed.mount_arguments() == ["--bind", str(tmp_path / "one/view"), str(tmp_path / "source")]
    assert CopyView(tmp_path / "source", tmp_path / "two", fingerprint, sealed=False).seen_at == str(
        tmp_path / "two/view"
    )


def make_environment(folder: Path, interpreter: Path) -> None:
    (folder / "bin").mkdir(parents=True)
    (folder / "pyvenv.cfg").touch()
    (folder / "bin" / "python").symlink_to(interpreter)


def make_interpreter(folder: Path) -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "lib" / "python3.12").mkdir(parents=True)
    (folder / "lib" / "python3.12" / "os.py").touch()
    (folder / "bin" / "python3.12").touch(mode=0o755)
    return folder / "bin" / "python3.12"


def test_path_is_below_itself_and_its_folders_only() -> None:
    assert is_below("/a/b", "/a/b")
    assert is_below("/a/b/c", "/a/b")
    assert is_below("/a", "/")
    assert not is_below("/a/bc", "/a/b")


def test_hidden_paths_are_existing_ones_below_a_mask_without_those_inside_others(tmp_path: Path) -> None:
    for name in ("mask/tool/bin", "mask/other", "open/bin"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to("mask/other")
    mask = str(tmp_path / "mask")
    asked = [f"{mask}/tool/bin", f"{mask}/tool", f"{tmp_path}/link", f"{tmp_path}/open/bin", f"{mask}/gone", mask]
    assert select_hidden(asked, [mask]) == (f"{mask}/other", f"{mask}/tool")


def test_interpreter_is_its_prefixes_and_its_path() -> None:
    folders = set(find_interpreter_folders())
    assert {sys.prefix, sys.base_prefix} <= folders
    assert {entry for entry in sys.path if entry.startswith(os.sep)} <= folders


def test_editable_installs_are_followed(tmp_path: Path) -> None:
    packages = tmp_path / "site-packages"
    packages.mkdir()
    (packages / "one.pth").write_text("/work/one/src\nimport sys\nrelative\n")
    (packages / "__editable___two_finder.py").write_text("MAPPING = {'two': '/work/two/src/two'}\nX = 'not/absolute'\n")
    (packages / "ordinary.py").write_text("'/work/three'")
    assert sorted(find_linked_sources(packages)) == ["/work/one/src", "/work/two/src/two"]
    assert list(find_linked_sources(tmp_path / "gone")) == []


def test_environment_leads_to_its_interpreter_and_its_editable_installs(tmp_path: Path) -> None:
    interpreter = make_interpreter(tmp_path / "base")
    make_environment(tmp_path / "env", interpreter)
    packages = tmp_path / "env" / "lib" / "python3.12" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "x.pth").write_text("/work/x\n")
    found = set(find_environment_folders(tmp_path / "env"))
    assert found == {str(tmp_path / "env"), str(tmp_path / "base"), "/work/x"}


def test_programs_on_path_bring_the_environments_their_links_lead_to(tmp_path: Path) -> None:
    interpreter = make_interpreter(tmp_path / "base")
    make_environment(tmp_path / "pipx" / "dbt", interpreter)
    (tmp_path / "pipx" / "dbt" / "bin" / "dbt").touch()
    local = tmp_path / ".local" / "bin"
    local.mkdir(parents=True)
    (local / "dbt").symlink_to("../../pipx/dbt/bin/dbt")
    (local / "broken").symlink_to("nowhere")
    (tmp_path / "pyenv" / "shims").mkdir(parents=True)
    path = os.pathsep.join([str(local), str(tmp_path / "gone"), str(tmp_path / "pyenv" / "shims")])
    found = set(find_program_folders(path))
    assert str(tmp_path / ".local") not in found
    assert str(tmp_path / "pyenv") in found
    assert {str(local), str(tmp_path / "pipx/dbt/bin/dbt"), str(tmp_path / "pipx/dbt"), str(tmp_path / "base")} <= found


def test_many_links_into_one_environment_bring_it_once(tmp_path: Path) -> None:
    interpreter = make_interpreter(tmp_path / "base")
    make_environment(tmp_path / "dbt", interpreter)
    local = tmp_path / ".local" / "bin"
    local.mkdir(parents=True)
    for name in ("dbt", "dbt-1", "dbt-2"):
        (tmp_path / "dbt" / "bin" / name).touch()
        (local / name).symlink_to(tmp_path / "dbt" / "bin" / name)
    found = list(find_program_folders(os.pathsep.join([str(local), str(local)])))
    assert len(found) == len(set(found))
    assert str(tmp_path / "dbt") in found


def test_interpreter_on_path_brings_its_own_prefix(tmp_path: Path) -> None:
    make_interpreter(tmp_path / "base")
    assert str(tmp_path / "base") in set(find_program_folders(str(tmp_path / "base" / "bin")))


def test_worktree_leads_to_the_repository(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        identity = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", tmp_path / "repo", *identity, *words], check=True, capture_output=True)

    (tmp_path / "repo").mkdir()
    git("init")
    git("commit", "--allow-empty", "-m", "first")
    git("worktree", "add", str(tmp_path / "tree"))
    found = set(find_git_folders(tmp_path / "tree"))
    assert found == {str(tmp_path / "repo/.git"), str(tmp_path / "repo/.git/worktrees/tree")}
    assert list(find_git_folders(tmp_path / "repo")) == []
    assert list(find_git_folders(tmp_path)) == []


def test_git_file_without_a_common_folder_leads_to_its_own(tmp_path: Path) -> None:
    (tmp_path / "modules").mkdir()
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / ".git").write_text("gitdir: ../modules\n")
    assert list(find_git_folders(tmp_path / "sub")) == [str(tmp_path / "modules")]
    (tmp_path / "sub" / ".git").write_text("something else\n")
    assert list(find_git_folders(tmp_path / "sub")) == []


def hide(folder: Path, *shown: Path) -> HiddenPlaces:
    return HiddenPlaces((str(folder),), tuple(map(str, shown)))


def test_only_what_is_there_and_not_shown_again_is_hidden(tmp_path: Path) -> None:
    for name in ("kept", "lost"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "data.csv").touch()
    places = hide(tmp_path, tmp_path / "kept")
    assert places.hides(str(tmp_path / "lost" / "data.csv"))
    assert not places.hides(str(tmp_path / "kept" / "data.csv"))
    assert not places.hides(str(tmp_path / "lost" / "other.csv"))
    assert not places.hides(str(tmp_path))
    assert hide(tmp_path, tmp_path.parent).hides(str(tmp_path / "lost" / "data.csv"))


def test_missing_files_are_explained_from_the_error_that_names_them(tmp_path: Path) -> None:
    (tmp_path / "orders 1.csv").touch()
    (tmp_path / "orders.csv").touch()
    texts = [
        f"read {tmp_path}/orders.csv\n" * 10,
        f"FileNotFoundError: [Errno 2] No such file or directory: '{tmp_path}/orders 1.csv'\n",
        f"cat: {tmp_path}/orders.csv: No such file or directory\n/nowhere/else not found\n{tmp_path}/none not found",
    ]
    told = hide(tmp_path).explain_missing_files(*texts)
    assert told == tuple(
        f"{path} is on this machine, but a pipeline sees a private {tmp_path}: "
        f"declare `mounts: [{{path: {path}, mode: read}}]`"
        for path in (f"{tmp_path}/orders 1.csv", f"{tmp_path}/orders.csv")
    )
    assert hide(tmp_path).explain_missing_files(texts[0]) == ()
    assert HiddenPlaces().explain_missing_files(*texts) == ()


def test_program_is_explained_by_itself_or_by_its_interpreter(tmp_path: Path) -> None:
    make_environment(tmp_path / "venv", make_interpreter(tmp_path / "python"))
    (tmp_path / "seen").mkdir()
    script = tmp_path / "seen" / "etl"
    script.write_text(f"#!{tmp_path}/venv/bin/python\nprint()\n")
    script.chmod(0o755)
    places = hide(tmp_path, tmp_path / "seen")
    told = places.explain_missing_program("etl", str(tmp_path / "seen"))
    assert told is not None
    assert told.startswith(f"{tmp_path}/venv/bin/python is on this machine, but a pipeline sees a private {tmp_path}: ")
    assert f"declare `venv: {tmp_path}/venv` or `mounts: [{{path: {tmp_path}/venv, mode: read}}]`" in told
    assert places.explain_missing_program("/no/such/tool", "") is None
    assert places.explain_missing_program("ls", "/usr/bin:/bin") is None
    assert HiddenPlaces().explain_missing_program("etl", str(tmp_path / "seen")) is None


def test_links_are_resolved_as_the_system_resolves_them(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "real").touch()
    (tmp_path / "alias").symlink_to("tools", target_is_directory=True)
    links = {"one": "real", "two": "../alias/one", "lost": "gone", "circle": "circle", "there": "back", "back": "there"}
    for name, target in links.items():
        (tools / name).symlink_to(target)
    asked = [
        str(folder / name) for folder in (tools, tmp_path / "alias") for name in (*links, "", ".", "..", "../alias/two")
    ]
    assert select_hidden(asked, [os.path.realpath(tmp_path)]) == (os.path.realpath(tools),)
    for path in asked:
        real = Path(os.path.realpath(path))
        found = (str(real),) if real.exists() and real != tmp_path else ()
        assert select_hidden([path], [os.path.realpath(tmp_path)]) == found
