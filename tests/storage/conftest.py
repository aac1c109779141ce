from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from pytest_golden.gateway.sandbox_program import list_programs
from pytest_golden.storage.store import Store
from tests.requirement import lack

if TYPE_CHECKING:
    from collections.abc import Iterator

_PROGRAMS = Path(sys.executable).parent
_PREPARED = """
import json, os, sys, warnings
warnings.simplefilter("error")
from pathlib import Path
from pytest_golden.errors import StorageError
from pytest_golden.storage.shared_documents import keep_document, read_document
from pytest_golden.storage.store import Store
path = Path(sys.argv[1])
def trouble_of(action):
    try:
        action()
    except StorageError as error:
        return error.trouble.value
def keep(store, body):
    with store.write() as connection:
        return keep_document(connection, body)
def read(store, digest):
    with store.read() as connection:
        return read_document(connection, digest)
"""


class Elsewhere(Protocol):
    def __call__(self, machine: tuple[str, ...], path: Path, code: str, /) -> Any: ...


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "golden.db"


@pytest.fixture
def store(location: str | Path) -> Iterator[Store]:
    """An empty store, on each database in turn."""
    with Store.open(location) as store:
        yield store


@pytest.fixture
def file_store(path: Path) -> Iterator[Store]:
    """An empty store that is a file of SQLite."""
    with Store.open(path) as store:
        yield store


@pytest.fixture
def elsewhere() -> Elsewhere:
    """Run code on a store's path on a lesser machine, by a user without privileges, and give the JSON it prints."""
    bwrap = next(iter(list_programs()), None)

    def run(machine: tuple[str, ...], path: Path, code: str, /) -> Any:
        if bwrap is None:
            lack("bubblewrap is not here")
        lesser = [bwrap, "--unshare-user", "--cap-drop", "ALL", "--dev-bind", "/", "/", *machine, "--"]
        if subprocess.run([*lesser, "true"], capture_output=True, check=False).returncode:
            lack("this machine has no user namespaces")
        done = subprocess.run(
            [*lesser, *command(code), str(path)], capture_output=True, encoding="utf-8", timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def command(code: str) -> list[str]:
    """Return the command of a process that runs code; the store's path is its argument."""
    return [sys.executable, "-u", "-c", _PREPARED + textwrap.dedent(code)]


def start(code: str, path: Path, programs: Path = _PROGRAMS) -> subprocess.Popen[str]:
    """Start code in a process of its own with the Python of a folder, to talk with line by line."""
    return subprocess.Popen(
        [str(programs / "python"), *command(code)[1:], str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )


def say(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


def hear(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def end(process: subprocess.Popen[str]) -> int:
    """Let a process end by closing what it listens to."""
    process.communicate(timeout=60)
    return process.returncode
