"""Decide whether a lesson is worth storing: certain, general, actionable; and find the errors of the environment. Pure."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.storage.columns import STOP_WORDS, find_words
from pytest_golden.values.checking import word_set

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pytest_golden.learning.lessons.model import SkillMemory

_MOST_READ = 4_000
_MONTH = (
    "Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
    "|Nov(?:ember)?|Dec(?:ember)?"
)
_FILE_ENDINGS = (
    "avro|bat|bz2|cfg|conf|csv|dat|db|duckdb|env|feather|gz|html?|ini|ipynb|jinja2?|jsonl?|jpe?g|js|lock|log|md|ndjson"
    "|orc|parquet|pdf|pem|pickle|pkl|png|ps1|py|rs|sh|sql|sqlite3?|svg|tar|tgz|tmp|toml|tsv|ts|txt|wal|whl|xlsx?|xml"
    "|ya?ml|zip|zst"
)
_SEGMENT = r"[\w.~+@%=,-]+"
# Dates that stand for a limit or for nothing, not for a day.
_GENERAL_DAYS = word_set("""
    0000-00-00 0001-01-01 1582-10-15 1677-09-21 1899-12-30 1900-01-01 1904-01-01 1970-01-01 1999-12-31 2000-01-01
    2000-02-29 2038-01-19 2262-04-11 9999-12-31
""")
_GENERAL_PATHS = (
    r"/(?:dev|proc|sys)(?:/[\w.*-]+)*/?|/(?:tmp|etc|usr|var|opt|home|bin|root|mnt)/?|/etc/[\w.-]+|/etc/ssl/certs/?"
    r"|/usr/bin/(?:env|python3?)|/bin/(?:ba)?sh|/var/(?:tmp|log|run)/?|~/?|~/\.[\w.-]+(?:/[\w.-]+)*/?"
    r"|/?path/to/.*|[A-Z]:\\path\\to\\.*|/(?:api|v\d+|healthz?|metrics|login|status)(?:/[\w{}:.-]*)*|/\d+|/[a-z]"
)
_GENERAL_HOSTS = (
    r"(?i)(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\]|(?:[\w-]+\.)*example(?:\.\w+)?|pypi\.org|(?:www\.)?python\.org|docs\.[\w.-]+"
    r"|[\w-]+\.readthedocs\.io|(?:my[-_]?)?(?:host|hostname|server|bucket|user|account|project|domain|url|address|address:port)"
    r"|\W.*)?"
)
_GENERAL_ADDRESSES = r"127\.\d+\.\d+\.\d+|0\.0\.0\.0|255\.255\.255\.\d+|169\.254\.169\.254|8\.8\.[48]\.[48]|1\.1\.1\.1|\d+\.0\.0\.0|192\.168\.0\.0|172\.16\.0\.0"
_VERSION_BEFORE = r"(?i)(?:\bv|versions?[ =:]*|[=~<>]=?\s*|-)$"
_API_VERSION_BEFORE = r"(?i)version[ =:]+$"
_HOURS_OF_DAY = frozenset({"00:00", "23:59", "24:00", "00:00:00", "23:59:59", "24:00:00", "12:00"})
_ROUND_ZEROS = 3
_SECONDS = 3600
_MOST_DIGITS = 100
LEAST_CONFIDENCE = 0.7
MOST_CHARACTERS = 800
_LEAST_WORDS = 3
_MOST_NAMED, _MOST_OF_NAMED = 3, 60
_QUOTED = r"`[^`\s][^`]*`"
# Advice with only these words and stop words says nothing to do.
_VAGUE = word_set("""
    about account actually after again alright always another any anything approach approaches appropriate
    appropriately attempt attempts attention aware bad been before best better both broken bug bugs can cant care
    careful carefully carry cause caution cautious change check checking checks clear clearly code consider correct
    correctly could debug debugging different do docs documentation does doesn doing don done dont double each easy
    effort ensure error errors every everything exact exactly expect expected fail failed failing fails failure
    failures find first fix fixed fixes fixing follow follows forget general get gets give given go goes good guess
    guideline guidelines handle handled handling happen happens hard he help here idea if important instead
    instruction instructions isn issue issues just keep keeps know known last later learn least less lesson lessons
    let like look looking make makes making may maybe me mind mistake mistakes more most much must my need needed
    needs never new next nothing ok okay once one only other others our out over patient pay perhaps persist plan
    please possible practice practices prepared problem problems proceed proper properly quality quick quickly re
    read ready really reliable remember repeat resolve rest result results retry review right run running same
    second see should shouldn simple simply slow slowly so solution solutions solve solved some something sometimes
    soon specific step steps still stop strategy succeed succeeds success successful successfully suitable sure task
    tasks test tested testing tests them thing things think thorough thoroughly through time times too tool tools
    tried try trying twice understand until up us use used useful uses using usually valid validate verify very want
    watch way ways we well while whole wise without won work worked working works worse worst would wrong your
""")
_MOST_OF_ERROR = 20_000
# The start of a name. Patterns limit its length, since a long word would be tried from each of its characters.
_START = r"(?<![\w.+-])"


def check_lesson(skill: SkillMemory) -> tuple[str, ...]:
    """Return the reasons to refuse a lesson; none when it is good.

    It must have a confidence of 0.7 or more, be neither empty nor long, be general (no path, id, date, time or address in
    `lesson`), and be no platitude. The other fields are not judged: they describe the case that it came from.
    """
    return tuple(_find_reasons(skill))


def _find_reasons(skill: SkillMemory) -> Iterator[str]:
    if skill.confidence < LEAST_CONFIDENCE:
        yield f"its confidence is {skill.confidence:g}, below {LEAST_CONFIDENCE:g}"
    text = skill.lesson.strip()
    words = find_words(text[: MOST_CHARACTERS * 2], keep_all=True)
    if not words:
        yield "it is empty"
        return
    if len(text) > MOST_CHARACTERS:
        yield f"it has {len(text):,} characters, and at most {MOST_CHARACTERS} are read where it is shown"
    if len(words) < _LEAST_WORDS:
        yield f"it is too short to act on: {text!r:.60}"
    elif is_platitude(text):
        yield "it says nothing to act on"
    if found := find_specifics(text):
        named = ", ".join(f"{one.kind} {text[one.start : one.end]:.{_MOST_OF_NAMED}}" for one in found[:_MOST_NAMED])
        yield f"it is about one task alone: {named}"


def is_platitude(text: str) -> bool:
    """Return whether advice has no word that says what to do, or with what; a word in backticks does."""
    return re.search(_QUOTED, text) is None and all(
        word in _VAGUE or word in STOP_WORDS or (len(word) == 1 and word.isascii()) for word in find_words(text)
    )


class Specific(NamedTuple):
    """A part of a text that belongs to one task, and its kind."""

    kind: str
    start: int
    end: int


def find_specifics(text: str) -> tuple[Specific, ...]:
    """Return the parts that belong to one task only, in order; of overlapping parts that of the first rule.

    Only the first 4,000 characters are read. Similar general parts are left alone: `and/or`, `pandas 2.2`, `HTTP 429`,
    `YYYY-MM-DD`, `/dev/null`.
    """
    read = text[:_MOST_READ]
    taken: list[Specific] = []
    for rule in _SPECIFIC_RULES:
        for found in _find(rule, read):
            if not any(found.start < other.end and other.start < found.end for other in taken):
                taken.append(found)
    return tuple(sorted(taken, key=lambda one: one.start))


def generalise(text: str) -> str:
    """Return the text with a mark in place of each part that belongs to one task: `<path>`, `<date>`, `<id>` and so on.

    Text after the first 4,000 characters is left out.
    """
    read = text[:_MOST_READ]
    pieces, last = [], 0
    for kind, start, end in find_specifics(read):
        pieces += [read[last:start], f"<{kind}>"]
        last = end
    return "".join((*pieces, read[last:]))


class _Rule(NamedTuple):
    kind: str
    pattern: str
    # Given the found text, the text before it and the match; None: it is never general.
    is_general: Callable[[str, str, re.Match[str]], bool] | None = None


def _find(rule: _Rule, text: str) -> Iterator[Specific]:
    for match in re.finditer(rule.pattern, text):
        found = match[0].rstrip(".,;:")
        before = text[max(0, match.start() - 12) : match.start()]
        if found and not (rule.is_general and rule.is_general(found, before, match)):
            yield Specific(rule.kind, match.start(), match.start() + len(found))


def _is_general_url(found: str, _: str, match: re.Match[str]) -> bool:
    if match["scheme"].lower() == "file":
        return not match["host"].strip("/")
    host = match["host"].rpartition("@")[2].partition("/")[0].partition("?")[0]
    named = host if host.startswith("[") else host.partition(":")[0]
    return re.fullmatch(_GENERAL_HOSTS, named.rstrip(".,;:")) is not None and not _has_day(found)


def _is_general_mail(_: str, __: str, match: re.Match[str]) -> bool:
    host = match["host"].lower()
    return match["user"] == "git" or host.startswith("example.") or ".example." in f".{host}."


def _is_general_path(found: str, before: str, _: re.Match[str]) -> bool:
    # An end tag, the rest of a variable or a pattern, and the text after a scheme are not paths.
    if re.search(r"[<\w}>)\]*%$]$|:$", before) or any(sign in found for sign in "<>{}$*|%"):
        return True
    return re.fullmatch(_GENERAL_PATHS, found) is not None and not _has_day(found)


def _is_general_day(found: str, before: str, _: re.Match[str]) -> bool:
    return found[:10].replace("/", "-") in _GENERAL_DAYS or re.search(_API_VERSION_BEFORE, before) is not None


def _is_general_time(found: str, before: str, _: re.Match[str]) -> bool:
    return found in _HOURS_OF_DAY or before.endswith(("+", "-", "[", ":", "UTC", "/"))


def _is_general_address(found: str, before: str, _: re.Match[str]) -> bool:
    address = found.partition(":")[0]
    is_octets = all(int(part) <= 255 for part in address.split("."))
    return (
        not is_octets
        or re.fullmatch(_GENERAL_ADDRESSES, address) is not None
        or bool(re.search(_VERSION_BEFORE, before))
    )


def _is_general_number(found: str, before: str, _: re.Match[str]) -> bool:
    # Python does not convert numbers of thousands of digits.
    number = int(found[:_MOST_DIGITS])
    if found.endswith("0" * _ROUND_ZEROS) or number % _SECONDS == 0 or len(set(found)) == 1:
        return True
    near_powers = {number - 1, number, number + 1}
    if any(one & (one - 1) == 0 for one in near_powers if one > 0):
        return True
    # An error's number, such as ORA-00942 or KB4012598.
    return re.search(r"[A-Z]{2,}[-_]?$|[.,]$", before) is not None


def _is_general_hex(found: str, before: str, _: re.Match[str]) -> bool:
    # `1e10`, and CVE-2021-44228 or the end of a word.
    return re.fullmatch(r"\d+e\d+", found, re.IGNORECASE) is not None or before.endswith("#")


def _has_day(text: str) -> bool:
    return re.search(r"\d{4}[-/_]?\d{2}[-/_]?\d{2}", text) is not None


_SPECIFIC_RULES = (
    _Rule("url", r"\b(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{1,20})://(?P<host>[^\s'\"`)\]>,;]*)", _is_general_url),
    _Rule(
        "e-mail",
        r"(?<![\w.+-])(?P<user>[\w.+-]+)@(?P<host>[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,})\b",
        _is_general_mail,
    ),
    _Rule("id", r"(?<![0-9A-Za-z])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![0-9A-Za-z])"),
    _Rule("id", r"(?<![0-9A-Za-z])(?=[A-Z]*\d)[0-7][0-9A-HJKMNP-TV-Z]{25}(?![0-9A-Za-z])"),
    _Rule("id", r"\bsha(?:1|256|512):[0-9a-f]{6,}"),
    # Windows and UNC, then POSIX from the root, the home, here and above, then paths that end in a file or a folder.
    _Rule("path", r"(?<![A-Za-z])[A-Za-z]:(?:\\{1,2}|/)[\w. ~$@-]*\w(?:[\\/]+[\w.~$@ -]*\w)*[\\/]?", _is_general_path),
    _Rule("path", r"(?<![\\\w])\\\\[\w.-]+\\[\w.$-]+(?:\\[\w.$-]+)*"),
    _Rule("path", r"(?:(?<=^)|(?<=[\s'\"`(=:,\[>]))(?:~|\.{1,2})?/(?:[\w.~+@%=,{}<>$*-]+/?)+", _is_general_path),
    _Rule(
        "path", rf"(?<![\w/.<\\%$}}:])(?:{_SEGMENT}/)+[\w.+@%=,~-]*\w\.(?:{_FILE_ENDINGS})\b(?!\()", _is_general_path
    ),
    _Rule("path", rf"(?<![\w/.<\\%$}}:])(?:{_SEGMENT}/){{2,}}(?=[\s'\"`),;.]|$)", _is_general_path),
    _Rule(
        "date",
        r"(?<!\d)(?:19|20|99|00)\d{2}(?P<sep>[-/])(?:0[0-9]|1[0-2])(?P=sep)(?:[0-2]\d|3[01])(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?)?(?:Z|[+-]\d{2}:?\d{2})?(?!\d)",
        _is_general_day,
    ),
    _Rule(
        "date",
        r"(?<![\d.])(?:0?[1-9]|[12]\d|3[01])(?P<sep>[./-])(?:0?[1-9]|[12]\d|3[01])(?P=sep)(?:19|20)\d{2}(?![\d.])",
    ),
    _Rule("date", r"(?<!\d)20[0-4]\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:T?\d{4,6}Z?)?(?!\d)"),
    _Rule("date", r"(?<!\d)20\d{2}-W[0-5]\d\b"),
    _Rule(
        "date",
        (
            rf"\b(?:{_MONTH})\.? \d{{1,2}}(?:st|nd|rd|th)?,? (?:19|20)\d{{2}}\b|\b\d{{1,2}}(?:st|nd|rd|th)?\.? (?:{_MONTH})\.?,? (?:19|20)\d{{2}}\b"
            rf"|\b(?:{_MONTH}) (?:19|20)\d{{2}}\b|\b(?!May)(?:{_MONTH}) (?:[12]?\d|3[01])(?:st|nd|rd|th)?\b(?![.\d])"
            rf"|\b(?:[12]?\d|3[01])(?:st|nd|rd|th)?\.? (?!May|Mar\b|Dec\b)(?:{_MONTH})\b"
        ),
    ),
    _Rule(
        "time",
        r"(?<![\d.])(?:[01]?\d|2[0-4]):[0-5]\d(?::[0-5]\d(?:[.,]\d+)?)?(?![\d:])(?!\s*\])|\b(?:1[0-2]|[1-9]) ?[ap]m\b",
        _is_general_time,
    ),
    _Rule("address", r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.]*\d)(?::\d+)?", _is_general_address),
    _Rule("host", r"(?<![\w./@-])[a-z0-9-]+(?:\.[a-z0-9-]+)*\.(?:internal|corp|lan|intra|intranet)\b(?![.(\w])"),
    _Rule("id", r"\b0[xX][0-9a-fA-F]{9,}\b"),
    _Rule(
        "id",
        r"(?<![0-9A-Za-z])(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64}(?![0-9A-Za-z])|(?<![0-9A-Za-z])(?=[A-F]*\d)(?=\d*[A-F])[0-9A-F]{12,64}(?![0-9A-Za-z])",
        _is_general_hex,
    ),
    _Rule(
        "id",
        (
            r"(?i)\b(?:ticket|issue|incident|job|run|order|customer|invoice|build|PR|pull request|merge request|user|account|batch|request|pid|task)"
            r"(?:(?:[ _-]?(?:id|no\.?|number|nr\.?))[ =:#]{0,3}| ?#)\d{2,}\b"
            r"|\b(?:ticket|incident|issue|story) [A-Z][A-Z0-9]+-\d+\b|\bids?(?: is|[ =:#])[ #]?\d{3,}\b|\barn:[\w-]+:\S+"
        ),
    ),
    _Rule("id", r"\b(?!CVE|GHSA|RHSA|PYSEC|ISO|IEC|DIN|EN|RFC)[A-Z]{2,6}-(?:19|20)\d{2}-\d+\b"),
    _Rule("id", r"(?<![\w#&.])(?<!\d[,])\d{6,}(?![\w]|[.,]\d)", _is_general_number),
)


class Constraint(StrEnum):
    """A lack or a limit of the environment that a tool runs in."""

    LIBRARY = "missing library"
    COMMAND = "missing command"
    NETWORK = "network"
    PERMISSION = "permission"
    DISK = "disk"
    MEMORY = "memory"


class Limit(NamedTuple):
    """A constraint, and the library, command or thing concerned; blank when the error does not name it."""

    kind: Constraint
    subject: str = ""


#: Constraints that other arguments do not remove.
LASTING = frozenset({Constraint.LIBRARY, Constraint.COMMAND, Constraint.DISK})


# The first match counts; its group is the subject.
_LIMITS: Mapping[Constraint, tuple[str, ...]] = {
    Constraint.LIBRARY: (
        r"No module named ['\"]?(?P<subject>[\w.]+)",
        r"cannot import name ['\"]?(?P<subject>\w+)['\"]? from (?!partially)",
        r"Missing optional dependency ['\"](?P<subject>[\w.-]+)",
        rf"{_START}(?P<subject>lib[\w.+-]{{1,80}}\.(?:so|dylib|dll)[\w.]{{0,20}}): cannot open shared object",
        r"Cannot find module ['\"](?P<subject>[^'\"\s]{1,80})['\"]",
        r"Could not find a version that satisfies the requirement (?P<subject>[\w.-]+)",
        r"No matching distribution found for (?P<subject>[\w.-]+)",
        rf"{_START}(?P<subject>[\w.-]{{1,80}}) is not installed\b",
        r"\b(?:ModuleNotFoundError|ImportError)\b",
    ),
    Constraint.COMMAND: (
        r"command not found: (?P<subject>[\w.+-]+)",
        r"(?:^|[\s:])(?P<subject>[\w.+-]+): (?:command )?not found\b",
        r"\bcommand not found\b",
        r"['\"](?P<subject>[\w.+-]+)['\"] is not recognized as an internal or external command",
        r"exec(?:utable file)?[^\n]{0,40}['\"](?P<subject>[\w.+-]+)['\"][^\n]{0,40}not found in \$?PATH",
        rf"{_START}(?P<subject>[\w.+-]{{1,80}}) (?:not found|is not) (?:in|on) (?:the |your )?\$?PATH\b",
    ),
    Constraint.DISK: (
        r"No space left on device|\bENOSPC\b|disk (?:is )?full|Disk quota exceeded|not enough (?:space|room) on the disk",
    ),
    Constraint.MEMORY: (
        r"\bMemoryError\b|Cannot allocate memory|\bENOMEM\b|Unable to allocate [\d.]+ [KMGT]iB|OutOfMemory|out of memory|\bOOM[- ]?killed\b",
    ),
    Constraint.NETWORK: (
        r"Connection(?:Refused|Reset|Aborted)?Error\b|Connection (?:refused|reset|aborted|timed out)|\b(?:ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ENOTFOUND|EAI_AGAIN)\b",
        r"(?:Connect|Read)Timeout|(?:connect|read) timed out|Read timed out|NameResolutionError|Name or service not known|Temporary failure in name resolution|nodename nor servname",
        r"getaddrinfo failed|Could not resolve host|Network is unreachable|No route to host|Max retries exceeded with url|\bSSLError\b|CERTIFICATE_VERIFY_FAILED|ProxyError",
        r"could not (?:connect to|translate host name)|network (?:access )?is (?:disabled|blocked|unavailable|down|unreachable)|no (?:network|internet)\b",
    ),
    Constraint.PERMISSION: (
        r"\bPermissionError\b|Permission denied|\b(?:EACCES|EPERM)\b|Operation not permitted|Access (?:is )?denied|AccessDenied|insufficient (?:privilege|permission)s?",
        r"Read-only file system|\bEROFS\b|must be owner of|permission denied for (?:table|schema|relation|database)",
    ),
}


def find_limit(error: str | None) -> Limit | None:
    """Return the limit of the environment that an error's text names; None when it names none."""
    if not error:
        return None
    read = error if len(error) <= _MOST_OF_ERROR else f"{error[: _MOST_OF_ERROR // 2]}\n{error[-_MOST_OF_ERROR // 2 :]}"
    for kind, pattern in ((kind, pattern) for kind, patterns in _LIMITS.items() for pattern in patterns):
        if match := re.search(pattern, read, re.IGNORECASE):
            return Limit(kind, (match.groupdict().get("subject") or "").strip("."))
    return None
