"""What kind of change a difference is, in general words: which versions, which manifest keys, which kinds of files. Pure."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from pytest_golden.gate.baselines.place import BASELINES_FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_golden.gate.input_changes import InputChange

_VERSION = re.compile(r"(?P<name>\S+) (?P<old>\S+) -> (?P<new>\S+)(?: \(in .*\))?")
_CAME = re.compile(r"(?P<name>\S+) (?P<version>\S+) (?P<how>added|removed)(?: \(in .*\))?")
# The kernel and the like: they differ from machine to machine, and fix nothing.
_OF_MACHINE = frozenset({"platform", "implementation", "pytest-golden-projects"})
_WORDS = re.compile(r"[a-z0-9_.-]+")
_KEY = re.compile(r"set_env\.\S+|\w+")
# Values of these say something by themselves.
_TOLD_WITH_VALUES = frozenset({"timeout", "cpu_limit", "memory_limit", "network", "runner", "retries"})
# With another word for what is right, a project is judged otherwise, and nothing was fixed.
_OF_JUDGEMENT = frozenset(
    {"expected_outcome", "outputs", "retries", "max_slowdown", "unexpected_files", "writes", "skip_if_missing"}
)
_FOR_PEOPLE = frozenset({".md", ".rst", ".adoc", ".svg", ".png", ".jpg"})
_NAMES_FOR_PEOPLE = frozenset({"license", "changelog", "codeowners", ".gitignore", ".gitattributes", ".editorconfig"})
_FOLDERS_FOR_PEOPLE = frozenset({"docs", ".github", BASELINES_FOLDER})
_DEPENDENCIES = re.compile(
    r"(?:requirements|constraints)[\w.-]*\.(?:txt|in)|pyproject\.toml|setup\.(?:py|cfg)|pipfile(?:\.lock)?|poetry\.lock"
    r"|uv\.lock|pdm\.lock|pixi\.(?:toml|lock)|(?:conda-)?environment\.ya?ml|packages\.yml|package-lock\.yml|dependencies\.yml"
)
INPUT_DATA, CONFIGURATION = "input data", "configuration"
_KINDS = (
    ({".py"}, "Python code"),
    ({".sql"}, "SQL"),
    ({".ipynb"}, "a notebook"),
    ({".sh", ".bash"}, "a shell script"),
    ({".yaml", ".yml", ".toml", ".ini", ".cfg", ".json", ".conf", ".env"}, CONFIGURATION),
    (
        {".csv", ".tsv", ".parquet", ".jsonl", ".ndjson", ".xls", ".xlsx", ".avro", ".orc", ".feather", ".arrow"},
        INPUT_DATA,
    ),
    ({".duckdb", ".sqlite", ".sqlite3", ".db"}, INPUT_DATA),
    ({".txt", ".j2", ".jinja", ".tmpl"}, "a text file"),
)
_COMPRESSED = re.compile(r"(?<=\w)\.(?:gz|zst|bz2|xz|lz4|snappy)$")
_HOW = {"changed": "was changed", "added": "was added", "removed": "was removed"}
MOST_VERSIONS = 8
_MOST_TOLD = 3


def tell_versions(lines: Sequence[str], error: str) -> tuple[str, ...]:
    """Tell which versions changed, in sentences: those that the error names first, and these alone among many."""
    told = {name: sentence for name, sentence in map(_tell_version, lines) if name and name not in _OF_MACHINE}
    words = set(_WORDS.findall(error.lower())) | {
        part for word in _WORDS.findall(error.lower()) for part in word.split(".")
    }
    named = [name for name in told if name in words or name.replace("-", "_") in words]
    if len(told) > MOST_VERSIONS:
        return tuple(told[name] for name in named)
    return tuple(told[name] for name in dict.fromkeys([*named, *told]))


def tell_keys(lines: Iterable[str]) -> tuple[str, ...]:
    """Tell which keys of the manifest changed, in sentences; values where they are general."""
    return tuple(dict.fromkeys(_tell_key(line) for line in lines))


def tell_inputs(changes: Iterable[InputChange]) -> tuple[str, ...]:
    """Tell which inputs changed that git does not hold, in sentences: those alone that a pipeline surely reads."""
    return tuple(dict.fromkeys(filter(None, map(_tell_input, changes))))


def is_judged_otherwise(lines: Iterable[str]) -> bool:
    """Tell whether the manifest says something else of what is right."""
    return any(_name_key(line) in _OF_JUDGEMENT for line in lines)


def choose_files(files: Iterable[str], manifest: str) -> tuple[str, ...]:
    """Choose the files that can change how a project runs: no papers, no baselines, and not the manifest itself."""
    return tuple(file for file in files if file != manifest and not _is_for_people(PurePosixPath(file.lower())))


def has_baselines_of(project: str, files: Iterable[str]) -> bool:
    """Tell whether the baselines of a project are among these files: what it produced is judged otherwise then."""
    return any(f"/{BASELINES_FOLDER}/{project}/" in f"/{file}" for file in files)


def name_kinds(files: Iterable[str]) -> tuple[str, ...]:
    """Name the kinds of these files, the most frequent first."""
    kinds = [name_kind(file) for file in files]
    return tuple(sorted(dict.fromkeys(kinds), key=lambda kind: -kinds.count(kind)))


def name_kind(file: str) -> str:
    """Name the kind of a file."""
    path = PurePosixPath(_COMPRESSED.sub("", file.lower()))
    if _DEPENDENCIES.fullmatch(path.name):
        return "the declared dependencies"
    found = next((kind for endings, kind in _KINDS if path.suffix in endings), None)
    return found or (f"a {path.suffix} file" if path.suffix else "a file without an ending")


def join(parts: Sequence[str]) -> str:
    """Join parts of a sentence; of many only the first few, and how many more."""
    more = len(parts) - _MOST_TOLD
    shown = [*parts[:_MOST_TOLD], *([f"{more} more"] if more > 0 else [])]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _tell_version(line: str) -> tuple[str, str]:
    changed = _VERSION.fullmatch(line)
    if changed:
        name, old, new = changed["name"], changed["old"], changed["new"]
        how = "pinned back" if _order(new) < _order(old) else "upgraded"
        return name, f"{name} {old} was {how} to {new}"
    came = _CAME.fullmatch(line)
    if came is None:
        return line.partition(" ")[0] if line.startswith("platform ") else "", ""
    verb = "installed" if came["how"] == "added" else "removed"
    return came["name"], f"{came['name']} {came['version']} was {verb}"


def _tell_input(change: InputChange) -> str:
    if change.kind == "variable":
        return f"the variable {change.name} of `pass_env` was {'set' if change.how == 'added' else 'taken away'}"
    if change.kind == "passed":
        return f"a file of `pass_files` {_HOW[change.how]}"
    kind = INPUT_DATA if change.name.endswith("/") else name_kind(change.name)
    return f"{kind} that git does not hold {_HOW[change.how]}" if kind in {INPUT_DATA, CONFIGURATION} else ""


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(number[:9]) for number in re.findall(r"\d+", version))


def _tell_key(line: str) -> str:
    key = _name_key(line)
    before, arrow, now = line.removeprefix(f"{key} ").partition(" -> ")
    if arrow and key in _TOLD_WITH_VALUES:
        return f"the manifest's {key} was changed from {before} to {now}"
    if line.startswith("set_env.") and line.endswith(" removed"):
        return f"{key} was removed from the manifest"
    return f"{key} was added to the manifest" if " added: " in line else f"the manifest's {key} was changed"


def _name_key(line: str) -> str:
    found = _KEY.match(line)
    return found[0].rstrip(":") if found else line


def _is_for_people(path: PurePosixPath) -> bool:
    is_named = path.suffix in _FOR_PEOPLE or path.stem in _NAMES_FOR_PEOPLE or path.name in _NAMES_FOR_PEOPLE
    return is_named or bool(_FOLDERS_FOR_PEOPLE & set(path.parts[:-1]))
