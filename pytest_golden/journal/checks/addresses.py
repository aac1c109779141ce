"""Which addresses are never asked, whatever name stands for them. Pure.

A machine's own address and a private one are often what a check is about. Those of a link are not: where clouds hand out
a machine's credentials, whoever logs an expectation would have them.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

# Where clouds keep a machine's credentials beside the addresses of the link: Alibaba, Azure, Oracle, Google and Amazon.
_OF_CLOUDS = tuple(
    map(ip_network, ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd20:ce::254", "fd00:ec2::/32"))
)
# "This network": parts of it reach the machine itself. And what is reserved, with the broadcast.
_NEVER = (ip_network("0.0.0.0/8"), ip_network("240.0.0.0/4"))
# Behind these lies an IPv4 address, its last four bytes (RFC 6052 and 8215 for NAT64, RFC 4291 for the compatible form,
# RFC 2765 for the translated one).
_WRAPPED = tuple(map(IPv6Network, ("64:ff9b::/96", "64:ff9b:1::/48", "::/96", "::ffff:0:0:0/96")))


def is_refused(text: str) -> bool:
    """Tell whether an address is link-local, multicast, unspecified or reserved, or where a cloud keeps credentials.

    Raises:
        ValueError: it is no address.
    """
    return any(_is_refused(address) for address in _unwrap(ip_address(text.partition("%")[0])))


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
    if int(address) > 1 and any(address in network for network in _WRAPPED):
        inner.append(IPv4Address(int(address) & 0xFFFFFFFF))
    return (address, *(one for one in inner if one is not None))


def _is_refused(address: IPv4Address | IPv6Address) -> bool:
    if address.is_link_local or address.is_multicast or address.is_unspecified:
        return True
    return any(address in network for network in (*_OF_CLOUDS, *_NEVER))
