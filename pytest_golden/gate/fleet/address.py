"""The address of a fleet as a person gives it, and as Dask takes it. Text alone; Dask is not needed."""

from __future__ import annotations

import re

from pytest_golden.errors import SettingsError

DEFAULT_PORT = 8786
_SCHEMES = {"dask": "tcp", "dask+tls": "tls"}
_FORM = re.compile(r"(?P<scheme>dask(?:\+tls)?)://(?P<host>\[[0-9A-Fa-f:.]+\]|[^:/\[\]@\s]+)(?::(?P<port>\d{1,5}))?/?")


def find_address(url: str) -> str:
    """Give the scheduler's address that Dask connects to.

    Raises:
        SettingsError: the URL names no fleet.
    """
    found = _FORM.fullmatch(url.strip())
    port = int(found["port"] or DEFAULT_PORT) if found else 0
    if found is None or not 0 < port < 1 << 16:
        message = f"--golden-gateway: {url!r} names no fleet: give dask://HOST:PORT, or dask+tls://HOST:PORT."
        raise SettingsError(message)
    return f"{_SCHEMES[found['scheme']]}://{found['host']}:{port}"
