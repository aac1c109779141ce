"""The socket that a server listens on."""

from __future__ import annotations

import socket

from pytest_golden.errors import SettingsError

_MOST_WAITING = 512


def bind(host: str, port: int) -> socket.socket:
    """Give a socket that listens; port 0 picks a free one.

    Raises:
        SettingsError: the address cannot be listened on.
    """
    try:
        return _listen(host, port)
    # A name that is none is a TypeError or a UnicodeError, by the version of Python.
    except (OSError, TypeError, UnicodeError) as error:
        told = getattr(error, "strerror", None) or error
        raise SettingsError(f"cannot listen on {host} port {port}: {told}; give another --host or --port") from None


def write_address(host: str, bound: socket.socket) -> str:
    """Give the address of a server, as it is typed."""
    port = bound.getsockname()[1]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _listen(host: str, port: int) -> socket.socket:
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.listen(_MOST_WAITING)
    except BaseException:
        bound.close()
        raise
    return bound
