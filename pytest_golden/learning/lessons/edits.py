"""Find the edits of files among the calls of an agent, and what makes two calls the same check. Pure.

An edit is known by its arguments, not by the name of its tool: a file with a new text, a patch, or a shell's command that edits in place.
A command that changes something else, such as `chmod` or `git config`, counts as one without a file.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from difflib import unified_diff
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_golden.learning.lessons.model import Attempt

_FILES = ("file_path", "path", "file", "filename", "target_file", "notebook_path")
_OLD = ("old_string", "old_str", "old_text", "search")
_NEW = (
    "new_string",
    "new_str",
    "new_text",
    "replace",
    "content",
    "contents",
    "file_text",
    "insert_text",
    "new_source",
    "text",
)
_PATCHES = ("patch", "diff", "input", "changes")
_COMMANDS = ("command", "cmd", "script")
# Of a unified diff, and of the patches of coding agents.
_PATCHED = re.compile(r"^(?:\+\+\+ (?:b/)?|\*\*\* (?:Update|Add|Delete) File: )(\S[^\t\n]*)", re.MULTILINE)
_IN_PLACE = re.compile(r"\b(?:sed\s+(?:-\w+\s+)*-i\S*|perl\s+-\w*i\w*)\s.*?(?P<file>[\w./-]+\.\w+)\s*(?:$|[;&|])")
_CHANGES = re.compile(
    r"(?:^|[;&]\s*|sudo\s+)(?P<words>(?:chmod|chown|mkdir|touch|ln|cp|mv|export|createdb|systemctl|service)(?:\s+[-+]\w+)?"
    r"|git\s+(?:config|init|add|fetch|pull|checkout|switch|branch|stash|submodule)"
    r"|(?:pip3?|uv|uv\s+pip|npm|pnpm|yarn|apt|apt-get|conda|brew)\s+(?:install|add|sync|ci)"
    r"|(?:docker|podman)\s+(?:run|start|compose)|alembic\s+upgrade|dbt\s+(?:deps|seed))(?=\s|$)"
)
_NOT_OF_CALL = re.compile(r"(?<=\s)(?:-{1,2}[A-Za-z][\w-]*(?:=\S+)?(?=\s)|\d?>{1,2}&?\s*\S+)")
_MOST_LINES, _MOST_OF_LINE, _MOST_READ, _MOST_READ_LINES, _MOST_OF_COMMAND = 12, 200, 20_000, 200, 2_000


#: The languages that a file's suffix tells.
LANGUAGES = {
    "c": (".c", ".h"),
    "c++": (".cc", ".cpp", ".cxx", ".hh", ".hpp"),
    "c#": (".cs",),
    "go": (".go",),
    "java": (".java",),
    "javascript": (".cjs", ".js", ".jsx", ".mjs"),
    "kotlin": (".kt", ".kts"),
    "php": (".php",),
    "python": (".ipynb", ".py", ".pyi"),
    "r": (".r", ".rmd"),
    "ruby": (".rb",),
    "rust": (".rs",),
    "scala": (".scala",),
    "shell": (".bash", ".sh"),
    "sql": (".sql",),
    "typescript": (".ts", ".tsx"),
    "yaml": (".yaml", ".yml"),
}


def check_language(language: str | None) -> None:
    """Raise ValueError if it is not a language that we know."""
    if language is not None and language not in LANGUAGES:
        raise ValueError(f"language must be one of {', '.join(LANGUAGES)}, not {language!r:.100}")


def list_changed_files(evidence: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the files whose change taught a lesson, as its evidence names them."""
    edits, files = evidence.get("edits"), evidence.get("files")
    edited = (
        [edit.get("file") for edit in edits if isinstance(edit, Mapping)] if isinstance(edits, list | tuple) else ()
    )
    named = (*edited, *(files if isinstance(files, list | tuple) else ()))
    return tuple(file for file in named if isinstance(file, str) and file)


def is_of_language(evidence: Mapping[str, Any], language: str | None) -> bool:
    """Return whether a file in the language was changed, or none in a language that we know; None stands for every language."""
    if language is None:
        return True
    suffixes = {posixpath.splitext(file.lower())[1] for file in list_changed_files(evidence)}
    known = {name for name, of_it in LANGUAGES.items() if not suffixes.isdisjoint(of_it)}
    return not known or language in known


class Edit(NamedTuple):
    """A changed file, and a short diff: lines that begin with `-`, `+` or a blank. A command has its first words as diff, and no file."""

    file: str
    diff: str


def find_edits(attempt: Attempt) -> tuple[Edit, ...]:
    """Return what a call edited; nothing for a call that edits nothing."""
    return tuple(_list_edits(attempt.arguments))


def _list_edits(arguments: Mapping[str, Any]) -> Iterator[Edit]:
    file, old, new = (_find_text(arguments, names) for names in (_FILES, _OLD, _NEW))
    if file is not None and (new is not None or old is not None):
        yield Edit(file, _shorten(_compare(old or "", new or "")))
        return
    several = arguments.get("edits")
    if file is not None and isinstance(several, list | tuple):
        for one in several:
            if isinstance(one, dict) or hasattr(one, "get"):
                yield Edit(file, _shorten(_compare(_find_text(one, _OLD) or "", _find_text(one, _NEW) or "")))
        return
    patch = _find_text(arguments, _PATCHES) or ""
    starts = list(_PATCHED.finditer(patch[:_MOST_READ]))
    for number, start in enumerate(starts):
        end = starts[number + 1].start() if number + 1 < len(starts) else len(patch)
        lines = patch[start.end() : end].splitlines()
        yield Edit(
            start[1].strip(),
            _shorten([line for line in lines if line[:1] in {"+", "-"} and line[:3] not in {"+++", "---"}]),
        )
    command = (_find_text(arguments, _COMMANDS) or "")[:_MOST_OF_COMMAND]
    if found := _IN_PLACE.search(command):
        yield Edit(found["file"], _shorten([f"+{command}"]))
    elif found := _CHANGES.search(command):
        yield Edit("", f"+{' '.join(found['words'].split())}")


def _find_text(arguments: Mapping[str, Any], names: Sequence[str]) -> str | None:
    return next((arguments[name] for name in names if isinstance(arguments.get(name), str)), None)


def _compare(old: str, new: str) -> list[str]:
    before, after = (text[:_MOST_READ].splitlines()[:_MOST_READ_LINES] for text in (old, new))
    return [line for line in unified_diff(before, after, lineterm="", n=0) if line[:2] != "@@"][2:]


def _shorten(lines: Sequence[str]) -> str:
    kept = [line if len(line) <= _MOST_OF_LINE else f"{line[: _MOST_OF_LINE - 4]} ..." for line in lines[:_MOST_LINES]]
    more = len(lines) - len(kept)
    return "\n".join([*kept, *([f" ({more} more lines)"] if more else [])])


def strip_call(value: Any) -> Any:
    """Return arguments without a command's options, its redirections, and what its output is piped into."""
    if isinstance(value, str):
        is_command = len(value) <= _MOST_OF_COMMAND and "\n" not in value
        return " ".join(_NOT_OF_CALL.sub(" ", f" {value.partition(' | ')[0]} ").split()) if is_command else value
    if hasattr(value, "items"):
        return {name: strip_call(one) for name, one in value.items()}
    return [strip_call(one) for one in value] if isinstance(value, list | tuple) else value
