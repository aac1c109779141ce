"""What of a project's outputs moves by itself, and the fewest rules that make them stable.

The outputs come from runs of the same files under other conditions: another time, hash seed, number of threads. A rule is
proposed only if all runs are equal under it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_golden.compare.comparing import compare_files
from pytest_golden.compare.documents.moving_members import find_moving_members
from pytest_golden.compare.opening import Content, Movement, Side, UnreadableError, choose_comparison
from pytest_golden.compare.tables.moving_columns import find_moving_columns
from pytest_golden.compare.text.moving_lines import find_moving_lines
from pytest_golden.regression.unexpected import names_output
from pytest_golden.regression.wording import show_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pytest_golden.compare.showing import Redact
    from pytest_golden.manifest.model import DeclaredOutput

_FINDERS = {"table": find_moving_columns, "json": find_moving_members, "text": find_moving_lines}
_TOLERANCE = "relative_tolerance"
_BEGINNING_BYTES = 1 << 20
_PARQUET = b"PAR1"
# Nobody types so many digits.
_COMPUTED = re.compile(rb"\d\.\d{9}")
_IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".svg")


@dataclass(frozen=True, slots=True)
class MovingFile:
    """One unstable file: its unstable parts, those that no rule covers, and the positions of the entries that name it."""

    path: str
    seen: tuple[str, ...]
    unsolved: tuple[str, ...]
    entries: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Calibration:
    """The unstable parts of a project's outputs.

    `rules` are the additions to the entries of `outputs:`, by position. `missing` are files that not every run
    wrote. `outputs` are all entries with their new rules.
    """

    files: tuple[MovingFile, ...]
    rules: Mapping[int, Mapping[str, Any]]
    missing: tuple[str, ...]
    outputs: tuple[DeclaredOutput, ...]

    @property
    def is_stable(self) -> bool:
        """Tell whether all outputs are stable."""
        return not self.files and not self.missing

    @property
    def is_solved(self) -> bool:
        """Tell whether the proposed rules make all outputs stable."""
        return not self.missing and not any(file.unsolved for file in self.files)


def calibrate(
    outputs: Sequence[DeclaredOutput], runs: Sequence[Mapping[str, Path]], redact: Redact = str
) -> Calibration:
    """Compare the outputs of several runs, and find rules for the differences.

    Args:
        outputs: the entries of `outputs:`.
        runs: for each run, the location of each file that the entries name, by its path below project_dir. At least two.
        redact: removes secrets from everything that is shown.

    Raises:
        GoldenError: the harness could not do its job, for example because DuckDB is not installed.
    """
    entries = list(outputs)
    files: dict[str, MovingFile] = {}
    rules: dict[int, dict[str, Any]] = {}
    everywhere = set.intersection(*(set(run) for run in runs))
    for path in sorted(everywhere):
        for position, entry in enumerate(outputs):
            if entry.compare == "exists" or not names_output(entry, path):
                continue
            for other in runs[1:]:
                movement = _find_movement(entries[position], runs[0][path], other[path], redact)
                if movement is None:
                    continue
                entries[position] = add_rules(entries[position], movement.rules)
                _merge_rules(rules.setdefault(position, {}), movement.rules)
                files[path] = _merge_file(
                    files.get(path), MovingFile(path, movement.seen, movement.unsolved, (position,))
                )
    _spread_tolerance(entries, rules, runs[0])
    missing = sorted(set.union(*(set(run) for run in runs)) - everywhere)
    return Calibration(
        tuple(files.values()), {at: rules[at] for at in sorted(rules) if rules[at]}, tuple(missing), tuple(entries)
    )


def _spread_tolerance(
    entries: list[DeclaredOutput], rules: dict[int, dict[str, Any]], files: Mapping[str, Path]
) -> None:
    """Give all outputs with computed numbers the same tolerance if one needs it: the next run may affect others of them."""
    most = max((rule.get(_TOLERANCE, 0.0) for rule in rules.values()), default=0.0)
    for position, entry in enumerate(entries):
        if not most or entry.relative_tolerance or entry.compare == "exists":
            continue
        paths = [path for name, path in files.items() if names_output(entry, name)]
        if any(_holds_computed_numbers(path, entry) for path in paths):
            entries[position] = replace(entry, relative_tolerance=most)
            rules.setdefault(position, {})[_TOLERANCE] = most


def _holds_computed_numbers(path: Path, entry: DeclaredOutput) -> bool:
    if choose_comparison(path, entry) not in {"table", "json"}:
        return False
    with path.open("rb") as file:
        beginning = file.read(_BEGINNING_BYTES)
    return beginning.startswith(_PARQUET) or _COMPUTED.search(beginning) is not None


def _find_movement(entry: DeclaredOutput, one: Path, other: Path, redact: Redact) -> Movement | None:
    """Find the differences between two files, with rules that were tried; None if the present rules make them equal."""
    if compare_files(entry, one, other, shown_as=one.name, redact=redact) is None:
        return None
    movement = _ask_finder(entry, one, other, redact)
    if movement.unsolved:
        return replace(movement, rules={}) if not movement.rules else movement
    try:
        mismatch = compare_files(add_rules(entry, movement.rules), one, other, shown_as=one.name, redact=redact)
    except ValueError as error:
        why = f"the entry `{show_path(entry.path)}` cannot have these rules ({error}): declare the file in an entry of its own"
        return Movement(seen=movement.seen, unsolved=(why,))
    if mismatch is not None:
        headline = mismatch.message.partition("\n")[0]
        return Movement(seen=movement.seen, unsolved=(f"no rule makes it stable: {headline}",))
    return movement


def _ask_finder(entry: DeclaredOutput, one: Path, other: Path, redact: Redact) -> Movement:
    comparison = choose_comparison(one, entry)
    finder = _FINDERS.get(comparison)
    try:
        if finder is not None:
            return finder(entry, Content(one, Side.OUTPUT), Content(other, Side.BASELINE), redact)
    except UnreadableError as error:
        return Movement(unsolved=(str(error),))
    if comparison == "bytes" and one.suffix.lower() in _IMAGES:
        return Movement({"compare": "image_size"}, ("the picture's bytes move; its width and height are compared",))
    return Movement(unsolved=("its bytes move: write it without time stamps, or declare `compare: exists`",))


def add_rules(entry: DeclaredOutput, rules: Mapping[str, Any]) -> DeclaredOutput:
    """Return an entry with additional rules: lists are joined, and the larger of two tolerances wins.

    Raises:
        ValueError: its comparison does not support one of them.
    """
    merged = {name: getattr(entry, name) for name in rules if isinstance(getattr(entry, name), tuple | float)}
    _merge_rules(merged, rules)
    return replace(entry, **merged)


def _merge_rules(merged: dict[str, Any], rules: Mapping[str, Any]) -> None:
    """Add to lists, and take the larger of two tolerances."""
    for name, value in rules.items():
        known = merged.get(name)
        if isinstance(value, tuple) and isinstance(known, tuple):
            merged[name] = (*known, *(item for item in value if item not in known))
        elif isinstance(value, float) and isinstance(known, float):
            merged[name] = max(known, value)
        else:
            merged[name] = value


def _merge_file(known: MovingFile | None, found: MovingFile) -> MovingFile:
    if known is None:
        return found
    return MovingFile(
        found.path,
        tuple(dict.fromkeys((*known.seen, *found.seen))),
        tuple(dict.fromkeys((*known.unsolved, *found.unsolved))),
        tuple(dict.fromkeys((*known.entries, *found.entries))),
    )
