"""Find the edits of files among the attempts of an agent, and those that ended a failure. Pure.

An edit is known by its arguments, not by the name of its tool: a file with a new text, a patch, or a shell's command that edits in place.
A command that changes something else, such as `chmod` or `git config`, counts as one without a file.
"""

from __future__ import annotations

import re
from difflib import unified_diff
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.learning.signature import cause_of, error_signature

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

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
_OPTION = re.compile(r"\s-{1,2}[A-Za-z][\w-]*(?:=\S+)?(?=\s|$)")
_REST = re.compile(r"(?:\s+\d?>&?\s*\S+|\s*\|.*)+\s*$")
_MOST_EDITS, _MOST_LINES, _MOST_OF_LINE, _MOST_READ = 5, 12, 200, 20_000


class Edit(NamedTuple):
    """A changed file, and a short diff: lines that begin with `-`, `+` or a blank. A command has its first words as diff, and no file."""

    file: str
    diff: str


def find_fixing_edits(failed: Attempt, later: Sequence[Attempt]) -> list[dict[str, str]]:
    """Return the edits between a failed call and the next same one, if that worked or failed with another error.

    Each is `{file, diff}`. The same error again means that the edits so far did not help: then the later failure has the answer.
    """
    edits: list[Edit] = []
    for other in later:
        if is_same_check(failed, other):
            is_ended = other.success or _sign(other) != _sign(failed)
            # Several edits of one file are all told.
            return [edit._asdict() for edit in dict.fromkeys(edits)][:_MOST_EDITS] if is_ended else []
        if other.success:
            edits += find_edits(other)
    return []


def is_same_check(one: Attempt, other: Attempt) -> bool:
    """Tell whether two calls check the same: options, and what is done with the output, do not count."""
    return one.tool == other.tool and _bare(one.arguments) == _bare(other.arguments)


def find_edits(attempt: Attempt) -> tuple[Edit, ...]:
    """Return what a call edited; nothing for a call that edits nothing."""
    return tuple(_list_edits(attempt.arguments))


def find_moved(edits: Iterable[Mapping[str, Any]], root: Path) -> str:
    """Tell which edited file is gone, or does not have the lines of the edit any more; empty if all do.

    `edits` are those of a lesson's evidence, `root` the folder that relative files lie in.
    """
    for edit in edits:
        lines = [line[1:].strip() for line in str(edit.get("diff", "")).splitlines() if line[:1] == "+"]
        told = [line for line in lines if line and not line.endswith(" ...")]
        file = str(edit.get("file", ""))
        if not file or not told:
            continue
        try:
            text = (root / file).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return f"{file} is gone since"
        if not any(line in text for line in told):
            return f"{file} has changed there since"
    return ""


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
    command = (_find_text(arguments, _COMMANDS) or "")[:_MOST_READ]
    if found := _IN_PLACE.search(command):
        yield Edit(found["file"], _shorten([f"+{command}"]))
    elif found := _CHANGES.search(command):
        yield Edit("", f"+{' '.join(found['words'].split())}")


def _find_text(arguments: Mapping[str, Any], names: Sequence[str]) -> str | None:
    return next((arguments[name] for name in names if isinstance(arguments.get(name), str)), None)


def _compare(old: str, new: str) -> list[str]:
    before, after = (text[:_MOST_READ].splitlines() for text in (old, new))
    return [line for line in unified_diff(before, after, lineterm="", n=0) if line[:2] != "@@"][2:]


def _shorten(lines: Sequence[str]) -> str:
    kept = [line if len(line) <= _MOST_OF_LINE else f"{line[: _MOST_OF_LINE - 4]} ..." for line in lines[:_MOST_LINES]]
    more = len(lines) - len(kept)
    return "\n".join([*kept, *([f" ({more} more lines)"] if more else [])])


def _sign(attempt: Attempt) -> str:
    return error_signature(cause_of(attempt.error_message or ""))


def _bare(value: Any) -> Any:
    if isinstance(value, str):
        return " ".join(_OPTION.sub(" ", _REST.sub("", f" {value} ")).split())
    if hasattr(value, "items"):
        return {name: _bare(one) for name, one in value.items()}
    return [_bare(one) for one in value] if isinstance(value, list | tuple) else value
