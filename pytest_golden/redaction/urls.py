"""Passwords in URLs of any scheme: `postgres://user:password@host/db`. The user and everything else stay."""

from __future__ import annotations

import re

from pytest_golden.redaction.references import MARK, is_reference

_RUN = re.compile(r""":(?://|\\/\\/)(?P<run>(?:[^\s"'`\\]|\\\\|\\(?![nrtbfu"'\\]))++)""")
_AUTHORITY_END = re.compile(r"[/?#]")
# Of these schemes a path may hold an @; of the others, such as a database's, a password is likelier to.
_OF_FILES = re.compile(r"(?:http|https|ftp|ftps|sftp|scp|ssh|git|svn|s3|gs|file|imap|smb|webdav|dav)$", re.IGNORECASE)
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
    holds_files = _OF_FILES.search(scheme[-_LONGEST_SCHEME:]) is not None
    span = _password_span(rest, holds_files=holds_files) if separator else None
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
    span = _password_span(part, holds_files=_OF_FILES.search(scheme) is not None)
    return part if span is None else part[: span[0]] + MARK + part[span[1] :]


def _password_span(part: str, *, holds_files: bool) -> tuple[int, int] | None:
    """Give where the password lies in what follows `://`; it may hold `@`, and `/` when no port stands there."""
    authority_end = found.start() if (found := _AUTHORITY_END.search(part)) else len(part)
    at = part.rfind("@", 0, authority_end)
    colon = part.find(":", 0, at if at >= 0 else authority_end)
    if colon < 0 or part.startswith("["):
        return None
    if at >= 0 and not holds_files:
        at = part.rfind("@", 0, question if (question := part.find("?", at)) >= 0 else len(part))
    if at < 0:
        rest = part[colon + 1 : authority_end]
        at = part.rfind("@")
        if at < 0 or (rest.isdigit() and len(rest) <= 5) or not rest:
            return None
    password = part[colon + 1 : at]
    return None if not password or is_reference(password) else (colon + 1, at)
