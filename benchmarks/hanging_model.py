"""How long a language model that hangs, drips or fails holds the end of a gate, over the same gate without a model.

python benchmarks/hanging_model.py [ROUNDS]
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import TYPE_CHECKING

from pytest_golden.learning.lessons.model import LessonKind, SkillMemory
from pytest_golden.learning.lessons.service import Lessons
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

LESSONS = 8
COMMAND = [sys.executable, "-m", "pytest", "--golden", "--golden-sandbox=copy", "-q"]


def hang(connection: socket.socket, over: Event) -> None:  # noqa: ARG001 - called like the others
    over.wait(60)


def drip(connection: socket.socket, over: Event) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
    while not over.wait(1):
        connection.sendall(b" ")


def fail(connection: socket.socket, over: Event) -> None:  # noqa: ARG001 - called like the others
    connection.sendall(b"HTTP/1.1 500 Oops\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")


BEHAVIOURS: dict[str, Callable[[socket.socket, Event], None]] = {"hangs": hang, "drips": drip, "500s": fail}


def serve(listener: socket.socket, behave: Callable[[socket.socket, Event], None], over: Event) -> None:
    def answer(connection: socket.socket) -> None:
        with connection:
            try:
                connection.recv(65536)
                behave(connection, over)
            except OSError:
                return

    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        Thread(target=answer, args=(connection,), daemon=True).start()


def prepare(folder: Path) -> None:
    """Write a workspace whose store knows lessons that a model has not worded."""
    (folder / "run.sh").write_text("echo done\n")
    (folder / "golden_projects.yaml").write_text("golden_projects:\n  - {name: sales, path: run.sh}\n")
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / ".golden").mkdir()
    with Store.open(folder / ".golden" / "golden.db") as store:
        for number in range(LESSONS):
            named = "abcdefgh"[number] * 3
            skill = SkillMemory(
                lesson=f"the fix changed SQL, after: no such column {named}",
                kind=LessonKind.PROJECT_FIX,
                evidence={"error": f"no such column {named}", "project": f"sales_{named}"},
            )
            Lessons(store).add(skill, "golden")


def run_gate(folder: Path, address: str | None) -> float:
    named = {} if address is None else {"GOLDEN_LLM_MODEL": "openai:x", "GOLDEN_LLM_BASE_URL": address}
    bare = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    started = time.monotonic()
    subprocess.run(COMMAND, cwd=folder, env={**bare, **named}, check=True, capture_output=True)
    return time.monotonic() - started


def measure(behave: Callable[[socket.socket, Event], None], rounds: int) -> list[float]:
    """Return the seconds that each gate with this model took over one without, in turns."""
    delays = []
    for _ in range(rounds):
        with TemporaryDirectory() as name, socket.create_server(("127.0.0.1", 0)) as listener:
            over = Event()
            Thread(target=serve, args=(listener, behave, over), daemon=True).start()
            prepare(Path(name))
            without = run_gate(Path(name), None)
            address = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
            delays.append(run_gate(Path(name), address) - without)
            over.set()
    return delays


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    for name, behave in BEHAVIOURS.items():
        delays = measure(behave, rounds)
        print(f"{name:8} median {median(delays):5.2f} s, worst {max(delays):5.2f} s; promised 10 s")


if __name__ == "__main__":
    main()
