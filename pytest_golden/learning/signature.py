"""The form of an error that stays the same from run to run: what differs each time is taken out, what tells the cause stays.

Pure text. What of a longer text is looked at is told by `learning.causes`.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache

from pytest_golden.learning.causes import find_main_cause
from pytest_golden.redaction.escapes import strip_escapes

_MOST_READ, _MOST_KEPT = 1_200, 1_000
_MOST_ROUNDS = 5
_DAY = r"\d{4}[-/]\d{2}[-/]\d{2}|\d{2}[-/.]\d{2}[-/.]\d{4}"
_CLOCK = r"\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?"
_QUOTED = re.compile(r"(?<!\w)'[^']{0,400}'(?!\w)|\"[^\"]{0,400}\"|`[^`]{0,400}`")
# What stands in these places tells one cause from another: a module, an attribute, an argument, a command.
_TELLING_BEFORE = re.compile(
    r"(?:[Nn]o module named|cannot import name|has no attribute|unexpected keyword argument|positional arguments?:"
    r"|optional dependency|can't load plugin:|no such option:?|unrecognized arguments?:|unknown (?:option|command|format|method)"
    r"|codec|encoding|unsupported operand type\(s\) for \S{1,3}:|instances of|unhashable type:|Command) $",
    re.IGNORECASE,
)
_TELLING_AFTER = re.compile(r" (?:object(?: has| is|$)|codec\b|has no attribute\b)")
_IMPORTED_FROM = re.compile(r"cannot import name '[^']*' from $")
_MISSING_COMMAND = re.compile(r"No such file or directory: $")
_COMMAND = re.compile(r"[\w+-]{1,40}")
_TYPES = frozenset(
    {
        *(
            "str",
            "int",
            "float",
            "bool",
            "bytes",
            "list",
            "dict",
            "tuple",
            "set",
            "NoneType",
            "object",
            "datetime",
            "date",
        ),
        *("Decimal", "DataFrame", "Series", "Timestamp", "Timedelta", "timedelta", "ndarray", "generator", "function"),
        *("method", "module", "type", "category", "int64", "float64", "datetime64[ns]", "Path", "PosixPath", "Index"),
    }
)
# A quoted sentence, which holds the cause, and not a quoted value.
_SENTENCE = re.compile(
    r"\w*(?:Error|Exception|Errno)\b|\b(?:not|cannot|could|failed|is|was|does|has|with|were|must)\b|['`\"]"
)
_QUERY = re.compile(r"\s*(?:select|insert|update|delete|with|create|alter|drop|merge|copy)\b", re.IGNORECASE)
_RAISED_WITH = re.compile(r"\b[A-Z]\w+\((?:[^()]{0,100}, )?$")
_FEWEST_WORDS_OF_SENTENCE = 3
# As variables of the environment are called; columns and keys mostly are not.
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
# What is added to a message and differs with the query, the version or the spelling.
_ADDITIONS = re.compile(
    r" ?\(Background on this error at: \S*\)| ?\[SQL: .*| ?\[parameters: .*| LINE \d+: .*| Candidate bindings: .*"
    r"| Did you mean:? [^?]{0,200}\?| \((?:timestamp|elapsed|duration)\w*=.*| For further information visit \S+| \(PID \d+\)"
    r"| You might want to try:.*| (?:HINT|DETAIL|CONTEXT): .*| Available(?: \w+)?: .*"
    r"| ?[\w.:/'-]* \.\.\.$"
    r"|(?<=, column \d): .* \^.*|(?<=, column \d\d): .* \^.*"
)
_MODULE = re.compile(
    r"\b(?:[A-Za-z_]\w*\.)+(?=_?[A-Z]\w*(?:Error|Exception|Warning)\b)|(?<![\w.])(?:[a-z_]\w*\.)+(?=_?[A-Z]\w*: )(?!(?:Error|Exception): )"
)
_RAN = re.compile(r"\bCommand '(?:\['?)?(?:[^\s']*/)?([\w.+-]+)(?:'|[ ]).{0,2000}?'?\]?' (?=returned|died|timed)")
_STATUS = re.compile(
    r"(?:\bHTTP(?:/\d(?:\.\d)?)?(?: Error| status| code)*|\bstatus(?:[ _]code)?)[ :=]{1,3}[1-5]\d\d\b"
    r"|\bbyte 0xf[ef] in position 0\b|\b[45]\d\d (?=(?:Client|Server) Error)|\b(?:ORA|SQLSTATE|TS|KB|CVE)[-_ ]?[\dA-Z]{4,}\b|\bexit (?:code|status) 1[2-4]\d\b",
)
_NOUN = r"(?:table|column|view|index|relation|schema|database)"
_TEST = "(?:not_null|unique|accepted_values|relationships)_"
_NAMES = (
    (rf"(no such {_NOUN}:) \S+", r"\1 <name>"),
    (r"^[\w.-]+: (?=[A-Z]\w* Error in )", "<name>: "),
    (r"(constraint failed:) [^\s,]+(?:, [^\s,]+)*", r"\1 <name>"),
    (
        rf"(?<![\w-])({_NOUN}) [\w.$]+ (already exists|does not exist|was not found|has no column named|not found|with type)\b",
        r"\1 <name> \2",
    ),
    (r"(has no column named) [\w.$]+", r"\1 <name>"),
    (r"\b([Ff]ield|[Cc]olumn) (?!<)[\w.$]+ (has|contains|with)\b", r"\1 <name> \2"),
    (r"\b(NoSuch\w*Error:) \w[\w.$]*$", r"\1 <name>"),
    (r"(cannot insert) [\w.$]+(?=, already exists)", r"\1 <name>"),
    (r"((?<!Function )with name) (?!<)[\w.$]+(?= (?:does|already|is))", r"\1 <name>"),
    (r"(in (?:model|seed|snapshot|source|macro|operation|analysis|unit_test)) (?!<)[\w.$]+", r"\1 <name>"),
    (rf"(in test {_TEST})(?!<)[\w.$]+", r"\1<name>"),
    (rf"(in test) (?!<|{_TEST})[\w.$]+", r"\1 <name>"),
    (r"(Unrecognized name:|invalid identifier|Worksheet named) (?!<)[\w.$]+", r"\1 <name>"),
)
_PATH = r"(?<![\w.~+@%\\/-])(?:[A-Za-z][A-Za-z0-9+.-]*:(?=[\\/]))?[\w.~+@%-]*(?:[\\/]+[\w.~+@%=:,-]*[\w~+@%=])+[\\/]?"
_FILE_ENDING = (
    "csv|tsv|txt|jsonl?|ya?ml|toml|ini|cfg|xml|parquet|avro|orc|feather|xlsx?|zip|gz|bz2|tar|tgz|db|duckdb|sqlite3?|sql|ipynb"
    "|log|pkl|pickle|lock"
)
# In this order: a hash or a path is no number.
_RULES = (
    *_NAMES,
    (rf"(?<!\d)(?:{_DAY})(?:[T ]{_CLOCK})?(?:Z|[ ]?[+-]\d{{2}}:?\d{{2}}(?!\d))?|(?<!\d){_CLOCK}", "<time>"),
    (r"(?<![0-9A-Za-z])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![0-9A-Za-z])", "<uuid>"),
    (r"(?<![0-9A-Za-z])[0-7][0-9A-HJKMNP-TV-Z]{25}(?![0-9A-Za-z])", "<id>"),
    (_PATH, "<path>"),
    (rf"(?<![\w<>/.-])[\w-]+(?:\.[\w-]+)*\.(?:{_FILE_ENDING})(?![\w(.])", "<path>"),
    (
        r"(?<![\w<>/.@-])(?:[a-z0-9-]+\.)+(?:com|org|net|io|dev|cloud|internal|local|lan|corp|invalid|test|example)\b(?![.(\w])",
        "<host>",
    ),
    (r"0[xX][0-9a-fA-F]+|(?<![0-9A-Za-z])(?=[a-fA-F]*\d)(?=\d*[a-fA-F])[0-9a-fA-F]{7,64}(?![0-9A-Za-z])", "<hex>"),
    (r"(?:(?<![\w<>.)])[-+])?\d+(?:[.,]\d+)*(?:[eE][-+]?\d+)?", "<n>"),
    (r"<n>\.? ?[KMGTPE]i?B\b", "<n> B"),
    (r"(<value>|<n>)(?:, \1)+", r"\1"),
    (r"(?<=url: )<path>\?\S+", "<path>"),
)
_SNAKE = re.compile(r"(?<![\w.<'\"=-])[a-z][a-z0-9]*(?:_(?:[a-z0-9]+|<n>))+(?![\w(=.'\"])")
# An error's own code, such as invalid_grant, and no name of the project's.
_CODE_WORDS = frozenset(
    {
        *(
            "invalid",
            "not",
            "no",
            "missing",
            "failed",
            "failure",
            "error",
            "errors",
            "denied",
            "exceeded",
            "expired",
            "bad",
        ),
        *(
            "insufficient",
            "unknown",
            "unsupported",
            "forbidden",
            "unauthorized",
            "required",
            "timeout",
            "refused",
            "too",
        ),
        *(
            "unavailable",
            "conflict",
            "duplicate",
            "mismatch",
            "exception",
            "unresolved",
            "limit",
            "null",
            "unique",
            "values",
        ),
        *("for", "is", "to", "by", "call", "args", "max", "min", "relationships"),
    }
)
# What the gate puts around the cause when it judges an exit code.
_MORE = re.compile(r" \(and \d+ more reasons?\)$")
_VERDICT = re.compile(r"^exit code -?\d+(?: \([^)\n]*\))?(?:, expected -?\d+)?: (?=\S)")
# What must stay is written with private letters while the rest is normalised.
_PRIVATE, _LAST_PRIVATE = 0xE000, 0xE0FF
_HIDE = {code: _PRIVATE + code for code in range(256)}
_SHOW = {hidden: code for code, hidden in _HIDE.items()}
_FOREIGN_PRIVATE = re.compile(f"[{chr(_PRIVATE)}-{chr(_LAST_PRIVATE)}]")


def error_signature(text: str) -> str:
    """Return the normalised form of an error's text.

    Of a text of many lines it is the form of the exception, or of the error, that it ends with. Quoted values, names,
    times, UUIDs and ULIDs, paths, hosts, hexadecimal and other numbers become `<value>`, `<name>`, `<time>`, `<uuid>`,
    `<id>`, `<path>`, `<host>`, `<hex>` and `<n>`; runs of blanks become one. What tells the cause stays: exceptions without
    their modules, missing modules, attributes, arguments and commands, types, and states of HTTP.
    """
    return normalise_cause(find_main_cause(text))


def normalise_cause(cause: str) -> str:
    """Return the normalised form of a text that is one error's message."""
    normal = " ".join(_FOREIGN_PRIVATE.sub("?", strip_escapes(cause[:_MOST_READ])).split())
    # One replacement can complete what another rule looks for.
    for _ in range(_MOST_ROUNDS):
        before = normal
        normal = " ".join(_normalise_once(normal).split())[:_MOST_KEPT].rstrip()
        if normal == before:
            break
    return normal


def cause_of(message: str) -> str:
    """Return a result's message without what the gate puts around the cause: the exit code, how many more reasons."""
    return _VERDICT.sub("", _MORE.sub("", message.strip()), count=1)


def digest_signature(signature: str) -> str:
    """Return the 32 hexadecimal digits under which failures with this signature are counted."""
    return hashlib.sha256(signature.encode("utf-8", "backslashreplace")).hexdigest()[:32]


def _normalise_once(text: str) -> str:
    normal = _RAN.sub(r"Command '\1' ", _MODULE.sub("", _ADDITIONS.sub("", text)))
    normal = _STATUS.sub(lambda found: found[0].translate(_HIDE), normal)
    normal = _QUOTED.sub(_replace_quoted, normal)
    for rule, mark in _compile_rules():
        normal = rule.sub(mark, normal)
    return _SNAKE.sub(_replace_snake, normal).translate(_SHOW)


@cache
def _compile_rules() -> tuple[tuple[re.Pattern[str], str], ...]:
    # A session in which nothing fails needs none of them.
    return tuple((re.compile(pattern), mark) for pattern, mark in _RULES)


def _replace_quoted(found: re.Match[str]) -> str:
    whole, inner = found[0], found[0][1:-1]
    before = found.string[max(0, found.start() - 120) : found.start()]
    after = found.string[found.end() : found.end() + 20]
    if inner in _TYPES or _is_telling(inner, before, after):
        return whole.translate(_HIDE)
    if before.endswith("KeyError: ") and _VARIABLE.fullmatch(inner):
        return "<variable>"
    return inner if _is_sentence(inner, before) else "<value>"


def _is_telling(inner: str, before: str, after: str) -> bool:
    if not inner.strip() or len(inner) > 80:
        return False
    if _MISSING_COMMAND.search(before):
        return _COMMAND.fullmatch(inner) is not None
    is_told = _TELLING_BEFORE.search(before) or _IMPORTED_FROM.search(before)
    return is_told is not None or (_TELLING_AFTER.match(after) is not None and " " not in inner)


def _is_sentence(inner: str, before: str) -> bool:
    if len(inner.split()) < _FEWEST_WORDS_OF_SENTENCE or _QUERY.match(inner):
        return False
    return _SENTENCE.search(inner) is not None or _RAISED_WITH.search(before) is not None


def _replace_snake(found: re.Match[str]) -> str:
    return found[0] if _CODE_WORDS.intersection(found[0].split("_")) else "<name>"
