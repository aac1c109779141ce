"""Find the cause in an error's text, and return the form of it that stays the same from run to run.

What differs each time is taken out, what identifies the cause stays. Pure text; which part is the cause is a guess.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.redaction.escapes import strip_escapes
from pytest_golden.values.checking import word_set

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


# All patterns are compiled on use: a session without a failure needs none of them.
# A failure is at the end.
_MOST_OF_HEAD, _MOST_OF_TAIL = 5_000, 15_000
_MOST_OF_LINE = 2_000
_MOST_LINES_OF_CAUSE, _MOST_OF_CAUSE, _MOST_CAUSES = 8, 1_000, 12
# To look for each word costs less than a pattern. The other words count in a text without these.
_ERROR_WORDS = ("Error", "Exception", "Failure", "ERROR", "FATAL", "error:", "fatal:", "panic:")
_OTHER_ERROR_WORDS = ("ailed", "ot found", "enied", "ould not", "annot ", "o such ", "efused", "nvalid")
_TRACEBACK = "Traceback (most recent call last)"
# It says that an exception was raised, but not which.
_BARE_HEAD = r"\W*(?:Exception Group )?Traceback \(most recent call last\)\W*"
_GROUP_MARGIN = r"^\s*[|+] ?-*[ ]?"
_CAUSE = "The above exception was the direct cause of the following exception"
_CONTEXT = "During handling of the above exception, another exception occurred"
_CLASS_NAME = r"^\s*(?:[A-Za-z_]\w*\.)*_?[A-Za-z]\w*(?::| *$)"
_FRAME = r"^\s*File \"([^\"]*)\", line \d+"
_INSTALLED = r"[\\/](?:site|dist)-packages[\\/]([^\\/.]+)"
_STANDARD = r"[\\/]lib(?:64)?[\\/]python3(?:\.\d+)?t?[\\/]([^\\/.]+)|[\\/]Python3\d+[\\/][Ll]ib[\\/]([^\\/.]+)|^<frozen ([\w.]+)>$"
_LOG_PREFIX = (
    r"^\s*(?:\[?(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?)?[\s|-]*"
    r"(?:\[?(?:ERROR|CRITICAL|FATAL|WARN(?:ING)?|INFO|DEBUG)\]?[\s:|-]+)*"
)
_NEW_LOG_LINE = r"^\s*\[?(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d|^\s*\[?(?:ERROR|CRITICAL|FATAL|WARNING|INFO|DEBUG)\b"
# A reason that follows a headline after a blank line.
_REASON = r"\s+(?:Error|Reason|Caused by|Cause): "
_CLASSED_ERROR = r"\b_?[A-Z]\w*(?:Error|Exception): "
_NAMED_ERROR = r"\b_?[A-Z]\w*(?:Error|Exception): |\b(?:Error|Failure) in \w+ |\b[A-Z]\w* Error\b"
_MOST_READ, _MOST_KEPT = 1_200, 1_000
_MOST_ROUNDS = 5
_DAY = r"\d{4}[-/]\d{2}[-/]\d{2}|\d{2}[-/.]\d{2}[-/.]\d{4}"
_CLOCK = r"\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?"
_QUOTED = r"(?<!\w)'[^']{0,400}'(?!\w)|\"[^\"]{0,400}\"|`[^`]{0,400}`"
# A quoted value after these words identifies the cause: a module, an attribute, an argument, a command.
_TELLING_BEFORE = (
    r"(?i)(?:[Nn]o module named|cannot import name|has no attribute|unexpected keyword argument|positional arguments?:"
    r"|optional dependency|can't load plugin:|no such option:?|unrecognized arguments?:|unknown (?:option|command|format|method)"
    r"|codec|encoding|unsupported operand type\(s\) for \S{1,3}:|instances of|unhashable type:|Command) $"
)
_TELLING_AFTER = r" (?:object(?: has| is|$)|codec\b|has no attribute\b)"
_IMPORTED_FROM = r"cannot import name '[^']*' from $"
_MISSING_COMMAND = r"No such file or directory: $"
_COMMAND = r"[\w+-]{1,40}"
_TYPES = word_set("""
    bool bytes category DataFrame date datetime datetime64[ns] Decimal dict float float64 function generator Index
    int int64 list method module ndarray NoneType object Path PosixPath Series set str timedelta Timedelta Timestamp
    tuple type
""")
# These words show that a quoted text is a sentence, which holds the cause, and not a value.
_SENTENCE = r"\w*(?:Error|Exception|Errno)\b|\b(?:not|cannot|could|failed|is|was|does|has|with|were|must)\b|['`\"]"
_QUERY = r"(?i)\s*(?:select|insert|update|delete|with|create|alter|drop|merge|copy)\b"
_RAISED_WITH = r"\b[A-Z]\w+\((?:[^()]{0,100}, )?$"
_FEWEST_WORDS_OF_SENTENCE = 3
# The form of environment variables, which columns and keys rarely have.
_VARIABLE = r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+"
# Additions to a message, which differ with the query, the version or the spelling.
_ADDITIONS = (
    r" ?\(Background on this error at: \S*\)| ?\[SQL: .*| ?\[parameters: .*| LINE \d+: .*| Candidate bindings: .*"
    r"| Did you mean:? [^?]{0,200}\?| \((?:timestamp|elapsed|duration)\w*=.*| For further information visit \S+| \(PID \d+\)"
    r"| You might want to try:.*| (?:HINT|DETAIL|CONTEXT): .*| Available(?: \w+)?: .*"
    r"| ?[\w.:/'-]* \.\.\.$"
    r"|(?<=, column \d): .* \^.*|(?<=, column \d\d): .* \^.*"
)
_MODULE = r"\b(?:[A-Za-z_]\w*\.)+(?=_?[A-Z]\w*(?:Error|Exception|Warning)\b)|(?<![\w.])(?:[a-z_]\w*\.)+(?=_?[A-Z]\w*: )(?!(?:Error|Exception): )"
_RAN = r"\bCommand '(?:\['?)?(?:[^\s']*/)?([\w.+-]+)(?:'|[ ]).{0,2000}?'?\]?' (?=returned|died|timed)"
_STATUS = (
    r"(?:\bHTTP(?:/\d(?:\.\d)?)?(?: Error| status| code)*|\bstatus(?:[ _]code)?)[ :=]{1,3}[1-5]\d\d\b"
    r"|\bbyte 0xf[ef] in position 0\b|\b[45]\d\d (?=(?:Client|Server) Error)|\b(?:ORA|SQLSTATE|TS|KB|CVE)[-_ ]?[\dA-Z]{4,}\b|\bexit (?:code|status) 1[2-4]\d\b"
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
# The order matters: digits in a hash or a path are not a number.
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
_SNAKE = r"(?<![\w.<'\"=-])[a-z][a-z0-9]*(?:_(?:[a-z0-9]+|<n>))+(?![\w(=.'\"])"
# A name with one of these words is an error's code, such as invalid_grant, and not a name of the project's.
_CODE_WORDS = word_set("""
    args bad by call conflict denied duplicate error errors exceeded exception expired failed failure for forbidden
    insufficient invalid is limit max min mismatch missing no not null refused relationships required timeout to too
    unauthorized unavailable unique unknown unresolved unsupported values
""")
# The gate puts these around the cause when it judges an exit code.
_MORE = r" \(and \d+ more reasons?\)$"
_VERDICT = r"^exit code -?\d+(?: \([^)\n]*\))?(?:, expected -?\d+)?: (?=\S)"
# Parts that must stay are written with private-use characters while the rest is normalised.
_PRIVATE, _LAST_PRIVATE = 0xE000, 0xE0FF
_HIDE = {code: _PRIVATE + code for code in range(256)}
_SHOW = {hidden: code for code, hidden in _HIDE.items()}
_FOREIGN_PRIVATE = f"[{chr(_PRIVATE)}-{chr(_LAST_PRIVATE)}]"


class _Raised(NamedTuple):
    """An exception of a traceback. `is_linked`: the one before it is its cause or its context."""

    text: str
    headline: str
    origin: str | None
    is_linked: bool


def find_main_cause(text: str) -> str:
    """Return the most telling cause; the whole text when no part stands out."""
    return next(iter(find_causes(text)), "")


def find_causes(text: str) -> tuple[str, ...]:
    """Return the parts of a text that say why something failed, the most telling first, up to twelve.

    A text of one line is its own cause. The first part of a chain of exceptions joins its root, which says why, and its last
    one, which says where. A blank text, and the first line of a traceback alone, have no cause.
    """
    lines = _read_lines(text)
    raised = list(_find_raised(lines))
    lines = [line for line in lines if not re.fullmatch(_BARE_HEAD, line)]
    if not any(lines):
        return ()
    if len(lines) == 1 and not raised:
        return tuple(lines)
    causes = list(_describe_chains(raised)) if raised else [*_find_blocks(lines), "\n".join(lines)]
    return tuple(dict.fromkeys(causes))[:_MOST_CAUSES]


def find_origin(text: str) -> str | None:
    """Return the package or standard module that raised the last exception in a text.

    It is `""` for the project's own code, and None without a traceback.
    """
    raised = list(_find_raised(_read_lines(text)))
    return raised[-1].origin if raised else None


def cut_failure(text: str) -> str:
    """Return the head and the tail of a long text; only these are searched."""
    if len(text) <= _MOST_OF_HEAD + _MOST_OF_TAIL:
        return text
    return f"{text[:_MOST_OF_HEAD]}\n{text[-_MOST_OF_TAIL:]}"


def _read_lines(text: str) -> list[str]:
    lines = [line[:_MOST_OF_LINE].rstrip() for line in strip_escapes(cut_failure(text)).strip().splitlines()]
    if any("Exception Group Traceback" in line for line in lines):
        lines = [re.sub(_GROUP_MARGIN, "", line) for line in lines]
    return lines


def _find_raised(lines: Sequence[str]) -> Iterator[_Raised]:
    is_linked = False
    position = 0
    while position < len(lines):
        line = lines[position]
        if _CAUSE in line or _CONTEXT in line:
            is_linked = True
        if _TRACEBACK in line:
            position, found = _read_traceback(lines, position + 1, is_linked=is_linked)
            is_linked = False
            if found is not None:
                yield found
            continue
        position += 1


def _read_traceback(lines: Sequence[str], position: int, *, is_linked: bool) -> tuple[int, _Raised | None]:
    """Read frames, and the exception after them: the first line that is indented no more than the traceback's first line."""
    origin = None
    margin = _indent(lines[position - 1])
    while position < len(lines):
        line = lines[position]
        frame = re.match(_FRAME, line)
        if frame:
            origin = _name_origin(frame[1])
        elif _TRACEBACK in line or (line.strip() and _indent(line) <= margin):
            break
        position += 1
    if position == len(lines) or origin is None or not re.match(_CLASS_NAME, lines[position].split(": ")[0] + ":"):
        return position, None
    end = position + 1
    while (
        end < len(lines)
        and end - position < _MOST_LINES_OF_CAUSE
        and lines[end].strip()
        and _TRACEBACK not in lines[end]
    ):
        end += 1
    return end, _Raised(_join(lines[position:end]), _join(lines[position : position + 1]), origin, is_linked)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _name_origin(path: str) -> str:
    installed = re.search(_INSTALLED, path)
    if installed:
        return installed[1]
    standard = re.search(_STANDARD, path)
    return next(filter(None, standard.groups()), "") if standard else ""


def _describe_chains(raised: Sequence[_Raised]) -> Iterator[str]:
    """Yield the texts of each chain, the last chain first: root and end together, then the end, then the root."""
    chains: list[list[_Raised]] = []
    for one in raised:
        if one.is_linked and chains:
            chains[-1].append(one)
        else:
            chains.append([one])
    for chain in reversed(chains):
        root, end = chain[0].text, chain[-1].text
        message = root.partition(": ")[2] or root
        if message[:200] in end:
            yield end
        else:
            yield from (f"{root} > {end}", end, root)
    yield from (chain[-1].headline for chain in reversed(chains))


def _find_blocks(lines: Sequence[str]) -> Iterator[str]:
    """Yield the errors of a log: those with a class first, then those with a name; the last first."""
    blocks = list(_list_blocks(lines, _ERROR_WORDS)) or list(_list_blocks(lines, _OTHER_ERROR_WORDS))
    blocks.reverse()
    yield from (block for block in blocks if re.search(_CLASSED_ERROR, block))
    yield from (block for block in blocks if re.search(_NAMED_ERROR, block))
    yield from blocks


def _list_blocks(lines: Sequence[str], words: Sequence[str]) -> Iterator[str]:
    end = 0
    for position, line in enumerate(lines):
        if position >= end and any(word in line for word in words):
            end = _find_end(lines, position)
            yield _join(re.sub(_LOG_PREFIX, "", one, count=1) for one in lines[position:end])


def _find_end(lines: Sequence[str], start: int) -> int:
    """Return the end of an error: a blank line, or a new line of the log, unless that line names the failure."""
    end = start + 1
    last = min(len(lines), start + _MOST_LINES_OF_CAUSE)
    while end < last:
        line = re.sub(_LOG_PREFIX, "", lines[end], count=1)
        if not line.strip() and end + 1 < last and re.match(_REASON, lines[end + 1]):
            end += 2
            continue
        is_new = re.match(_NEW_LOG_LINE, lines[end]) is not None
        if not line.strip() or (is_new and (end > start + 1 or re.search(_NAMED_ERROR, line) is None)):
            break
        end += 1
    return end


def _join(lines: Iterable[str]) -> str:
    return " ".join(" ".join(lines).split())[:_MOST_OF_CAUSE].rstrip()


def error_signature(text: str) -> str:
    """Return the normalised form of an error's text.

    For a text of many lines it is the form of the exception, or of the error, that it ends with. Quoted values, names,
    times, UUIDs and ULIDs, paths, hosts, hexadecimal and other numbers become `<value>`, `<name>`, `<time>`, `<uuid>`,
    `<id>`, `<path>`, `<host>`, `<hex>` and `<n>`; runs of blanks become one. The parts that identify the cause stay:
    exceptions without their modules, missing modules, attributes, arguments and commands, types, and HTTP status codes.
    """
    return normalise_cause(find_main_cause(text))


def normalise_cause(cause: str) -> str:
    """Return the normalised form of one error's message."""
    normal = " ".join(re.sub(_FOREIGN_PRIVATE, "?", strip_escapes(cause[:_MOST_READ])).split())
    # One replacement can complete the pattern of another rule.
    for _ in range(_MOST_ROUNDS):
        before = normal
        normal = " ".join(_normalise_once(normal).split())[:_MOST_KEPT].rstrip()
        if normal == before:
            break
    return normal


def cause_of(message: str) -> str:
    """Return a result's message without the exit code and the count of further reasons that the gate adds."""
    return re.sub(_VERDICT, "", re.sub(_MORE, "", message.strip()), count=1)


def digest_signature(signature: str) -> str:
    """Return 32 hexadecimal digits, the key under which failures with this signature are counted."""
    return hashlib.sha256(signature.encode("utf-8", "backslashreplace")).hexdigest()[:32]


def _normalise_once(text: str) -> str:
    normal = re.sub(_RAN, r"Command '\1' ", re.sub(_MODULE, "", re.sub(_ADDITIONS, "", text)))
    normal = re.sub(_STATUS, lambda found: found[0].translate(_HIDE), normal)
    normal = re.sub(_QUOTED, _replace_quoted, normal)
    for pattern, mark in _RULES:
        normal = re.sub(pattern, mark, normal)
    return re.sub(_SNAKE, _replace_snake, normal).translate(_SHOW)


def _replace_quoted(found: re.Match[str]) -> str:
    whole, inner = found[0], found[0][1:-1]
    before = found.string[max(0, found.start() - 120) : found.start()]
    after = found.string[found.end() : found.end() + 20]
    if inner in _TYPES or _is_telling(inner, before, after):
        return whole.translate(_HIDE)
    if before.endswith("KeyError: ") and re.fullmatch(_VARIABLE, inner):
        return "<variable>"
    return inner if _is_sentence(inner, before) else "<value>"


def _is_telling(inner: str, before: str, after: str) -> bool:
    if not inner.strip() or len(inner) > 80:
        return False
    if re.search(_MISSING_COMMAND, before):
        return re.fullmatch(_COMMAND, inner) is not None
    is_named = re.search(_TELLING_BEFORE, before) or re.search(_IMPORTED_FROM, before)
    return is_named is not None or (re.match(_TELLING_AFTER, after) is not None and " " not in inner)


def _is_sentence(inner: str, before: str) -> bool:
    if len(inner.split()) < _FEWEST_WORDS_OF_SENTENCE or re.match(_QUERY, inner):
        return False
    return re.search(_SENTENCE, inner) is not None or re.search(_RAISED_WITH, before) is not None


def _replace_snake(found: re.Match[str]) -> str:
    return found[0] if _CODE_WORDS.intersection(found[0].split("_")) else "<name>"
