"""Where a store is: what a user gives as its place, read into a database URL. Opens nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from pytest_golden.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

_MEMORY = ":memory:"
_SQLITE = ("sqlite", "sqlite+pysqlite")


class Location(NamedTuple):
    """A store's place: its URL, its file (None: in memory) and how it is shown, without a password."""

    url: URL
    path: Path | None
    shown: str


def parse_location(location: str | Path) -> Location:
    """Read a file path or a database URL; a relative path counts from the current folder.

    Raises:
        SettingsError: no store can be there.
    """
    text = str(location)
    if "://" in text:
        return _parse_url(text)
    if not text or "\0" in text:
        raise SettingsError(f"{text!r} cannot be the path of a store; give a SQLite file such as .golden/golden.db")
    return _at_memory() if text == _MEMORY else _at_path(text)


def make_url_of_frozen(path: Path) -> URL:
    """Make the URL by which SQLite reads a file without locks and neighbours, as one that nobody changes."""
    query: Mapping[str, str] = {"mode": "ro", "immutable": "1", "uri": "true"}
    return URL.create("sqlite", database=path.as_uri(), query=query)


def _parse_url(text: str) -> Location:
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise SettingsError("the store's URL cannot be read; give a SQLite file or sqlite:///PATH") from None
    if url.get_backend_name() == "postgresql":
        raise SettingsError(f"the store {_show(url)}: PostgreSQL stores are not built yet; give a SQLite file")
    if url.drivername not in _SQLITE or url.host or url.query:
        raise SettingsError(f"the store {_show(url)}: no store can be there; give a SQLite file or sqlite:///PATH")
    return _at_memory() if url.database in {None, "", _MEMORY} else _at_path(str(url.database))


def _show(url: URL) -> str:
    """Show no more than the kind: a password may stand anywhere in the rest."""
    return f"{url.drivername}://..."


def _at_memory() -> Location:
    return Location(URL.create("sqlite"), None, _MEMORY)


def _at_path(text: str) -> Location:
    path = Path(os.path.abspath(os.path.expanduser(text)))  # noqa: PTH100, PTH111 - as given, and an unknown user is a name
    return Location(URL.create("sqlite", database=str(path)), path, str(path))
