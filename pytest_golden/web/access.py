"""What every network face checks of a request before it acts: host, origin, token, and how often a token was wrong.

Any page that a person opens can send requests to loopback, so a request must come from this server's own pages and programs.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from http import HTTPStatus
from math import ceil
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from pytest_golden.clock import monotonic_seconds
from pytest_golden.errors import SettingsError
from pytest_golden.storage.folder import find_settings_folder, keep_secret

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from starlette.datastructures import Headers

DEFAULT_PORTS = {"http": 80, "https": 443}
_LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
_HOST = re.compile(r"(\[[0-9a-f.]*:[0-9a-f:.]*\]|[^\[\]:]+)(?::[0-9]*)?")
# Not same-site: a page on another port of the same machine has it too.
_OWN_SITES = frozenset({"same-origin", "none"})
_SHORTEST_TOKEN = 16
_TOKEN_NAME = "serve-token"
_MOST_WRONG = 60
_MOST_ADDRESSES = 10_000
_NETWORK_BITS = 64


class Refusal(Exception):  # noqa: N818 - it is the visitor's mistake, and none of ours
    """The refusal of a request: an HTTP status from 400 on, one sentence for the visitor, and headers."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        self.status = HTTPStatus(status)
        self.detail = detail
        self.headers = dict(headers or {})
        super().__init__(detail)


def refuse_foreign_host(headers: Headers, is_own: Callable[[str], bool]) -> str:
    """Return the host of a request.

    Raises:
        Refusal: it is not one of this server's names: another site's name can be made to point at this machine.
    """
    hosts = headers.getlist("host")
    if len(hosts) != 1 or not is_own(hosts[0]):
        raise Refusal(421, "This server does not answer to that host name.")
    return hosts[0]


def refuse_cross_site(headers: Headers, is_own: Callable[[str], bool]) -> None:
    """Let only requests of this server's own pages and programs pass; `is_own` is asked about each Origin.

    Raises:
        Refusal: another site's page sends it.
    """
    site, origins = headers.get("sec-fetch-site"), headers.getlist("origin")
    if not all(map(is_own, origins)) or (site is not None and site not in _OWN_SITES):
        raise Refusal(403, "A request from another site changes nothing here.")


def is_loopback(host: str) -> bool:
    """Tell whether a host to bind is reachable from this machine only."""
    address = _find_address(host)
    return host.lower() == "localhost" or (address is not None and address.is_loopback)


def is_own_host(host: str, bound: str) -> bool:
    """Tell whether a Host header names the server bound to `bound`: another site's name can be made to point at it."""
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
    """Tell whether an Origin header is that of an unencrypted page of this Host."""
    return without_default_port(origin, "http") == f"http://{without_default_port(host, 'http')}"


def without_default_port(host: str, scheme: str) -> str:
    """Return a host or an origin without its scheme's default port, as browsers write it."""
    return host.lower().removesuffix(f":{DEFAULT_PORTS[scheme]}")


def _find_address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Token:
    """A token, whether it was given, and whether this user has seen it before."""

    text: str = field(repr=False)
    is_given: bool = True
    is_new: bool = False

    @classmethod
    def read(cls, given: str) -> Token:
        """Return the given token, else this user's own, which is made at the first start."""
        if given.strip():
            return cls(given.strip())
        try:
            text, made = keep_secret(_TOKEN_NAME)
        except (OSError, RuntimeError):
            return cls(secrets.token_urlsafe(), is_given=False, is_new=True)
        return cls(text, is_given=False, is_new=made is not None)


def is_same(told: bytes, token: str) -> bool:
    """Tell whether a text is the token, in constant time."""
    return hmac.compare_digest(told, token.encode("utf-8", "surrogateescape"))


def warn_of_host(host: str) -> Iterator[str]:
    """Yield a warning for a host to bind that other machines can reach."""
    if not is_loopback(host):
        yield (
            f"warning: {host} is reached from other machines, and without a proxy nothing is encrypted: anybody on the "
            "way can read the token, the requests and the answers"
        )


def tell_token(token: Token, sign_in: str | None = None) -> Iterator[str]:
    """Yield a new token, as a link to sign in by if there is a page for that; where it is kept; or that it is short."""
    if token.is_new:
        yield f"token: {token.text}" if sign_in is None else f"sign in once by {sign_in}?token={quote(token.text)}"
    elif not token.is_given:
        yield f"the token is in {find_settings_folder() / _TOKEN_NAME}"
    elif len(token.text) < _SHORTEST_TOKEN:
        yield f"warning: GOLDEN_SERVE_TOKEN is shorter than {_SHORTEST_TOKEN} characters, and may be guessed"


class BearerCheck:
    """Checks the token in the header `Authorization`, and counts wrong attempts; a right token is never refused."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._wrongs = Attempts(_MOST_WRONG)

    def is_right(self, headers: Headers, address: str) -> bool:
        """Tell whether a request from this address carries the token; False where it carries none.

        Raises:
            Refusal: it carries a wrong one.
        """
        scheme, _, told = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return False
        # Headers are bytes that were read as Latin-1, where more than blanks counts as a space.
        if is_same(told.strip(" \t").encode("latin-1", "replace"), self._token):
            return True
        self._wrongs.count(address)
        raise ask_for_token("The token is wrong.")


def ask_for_token(detail: str) -> Refusal:
    """Return the refusal that asks for the token."""
    return Refusal(401, detail, {"WWW-Authenticate": 'Bearer realm="golden"'})


class Attempts:
    """Counts wrong attempts by address in windows of some seconds; of very many addresses the oldest are forgotten."""

    def __init__(
        self, most: int, window_seconds: float = 300.0, clock: Callable[[], float] = monotonic_seconds
    ) -> None:
        self._most = most
        self._window_seconds = window_seconds
        self._clock = clock
        # By address: since when it was wrong, and how often.
        self._wrongs: OrderedDict[str, tuple[float, int]] = OrderedDict()
        # Without a lock, one thread would find no count while another one updates it.
        self._turn = threading.Lock()

    def count(self, address: str) -> None:
        """Count a wrong attempt.

        Raises:
            Refusal: there were too many; it says when the next is allowed.
        """
        now, sender = self._clock(), _find_sender(address)
        with self._turn:
            since, times = self._wrongs.pop(sender, (now, 0))
            if now - since >= self._window_seconds:
                since, times = now, 0
            self._wrongs[sender] = since, times + 1
            if len(self._wrongs) > _MOST_ADDRESSES:
                self._wrongs.popitem(last=False)
        if times >= self._most:
            wait = ceil(max(1.0, since + self._window_seconds - now))
            raise Refusal(429, f"Too many wrong attempts: try again in {wait} seconds.", {"Retry-After": str(wait)})


def _find_sender(address: str) -> str:
    """Return the key of a sender: for IPv6 the network, since one sender has all its addresses. Some proxies add a port."""
    name = address[1:].partition("]")[0] if address.startswith("[") else address
    name = name.partition(":")[0] if name.count(":") == 1 else name
    try:
        found = ipaddress.IPv6Address(name)
    except ValueError:
        return name
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(found), _NETWORK_BITS), strict=False))


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
            SettingsError: it is not an address of a server.
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
        """Tell whether the pages are behind a proxy."""
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
