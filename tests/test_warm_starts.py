from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING

from tests.patience import wait_until

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """\
import os, sys
print(sys.argv, sys.stdin.read(), os.environ["TOLD"], os.getcwd(), oct(os.umask(0)))
sys.stderr.write(f"{sys.path[0]} {__name__}")
raise SystemExit(3)
"""


def test_what_starts_warm_is_as_what_starts_cold(tmp_path: Path, warm_starts: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "folder").mkdir()

    def start(python: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [python, "../script.py", "a b", "-x"],
            cwd=tmp_path / "folder",
            env={**os.environ, "TOLD": "now"},
            umask=0o27,
            input="typed",
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    warm = start(str(warm_starts / "python"))
    assert warm == start(sys.executable)
    assert warm[0] == 3


def test_flags_keep_their_meaning(tmp_path: Path, warm_starts: Path) -> None:
    (tmp_path / "conftest.py").write_text("import sys\nsys.stdout.write(f'{sys.argv[1:]} {sys.path}\\n')")
    words = ("-P", "-s", "-m", "pytest", "-q", "-p", "no:cacheprovider")
    told = [
        subprocess.run([python, *words], cwd=tmp_path, capture_output=True, text=True, check=False).stdout.splitlines()
        for python in (str(warm_starts / "python"), sys.executable)
    ]
    assert told[0][0] == told[1][0]


def test_signals_reach_what_starts_warm_and_a_kill_ends_it(tmp_path: Path, warm_starts: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import os, pathlib, time\npathlib.Path('pid').write_text(f'{os.getpid()} ')\ntime.sleep(300)"
    )
    for number in (signal.SIGTERM, signal.SIGKILL):
        (tmp_path / "pid").unlink(missing_ok=True)
        with subprocess.Popen([warm_starts / "python", "script.py"], cwd=tmp_path) as process:
            wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().endswith(" "))
            process.send_signal(number)
            assert process.wait() == -number
        worker = int((tmp_path / "pid").read_text())
        wait_until(partial(_is_gone, worker))


def _is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False
