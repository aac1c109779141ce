"""Passwords in command lines and in URLs, and cookies of a login."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.redaction import rule
from pytest_golden.redaction.rule import BREAK, MARK, QUOTE, TO_QUOTE, WORD, compile_late

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


_MYSQL = "mysql mysqldump mysqladmin mysqlimport mysqlsh mariadb mariadb-dump 7z 7za 7zr"
_USER = r"[^\s:%/,=\"'\x1f]{0,64}+"
# The programs, and what precedes a password: GAP separates two arguments, NEXT separates an option from its value, OPEN
# is the quotation mark that the value may begin with, USER is a name.
_BEFORE = {
    "curl": r"GAP(?:-[A-Za-z]{0,8}[uU]|--user|--proxy-user)(?:NEXT|=|)OPENUSER:",
    "http https xh": r"GAP(?:-a|--auth)(?:NEXT|=|)OPENUSER:",
    "htpasswd": r"GAP-[A-Za-z]{0,6}b[A-Za-z]{0,6}GAP[^\s\x1f]{1,256}GAP[^\s\x1f]{1,64}NEXTOPEN",
    "smbclient rpcclient": r"GAP(?:-U|--user)(?:NEXT|=|)OPENUSER%",
    "lftp": r"GAP-u(?:NEXT|)OPENUSER,",
    "sqlplus sqlldr expdp impdp": r"GAP(?:userid=)?USER/(?P<bare>[^\s\"'@\x1f]{1,64}+)(?=@)",
    _MYSQL: r"GAP-pOPEN",
    "docker podman buildah skopeo oras crane nerdctl helm az": r"GAPlogin(?:GAP[^\s\x1f]{1,128}){0,12}?GAP-p(?:NEXT|=)OPEN",
    "twine beeline cqlsh tabcmd mongo mongosh mongodump mongorestore mongoexport mongoimport": r"GAP-p(?:NEXT|=)OPEN",
    "sshpass": r"\A(?:GAP-[vhe])?GAP-p(?:NEXT|)OPEN",
    "redis-cli": r"GAP(?:-a|--pass)NEXTOPEN",
    "sqlcmd bcp isql osql": r"GAP-P(?:NEXT|)OPEN",
    "zip unzip zipcloak": r"GAP-P(?:NEXT|)OPEN",
    "ldapsearch ldapadd ldapmodify ldapdelete ldapwhoami ldappasswd vsql": r"GAP-w(?:NEXT|)OPEN",
    "keytool jarsigner": r"GAP-(?:storepass|keypass|srcstorepass|deststorepass)NEXTOPEN",
    "openssl": r"GAP-(?:pass|passin|passout)NEXTOPENpass:",
    "aws npm yarn pip git gcloud databricks": r"GAP(?:configure|config)GAP(?:set|--global|--local|--add)GAP(?P<name>[\w.:/@\-]{1,128}+)(?:NEXT|=)OPEN",
}
_BLANKS = r"[ \t]{1,16}+"
# In a list, as of JSON or Python, each argument has its own quotation marks.
_COMMA = rf"{QUOTE},(?:\s|{BREAK}){{0,32}}+"
_MAYBE_QUOTE = rf"(?:{QUOTE})?"
_OPEN = rf"(?P<open>{QUOTE})?"
_BARE = rf"{QUOTE}(?P<inner>{TO_QUOTE})|(?P<bare>[^\s\"'\\|;&<>]++)"
_GROUPS = ("quoted", "inner", "bare")
_SEPARATOR = "\x1f"
# Every command line with a password contains one of these.
_SIGNS = (" -", '"-', "'-", "\t-", "config", "sqlplus", "sqlldr", "expdp", "impdp")
# In JSON that is indented, each argument has a line of its own.
_END = compile_late(r"(?<!,)\n|\\{1,7}n(?=[^\w]|[a-z])|[ ](?:\|\|?|&&)[ ]|;[ \n]")


class _Patterns(NamedTuple):
    in_line: re.Pattern[str]
    in_quotes: re.Pattern[str]
    in_words: re.Pattern[str]


@cache
def _compile(before: str) -> _Patterns:
    named = before.replace("USER", _USER)
    in_line = named.replace("GAP", _BLANKS + _MAYBE_QUOTE).replace("NEXT", _BLANKS).replace("OPEN", _OPEN)
    in_quotes = named.replace("GAP", _COMMA + QUOTE).replace("NEXT", _COMMA + QUOTE).replace("OPEN", "")
    in_words = named.replace("GAP", _SEPARATOR).replace("NEXT", _SEPARATOR).replace("OPEN", "")
    if "<bare>" not in before:
        in_line += rf"(?(open)(?P<quoted>{TO_QUOTE})|(?:{_BARE}))"
        in_quotes += rf"(?P<bare>{TO_QUOTE})"
        in_words += r"(?P<bare>[^\x1f]++)"
    return _Patterns(re.compile(in_line), re.compile(in_quotes), re.compile(in_words))


# Patterns are compiled when one of their programs is found.
_PROGRAMS = {name: before for names, before in _BEFORE.items() for name in names.split()}
_PROGRAM = compile_late(
    rf"{WORD}(?P<program>{'|'.join(sorted(_PROGRAMS, key=len, reverse=True))})(?:\.exe)?(?={_BLANKS}|{_COMMA}{QUOTE})"
)
#: The rules of this module change no text that contains none of these in lower case.
COMMAND_KEYWORDS = frozenset({*_PROGRAMS, "cookie", "@"})


def redact_commands(text: str) -> str:
    """Replace the passwords in command lines with the mark."""
    if not any(sign in text for sign in _SIGNS) or not any(program in text for program in _PROGRAMS):
        return text
    pieces: list[str] = []
    done = 0
    for start, end, program in _segments(text):
        patterns = _compile(_PROGRAMS[program])
        is_list = text[start : start + 1] not in {" ", "\t"}
        pattern = patterns.in_quotes if is_list else patterns.in_line
        pieces += (text[done:start], pattern.sub(_mark_argument, text[start:end]))
        done = end
    return "".join((*pieces, text[done:]))


def redact_arguments(arguments: Sequence[str]) -> list[str]:
    """Return the words of a command line with the mark in place of passwords."""
    words = list(arguments)
    for start, word in enumerate(words):
        before = _PROGRAMS.get(word.rpartition("/")[2])
        if before is not None and not any(_SEPARATOR in word for word in words):
            rest = _SEPARATOR.join(("", *words[start + 1 :]))
            return [*words[: start + 1], *_compile(before).in_words.sub(_mark_argument, rest).split(_SEPARATOR)[1:]]
    return words


def _segments(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield where the arguments of each program begin and end: at the end of the command, or at the next program."""
    hits = list(_PROGRAM.finditer(text))
    for number, hit in enumerate(hits):
        highest = hits[number + 1].start() if number + 1 < len(hits) else len(text)
        end = _END.search(text, hit.end(), highest)
        yield hit.end(), end.start() if end else highest, hit["program"]


def _mark_argument(match: re.Match[str]) -> str:
    groups = match.re.groupindex
    group = next(group for group in _GROUPS if group in groups and match[group] is not None)
    is_secret = "name" not in groups or rule.is_secret_name(match["name"])
    return rule.mark_value(match, group) if is_secret else match[0]


# Form of cookies: RFC 6265, sections 4.1 and 4.2.
_HEADER = compile_late(
    r"""(?i:(?:(?<![A-Za-z])|(?<=\\[nrt])|(?<=[\d\[]m))cookies?)(?:\\{0,7}["'])?[ ]?[:=,][ ]?(?:(?P<mapping>\{)\s{0,32}+(?:\\{0,7}["'])?|(?:\\{0,7}["'])?)(?=[^\s])"""
)
# A header ends with its line or with the text that it is in, a mapping with its brace.
_HEADER_REST = compile_late(r"""[^\n}"'\\]{1,8192}+""")
_MAPPING_REST = compile_late(r"[^}]{1,8192}+")
_PAIR = compile_late(
    r"""(?P<name>[\w.\-]{1,64}+)(?:\\{0,7}["'])?(?:=|:[ ]?)(?:\\{0,7}["'])?(?P<value>[^\s;,"'\\{}]{1,4096}+)"""
)
_TELLING = compile_late(r"sess|sid$|token|auth|jwt|csrf|xsrf|login|identity|credential")
_ATTRIBUTES = frozenset({"path", "domain", "expires", "max-age", "samesite"})
_SHORTEST = 8
_SHORTEST_UNNAMED = 24


def redact_cookies(text: str, lowered: str) -> str:
    """Replace the values of session cookies with the mark; `lowered` is the same text in lower case."""
    if "cookie" not in lowered:
        return text

    def find(header: re.Match[str]) -> tuple[int, int, str] | None:
        rest = (_MAPPING_REST if header["mapping"] else _HEADER_REST).match(text, header.end())
        return (*rest.span(), redact_cookie_pairs(rest[0])) if rest else None

    return rule.replace_hits(text, ((header.end(), header) for header in _HEADER.finditer(text)), find)


def redact_cookie_pairs(text: str) -> str:
    """Return the value of a cookie header without the values of session cookies."""
    return _PAIR.sub(_mark_cookie, text)


def is_cookie_name(name: str) -> bool:
    """Tell whether a key or header of this name contains cookies."""
    return name.lower().endswith(("cookie", "cookies"))


def is_signing_in(name: str, value: str) -> bool:
    """Tell whether a cookie identifies a session: by its name, or by a long value of letters and digits."""
    lowered = name.lower()
    if lowered in _ATTRIBUTES or rule.is_reference(value):
        return False
    if _TELLING.search(lowered):
        return len(value) >= _SHORTEST and not value.isalpha()
    return len(value) >= _SHORTEST_UNNAMED and re.search(r"[0-9]", value) is not None and value.isascii()


def _mark_cookie(match: re.Match[str]) -> str:
    if not is_signing_in(match["name"], match["value"]):
        return match[0]
    return match[0][: match.start("value") - match.start()] + MARK


_RUN = compile_late(r""":(?://|\\/\\/)(?P<run>(?:[^\s"'`\\]|\\\\|\\(?![nrtbfu"'\\]))++)""")
_STRICT = compile_late(
    r"([A-Za-z][A-Za-z0-9+.\-]{1,31}://[A-Za-z0-9._%+\-]{1,128}:)(?!\[REDACTED\])[!-?A-~]{3,256}+(?=@[A-Za-z0-9\[])"
)
_AUTHORITY_END = compile_late(r"[/?#]")
# With these schemes a path may contain an @; with others, such as a database's, a password is more likely to.
_OF_FILES = (
    *("http", "https", "ftp", "ftps", "sftp", "scp", "ssh", "git", "svn", "s3", "gs", "file", "imap", "smb"),
    "dav",
)
_LONGEST_SCHEME = 24


def redact_urls(text: str) -> str:
    """Replace the passwords in URLs with the mark."""
    if "@" not in text or ("://" not in text and ":\\/\\/" not in text):
        return text
    return _RUN.sub(_redact_run, text)


def redact_strict_urls(text: str) -> str:
    """Replace the passwords in text that can only be a URL. This is safe for binary content."""
    return _STRICT.sub(rf"\1{MARK}", text) if "://" in text else text


def find_url_password(url: str) -> str | None:
    """Return the password of a URL as it is written there, or None if there is nothing to hide."""
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
        span = _password_span(part, scheme) if "@" in part else None
        parts.append(part if span is None else part[: span[0]] + MARK + part[span[1] :])
        scheme = part[-_LONGEST_SCHEME:]
    return match[0][: len(match[0]) - len(run)] + "://".join(parts)


def _password_span(part: str, scheme: str) -> tuple[int, int] | None:
    """Return the span of the password in what follows `://`; it may contain `@`, and `/` where that cannot begin a path."""
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
    return None if not password or password == MARK or rule.is_reference(password) else (colon + 1, at)
