"""Read a manifest to a `Manifest`: a file, with line and column for every mistake, or projects named on a command line.

On a command line they are `a.yaml, b.yaml` or `name:path, name:path`.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.errors import ManifestError, ManifestProblem
from pytest_golden.manifest import model, rules
from pytest_golden.manifest.composing import Document, Mistake, Spot, UnusableTextError, compose, spot_of_offset
from pytest_golden.manifest.kinds import UNREADABLE, Finding, Table, check_name, check_text, collect
from pytest_golden.manifest.model import (
    GoldenProjectConfig,
    Manifest,
    RetiredProject,
    is_absolute_path,
    slug,
    stem_name,
)
from pytest_golden.manifest.units import Unquoted, show

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_golden.manifest.kinds import Step

MANIFEST_NAME = "golden_projects.yaml"
LARGEST_BYTES = 5 * 1024 * 1024
# What mistakes in inline forms name in place of a file.
SOURCE = "--golden-projects"
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


def load_manifest(path: str | os.PathLike[str]) -> Manifest:
    """Read a manifest file. An empty file, or one that declares no golden projects, is a manifest without projects.

    Raises:
        ManifestError: the file is missing, cannot be read or has mistakes; `problems` are all of them in file order.
    """
    file = Path(path)
    name = _short_name(file)
    manifest = parse_manifest(_read_bytes(file, name), name, file.absolute().parent)
    return replace(manifest, path=file.absolute())


def parse_manifest(text: str | bytes, file_name: str, workspace_root_dir: str | os.PathLike[str]) -> Manifest:
    """Read the text of a manifest that need not be on disk, such as another commit's.

    `file_name` is what problems name; `workspace_root` in the text resolves against `workspace_root_dir`.

    Raises:
        ManifestError: the text has mistakes; `problems` are all of them in the order of the text.
    """
    try:
        return _Assembly(compose(_decode(text))).build(Path(workspace_root_dir))
    except UnusableTextError as error:
        raise _error(file_name, error.mistakes) from None


def _short_name(file: Path) -> str:
    absolute, here = file.absolute(), Path.cwd()
    return str(absolute.relative_to(here)) if absolute.is_relative_to(here) else str(file)


def _read_bytes(file: Path, name: str) -> bytes:
    try:
        if file.exists() and not file.is_file():
            raise _nowhere(name, "this is not a file; name the manifest itself")
        with file.open("rb") as stream:
            return stream.read(LARGEST_BYTES + 1)
    except FileNotFoundError:
        raise _nowhere(name, "there is no such file; run `golden init` to write a first manifest") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _nowhere(name, f"the file cannot be read: {reason}; check the path and its permissions") from None


def _decode(text: str | bytes) -> str:
    if len(text) > LARGEST_BYTES:
        message = f"the text is larger than {LARGEST_BYTES // 1024 // 1024} MiB; declare projects here and keep data elsewhere"
        raise UnusableTextError([Mistake(Spot(1, 1), message)])
    if isinstance(text, str):
        return text.removeprefix("\ufeff")
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        good = text[: error.start].decode("utf-8-sig", errors="replace")
        message = f"the byte 0x{text[error.start]:02X} is not UTF-8; save the file as UTF-8"
        raise UnusableTextError([Mistake(spot_of_offset(good, len(good)), message)]) from None


def _nowhere(file_name: str, message: str) -> ManifestError:
    return ManifestError([ManifestProblem(file_name, 0, 0, message)])


def _error(file_name: str, mistakes: Iterable[Mistake]) -> ManifestError:
    ordered = sorted(set(mistakes))
    return ManifestError(ManifestProblem(file_name, *mistake.spot, mistake.message) for mistake in ordered)


class _Assembly:
    """Makes a manifest of a composed document; gathers the mistakes of all its parts before it refuses the document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._mistakes: list[Mistake] = list(document.mistakes)
        self._defaults: dict[str, Any] = {}
        self._default_spots: set[Spot] = set()

    def build(self, folder: Path) -> Manifest:
        """Check every part, then the rules between parts, and make the manifest; its workspace root resolves against `folder`.

        Raises:
            UnusableTextError: all mistakes of the document, in no order.
        """
        top = self._read_top()
        self._defaults = self._read_record(top.get("defaults", {}), model.DEFAULT_KEYS, "defaults")
        projects = self._read_projects(top)
        retired = self._read_retired(top, projects)
        workspace_root = self._resolve_root(top.get("workspace_root", "."), folder)
        if self._mistakes:
            raise UnusableTextError(self._mistakes)
        return Manifest(
            projects=tuple(GoldenProjectConfig(**project.fields) for project in projects),
            workspace_root=workspace_root,
            require_golden_projects=top.get("require_golden_projects", False),
            retired=tuple(RetiredProject(**record) for record in retired),
            setup=top.get("setup"),
            lines={project.fields["name"]: project.line for project in projects},
        )

    def _note(self, findings: Iterable[Finding], *above: Step) -> None:
        for finding in findings:
            spot = self._document.find_spot((*above, *finding.path), at_key=finding.at_key)
            self._mistakes.append(Mistake(spot, str(finding)))

    def _note_items(self, findings: Iterable[Finding], key: str) -> None:
        for finding in findings:
            self._note([finding._replace(path=finding.path[1:])], key, finding.path[0])

    def _note_together(self, findings: Iterable[Finding], index: int, own: Mapping[str, Any]) -> None:
        """Note conflicts between keys of a project or between projects; one that lies in `defaults` is noted only once."""
        for finding in findings:
            if finding.path[0] in own:
                self._note([finding], "golden_projects", index)
                continue
            spot = self._document.find_spot(("defaults", *finding.path))
            if spot not in self._default_spots:
                self._default_spots.add(spot)
                self._mistakes.append(Mistake(spot, str(finding)))

    def _read_top(self) -> dict[str, Any]:
        value = self._document.value
        if value is None or isinstance(value, dict) or value is UNREADABLE or _is_null(value):
            return self._read_record(value or {}, model.FILE_KEYS)
        message = f"the file holds {show(value)}; write a mapping with the keys version and golden_projects"
        self._note([Finding((), message)])
        return {}

    def _read_record(self, value: Any, table: Table, *above: Step) -> dict[str, Any]:
        if value is UNREADABLE or _is_null(value):
            return {}
        if not isinstance(value, dict):
            some = ", ".join(list(table.keys)[:2])
            self._note([Finding((), f"this must be a mapping, not {show(value)}; write its keys: {some}, ...")], *above)
            return {}
        clean, findings = collect(value, table)
        self._note(findings, *above)
        return clean

    def _read_list(self, top: Mapping[str, Any], key: str) -> list[Any]:
        value = top.get(key, [])
        if isinstance(value, list):
            return value
        if not _is_null(value):
            self._note([Finding((key,), f"this must be a list, not {show(value)}; begin each item with a dash")])
        return []

    def _read_projects(self, top: Mapping[str, Any]) -> list[rules.Declared]:
        items = self._read_list(top, "golden_projects")
        projects = [self._read_project(index, item) for index, item in enumerate(items)]
        self._note_items(rules.find_doubled_names(projects), "golden_projects")
        for finding in rules.find_wrong_needs(projects):
            index = int(finding.path[0])
            self._note_together([finding._replace(path=finding.path[1:])], index, _as_mapping(items[index]))
        return projects

    def _read_project(self, index: int, item: Any) -> rules.Declared:
        clean = self._read_item(item, model.PROJECT_KEYS, "golden_projects", index)
        raw = _as_mapping(item)
        if "path" in clean and "name" not in raw:
            clean["name"] = self._name_by_path(clean["path"], index)
        fields = {**self._defaults, **clean}
        self._note_together(rules.find_conflicts(fields), index, raw)
        line = self._document.find_spot(("golden_projects", index)).line
        return rules.Declared(
            _as_text(raw.get("name", clean.get("name"))), "name" if "name" in raw else "path", line, fields
        )

    def _read_item(self, item: Any, table: Table, *above: Step) -> dict[str, Any]:
        # An empty item is a project or record that lacks its required keys, not one that was left out.
        return self._read_record({} if _is_null(item) else item, table, *above)

    def _name_by_path(self, path: str, index: int) -> str:
        name = model.stem_name(path)
        if not name:
            message = f"{show(path)} gives the project no name; write the key name"
            self._note([Finding(("path",), message)], "golden_projects", index)
        return name

    def _read_retired(self, top: Mapping[str, Any], projects: list[rules.Declared]) -> list[dict[str, Any]]:
        items = self._read_list(top, "retired")
        records = [self._read_item(item, model.RETIRED_KEYS, "retired", index) for index, item in enumerate(items)]
        self._note_items(
            rules.find_retired_and_declared([record.get("name") for record in records], projects), "retired"
        )
        return records

    def _resolve_root(self, declared: str, folder: Path) -> Path:
        root = Path(declared)
        if model.is_absolute_path(declared) and not root.is_absolute():
            self._note(
                [Finding(("workspace_root",), f"{show(declared)} is a Windows path; write a relative path here")]
            )
            return folder
        try:
            return (folder / root.expanduser()).resolve()
        except (OSError, RuntimeError) as error:
            self._note([Finding(("workspace_root",), f"{show(declared)} cannot be resolved: {error}; check the path")])
            return folder


def _is_null(value: Any) -> bool:
    return isinstance(value, Unquoted) and value.kind == "null"


def _as_mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _as_text(value: Any) -> str | None:
    text = value.text if isinstance(value, Unquoted) else value
    return text or None if isinstance(text, str) else None


class _Part(NamedTuple):
    """What stands between two commas: the path, and the name where one is given."""

    name: str | None
    path: str


def parse_golden_projects_input(text: str, workspace_root: str | os.PathLike[str]) -> tuple[GoldenProjectConfig, ...]:
    r"""Read the inline forms; both may be mixed, and commas at the end, blanks and new lines do not matter.

    A project without a name gets the stem of its path as a slug; where names collide, the slug of its path below
    `workspace_root`. A leading drive letter (`D:\\...`, `D:/...`) is not a name. For a text without
    projects the tuple is empty.

    Raises:
        ManifestError: a name or path is unusable, or two projects have one name.
    """
    parts = [_split(part) for part in re.split(r"[,\r\n]", text) if part.strip()]
    problems = [problem for part in parts if (problem := _find_problem(part)) is not None]
    if problems:
        raise _inline_error(problems)
    names = _give_names(parts, str(workspace_root))
    problems = [
        f"{show(part.path)} gives no name; write it as name:path"
        for part, name in zip(parts, names, strict=True)
        if not name
    ]
    problems += [
        f"the name {name!r} is given {times} times; give each project a name of its own, as name:path"
        for name, times in Counter(names).items()
        if times > 1 and name
    ]
    if problems:
        raise _inline_error(problems)
    return tuple(GoldenProjectConfig(name, part.path) for name, part in zip(names, parts, strict=True))


def parse_inline_manifest(text: str, workspace_root: str | os.PathLike[str]) -> Manifest:
    """Make a manifest of the inline forms.

    Raises:
        ManifestError: as for `parse_golden_projects_input`.
    """
    root = Path(workspace_root).resolve()
    return Manifest(projects=parse_golden_projects_input(text, root), workspace_root=root)


def _split(text: str) -> _Part:
    text = text.strip()
    name, colon, path = text.partition(":")
    if not colon or _DRIVE.match(text):
        return _Part(None, text)
    return _Part(name.strip(), path.strip())


def _find_problem(part: _Part) -> str | None:
    whole = part.path if part.name is None else f"{part.name}:{part.path}"
    name = "unnamed" if part.name is None else part.name
    for what, check, given in (("path", check_text, part.path), ("name", check_name, name)):
        try:
            check(given)
        except ValueError as error:
            return f"the {what} in {show(whole)}: {error}"
    return None


def _give_names(parts: Sequence[_Part], root: str) -> list[str]:
    """Name every part; one without a name gets the shortest that no other part has: stem, path, path with suffix."""
    names = [part.name or stem_name(part.path) for part in parts]
    for keep_suffix in (False, True):
        count = Counter(names)
        names = [
            name if part.name or count[name] == 1 else _path_name(part.path, root, keep_suffix=keep_suffix)
            for name, part in zip(names, parts, strict=True)
        ]
    return names


def _path_name(path: str, root: str, *, keep_suffix: bool) -> str:
    pure = PureWindowsPath(path) if _DRIVE.match(path) else PurePosixPath(path)
    if is_absolute_path(path) and pure.is_relative_to(root):
        pure = pure.relative_to(root)
    return slug(str(pure if keep_suffix else pure.with_suffix("")))


def _inline_error(messages: Sequence[str]) -> ManifestError:
    return ManifestError(ManifestProblem(SOURCE, 0, 0, message) for message in messages)
