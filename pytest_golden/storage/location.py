"""The location of a store: parse what a user gives. Opens nothing, and loads the database library only for a URL."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.errors import SettingsError

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

_MEMORY = ":memory:"
_GIVE = "give a SQLite file, sqlite:///PATH or postgresql://..."
_SQLITE = ("sqlite", "sqlite+pysqlite")
_POSTGRESQL = ("postgresql", "postgres", "postgresql+psycopg")
_DRIVER = "psycopg"
_ENDINGS = ("", "-wal", "-shm", "-journal")
# The parts of a query that identify a store. Others, and options that set something else, may hold a password.
_SHOWN_KEYS = ("host", "port", "dbname", "user", "service", "options")
_SCHEMA_ALONE = re.compile(r"\s*(-c\s*|--)search_path=[^\s=]+\s*")


class Location(NamedTuple):
    """A store's location: its URL on a server, its file (None in memory too), and its text form without a password."""

    server: URL | None
    path: Path | None
    shown: str

    @property
    def url(self) -> URL:
        """The database URL."""
        if self.server is not None:
            return self.server
        from sqlalchemy.engine import URL

        return URL.create("sqlite", database=None if self.path is None else str(self.path))

    @property
    def is_on_server(self) -> bool:
        """Tell whether the store is on a PostgreSQL server."""
        return self.server is not None

    @property
    def is_there(self) -> bool:
        """Tell whether there may be a store: on a server, or an existing file."""
        return self.is_on_server or (self.path is not None and self.path.is_file())


def list_sqlite_files(path: Path | None) -> tuple[Path, ...]:
    """List the files that SQLite writes for a store's file: it follows a link, and writes beside what that leads to."""
    return () if path is None else tuple(Path(f"{os.path.realpath(path)}{ending}") for ending in _ENDINGS)


_IN_MEMORY = Location(None, None, _MEMORY)


def parse_location(location: str | Path) -> Location:
    """Parse a file path or a database URL; a relative path is relative to the current folder.

    Raises:
        SettingsError: no store can be there.
    """
    text = str(location)
    if "://" in text:
        return _parse_url(text)
    if not text or "\0" in text:
        raise SettingsError(f"{text!r} cannot be the path of a store; give a SQLite file such as .golden/golden.db")
    return _IN_MEMORY if text == _MEMORY else _at_path(text)


def _parse_url(text: str) -> Location:
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise SettingsError(f"the store's URL cannot be read; {_GIVE}") from None
    if url.drivername in _POSTGRESQL:
        return _at_server(url)
    if url.drivername not in _SQLITE or url.host or url.query:
        raise SettingsError(f"the store {_show(url)}: no store can be there; {_GIVE}")
    return _IN_MEMORY if url.database in {None, "", _MEMORY} else _at_path(str(url.database))


def _at_server(url: URL) -> Location:
    if "@" in f"{url.host}{url.database}{url.username}":
        raise SettingsError(f"the store {_show(url)}: write each @ in its name, password or database as %40")
    if any("\0" in str(part) for part in (*url[1:6], *url.query.values())):
        raise SettingsError(f"the store {_show(url)}: its URL holds a NUL character; remove %00")
    if find_spec(_DRIVER) is None:
        raise SettingsError(
            f"the store {_show(url)}: PostgreSQL needs a driver; `pip install 'pytest-golden-projects[postgres]'`"
        )
    query = {key: url.query[key] for key in _SHOWN_KEYS if _is_shown(key, url.query.get(key, ""))}
    shown = url.create("postgresql", url.username, None, url.host, url.port, url.database, query)
    return Location(url.set(drivername=f"postgresql+{_DRIVER}"), None, shown.render_as_string())


def _is_shown(key: str, value: str | tuple[str, ...]) -> bool:
    """Tell whether a value of a query exists and sets nothing else."""
    if not isinstance(value, str) or not value:
        return bool(value) and all(_is_shown(key, one) for one in value)
    return bool(_SCHEMA_ALONE.fullmatch(value)) if key == "options" else not {"=", "@"} & set(value)


def _show(url: URL) -> str:
    """Return the kind only: the rest may hold a password anywhere."""
    return f"{url.drivername}://..."


def _at_path(text: str) -> Location:
    path = Path(os.path.abspath(os.path.expanduser(text)))  # noqa: PTH100, PTH111 - as given, and an unknown user is a name
    return Location(None, path, str(path))
