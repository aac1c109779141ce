"""A check, as an expectation holds it: when it is due, and the command or page that answers. Nothing is run here.

It is kept as a mapping in one canonical form, whose `after` has its unit; `read_check` turns that into a `Check`.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pytest_golden.journal.hints import write_text
from pytest_golden.manifest.kinds import COMMAND, TEXT, Key, Kind, Table, check_each, check_text, record_of, wrong
from pytest_golden.manifest.units import parse_duration, show
from pytest_golden.redaction.rule import MARK
from pytest_golden.storage.columns import storable

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST_MINUTES = 366 * 24 * 60
_LONGEST_URL = 8192
# Brackets, as the mark has them, mean an address there.
_ACCOUNT = MARK.strip("[]")
_SCHEMES = ("http", "https")
# No shell reads the words of a command.
_SHELL_SIGNS = frozenset({"|", "||", "&&", "&", ";", ">", ">>", "<", "2>", "2>&1"})
_OF_A_PAGE = ("status", "path", "equals")
# Where clouds keep a machine's credentials beside the addresses of the link: Alibaba, Azure, Oracle, Google and Amazon.
_CLOUD_ADDRESSES = tuple(
    map(ip_network, ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd20:ce::254", "fd00:ec2::/32"))
)
# "This network", of which parts reach the machine itself, and the reserved addresses with the broadcast.
_NEVER_ASKED = (ip_network("0.0.0.0/8"), ip_network("240.0.0.0/4"))
# Behind these lies an IPv4 address, its last four bytes (RFC 6052 and 8215 for NAT64, RFC 4291 for the compatible form,
# RFC 2765 for the translated one).
_WRAPPING_IPV4 = tuple(map(IPv6Network, ("64:ff9b::/96", "64:ff9b:1::/48", "::/96", "::ffff:0:0:0/96")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A check: a command, or a page. `after_ms` counts from the expectation's creation.

    A page answers by its `status` (empty: any from 200 to 299), and by the value at the dotted `path` of its JSON where one
    is given: it must equal `equals`, compared as text, or without that be there and neither null nor false.
    """

    after_ms: int
    command: tuple[str, ...] = ()
    url: str = ""
    status: tuple[int, ...] = ()
    path: str | None = None
    equals: Any = None
    has_equals: bool = False

    @property
    def is_page(self) -> bool:
        """Tell whether a page is requested, and no command run."""
        return bool(self.url)

    @property
    def host(self) -> str:
        """Return the host of the page, in lower case."""
        return (urlsplit(self.url).hostname or "").rstrip(".")

    @property
    def has_lost_a_secret(self) -> bool:
        """Tell whether something in it was a secret: those are not kept, so it cannot be run as it was meant."""
        has_account = "@" in urlsplit(self.url).netloc
        return has_account or any(
            MARK in text for text in (*self.command, self.url, self.path or "", write_text(self.equals))
        )

    def accepts(self, status: int) -> bool:
        """Tell whether a status is a good one."""
        return status in self.status if self.status else 200 <= status <= 299


def _check_after(value: Any) -> str:
    if isinstance(value, str):
        text = check_text(value).strip()
        if text[-1].isdigit():
            raise wrong(f"{show(text)} has no unit; write 90s, 10m or 2h, or a number of minutes without quotes")
        return _write_ms(round(parse_duration(text) * 1000))
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _MOST_MINUTES:
        raise wrong(
            f"{show(value)} is not above 0 and at most 366 days; write a number of minutes, or a text such as 90s, 10m or 2h"
        )
    return _write_ms(round(value * 60_000))


def _write_ms(milliseconds: int) -> str:
    milliseconds = max(1, milliseconds)
    for unit, size in (("m", 60_000), ("s", 1000)):
        if milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms"


def _check_command(value: Any) -> tuple[str, ...]:
    words: tuple[str, ...] = COMMAND.check(value)
    signs = sorted(_SHELL_SIGNS.intersection(words)) if isinstance(value, str) else []
    if signs:
        raise wrong(f"runs a program without a shell, so {signs[0]!r} means nothing; write: sh -c '...'")
    for word in words:
        if storable(word) != word:
            raise wrong(f"{show(word)} holds half a character; remove it")
    return words


def _check_url(value: Any) -> str:
    text = check_text(value).strip()
    if len(text) > _LONGEST_URL:
        raise wrong(f"has {len(text):,} characters, and at most {_LONGEST_URL:,} are allowed; shorten it")
    if not text.isascii() or not text.isprintable() or " " in text:
        raise wrong("holds characters that no URL has; write them percent-encoded, a host's as xn--...")
    try:
        parts = urlsplit(text)
        port, host = parts.port, parts.hostname
    except ValueError as error:
        raise wrong(f"is no URL: {error}; write one such as https://example.org/health") from None
    if parts.scheme not in _SCHEMES or not host or port == 0:
        raise wrong("is no URL of a page; write one such as https://example.org/health, by http or https")
    if is_refused_literal(host):
        raise wrong(
            f"{show(host)} is never requested: it is a link-local, multicast or reserved address; give another host"
        )
    # The user name is dropped with the password: a token is often given as the name.
    _, at, place = parts.netloc.rpartition("@")
    netloc = f"{_ACCOUNT}@{place}" if at else place
    return parts._replace(netloc=netloc, fragment="").geturl()


def _check_status(value: Any) -> tuple[int, ...]:
    def check_one(one: Any) -> int:
        if isinstance(one, bool) or not isinstance(one, int) or not 100 <= one <= 599:
            raise wrong(f"{show(one)} is no status; write a number from 100 to 599")
        return one

    if not isinstance(value, list | tuple):
        return (check_one(value),)
    if not value:
        raise wrong("is empty; write the good ones, or leave it out for all from 200 to 299")
    return check_each(value, check_one)


def _check_scalar(value: Any) -> Any:
    if value is not None and not isinstance(value, str | bool | int | float):
        raise wrong("must be a text, a number, true, false or null, since it is compared as text")
    return value


CHECK_KEYS = Table.of(
    (
        Key("after", Kind(_check_after), "How long to wait: a number of minutes, or 90s, 10m, 2h.", required=True),
        Key("command", Kind(_check_command), "What to run then: exit code 0 is a positive answer."),
        Key("url", Kind(_check_url), "Which page to ask then."),
        Key("status", Kind(_check_status), "Its good status, or a list of them; default: 200 to 299."),
        Key("path", TEXT, "A dotted path into its JSON: the value there decides."),
        Key("equals", Kind(_check_scalar), "What the value at the path must be."),
    )
)
_check_keys = record_of(CHECK_KEYS).check


def check_mapping(value: Any) -> dict[str, Any]:
    """Check a mapping that a caller gives, and return its canonical form; that form stays as it is.

    Raises:
        ValueError: what is wrong with it and where, all at once.
    """
    clean: dict[str, Any] = _check_keys(value)
    if ("command" in clean) == ("url" in clean):
        raise wrong("either command or url is wanted; give one of them")
    alone = [name for name in _OF_A_PAGE if name in clean]
    if alone and "url" not in clean:
        raise wrong(f"{alone[0]} is about a page; give url with it, or leave it out")
    if "equals" in clean and "path" not in clean:
        raise wrong("equals is about the value at a path; give path with it")
    return clean


CHECK = Kind(check_mapping, {"type": "object"})


def read_check(kept: Mapping[str, Any]) -> Check:
    """Read a check as it is kept.

    Raises:
        ValueError: it is not a check.
    """
    clean = check_mapping(kept)
    return Check(
        after_ms=round(parse_duration(clean["after"]) * 1000),
        command=tuple(clean.get("command", ())),
        url=clean.get("url", ""),
        status=tuple(clean.get("status", ())),
        path=clean.get("path"),
        equals=clean.get("equals"),
        has_equals="equals" in clean,
    )


def is_refused(text: str) -> bool:
    """Tell whether an address is link-local, multicast, unspecified or reserved, or where a cloud keeps credentials.

    Such an address is never requested, whatever name stands for it: where clouds hand out a machine's credentials, anybody who
    logs an expectation would get them. A machine's own address and a private one are allowed: checks are often about them.

    Raises:
        ValueError: it is not an address.
    """
    return any(_is_refused_address(address) for address in _unwrap(ip_address(text.partition("%")[0])))


def is_refused_literal(host: str) -> bool:
    """Tell whether a host is written as an address that is refused; a name is not."""
    try:
        return is_refused(host)
    except ValueError:
        return False


def _unwrap(address: IPv4Address | IPv6Address) -> tuple[IPv4Address | IPv6Address, ...]:
    if isinstance(address, IPv4Address):
        return (address,)
    inner = [address.ipv4_mapped, address.sixtofour]
    # ::1 and :: are the machine itself and nothing, no IPv4 addresses.
    if int(address) > 1 and any(address in network for network in _WRAPPING_IPV4):
        inner.append(IPv4Address(int(address) & 0xFFFFFFFF))
    return (address, *(one for one in inner if one is not None))


def _is_refused_address(address: IPv4Address | IPv6Address) -> bool:
    if address.is_link_local or address.is_multicast or address.is_unspecified:
        return True
    return any(address in network for network in (*_CLOUD_ADDRESSES, *_NEVER_ASKED))
