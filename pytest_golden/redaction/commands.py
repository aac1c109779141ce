"""Passwords in command lines whose option does not say so: `curl -u bob:password`, `mysql -ppassword`, `docker login -p password`.

Options with a secret name (`--password`) are those of `assignments.py`.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.redaction.late import compile_late
from pytest_golden.redaction.names import is_secret_name
from pytest_golden.redaction.references import MARK, is_nothing, is_reference
from pytest_golden.redaction.rule import BREAK, QUOTE, TO_QUOTE, WORD

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MYSQL = "mysql mysqldump mysqladmin mysqlimport mysqlsh mariadb mariadb-dump 7z 7za 7zr"
_USER = r"[^\s:%/,=\"'\x1f]{0,64}+"
# The programs, and what stands before a password: GAP is what parts two arguments, NEXT what parts an option from its
# value, OPEN the quotation mark that the value may begin with, USER a name.
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
# What no command line with a password is without.
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


# Patterns are compiled when one of their programs is met.
_PROGRAMS = {name: before for names, before in _BEFORE.items() for name in names.split()}
_PROGRAM = compile_late(
    rf"{WORD}(?P<program>{'|'.join(sorted(_PROGRAMS, key=len, reverse=True))})(?:\.exe)?(?={_BLANKS}|{_COMMA}{QUOTE})"
)
#: What a text in lower case holds at least one of, when there is anything for these rules in it.
COMMAND_KEYWORDS = frozenset(_PROGRAMS)


def redact_commands(text: str) -> str:
    """Replace the passwords in command lines by the mark."""
    if not any(sign in text for sign in _SIGNS) or not any(program in text for program in _PROGRAMS):
        return text
    pieces: list[str] = []
    done = 0
    for start, end, program in _segments(text):
        segment = text[start:end]
        patterns = _compile(_PROGRAMS[program])
        is_list = segment[:1] not in {" ", "\t"}
        redacted = (patterns.in_quotes if is_list else patterns.in_line).sub(_mark, segment)
        if redacted != segment:
            pieces += (text[done:start], redacted)
            done = end
    return "".join((*pieces, text[done:])) if pieces else text


def redact_arguments(arguments: Sequence[str]) -> list[str]:
    """Give the words of a command line with the passwords in them replaced by the mark."""
    words = list(arguments)
    for start, word in enumerate(words):
        before = _PROGRAMS.get(word.rpartition("/")[2])
        if before is not None and not any(_SEPARATOR in word for word in words):
            rest = _SEPARATOR.join(("", *words[start + 1 :]))
            return [*words[: start + 1], *_compile(before).in_words.sub(_mark, rest).split(_SEPARATOR)[1:]]
    return words


def _segments(text: str) -> Iterator[tuple[int, int, str]]:
    """Give where the arguments of each program stand: to the end of the command, or to the next program."""
    hits = list(_PROGRAM.finditer(text))
    for number, hit in enumerate(hits):
        highest = hits[number + 1].start() if number + 1 < len(hits) else len(text)
        end = _END.search(text, hit.end(), highest)
        yield hit.end(), end.start() if end else highest, hit["program"]


def _mark(match: re.Match[str]) -> str:
    groups = match.re.groupindex
    group = next(group for group in _GROUPS if group in groups and match[group] is not None)
    value = match[group]
    if value == MARK or is_reference(value) or is_nothing(value):
        return match[0]
    if "name" in groups and not is_secret_name(match["name"]):
        return match[0]
    start, end = match.span(group)
    whole, begin = match[0], match.start()
    return whole[: start - begin] + MARK + whole[end - begin :]
