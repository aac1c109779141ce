"""kill -9 of the gate while a pipeline with daemons runs, again and again: how often nothing is left.

The pipeline double-forks daemons with sessions of their own that ignore every signal they can.

Run: python benchmarks/kills.py [COUNT]
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

PIPELINE = """
import os, signal, sys, time
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)", sys.argv[1]])
        os._exit(0)
open("started", "w").close()
time.sleep(600)
"""


def count_marked(mark: str) -> int:
    """Count the processes whose command line holds a mark."""
    found = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found += mark.encode() in (entry / "cmdline").read_bytes()
            except OSError:
                continue
    return found


def kill_once(view: str, namespaces: bool) -> bool:
    """Start a gate, wait for its daemons, kill it, and tell whether all of them are gone within 5 s."""
    mark = uuid.uuid4().hex
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "run.py").write_text(PIPELINE)
        (root / "golden_projects.yaml").write_text(f"golden_projects:\n  - {{path: run.py, args: [{mark}]}}\n")
        prefix = [] if namespaces else ["bwrap", "--unshare-user", "--disable-userns", "--dev-bind", "/", "/"]
        gate = subprocess.Popen(
            [
                *prefix,
                sys.executable,
                "-m",
                "pytest",
                "--golden",
                "-q",
                "-p",
                "no:cacheprovider",
                "--golden-sandbox",
                view,
            ],
            cwd=root,
            stdout=subprocess.DEVNULL,
        )
        limit = time.monotonic() + 30
        while count_marked(mark) < 4 and time.monotonic() < limit:
            time.sleep(0.05)
        started = count_marked(mark)
        os.kill(gate.pid, signal.SIGKILL)
        gate.wait()
        limit = time.monotonic() + 5
        while count_marked(mark) and time.monotonic() < limit:
            time.sleep(0.02)
        return started >= 4 and count_marked(mark) == 0


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    for view in ("overlay", "copy"):
        clean = sum(kill_once(view, namespaces=True) for _ in range(count))
        print(f"{view}: {clean} of {count} kills left no process")


if __name__ == "__main__":
    main()
