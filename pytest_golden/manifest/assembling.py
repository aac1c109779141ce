"""A composed document to a `Manifest`: checks every part, then the rules between them, and builds when all is well."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_golden.manifest.composing import Document, Mistake, Spot, UnusableTextError
from pytest_golden.manifest.findings import UNREADABLE, Finding
from pytest_golden.manifest.keys import DEFAULT_KEYS, FILE_KEYS, PROJECT_KEYS, RETIRED_KEYS
from pytest_golden.manifest.model import GoldenProjectConfig, Manifest, RetiredProject, is_absolute_path, stem_name
from pytest_golden.manifest.records import Table, collect
from pytest_golden.manifest.rules import (
    Declared,
    find_conflicts,
    find_doubled_names,
    find_retired_and_declared,
    find_wrong_needs,
)
from pytest_golden.manifest.unquoted import Unquoted, show

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_golden.manifest.findings import Step


def assemble(document: Document, folder: Path) -> Manifest:
    """Make the manifest; its workspace root resolves against `folder`.

    Raises:
        UnusableTextError: all mistakes of the document, in no order.
    """
    return _Assembly(document).build(folder)


class _Assembly:
    """Gathers the mistakes of all parts of one document before it gives up or builds."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._mistakes: list[Mistake] = list(document.mistakes)
        self._defaults: dict[str, Any] = {}
        self._default_spots: set[Spot] = set()

    def build(self, folder: Path) -> Manifest:
        """Check everything, then build."""
        top = self._read_top()
        self._defaults = self._read_record(top.get("defaults", {}), DEFAULT_KEYS, "defaults")
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
        """Note what two keys of a project, or two projects, have against each other: in `defaults` only once."""
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
            return self._read_record(value or {}, FILE_KEYS)
        message = f"the file holds {show(value)}; write a mapping with the keys version and golden_projects"
        self._note([Finding((), message)])
        return {}

    def _read_record(self, value: Any, table: Table, *above: Step) -> dict[str, Any]:
        if value is UNREADABLE or _is_null(value):
            return {}
        if not isinstance(value, dict):
            some = ", ".join(list(table.keys)[:2])
            self._note([Finding((), f"a mapping is wanted, not {show(value)}; write its keys: {some}, ...")], *above)
            return {}
        clean, findings = collect(value, table)
        self._note(findings, *above)
        return clean

    def _read_list(self, top: Mapping[str, Any], key: str) -> list[Any]:
        value = top.get(key, [])
        if isinstance(value, list):
            return value
        if not _is_null(value):
            self._note([Finding((key,), f"a list is wanted, not {show(value)}; begin each item with a dash")])
        return []

    def _read_projects(self, top: Mapping[str, Any]) -> list[Declared]:
        items = self._read_list(top, "golden_projects")
        projects = [self._read_project(index, item) for index, item in enumerate(items)]
        self._note_items(find_doubled_names(projects), "golden_projects")
        for finding in find_wrong_needs(projects):
            index = int(finding.path[0])
            self._note_together([finding._replace(path=finding.path[1:])], index, _as_mapping(items[index]))
        return projects

    def _read_project(self, index: int, item: Any) -> Declared:
        clean = self._read_item(item, PROJECT_KEYS, "golden_projects", index)
        raw = _as_mapping(item)
        if "path" in clean and "name" not in raw:
            clean["name"] = self._name_by_path(clean["path"], index)
        fields = {**self._defaults, **clean}
        self._note_together(find_conflicts(fields), index, raw)
        line = self._document.find_spot(("golden_projects", index)).line
        return Declared(_as_text(raw.get("name", clean.get("name"))), "name" if "name" in raw else "path", line, fields)

    def _read_item(self, item: Any, table: Table, *above: Step) -> dict[str, Any]:
        # An empty item is a project or record without its required keys, not one that was left out.
        return self._read_record({} if _is_null(item) else item, table, *above)

    def _name_by_path(self, path: str, index: int) -> str:
        name = stem_name(path)
        if not name:
            message = f"{show(path)} gives the project no name; write the key name"
            self._note([Finding(("path",), message)], "golden_projects", index)
        return name

    def _read_retired(self, top: Mapping[str, Any], projects: list[Declared]) -> list[dict[str, Any]]:
        items = self._read_list(top, "retired")
        records = [self._read_item(item, RETIRED_KEYS, "retired", index) for index, item in enumerate(items)]
        self._note_items(find_retired_and_declared([record.get("name") for record in records], projects), "retired")
        return records

    def _resolve_root(self, declared: str, folder: Path) -> Path:
        root = Path(declared)
        if is_absolute_path(declared) and not root.is_absolute():
            self._note(
                [Finding(("workspace_root",), f"{show(declared)} is a path of Windows; write a relative one here")]
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
