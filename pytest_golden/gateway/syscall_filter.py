"""The filter of system calls that the kernel keeps around a sealed pipeline, as a program of classic BPF.

It closes what a user may ask of the kernel, namespaces or not, and what no pipeline needs: sockets beside the usual families,
which reach virtual machines, raw frames and rarely used parts of the kernel; io_uring, whose work no other filter sees;
the user's keys; and new user namespaces. Everything else is allowed.

Sources: https://docs.kernel.org/userspace-api/seccomp_filter.html, linux/bpf_common.h, linux/seccomp.h, linux/audit.h
"""

from __future__ import annotations

import errno
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


# struct seccomp_data: the number, the architecture, the instruction's address, six arguments of 64 bits. Both our
# architectures are little-endian, and of these arguments the kernel itself only looks at the lower half.
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_LOAD, _RETURN = 0x20, 0x06
_IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT = 0x15, 0x35, 0x45
_ALLOW, _KILL_PROCESS, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000

_NEW_USER_NAMESPACE = 0x10000000
# The x32 calls of an x86_64 kernel have numbers of their own, and would get past rules for the others.
_X32 = 0x40000000
#: AF_UNSPEC, AF_UNIX, AF_INET, AF_INET6, and AF_NETLINK, by which programs list the interfaces.
_FAMILIES = (0, 1, 2, 10, 16)

_IO_URING = ("io_uring_setup", "io_uring_enter", "io_uring_register")
_REFUSED = ("add_key", "request_key", "keyctl", "setns")
# The same numbers on every architecture.
_RECENT = {**dict(zip(_IO_URING, (425, 426, 427), strict=True)), "clone3": 435}


@dataclass(frozen=True, slots=True)
class _Architecture:
    audit: int
    numbers: Mapping[str, int]


_X86_64 = _Architecture(
    0xC000003E,
    {
        "socket": 41,
        "socketpair": 53,
        "clone": 56,
        "unshare": 272,
        "setns": 308,
        "add_key": 248,
        "request_key": 249,
        "keyctl": 250,
    },
)
_AARCH64 = _Architecture(
    0xC00000B7,
    {
        "socket": 198,
        "socketpair": 199,
        "clone": 220,
        "unshare": 97,
        "setns": 268,
        "add_key": 217,
        "request_key": 218,
        "keyctl": 219,
    },
)
_ARCHITECTURES = {"x86_64": _X86_64, "aarch64": _AARCH64}


def build_filter(machine: str) -> bytes:
    """Return the program for a machine as `os.uname` names it; empty where we have none.

    A program of another architecture, such as a 32-bit one, is killed at its first call: its numbers mean other calls.
    """
    found = _ARCHITECTURES.get(machine)
    if found is None:
        return b""
    numbers = {**found.numbers, **_RECENT}
    lines = [
        _line(_LOAD, _ARCHITECTURE),
        _line(_IF_EQUAL, found.audit, 1, 0),
        _line(_RETURN, _KILL_PROCESS),
        _line(_LOAD, _NUMBER),
        _line(_IF_AT_LEAST, _X32, 0, 1),
        _line(_RETURN, _FAIL | errno.ENOSYS),
    ]
    # Libraries take "not implemented" for an old kernel, and use `clone` or do without.
    lines += _refuse((numbers[name] for name in ("clone3", *_IO_URING)), errno.ENOSYS)
    lines += _refuse((numbers[name] for name in _REFUSED), errno.EPERM)
    for name in ("clone", "unshare"):
        lines += [
            _line(_IF_EQUAL, numbers[name], 0, 4),
            _line(_LOAD, _FIRST_ARGUMENT),
            _line(_IF_ANY_BIT, _NEW_USER_NAMESPACE, 0, 1),
            _line(_RETURN, _FAIL | errno.EPERM),
            _line(_RETURN, _ALLOW),
        ]
    for name in ("socket", "socketpair"):
        lines += _allow_families(numbers[name])
    return b"".join([*lines, _line(_RETURN, _ALLOW)])


def _refuse(numbers: Iterable[int], error: int) -> list[bytes]:
    """Let calls fail, whatever their arguments are."""
    return [line for number in numbers for line in (_line(_IF_EQUAL, number, 0, 1), _line(_RETURN, _FAIL | error))]


def _allow_families(number: int) -> list[bytes]:
    """Let a call that makes sockets fail for all families but the usual ones."""
    count = len(_FAMILIES)
    tests = [_line(_IF_EQUAL, family, count - place, 0) for place, family in enumerate(_FAMILIES)]
    return [
        _line(_IF_EQUAL, number, 0, count + 3),
        _line(_LOAD, _FIRST_ARGUMENT),
        *tests,
        _line(_RETURN, _FAIL | errno.EAFNOSUPPORT),
        _line(_RETURN, _ALLOW),
    ]


def _line(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """Return one instruction; the two last are how many are left out when a test holds or fails (struct sock_filter)."""
    return struct.pack("<HBBI", code, if_true, if_false, value)
