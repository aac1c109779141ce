"""Everything in passed variables and small passed files is hidden, whatever its name, unless it is ordinary.

A value such as `production`, `localhost` or `us-east-1` must stay readable, and so must the values of PATH, HOME, TZ and the
like: a log in which they are hidden tells nothing. Values are looked for inside of values: a line of a file, a list, JSON
in JSON, the password of a URL, a connection string, base64.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pytest_golden.redaction import rule
from pytest_golden.redaction.command_secrets import find_url_password
from pytest_golden.redaction.literals import LINE, SHORTEST_NUMBER, is_worth_hiding, list_pairs, walk_tree
from pytest_golden.redaction.rule import compile_late
from pytest_golden.values.checking import word_set

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


# Of larger files and variables, only what has a secret name is searched for.
_LARGEST = 4 << 10
_DEEPEST = 4
_LONGEST_WORD = 32
# Variables that everybody has, or that say how a program runs.
_ORDINARY_NAMES = word_set("""
    ci colorterm columns conda_prefix display editor force_color github_actor github_base_ref github_head_ref github_ref
    github_ref_name github_repository github_run_id github_sha github_workspace gopath home hostname java_home language lang ld_library_path
    lines log_level logname no_color oldpwd pager path pwd pythondontwritebytecode pythonhashseed pythonhome pythonioencoding
    pythonpath pythonunbuffered pythonutf8 pythonwarnings shell spark_home temp term tmp tmpdir tz user virtual_env
""")
_ORDINARY_STARTS = ("lc_", "xdg_", "omp_")
# Names of environments, programs, results, users and hosts, which logs are full of.
_ORDINARY_WORDS = word_set("""
    acceptance administrator airflow always alpine analytics baseline bigquery canary checkout clickhouse command connect
    content created critical customers dagster darwin databricks dataset datasets debian docker duckdb eastus eastus2 errors
    europe expected failed failure fedora github github.com gitlab gitlab.com global index.docker.io inputs integration
    jenkins kubernetes latest linux logging manual memory metrics mongodb monitoring native network normal northeurope oracle
    orders outputs parquet passed payments pipeline pipelines podman prefect preprod preview product products project projects
    pypi.org pytest quality readonly redshift registry regression release report reporting reports result results runner
    sandbox schema services session shared signal skipped snowflake source sqlite sqlserver stable status stderr stdout steps
    streaming strict systemd tables target tests timeout transform ubuntu unstable update upload verbose vscode warehouse
    warning warnings westeurope westus westus2 windows worker workers workspace
""")
_PATH = (
    r"(?:~|\.{1,2}|[a-z]:|/(?:app|applications|bin|builds|data|dev|etc|home|lib\d{0,2}|library|media|mnt|opt|private|proc|root"
    r"|run|sbin|srv|sys|tmp|users|usr|var|work|workspaces?)(?![\w.@+\-]))(?:[/\\][\w.@+\-]{0,32}+){0,16}+"
)
_ORDINARY = compile_late(
    "(?i)"
    r"(?:19|20)\d\d-?[01]\d-?[0-3]\d(?:[T ][\d:.,+Z\-]*)?"  # a day, a time
    r"|v?\d{1,4}(?:\.\d{1,5}){1,2}(?:[.\-]?(?:a|b|c|rc|alpha|beta|dev|post)[.\-]?\d{0,6})?"  # a version
    r"|\d{1,6} ?(?:[kmgt]i?b|ms|seconds|minutes|hours|days)"
    r"|(?:af|ap|asia|australia|ca|cn|eu|europe|il|me|mx|northamerica|sa|southamerica|us)(?:-gov)?"  # a region of a cloud
    r"-(?:north|south|east|west|central){1,2}-?\d{1,2}(?:-?[a-f])?"
    r"|(?:c|posix|[a-z]{2}_[a-z]{2})(?:[.@][\w\-]{1,12})?|(?:utf|iso|windows)-?[\d\-]{1,10}"  # a locale, an encoding
    r"|(?:africa|america|asia|atlantic|australia|etc|europe|indian|pacific)/[a-z_/]{2,30}"
    r"|(?:[a-z][a-z0-9+.]{1,15}://)?(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\]|host\.docker\.internal)"  # this machine
    r"(?::\d{1,5})?(?:/[a-z_]{0,24}){0,3}"
    rf"|{_PATH}(?:[:;]{_PATH}){{0,200}}+"
)


def passed_literals(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Return what is hidden of passed variables: each value, and the values in those that are documents."""
    named = ((name.lower(), value) for name, value in variables.items())
    told = [value for name, value in named if name not in _ORDINARY_NAMES and not name.startswith(_ORDINARY_STARTS)]
    return tuple(dict.fromkeys(part for value in told for part in (*_only_telling(value), *_list_all(value))))


def literals_in_content(text: str) -> tuple[str, ...]:
    """Return what is hidden of a small passed file: its lines and its values; the whole if no line tells anything."""
    return () if len(text) > _LARGEST else _list_all(text) or _only_telling(text)


@lru_cache(maxsize=64)
def _list_all(text: str) -> tuple[str, ...]:
    return _only_telling(*([] if "\n" in text.strip() else [text]), *_list_parts(text))


def _only_telling(*values: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value.strip() for value in values if not is_ordinary(value)))


def is_ordinary(value: str) -> bool:
    """Tell whether a value needs not be hidden, unless its name says so."""
    stripped = value.strip()
    if not is_worth_hiding(stripped) or stripped.lower() in _ORDINARY_WORDS or _ORDINARY.fullmatch(stripped):
        return True
    return sum(map(str.isdigit, stripped)) < SHORTEST_NUMBER and rule.NUMBER.fullmatch(stripped) is not None


def is_word(value: str) -> bool:
    """Tell whether a value is a plain word, which is hidden only where it is a word of its own."""
    return value.isascii() and value.isalpha() and len(value) <= _LONGEST_WORD and (value.islower() or value.istitle())


_INNER = compile_late(r"[\w.\-]{1,64}+[ \t]{0,4}=[ \t]{0,4}(?:\"([^\"\n]*)\"|'([^'\n]*)'|([^\s;,&\"']+))")
_ELEMENT = compile_late(r">\s*([^<>\s][^<>]*)</")
_TELLING = compile_late(r"\d|[a-z][A-Z]|[^\w\s.:/\-]")
# A word as programs make them up, in whatever notation stands around it; not a piece of base64.
_MADE_UP = compile_late(r"(?<![\w+])(?=\w*[a-z])(?=\w*[A-Z])(?=\w*\d)\w{8,64}(?![\w+/=])")
_SHELL = "[]{}()<>:,;-#\"' \t"


def _list_parts(text: str, depth: int = 0) -> Iterator[str]:
    """Yield the values in a text: of a document, a list, a URL, a connection string, `user:password`, or that in base64."""
    if len(text) > _LARGEST or depth > _DEEPEST or is_ordinary(text):
        return
    for part in dict.fromkeys(_split(text, is_document=depth == 0 or "\n" in text)):
        # What is left of a URL without its scheme is not a value.
        if part != text and not part.startswith("//"):
            yield part
            yield from _list_parts(part, depth + 1)


def _split(text: str, *, is_document: bool) -> Iterator[str]:
    if is_document:
        yield from (value for _, value in list_pairs(text))
        yield from _list_lines(text)
    elif text[:1] in {"{", "[", '"'}:
        with suppress(ValueError, RecursionError):
            yield from (value for _, value in walk_tree(json.loads(text)))
    told = [part for found in _INNER.finditer(text) for part in found.groups() if part] + _ELEMENT.findall(text)
    if "\n" not in text and text[:1] not in {"{", "["}:
        told += re.split("[,;]", text)
    yield from filter(_TELLING.search, told)
    yield from _MADE_UP.findall(text)
    if (password := find_url_password(text)) is not None:
        yield from (password, unquote(password))
    if decoded := _decode(text.strip()):
        yield from (decoded, decoded.partition(":")[2])


def _list_lines(text: str) -> Iterator[str]:
    """Yield the lines of a file whose value is not ordinary, and of those without a name also their telling words."""
    for line in map(str.strip, text.splitlines()):
        is_heading = line[:1] == "[" and line[-1:] == "]" and not any(sign in line for sign in ",\"'")
        pair = LINE.match(line)
        if is_heading or is_ordinary((pair["value"] if pair else line).strip(_SHELL)):
            continue
        yield line
        if not pair and line[:1] != "#":
            words = (word.strip(_SHELL) for word in line.split())
            yield from (word for word in words if not word.isalpha() or _TELLING.search(word))


def _decode(text: str) -> str | None:
    """Return the readable text that this is in base64."""
    try:
        plain = base64.b64decode(text + "=" * (-len(text) % 4), validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return None
    return plain if all(sign.isprintable() or sign in "\t\r\n" for sign in plain) else None
