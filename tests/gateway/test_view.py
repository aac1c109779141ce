from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_golden.gateway.view import CopyView, OverlayView, copy_tree
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
    run.prepared.view.write_kept(tmp_path / "kept")
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
