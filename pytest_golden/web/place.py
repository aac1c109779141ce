"""Under which addresses the pages are reached. Pure: nothing is looked up."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from pytest_golden.errors import SettingsError

_LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class PublicPlace:
    """The address behind a proxy, if there is one, and the host that is bound.

    `prefix` is the path below which a proxy shows the pages, without a slash at its end; `host` is empty without a proxy.
    """

    bound_host: str = "127.0.0.1"
    scheme: str = "http"
    host: str = ""
    prefix: str = ""

    @classmethod
    def parse(cls, public_url: str | None, bound_host: str) -> PublicPlace:
        """Read `--public-url`.

        Raises:
            SettingsError: it is no address of a server.
        """
        if public_url is None:
            return cls(bound_host)
        try:
            read = urlsplit(public_url)
            port = read.port
        except ValueError:
            raise _refuse(public_url) from None
        is_whole = read.scheme in _DEFAULT_PORTS and read.hostname and public_url.isascii() and public_url.isprintable()
        if not is_whole or read.query or read.fragment or read.username is not None or " " in public_url:
            raise _refuse(public_url)
        name = f"[{read.hostname}]" if ":" in (read.hostname or "") else str(read.hostname)
        shown = name if port in {None, _DEFAULT_PORTS[read.scheme]} else f"{name}:{port}"
        return cls(bound_host, read.scheme, shown, read.path.rstrip("/"))

    @property
    def is_behind_proxy(self) -> bool:
        """Tell whether a proxy stands before the pages."""
        return bool(self.host)

    @property
    def is_secure(self) -> bool:
        """Tell whether browsers come by HTTPS."""
        return self.scheme == "https"

    @property
    def is_loopback(self) -> bool:
        """Tell whether only this machine reaches the bound address."""
        return is_loopback(self.bound_host)

    def is_public(self, host: str) -> bool:
        """Tell whether a Host header names the address before the proxy."""
        return self.is_behind_proxy and _without_default_port(host, self.scheme) == self.host

    def allows(self, host: str) -> bool:
        """Tell whether a Host header names this server: as it is bound, by a name of loopback, or by its public address."""
        name = _name_of(host)
        if name is None:
            return False
        is_bound = name in {self.bound_host.lower(), f"[{self.bound_host.lower()}]"} and not _is_any(self.bound_host)
        return name in _LOOPBACK_NAMES or is_bound or self.is_public(host) or self._is_own_address(name)

    def allows_origin(self, origin: str, host: str) -> bool:
        """Tell whether an Origin header is that of the page itself."""
        own = {f"http://{host.lower()}"}
        if self.is_behind_proxy:
            own.add(f"{self.scheme}://{self.host}")
        return origin.lower() in own

    def strip_prefix(self, path: str) -> str:
        """Give a path as it is known inside: proxies differ in whether they take the prefix off."""
        if self.prefix and (path == self.prefix or path.startswith(f"{self.prefix}/")):
            return path[len(self.prefix) :] or "/"
        return path

    def _is_own_address(self, name: str) -> bool:
        # Bound to all addresses, each of them may be typed; a name could be another site's that points here.
        return _is_any(self.bound_host) and _address_of(name) is not None


def is_loopback(host: str) -> bool:
    """Tell whether a host to bind is reached from this machine alone."""
    if host == "localhost":
        return True
    address = _address_of(host)
    return address is not None and address.is_loopback


def _refuse(public_url: str) -> SettingsError:
    return SettingsError(f"--public-url {public_url!r}: give an address as https://ci.example.org/golden")


def _name_of(host: str) -> str | None:
    """Give the name in a Host header, without its port; None where it is none."""
    name, _, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
    if not name:
        name, port = port, ""
    is_port = not port or (port.isascii() and port.isdigit())
    return name.lower() if name and is_port else None


def _without_default_port(host: str, scheme: str) -> str:
    return host.lower().removesuffix(f":{_DEFAULT_PORTS[scheme]}")


def _address_of(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None


def _is_any(host: str) -> bool:
    address = _address_of(host)
    return address is not None and address.is_unspecified
