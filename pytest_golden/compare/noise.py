"""Tell whether an output differs from its baseline only by noise.

Two kinds of noise are known: what `golden calibrate` found, and columns of a table whose values are all times of this run.
Such an output still fails. The failure names the rule that would cover it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pytest_golden.compare.calibration import add_rules
from pytest_golden.compare.comparing import compare_files
from pytest_golden.compare.opening import Content, Side, UnreadableError, choose_comparison
from pytest_golden.compare.tables.moving_columns import find_columns_of_times
from pytest_golden.compare.tables.profiles import is_profile
from pytest_golden.errors import GoldenError
from pytest_golden.manifest.amending import write_value
from pytest_golden.storage.folder import replace_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from pytest_golden.manifest.model import DeclaredOutput

KNOWN_NAME = "calibrated.json"
# Clocks are read before and after the pipeline, and its times may be rounded.
_SLACK = timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class RunTime:
    """The begin and end of a run, in UTC. `hours_apart` is the possible difference of its own clock from UTC."""

    began: datetime
    ended: datetime
    hours_apart: int = 0

    @property
    def bounds(self) -> tuple[datetime, datetime]:
        """Return the first and the last time that the run can have written."""
        apart = timedelta(hours=self.hours_apart) + _SLACK
        return self.began - apart, self.ended + apart


class KnownMovements:
    """The findings of `golden calibrate` in earlier runs, by project and by the `path` of the entry. An unreadable file counts as empty."""

    def __init__(self, state_folder: Path) -> None:
        self._file = state_folder / KNOWN_NAME

    def find_rules(self, project: str, path: str) -> Mapping[str, Any]:
        """Return rules that make an output stable and that may be missing in the manifest; empty if none are known."""
        outputs = self._read().get(project)
        rules = outputs.get(path) if isinstance(outputs, dict) else None
        return {name: tuple(value) if isinstance(value, list) else value for name, value in (rules or {}).items()}

    def keep(self, found: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
        """Replace the findings about these projects.

        Raises:
            OSError: they cannot be written.
        """
        with replace_file(self._file) as file:
            json.dump({**self._read(), **found}, file, indent=1)

    def _read(self) -> dict[str, Any]:
        try:
            known = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return known if isinstance(known, dict) else {}


def explain_noise(
    entries: Sequence[DeclaredOutput],
    actual: Path,
    baseline: Path,
    known: Mapping[str, Mapping[str, Any]],
    run: RunTime,
) -> str | None:
    """Say that an output differs only by noise, and name the rule; None if it differs otherwise.

    Args:
        entries: the entries that name the output, each compared with a baseline.
        actual: the output.
        baseline: its accepted form.
        known: the known noise, by the `path` of an entry.
        run: the time of the run.
    """
    if any(entry.is_of_tables for entry in entries) and is_profile(baseline):
        # It holds no rows to compare times with.
        return None
    told = []
    for entry in entries:
        try:
            if compare_files(entry, actual, baseline, shown_as=actual.name) is None:
                continue
            found = _find_rules(entry, actual, baseline, known.get(entry.path, {}), run)
        except (GoldenError, ValueError, TypeError):
            # The findings may not match an entry that has changed since.
            return None
        if found is None:
            return None
        told.append(found)
    return f"this looks like noise, not a regression: {' and '.join(told)}" if told else None


def _find_rules(
    entry: DeclaredOutput, actual: Path, baseline: Path, known: Mapping[str, Any], run: RunTime
) -> str | None:
    amended = add_rules(entry, known)
    if known and compare_files(amended, actual, baseline, shown_as=actual.name) is None:
        rules = ", ".join(f"{name}: {write_value(value)}" for name, value in known.items())
        return f"it holds with `{rules}`, which `golden calibrate` found and `--write` declares"
    if choose_comparison(actual, entry) != "table":
        return None
    try:
        output, accepted = Content(actual, Side.OUTPUT), Content(baseline, Side.BASELINE)
        columns = find_columns_of_times(entry, output, accepted, run.bounds)
    except UnreadableError:
        return None
    amended = add_rules(amended, {"ignore_columns": columns})
    if not columns or compare_files(amended, actual, baseline, shown_as=actual.name) is not None:
        return None
    rule = f"ignore_columns: {write_value(amended.ignore_columns)}"
    return f"all that differs are times of this run; declare `{rule}`, or let `golden calibrate` find it"
