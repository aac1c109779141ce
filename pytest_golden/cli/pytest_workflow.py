"""Translates tests of pytest-workflow into golden projects; what has no equal here is said."""

from __future__ import annotations

import glob
import shlex
from typing import TYPE_CHECKING, Any

import yaml

from pytest_golden.cli.drafting import DraftedProject, choose_path
from pytest_golden.errors import SettingsError
from pytest_golden.manifest.model import DeclaredOutput, slug
from pytest_golden.values.checking import as_mapping

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

#: What `golden init --from` is given for it.
NAME = "pytest-workflow"
_PATTERNS = ("**/test*.yml", "**/test*.yaml")
_MOST_BYTES = 1 << 20
_TRANSLATED = frozenset({"name", "command", "tags", "files", "exit_code", "stdout", "stderr"})
_MOST_CODE = 255
_SUMS = ("md5sum", "extract_md5sum")
_OF_FILE = frozenset({"path", "should_exist", "contains", "must_not_contain", *_SUMS})


def translate_tests(folder: Path) -> tuple[DraftedProject, ...]:
    """Translate all tests of pytest-workflow below a folder, by their files and in their order.

    Raises:
        SettingsError: there are none.
    """
    files = sorted({path for pattern in _PATTERNS for path in folder.glob(pattern) if path.is_file()})
    found = tuple(_translate(test, folder) for path in files for test in _read_tests(path))
    if not found:
        raise SettingsError(
            f"there are no tests of pytest-workflow (`test*.yml` with `name` and `command`) below {folder}"
        )
    return found


def _read_tests(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the tests of a file; other YAML files have none."""
    try:
        content = yaml.safe_load(path.read_bytes()[:_MOST_BYTES])
    except (OSError, ValueError, yaml.YAMLError):
        return
    for test in content if isinstance(content, list) else ():
        if isinstance(test, dict) and isinstance(test.get("name"), str) and _split(test.get("command")):
            yield test


def _split(command: object) -> tuple[str, ...]:
    """Split a command as pytest-workflow does, which runs it without a shell; nothing for what is none."""
    try:
        return tuple(shlex.split(command)) if isinstance(command, str) else ()
    except ValueError:
        return ()


def _translate(test: Mapping[str, Any], folder: Path) -> DraftedProject:
    told: list[str] = [f"{key}: has no equal" for key in test if key not in _TRANSLATED]
    keys: dict[str, Any] = {"title": test["name"]}
    tags = [slug(tag) for tag in _list_texts(test.get("tags"))]
    if any(tags):
        keys["tags"] = list(dict.fromkeys(filter(None, tags)))
    code = test.get("exit_code")
    if isinstance(code, int) and 0 < code <= _MOST_CODE:
        keys["expected_outcome"] = f"exit_code:{code}"
    elif code:
        told.append(f"exit_code: {code} is not an exit code")
    for stream in ("stdout", "stderr"):
        rules = dict(_list_text_rules(as_mapping(test.get(stream)), stream, told))
        if rules:
            keys[stream] = rules
    given = test.get("files")
    files = [
        file for file in (given if isinstance(given, list) else ()) if isinstance(as_mapping(file).get("path"), str)
    ]
    absent = [file["path"] for file in files if file.get("should_exist") is False]
    if absent:
        keys["unexpected_files"] = "fail"
        told += [
            f"{path} must not exist: `unexpected_files: fail` refuses every file that is not declared"
            for path in absent
        ]
    outputs = [_make_output(file, told) for file in files if file.get("should_exist") is not False]
    name, command = slug(test["name"]) or "project", _split(test["command"])
    return DraftedProject(
        name,
        choose_path(command, folder),
        "command",
        "a test of pytest-workflow",
        command,
        ".",
        outputs=tuple(filter(None, outputs)),
        told=tuple(told),
        keys=keys,
    )


def _make_output(file: Mapping[str, Any], told: list[str]) -> DeclaredOutput | None:
    path = file["path"]
    told += [f"{path}: {key} has no equal" for key in file if key not in _OF_FILE and not key.endswith("_regex")]
    rules: dict[str, Any] = dict(_list_text_rules(file, path, told))
    has_sum = any(file.get(key) for key in _SUMS)
    if has_sum:
        told.append(f"{path}: instead of its checksum it is compared with a baseline, which you accept once")
    compare: Any = ("text" if rules else "bytes") if has_sum else "exists"
    try:
        return DeclaredOutput(glob.escape(path), compare=compare, **rules)
    except ValueError as error:
        told.append(f"{path} cannot be an output: {error}")
        return None


def _list_text_rules(given: Mapping[str, Any], where: str, told: list[str]) -> Iterator[tuple[str, list[str]]]:
    for theirs, ours in (("contains", "contains"), ("must_not_contain", "not_contains")):
        texts = _list_texts(given.get(theirs))
        if texts:
            yield ours, texts
        if given.get(f"{theirs}_regex"):
            told.append(f"{where}: {theirs}_regex has no equal; search with `grep` in `after:`")


def _list_texts(given: Any) -> list[str]:
    """Return one text, or those of a list, as a list; nothing for anything else."""
    texts = given if isinstance(given, list) else [] if given is None or isinstance(given, dict) else [given]
    return [str(text) for text in texts if isinstance(text, (str, int, float))]
