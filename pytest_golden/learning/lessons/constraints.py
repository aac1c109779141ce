"""Which errors come from the environment: a library, a command, the network, a permission, the disk, the memory. Pure."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

_MOST_READ = 20_000


class Constraint(StrEnum):
    """What is missing or limited where a tool runs."""

    LIBRARY = "missing library"
    COMMAND = "missing command"
    NETWORK = "network"
    PERMISSION = "permission"
    DISK = "disk"
    MEMORY = "memory"


class Limit(NamedTuple):
    """A constraint, and the library, command or thing that it is about; blank when the error does not name it."""

    kind: Constraint
    subject: str = ""


#: What stays so however the tool is called.
LASTING = frozenset({Constraint.LIBRARY, Constraint.COMMAND, Constraint.DISK})

# Where a name begins, and no longer than names are: a word of thousands of characters would be looked at from each of them.
_START = r"(?<![\w.+-])"
# The first that fits counts, and the subject is what the group says. Compiled when it is needed: most sessions fail nowhere.
_RULES = (
    (Constraint.LIBRARY, r"No module named ['\"]?(?P<subject>[\w.]+)"),
    (Constraint.LIBRARY, r"cannot import name ['\"]?(?P<subject>\w+)['\"]? from (?!partially)"),
    (Constraint.LIBRARY, r"Missing optional dependency ['\"](?P<subject>[\w.-]+)"),
    (
        Constraint.LIBRARY,
        rf"{_START}(?P<subject>lib[\w.+-]{{1,80}}\.(?:so|dylib|dll)[\w.]{{0,20}}): cannot open shared object",
    ),
    (Constraint.LIBRARY, r"Cannot find module ['\"](?P<subject>[^'\"\s]{1,80})['\"]"),
    (Constraint.LIBRARY, r"Could not find a version that satisfies the requirement (?P<subject>[\w.-]+)"),
    (Constraint.LIBRARY, r"No matching distribution found for (?P<subject>[\w.-]+)"),
    (Constraint.LIBRARY, rf"{_START}(?P<subject>[\w.-]{{1,80}}) is not installed\b"),
    (Constraint.LIBRARY, r"\b(?:ModuleNotFoundError|ImportError)\b"),
    (Constraint.COMMAND, r"command not found: (?P<subject>[\w.+-]+)"),
    (Constraint.COMMAND, r"(?:^|[\s:])(?P<subject>[\w.+-]+): (?:command )?not found\b"),
    (Constraint.COMMAND, r"\bcommand not found\b"),
    (Constraint.COMMAND, r"['\"](?P<subject>[\w.+-]+)['\"] is not recognized as an internal or external command"),
    (
        Constraint.COMMAND,
        r"exec(?:utable file)?[^\n]{0,40}['\"](?P<subject>[\w.+-]+)['\"][^\n]{0,40}not found in \$?PATH",
    ),
    (
        Constraint.COMMAND,
        rf"{_START}(?P<subject>[\w.+-]{{1,80}}) (?:not found|is not) (?:in|on) (?:the |your )?\$?PATH\b",
    ),
    (
        Constraint.DISK,
        r"No space left on device|\bENOSPC\b|disk (?:is )?full|Disk quota exceeded|not enough (?:space|room) on the disk",
    ),
    (
        Constraint.MEMORY,
        r"\bMemoryError\b|Cannot allocate memory|\bENOMEM\b|Unable to allocate [\d.]+ [KMGT]iB|OutOfMemory|out of memory|\bOOM[- ]?killed\b",
    ),
    (
        Constraint.NETWORK,
        r"Connection(?:Refused|Reset|Aborted)?Error\b|Connection (?:refused|reset|aborted|timed out)|\b(?:ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ENOTFOUND|EAI_AGAIN)\b"
        r"|(?:Connect|Read)Timeout|(?:connect|read) timed out|Read timed out|NameResolutionError|Name or service not known|Temporary failure in name resolution|nodename nor servname"
        r"|getaddrinfo failed|Could not resolve host|Network is unreachable|No route to host|Max retries exceeded with url|\bSSLError\b|CERTIFICATE_VERIFY_FAILED|ProxyError"
        r"|could not (?:connect to|translate host name)|network (?:access )?is (?:disabled|blocked|unavailable|down|unreachable)|no (?:network|internet)\b",
    ),
    (
        Constraint.PERMISSION,
        r"\bPermissionError\b|Permission denied|\b(?:EACCES|EPERM)\b|Operation not permitted|Access (?:is )?denied|AccessDenied|insufficient (?:privilege|permission)s?"
        r"|Read-only file system|\bEROFS\b|must be owner of|permission denied for (?:table|schema|relation|database)",
    ),
)


def find_limit(error: str | None) -> Limit | None:
    """Tell which limit of the environment an error's text speaks of; None when it speaks of none."""
    if not error:
        return None
    read = error if len(error) <= _MOST_READ else f"{error[: _MOST_READ // 2]}\n{error[-_MOST_READ // 2 :]}"
    for kind, pattern in _RULES:
        match = re.search(pattern, read, re.IGNORECASE)
        if match is not None:
            return Limit(kind, (match.groupdict().get("subject") or "").strip("."))
    return None
