"""Where gates are soaked: workspaces of small shell projects, their clocks, small disks, and a server that may go away."""

from __future__ import annotations

import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import threading
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from soaking.gates import Launcher

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.postgres import PostgresServer

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

_MOST_STEADY = 3
_SMALL_DISK = "48m"
_STOP_SECONDS = 10.0


class Clock:
    """A clock of a place's own, without the library the machine's."""

    def __init__(self, path: Path, library: Path | None) -> None:
        self._path = path
        self._library = library
        self._moved_ms = 0
        path.write_bytes(struct.pack("q", 0))

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to live by this clock."""
        return {} if self._library is None else {"LD_PRELOAD": str(self._library), "SOAK_CLOCK": str(self._path)}

    def jump(self, chance: random.Random) -> bool:
        """Set it forward or back, by a second up to a year and more; tell whether it can be set."""
        if self._library is None:
            return False
        self._moved_ms = chance.choice((-1, 1)) * int(10 ** chance.uniform(3, 10.5))
        with self._path.open("r+b", buffering=0) as file:
            file.write(struct.pack("q", self._moved_ms))
        return True


class Server:
    """PostgreSQL on this machine, stopped, killed and started again by whichever place wants to."""

    def __init__(self) -> None:
        self._server = PostgresServer()
        self.url = self._server.make_database()
        self._lock = threading.Lock()
        self._is_away = False
        self._looking = 0

    @contextmanager
    def at_peace(self) -> Iterator[None]:
        """Have it here, and nobody take it away."""
        with self._lock:
            self._looking += 1
        try:
            self.come_back()
            yield
        finally:
            with self._lock:
                self._looking -= 1

    def go(self, *, suddenly: bool) -> bool:
        """Take it away; tell whether it was there."""
        with self._lock:
            if self._is_away or self._looking:
                return False
            self._is_away = True
            main = psutil.Process(
                int((self._server.folder / "postmaster.pid").read_text(encoding="ascii").splitlines()[0])
            )
            everybody = [main, *main.children(recursive=True)]
            if not suddenly:
                # As `pg_ctl stop` does: connections are broken off, and what is open is rolled back.
                main.send_signal(signal.SIGINT)
                _, everybody = psutil.wait_procs(everybody, timeout=_STOP_SECONDS)
            for one in everybody:
                with suppress(psutil.NoSuchProcess):
                    one.kill()
            psutil.wait_procs(everybody, timeout=_STOP_SECONDS)
            return True

    def come_back(self) -> None:
        """Start it, unless it is there."""
        with self._lock:
            if self._is_away:
                self._server.start()
                self._is_away = False

    def remove(self) -> None:
        """Stop it for good."""
        self.come_back()
        self._server.remove()


class Place:
    """A workspace with its store. `disk` is the mount point of its small disk, `server` where its store is one of a server."""

    def __init__(self, name: str, root: Path, *, library: Path | None, server: Server | None = None) -> None:
        self.name = name
        self.folder = root / name
        self.server = server
        self.disk: Path | None = None
        self.location: str = str(self.folder / ".golden" / "golden.db")
        self.clock = Clock(root / f"{name}.clock", library)
        self._root = root
        self._launcher: Launcher | None = None
        self.projects: tuple[str, ...] = ()

    def mount(self, folder: Path) -> bool:
        """Put a small disk at a folder; tell whether this user may."""
        folder.mkdir(parents=True, exist_ok=True)
        asked = ["mount", "-t", "tmpfs", "-o", f"size={_SMALL_DISK}", "tmpfs", str(folder)]
        if os.getuid() or subprocess.run(asked, capture_output=True, check=False).returncode:
            return False
        self.disk = folder
        return True

    def make(self, chance: random.Random) -> None:
        """Write the projects, and make the process that gates are forked from."""
        steady = [f"steady{number}" for number in range(chance.randint(1, _MOST_STEADY))]
        declared = [{"name": name, "path": f"{name}/run.sh"} for name in (*steady, "turning", "broken", "needy")]
        declared[-1]["needs"] = ["broken"]  # type: ignore[assignment]
        self.projects = tuple(one["name"] for one in declared)
        for name in self.projects:
            (self.folder / name).mkdir(parents=True)
            self.write_script(name, passes=name != "broken")
        (self.folder / "reports").mkdir()
        (self.folder / "tmp").mkdir()
        (self.folder / "pytest.ini").write_text("[pytest]\n")
        (self.folder / "golden_projects.yaml").write_text(json.dumps({"version": 1, "golden_projects": declared}))
        store = [] if self.location.endswith(".golden/golden.db") else ["--golden-store", self.location]
        arguments = ["--golden", "-p", "no:cacheprovider", "-p", "no:randomly", *store]
        environment = {**self.clock.environment, "TMPDIR": str(self.folder / "tmp")}
        self._launcher = Launcher(self.folder, arguments, environment)

    def write_script(self, name: str, *, passes: bool) -> None:
        """Write a project's script."""
        text = f"echo {name} > out.txt\n" + ("" if passes else f"echo {name} is broken >&2; exit 3\n")
        path = self.folder / name / "run.sh"
        path.with_suffix(".new").write_text(text)
        path.with_suffix(".new").replace(path)

    @property
    def launcher(self) -> Launcher:
        """What starts gates here."""
        assert self._launcher is not None
        return self._launcher

    def list_spool(self) -> Sequence[Path]:
        """Return the spool files that wait."""
        return sorted((self.folder / ".golden").glob("spool/**/*.jsonl"))

    def fill_disk(self) -> bool:
        """Leave no room on the small disk."""
        if self.disk is None:
            return False
        with (self.disk / "filler").open("ab", buffering=0) as file, suppress(OSError):
            while True:
                file.write(b"\0" * (1 << 18))
        with (self.disk / "filler").open("ab", buffering=0) as file, suppress(OSError):
            while True:
                file.write(b"\0" * 512)
        return True

    def heal(self) -> None:
        """Make room on the disk, and have the server back."""
        if self.disk is not None:
            (self.disk / "filler").unlink(missing_ok=True)
        if self.server is not None:
            self.server.come_back()

    def at_peace(self) -> AbstractContextManager[None]:
        """Let nothing befall its server."""
        return nullcontext() if self.server is None else self.server.at_peace()

    def close(self, *, keeps: Path | None) -> None:
        """End what runs here; with `keeps` a copy of all that is here is kept there."""
        if self._launcher is not None:
            self._launcher.close()
        if keeps is not None:
            shutil.copytree(self.folder, keeps / self.name, symlinks=True, dirs_exist_ok=True)
            if self.disk is not None and not self.disk.is_relative_to(self.folder):
                shutil.copytree(self.disk, keeps / f"{self.name}-disk", dirs_exist_ok=True)
        if self.disk is not None:
            subprocess.run(["umount", "-l", str(self.disk)], check=False)


def build_clock(folder: Path) -> Path | None:
    """Compile the clock that can be moved; None without a compiler."""
    target = folder / "clock.so"
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return None
    source = Path(__file__).with_name("clock.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", str(target), str(source)], check=True)
    return target
