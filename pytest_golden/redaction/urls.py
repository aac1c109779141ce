"""Passwords in URLs of any scheme: `postgres://user:password@host/db`. The user and everything else stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.redaction.late import compile_late
from pytest_golden.redaction.references import MARK, is_reference

if TYPE_CHECKING:
    import re

_RUN = compile_late(r""":(?://|\\/\\/)(?P<run>(?:[^\s"'`\\]|\\\\|\\(?![nrtbfu"'\\]))++)""")
_AUTHORITY_END = compile_late(r"[/?#]")
# Of these schemes a path may hold an @; of the others, such as a database's, a password is likelier to.
_OF_FILES = (
    "http",
    "https",
    "ftp",
    "ftps",
    "sftp",
    "scp",
    "ssh",
    "git",
    "svn",
    "s3",
    "gs",
    "file",
    "imap",
    "smb",
    "dav",
)
_LONGEST_SCHEME = 24

#: What a text holds at least one of, when there is anything for these rules in it.
URL_KEYWORDS = frozenset({"@"})


def redact_urls(text: str) -> str:
    """Replace the passwords in URLs by the mark."""
    if "@" not in text or ("://" not in text and ":\\/\\/" not in text):
        return text
    return _RUN.sub(_redact_run, text)


def find_url_password(url: str) -> str | None:
    """Give the password of a URL as it is written there, or None when it has none worth hiding."""
    scheme, separator, rest = url.partition("://")
    span = _password_span(rest, scheme) if separator else None
    return None if span is None else rest[span[0] : span[1]]


def _redact_run(match: re.Match[str]) -> str:
    run = match["run"]
    if "@" not in run:
        return match[0]
    scheme = match.string[max(0, match.start() - _LONGEST_SCHEME) : match.start()]
    parts = []
    for part in run.split("://"):
        parts.append(_redact_part(part, scheme))
        scheme = part[-_LONGEST_SCHEME:]
    return match[0][: len(match[0]) - len(run)] + "://".join(parts)


def _redact_part(part: str, scheme: str) -> str:
    span = _password_span(part, scheme) if "@" in part else None
    return part if span is None else part[: span[0]] + MARK + part[span[1] :]


def _password_span(part: str, scheme: str) -> tuple[int, int] | None:
    """Give where the password lies in what follows `://`; it may hold `@`, and `/` when no port stands there."""
    authority_end = found.start() if (found := _AUTHORITY_END.search(part)) else len(part)
    at = part.rfind("@", 0, authority_end)
    colon = part.find(":", 0, at if at >= 0 else authority_end)
    if colon < 0 or part.startswith("["):
        return None
    if at >= 0 and not scheme[-_LONGEST_SCHEME:].lower().endswith(_OF_FILES):
        at = part.rfind("@", 0, question if (question := part.find("?", at)) >= 0 else len(part))
    if at < 0:
        rest = part[colon + 1 : authority_end]
        at = part.rfind("@")
        if at < 0 or (rest.isdigit() and len(rest) <= 5) or not rest:
            return None
    password = part[colon + 1 : at]
    return None if not password or password == MARK or is_reference(password) else (colon + 1, at)
