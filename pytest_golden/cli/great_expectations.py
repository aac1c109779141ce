"""Translates suites of Great Expectations into the rules of outputs; what has no equal here is said.

A validation definition says which suite is for which batch. Batches that are one file become an output with the suite's rules; the pipeline that
writes the file is not known there, so that the command is left to a person. Read are the files of a file context, as GX Core 1.x writes them:
https://docs.greatexpectations.io/docs/core/set_up_a_gx_environment/create_a_data_context
"""

from __future__ import annotations

import glob
import json
import os
import re
from contextlib import suppress
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import yaml

from pytest_golden.cli.drafting import DraftedProject
from pytest_golden.errors import SettingsError
from pytest_golden.manifest.model import DeclaredOutput, slug
from pytest_golden.values.checking import as_mapping

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    # A rule of an output, from the keywords of an expectation; None where it has no equal.
    _Rule = tuple[str, Any] | None

#: What `golden init --from` is given for it.
NAME = "great-expectations"
_CONTEXT, _MOST_BYTES = "great_expectations.yml", 4 << 20
_COMMAND = ("python", "NAME_THE_PIPELINE.py")
_UNDERSTOOD = frozenset({"column", "mostly", "min_value", "max_value", "value_set", "value"})
_SPECIAL = re.compile(r"(?<!\\)[][.^$*+?{}()|]|\\[A-Za-z]")


def _between(given: Mapping[str, Any]) -> _Rule:
    bounds = [given.get("min_value"), given.get("max_value")]
    return ("between", {given["column"]: bounds}) if any(bound is not None for bound in bounds) else None


def _accepted(given: Mapping[str, Any]) -> _Rule:
    values = given.get("value_set")
    return ("accepted", {given["column"]: list(map(str, values))}) if isinstance(values, list) and values else None


_RULES: Mapping[str, Callable[[Mapping[str, Any]], _Rule]] = {
    "expect_column_values_to_not_be_null": lambda given: ("not_null", [given["column"]]),
    "expect_column_values_to_be_unique": lambda given: ("unique", [given["column"]]),
    "expect_column_values_to_be_between": _between,
    "expect_column_values_to_be_in_set": _accepted,
}
_ROW_COUNTS = {
    "expect_table_row_count_to_be_between": ("min_value", "max_value"),
    "expect_table_row_count_to_equal": ("value", "value"),
}


def translate_tests(folder: Path) -> tuple[DraftedProject, ...]:
    """Translate the validation definitions of all contexts below a folder, by their files.

    Raises:
        SettingsError: there are none for a file.
    """
    found = tuple(
        project for context in sorted(folder.rglob(_CONTEXT)) for project in _translate_context(context, folder)
    )
    if not found:
        raise SettingsError(
            f"no validation definition of Great Expectations below {folder} is for a batch that is one file: only these have an equal, "
            f"an output with rules (read are `{_CONTEXT}`, `validation_definitions/` and `expectations/` beside it)"
        )
    return found


def _translate_context(context: Path, folder: Path) -> Iterator[DraftedProject]:
    home = context.parent
    sources = as_mapping(as_mapping(_read(context)).get("fluent_datasources"))
    suites = {
        suite["name"]: suite
        for path in sorted((home / "expectations").rglob("*.json"))
        if isinstance(as_mapping(suite := _read(path)).get("name"), str)
    }
    for path in sorted((home / "validation_definitions").rglob("*.json")):
        definition = as_mapping(_read(path))
        data = as_mapping(definition.get("data"))
        name, source, asset, batch, suite = (
            str(as_mapping(one).get("name"))
            for one in (
                definition,
                *(data.get(key) for key in ("datasource", "asset", "batch_definition")),
                definition.get("suite"),
            )
        )
        file = _find_file(as_mapping(sources.get(source)), asset, batch)
        if file is None or suite not in suites:
            continue
        where = next((one for one in (home.parent, home) if (one / file).exists()), home.parent)
        written = os.path.relpath(where / file, folder)
        told: list[str] = [f"name the pipeline that writes {written} in `path` and `command`"]
        output = _make_output(written, suites[suite], told)
        if output is not None and not written.startswith(os.pardir):
            yield DraftedProject(
                slug(name) or "project",
                os.path.relpath(path, folder),
                "command",
                f"the suite {suite} of Great Expectations; name the pipeline that writes {written}",
                _COMMAND,
                ".",
                outputs=(output,),
                told=tuple(told),
            )


def _read(path: Path) -> Any:
    """Return what a file holds; None if it cannot be read."""
    with suppress(OSError, ValueError, RecursionError, yaml.YAMLError):
        raw = path.read_bytes()[:_MOST_BYTES]
        return json.loads(raw) if path.suffix == ".json" else yaml.safe_load(raw)
    return None


def _find_file(source: Mapping[str, Any], asset: str, batch: str) -> str | None:
    """Return the file of a batch, relative to the project; None if it is not one file."""
    base = source.get("base_directory")
    batches = as_mapping(as_mapping(as_mapping(source.get("assets")).get(asset)).get("batch_definitions"))
    pattern = as_mapping(as_mapping(batches.get(batch)).get("partitioner")).get("regex")
    if not isinstance(base, str) or not isinstance(pattern, str):
        return None
    # GX writes the path of a file as it is, with a `$` behind it.
    plain = pattern.removesuffix("$")
    is_plain = not _SPECIAL.search(plain.replace(".", ""))
    return str(PurePosixPath(base, plain.replace("\\", ""))) if is_plain else None


def _make_output(path: str, suite: Mapping[str, Any], told: list[str]) -> DeclaredOutput | None:
    rules: dict[str, Any] = {}
    expectations = suite.get("expectations")
    for one in expectations if isinstance(expectations, list) else ():
        kind, given = str(as_mapping(one).get("type")), as_mapping(as_mapping(one).get("kwargs"))
        rule = _translate(kind, given)
        if not rule:
            column = f" of {given['column']}" if isinstance(given.get("column"), str) else ""
            told.append(f"{kind}{column}: has no equal")
        for key, value in rule.items():
            before = rules.get(key)
            if isinstance(before, dict):
                before.update(value)
            elif isinstance(before, list):
                before += [column for column in value if column not in before]
            else:
                rules[key] = value
    try:
        return DeclaredOutput(glob.escape(path), compare="table", schema_only=True, **rules)
    except ValueError as error:
        told.append(f"{path} cannot be an output: {error}")
        return None


def _translate(kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rules that say the same as an expectation; none if no rule does."""
    named = {name for name, value in given.items() if value not in (None, False)}
    if not named <= _UNDERSTOOD or given.get("mostly") not in {None, 1}:
        return {}
    if kind in _ROW_COUNTS:
        bounds = zip(("min_rows", "max_rows"), map(given.get, _ROW_COUNTS[kind]), strict=True)
        return {name: bound for name, bound in bounds if isinstance(bound, int)}
    if kind not in _RULES or not isinstance(given.get("column"), str):
        return {}
    rule = _RULES[kind](given)
    return {} if rule is None else dict([rule])
