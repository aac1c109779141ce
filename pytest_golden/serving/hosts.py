"""Which names of a server are its own, in a Host and in an Origin header. Pure: nothing is looked up."""

from __future__ import annotations

import ipaddress
import re

DEFAULT_PORTS = {"http": 80, "https": 443}
_LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
_HOST = re.compile(r"(\[[0-9a-f.]*:[0-9a-f:.]*\]|[^\[\]:]+)(?::[0-9]*)?")


def is_loopback(host: str) -> bool:
    """Tell whether a host to bind is reached from this machine alone."""
    address = _find_address(host)
    return host.lower() == "localhost" or (address is not None and address.is_loopback)


def is_own_host(host: str, bound: str) -> bool:
    """Tell whether a Host header names the server that is bound to `bound`: a site's own name can be made to point at it."""
    found = _HOST.fullmatch(host.lower())
    if found is None:
        return False
    name, own = found[1], _find_address(bound)
    if name in _LOOPBACK_NAMES:
        return True
    if own is None:
        return name == bound.lower()
    address = _find_address(name[1:-1]) if name.startswith("[") else _find_address(name)
    # Bound to all addresses, each of them may be typed.
    return address is not None and (own.is_unspecified or address == own)


def is_own_origin(origin: str, host: str) -> bool:
    """Tell whether an Origin header is that of a page which was asked for by this Host header, without encryption."""
    return without_default_port(origin, "http") == f"http://{without_default_port(host, 'http')}"


def without_default_port(host: str, scheme: str) -> str:
    """Give a host, or the origin of one, as browsers write it."""
    return host.lower().removesuffix(f":{DEFAULT_PORTS[scheme]}")


def _find_address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None
