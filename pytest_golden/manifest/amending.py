"""Adds rules to projects and to entries of `outputs:`, or whole projects, to the text of a manifest, and changes nothing else of it: no comment, no quote."""

from __future__ import annotations

import json
import re
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from pytest_golden.errors import GoldenError
from pytest_golden.manifest.reader import parse_manifest
from pytest_golden.storage.folder import replace_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
_WORDS_OF_YAML = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


@dataclass(frozen=True, slots=True)
class Amendment:
    """What one entry of `outputs:` is to have: the whole new value of each rule, and comments that say why.

    `project` and `output` are positions in `golden_projects:` and in the project's `outputs:`, from 0. Without an `output` the
    rules are keys of the project.
    """

    project: int
    output: int | None
    rules: Mapping[str, Any]
    comments: Sequence[str] = ()


class NotInTextError(GoldenError):
    """The entry is not written in the project itself, but in `defaults:`, or taken over by an alias."""


@dataclass(frozen=True, slots=True)
class _Edit:
    start: int
    end: int
    text: str


def amend(text: str, amendments: Sequence[Amendment]) -> str:
    """Return the manifest's text with the amendments.

    Raises:
        NotInTextError: an entry is not written where its project is.
    """
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    edits = [edit for amendment in amendments for edit in _list_edits(text, _find_entry(root, amendment), amendment)]
    for edit in sorted(edits, key=lambda edit: (-edit.start, -edit.end)):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def rewrite_manifest(path: Path, text: str) -> None:
    """Write a changed text in the place of a manifest: a link is followed, and line ends and permissions stay.

    Raises:
        ManifestError: the text is not a manifest; the file stays as it is.
        OSError: it cannot be written.
    """
    parse_manifest(text, path.name, path.absolute().parent)
    mode = stat.S_IMODE(path.stat().st_mode)
    has_windows_ends = b"\r\n" in path.read_bytes()
    with replace_file(path, follows_links=True) as file:
        file.write(text.replace("\n", "\r\n") if has_windows_ends else text)
    path.chmod(mode)


def add_projects(text: str, projects: Sequence[Sequence[str]]) -> str:
    """Return the manifest's text with further projects behind the last one; each is the lines of a list entry, not indented.

    Raises:
        NotInTextError: `golden_projects:` is not written as a list of lines with at least one project.
    """
    declared = _find_value(yaml.compose(text, Loader=yaml.SafeLoader), "golden_projects")
    if not isinstance(declared, yaml.SequenceNode) or declared.flow_style or not declared.value:
        raise NotInTextError("`golden_projects:` is not a list with a line for each project: add the projects by hand")
    indent = " " * declared.start_mark.column
    end = _find_end(declared)
    if text[end - 1] == "\n":
        # A text of several lines ends with the line below it.
        end -= 1
    else:
        # The rest of the last line, with its comment.
        end = text.find("\n", end) if "\n" in text[end:] else len(text)
    added = "".join("\n\n" + "\n".join(f"{indent}{line}" for line in lines) for lines in projects)
    return text[:end] + added + (text[end:] or "\n")


def _find_entry(root: yaml.Node | None, amendment: Amendment) -> yaml.MappingNode:
    projects = _find_value(root, "golden_projects")
    project = projects.value[amendment.project] if isinstance(projects, yaml.SequenceNode) else None
    place = f"golden_projects[{amendment.project}]"
    if amendment.output is None:
        if not isinstance(project, yaml.MappingNode):
            raise NotInTextError(f"{place} is an alias: add the rules to what it names by hand")
        return project
    outputs = _find_value(project, "outputs")
    place = f"{place}.outputs[{amendment.output}]"
    if not isinstance(outputs, yaml.SequenceNode) or amendment.output >= len(outputs.value):
        raise NotInTextError(f"{place} is declared in `defaults:` or by an alias: add the rules there by hand")
    entry = outputs.value[amendment.output]
    # What an alias names stands before the place that takes it.
    starts = [node.start_mark.index for node in (projects, project, outputs, entry) if node is not None]
    if not isinstance(entry, yaml.MappingNode) or starts != sorted(starts):
        raise NotInTextError(f"{place} is an alias: add the rules to what it names by hand")
    return entry


def _find_value(node: yaml.Node | None, key: str) -> yaml.Node | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    return next((value for name, value in node.value if name.value == key), None)


def _list_edits(text: str, entry: yaml.MappingNode, amendment: Amendment) -> list[_Edit]:
    edits = []
    added: dict[str, str] = {}
    for name, value in amendment.rules.items():
        present = _find_value(entry, name)
        if present is None:
            added[name] = write_value(value)
        else:
            edits.append(_Edit(present.start_mark.index, _find_end(present), write_value(value)))
    comments = [f"# {' '.join(comment.split())}" for comment in amendment.comments]
    return [
        *edits,
        *(_add_flow(text, entry, added, comments) if entry.flow_style else _add_block(text, entry, added, comments)),
    ]


def _find_end(node: yaml.Node) -> int:
    """Return where a value ends; that of a block goes on to the next token, over blanks and comments."""
    end: int = node.end_mark.index
    if not isinstance(node, yaml.CollectionNode) or node.flow_style:
        return end
    last = node.value[-1]
    return _find_end(last[1] if isinstance(last, tuple) else last)


def _add_block(text: str, entry: yaml.MappingNode, added: Mapping[str, str], comments: Sequence[str]) -> list[_Edit]:
    """Add lines below the entry's first key."""
    indent = " " * entry.start_mark.column
    lines = [*comments, *(f"{name}: {value}" for name, value in added.items())]
    end = text.find("\n", _find_end(entry.value[0][1]))
    place = len(text) if end < 0 else end
    return [_Edit(place, place, "".join(f"\n{indent}{line}" for line in lines))]


def _add_flow(text: str, entry: yaml.MappingNode, added: Mapping[str, str], comments: Sequence[str]) -> list[_Edit]:
    """Add keys before the closing brace, and comments above the entry's line if the entry begins that line."""
    close = entry.end_mark.index - 1
    before = text[:close].rstrip()
    separator = " " if before.endswith((",", "{")) else ", "
    keys = ", ".join(f"{name}: {value}" for name, value in added.items())
    edits = [_Edit(len(before), len(before), f"{separator}{keys}")] if keys else []
    start = text.rfind("\n", 0, entry.start_mark.index) + 1
    head = text[start : entry.start_mark.index]
    if comments and head.strip() == "-":
        indent = head[: len(head) - len(head.lstrip())]
        edits.append(_Edit(start, start, "".join(f"{indent}{comment}\n" for comment in comments)))
    return edits


def write_value(value: Any) -> str:
    """Write a value as YAML in one line."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{write_value(str(key))}: {write_value(each)}' for key, each in value.items())}}}"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(int(value)) if value == value // 1 else repr(value)
    if value is None:
        return "null"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(write_value, value))}]"
    text = str(value)
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS_OF_YAML:
        return text
    if text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return json.dumps(text)
