"""Under which addresses the pages are reached. Pure: nothing is looked up."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from pytest_golden.errors import SettingsError
from pytest_golden.web.access import DEFAULT_PORTS, is_loopback, is_own_host, is_own_origin, without_default_port


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
        is_whole = read.scheme in DEFAULT_PORTS and read.hostname and public_url.isascii() and public_url.isprintable()
        if not is_whole or read.query or read.fragment or read.username is not None or " " in public_url:
            raise _refuse(public_url)
        name = f"[{read.hostname}]" if ":" in (read.hostname or "") else str(read.hostname)
        shown = name if port in {None, DEFAULT_PORTS[read.scheme]} else f"{name}:{port}"
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
        return self.is_behind_proxy and without_default_port(host, self.scheme) == self.host

    def allows(self, host: str) -> bool:
        """Tell whether a Host header names this server: as it is bound, by a name of loopback, or by its public address."""
        return is_own_host(host, self.bound_host) or self.is_public(host)

    def allows_origin(self, origin: str, host: str) -> bool:
        """Tell whether an Origin header is that of the page itself."""
        is_public = self.is_behind_proxy and origin.lower() == f"{self.scheme}://{self.host}"
        return is_public or is_own_origin(origin, host)

    def strip_prefix(self, path: str) -> str:
        """Return a path as it is known inside: proxies differ in whether they take the prefix off."""
        if self.prefix and (path == self.prefix or path.startswith(f"{self.prefix}/")):
            return path[len(self.prefix) :] or "/"
        return path


def _refuse(public_url: str) -> SettingsError:
    return SettingsError(f"--public-url {public_url!r}: give an address as https://ci.example.org/golden")
