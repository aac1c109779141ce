"""Measure how much a golden project would notice: make small wrong changes, run each one in its own view, and judge the result.

A change is **caught** if the project turns red, and **survived** if the project stays green although something that it wrote or
printed differs. If nothing differs (**same**), the change says nothing about the floor. The same holds if the harness could not run it
(**invalid**), or if only a file differs that two unchanged runs also write differently (**unclear**).
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from enum import StrEnum
from operator import itemgetter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import monotonic_seconds
from pytest_golden.compare.baselines import find_baselines_folder
from pytest_golden.compare.examination import BaselineKeeper
from pytest_golden.errors import GoldenError
from pytest_golden.gate.service import RegressionGuard
from pytest_golden.gateway import git
from pytest_golden.gateway.model import Ending
from pytest_golden.gateway.runners.runner import read_regular
from pytest_golden.history.unchanged_paths import is_for_people, is_passed_over, is_test
from pytest_golden.manifest.comparisons import comparison_of_pattern, is_database_name
from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.unexpected import find_run, is_named, names_output
from pytest_golden.regression.wording import name_some, show_path
from pytest_golden.settings import BASELINES_FOLDER
from pytest_golden.trajectory.insight.figures import wilson_interval
from pytest_golden.values.shape import Shape, form, in_form
from pytest_golden.verify.mutants import MOST_BYTES, Mutant, is_mutable, make_mutants, order_by_telling

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping

    from pytest_golden.gateway.model import PipelineOutcome
    from pytest_golden.gateway.service import ExecutionGateway
    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.regression.model import GoldenProjectResult

_LEVEL = 0.95
_SEED = 20_260_101
_LEAST_SECONDS, _TIMES_SLOWER = 30.0, 10.0
_MOST_FILES, _MOST_NAMED = 200, 3
_ENOUGH_LOOKS = 8
_ALL_MODELS = ("*",)
# With these rules, different contents can be equal.
_LOOSE_RULES = (
    *("absolute_tolerance", "relative_tolerance", "ignore_columns", "ignore_lines", "ignore_paths", "masks"),
    *("schema_only", "profile_above", "exclude", "tables"),
)
_STDOUT = "what it prints"
_STAMP = re.compile(r"(?<![A-Za-z])[0-9a-f]{4,}(?![A-Za-z])|\d+")


class Noticed(StrEnum):
    """The result of a mutant."""

    CAUGHT = "caught"
    SURVIVED = "survived"
    SAME = "same"
    UNCLEAR = "unclear"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class TriedMutant(Shape):
    """A mutant and its result. `why` is the reason of the red run, or names what differs and would have to be compared."""

    mutant: Mutant = field(metadata=form(merged=True))
    found: Noticed
    why: str


@dataclass(frozen=True, slots=True)
class ProjectStrength(Shape):
    """The measurement of one project. `total` counts all mutants of its files, tried or not."""

    name: str
    files: tuple[str, ...]
    total: int
    tried: tuple[TriedMutant, ...]

    def count(self, found: Noticed) -> int:
        """Return the number of mutants with this result."""
        return sum(one.found is found for one in self.tried)

    @property
    @in_form()
    def score(self) -> int | None:
        """The percentage of caught changes among those that made a difference, rounded down; None if there is none yet."""
        caught, survived = self.count(Noticed.CAUGHT), self.count(Noticed.SURVIVED)
        return 100 * caught // (caught + survived) if caught + survived else None

    @property
    @in_form()
    def interval(self) -> tuple[int, int] | None:
        """The 95 % confidence interval (Wilson) of the score."""
        caught, survived = self.count(Noticed.CAUGHT), self.count(Noticed.SURVIVED)
        if not caught + survived:
            return None
        bounds = wilson_interval(caught, caught + survived, _LEVEL)
        return int(100 * bounds.lower), min(100, int(100 * bounds.upper) + 1)


class NotGreenError(GoldenError):
    """The unchanged project does not pass, so its strength cannot be measured."""


class StandInGateway:
    """Runs a project with replaced contents of some files, and keeps the outcome."""

    def __init__(self, gateway: ExecutionGateway) -> None:
        self._gateway = gateway
        self.workspace_root = gateway.workspace_root
        self.stand_ins: Mapping[str, bytes] = {}
        self.outcomes: list[PipelineOutcome] = []

    def run_pipeline(self, project: GoldenProjectConfig, *, role: Any, permissions: Any, examine: Any = None) -> Any:
        """Run it as the gateway does."""
        outcome = self._gateway.run_pipeline(
            project, role=role, permissions=permissions, stand_ins=self.stand_ins, examine=examine
        )
        self.outcomes.append(outcome)
        return outcome

    def redact(self, project: GoldenProjectConfig, text: str) -> str:
        """Redact as the gateway does."""
        return self._gateway.redact(project, text)


class StrengthMeter:
    """Tries the mutants of one project, the most informative first.

    `manifest` is the file beside which the baselines are, `seconds` the time limit, `reads_from` the folder that the recorded
    reads are relative to. `watch` receives the number of tried mutants and of all.
    """

    def __init__(
        self,
        project: GoldenProjectConfig,
        gateway: ExecutionGateway,
        *,
        manifest: Path,
        seconds: float,
        reads_from: Path,
        watch: Callable[[int, int], object] = lambda *_: None,
    ) -> None:
        # One run decides: a quarantine would hide a failure, and a retry would repeat it.
        self._project = replace(project, retries=0, quarantine=None)
        self._gateway = StandInGateway(gateway)
        keeper = BaselineKeeper(find_baselines_folder(manifest, gateway.workspace_root))
        self._guard = RegressionGuard(self._gateway, baselines=keeper)
        self._manifest = Path(os.path.realpath(manifest))
        self._reads_from = reads_from
        self._deadline = monotonic_seconds() + seconds
        self._watch = watch
        self._folder = Path(
            os.path.realpath(gateway.workspace_root / (project.project_dir or Path(project.path).parent))
        )
        self._clean: dict[str, str] = {}
        # Names and contents that differ between unchanged runs, without the changing parts of names.
        self._moving: set[str] = set()
        self._noise: set[str] = set()
        self._equal_looks = 0
        # The differences after each mutant of this measurement: before and after.
        self._different: dict[str, tuple[Mapping[str, str], Mapping[str, str]]] = {}
        # Tables that no output names, in any run.
        self._unwatched: set[str] = set()

    def look(self) -> dict[str, bytes]:
        """Run the unchanged project twice, and return the files that it reads and that can be changed, by path.

        Raises:
            NotGreenError: it does not pass.
            KeyboardInterrupt: it was interrupted.
        """
        seconds = 0.0
        looks = []
        for _ in range(2):
            result, outcome = self._run({})
            if result.status is not ResultStatus.PASSED:
                raise NotGreenError(f"{self._project.name} is not green as it is: {result.error_message}")
            seconds = max(seconds, outcome.duration_seconds)
            looks.append(_digest(outcome))
        self._clean, other = looks
        self._learn_noise(other)
        slowest = max(_LEAST_SECONDS, _TIMES_SLOWER * seconds)
        self._project = replace(self._project, timeout=min(self._project.timeout, slowest))
        files = {
            path: read_regular(self._folder / path, MOST_BYTES + 1) for path in self._list_read(outcome)[:_MOST_FILES]
        }
        return {path: content for path, content in files.items() if content}

    def measure(
        self,
        files: Mapping[str, bytes],
        known: Mapping[str, TriedMutant],
        keep: Callable[[Iterable[TriedMutant]], object] = lambda _: None,
    ) -> ProjectStrength:
        """Try mutants until all are tried or the time is over. Call `look` first.

        `known` are the results of an earlier measurement, by id. `keep` receives all known results after each mutant.

        Raises:
            KeyboardInterrupt: it was interrupted; the results so far were kept.
        """
        random = Random(_SEED)
        made = [one for path in sorted(files) for one in make_mutants(path, files[path], random)]
        ordered = order_by_telling(made, random)
        tried = {one.id: known[one.id] for one, _ in ordered if one.id in known}
        for mutant, content in ordered:
            if monotonic_seconds() >= self._deadline:
                break
            if mutant.id not in tried:
                tried[mutant.id] = self._try(mutant, content())
                keep(tried.values())
            self._watch(len(tried), len(ordered))
        # Meanwhile, more files may be known to change by themselves.
        tried |= {name: self._compare(tried[name].mutant) for name in self._different if name in tried}
        keep(tried.values())
        found = tuple(tried[one.id] for one, _ in ordered if one.id in tried)
        return ProjectStrength(self._project.name, tuple(sorted(files)), len(ordered), found)

    def _try(self, mutant: Mutant, content: bytes | None) -> TriedMutant:
        if content is None:
            return TriedMutant(mutant, Noticed.INVALID, "the file could not be read after this change")
        result, outcome = self._run({mutant.path: content})
        if result.status is ResultStatus.PASSED:
            self._different[mutant.id] = _keep_different(self._clean, _digest(outcome))
            found = self._compare(mutant)
            if found.found is Noticed.SURVIVED and self._equal_looks < _ENOUGH_LOOKS:
                self._look_again()
                found = self._compare(mutant)
            return found
        if result.status is ResultStatus.FAILED or outcome.ending in {Ending.EXITED, Ending.SIGNALLED, Ending.TIMEOUT}:
            return TriedMutant(
                mutant, Noticed.CAUGHT, result.reasons[0].headline if result.reasons else str(result.status)
            )
        return TriedMutant(mutant, Noticed.INVALID, result.error_message or str(result.status))

    def _look_again(self) -> None:
        """Run the unchanged project once more, because some files change by themselves only now and then."""
        _, outcome = self._run({})
        self._equal_looks = 0 if self._learn_noise(_digest(outcome)) else self._equal_looks + 1

    def _learn_noise(self, other: Mapping[str, str]) -> bool:
        """Note what an unchanged run wrote differently, and tell whether any of it is new."""
        before = len(self._moving) + len(self._noise)
        self._moving.update(map(_drop_stamps, self._clean.keys() ^ other.keys()))
        self._noise.update(map(_drop_stamps, self._list_different(_keep_different(self._clean, other))))
        return len(self._moving) + len(self._noise) > before

    def _list_different(self, parts: tuple[Mapping[str, str], Mapping[str, str]]) -> list[str]:
        """List the paths that differ. Files whose names change with each run are grouped, without the changing parts."""
        one, other = (_gather(part, self._moving) for part in parts)
        return sorted(path for path in {*one, *other} if one.get(path) != other.get(path))

    def _compare(self, mutant: Mutant) -> TriedMutant:
        listed = self._list_different(self._different[mutant.id])
        different = [path for path in listed if self._is_looked_at(path) or not is_passed_over(path)]
        certain = [path for path in different if _drop_stamps(path) not in self._noise]
        if certain:
            return TriedMutant(mutant, Noticed.SURVIVED, self._advise(certain))
        # Output that contains the time says nothing.
        unseen = [path for path in different if path != _STDOUT and not self._is_compared_exactly(path)]
        if unseen:
            lacking = [path for path in unseen if is_database_name(path) and not self._is_looked_at(path)]
            more = f"; no output looks at the tables of {_name(lacking)}" if lacking else ""
            return TriedMutant(mutant, Noticed.UNCLEAR, f"{_name(unseen)} differs between equal runs, too{more}")
        return TriedMutant(mutant, Noticed.SAME, "")

    def _advise(self, different: list[str]) -> str:
        """Say what differs, and which declaration would have caught it."""
        files = [path for path in different if path != _STDOUT]
        if not files:
            return f"only {_STDOUT} is different: `stdout:` with `contains` would catch it"
        unseen = [path for path in files if not self._is_looked_at(path)]
        if unseen:
            return f"no output looks at {_name(unseen)}: declare it in `outputs:`"
        return f"{_name(files)} is different within its rules: a smaller tolerance, or a column or table that is not left out, would catch it"

    def _is_compared_exactly(self, path: str) -> bool:
        """Tell whether a green run compared the whole content of a file: a table, or a database whose tables are all named."""
        for output in self._project.outputs:
            is_of_dbt = output.dbt == _ALL_MODELS and is_database_name(path)
            is_table = (output.compare or comparison_of_pattern(path)) == "table" and not output.table
            if is_of_dbt or (is_table and names_output(output, path)):
                return not any(getattr(output, rule) for rule in _LOOSE_RULES)
        of_tables = [output for output in self._project.outputs if output.is_of_tables and is_named(path, output.path)]
        loose = set(_LOOSE_RULES) - {"tables"}
        is_whole = bool(of_tables) and not any(table.startswith(f"{path}/") for table in self._unwatched)
        return is_whole and not any(getattr(output, rule) for output in of_tables for rule in loose)

    def _is_looked_at(self, path: str) -> bool:
        return any(
            names_output(output, path) or is_named(path, output.path) or find_run(path, output.path) is not None
            for output in self._project.outputs
        )

    def _run(self, stand_ins: Mapping[str, bytes]) -> tuple[GoldenProjectResult, PipelineOutcome]:
        self._gateway.stand_ins, self._gateway.outcomes = stand_ins, []
        result = self._guard.check_one(self._project, {})
        if result.is_interrupted:
            raise KeyboardInterrupt
        if not self._gateway.outcomes:
            raise NotGreenError(f"{self._project.name} could not be run: {result.error_message}")
        self._unwatched.update(result.unwatched)
        return result, self._gateway.outcomes[-1]

    def _list_read(self, outcome: PipelineOutcome) -> list[str]:
        """List the files that were read and can be changed; if the reads are not known, take all files that git tracks."""
        metadata = {} if outcome.trajectory is None else outcome.trajectory.metadata
        inside = metadata.get("reads_inside")
        if isinstance(inside, list | tuple):
            found = [os.path.relpath(self._reads_from / str(path), self._folder) for path in inside]
        else:
            tracked = git.list_tracked(self._folder)
            found = [
                path.relative_to(self._folder).as_posix()
                for path in (self._folder.rglob("*") if tracked is None else (self._folder / one for one in tracked))
            ]
        return sorted(path for path in set(found) if self._may_be_changed(path))

    def _may_be_changed(self, path: str) -> bool:
        parts = path.split("/")
        place = self._folder / path
        is_own = (
            not path.startswith("..")
            and BASELINES_FOLDER not in parts
            and not any(one.startswith(".") for one in parts)
        )
        is_code = is_own and is_mutable(path) and not is_for_people(path) and not is_test(path)
        return is_code and place.is_file() and not place.is_symlink() and place != self._manifest


def _digest(outcome: PipelineOutcome) -> dict[str, str]:
    written = {path: f"{file.kind} {file.sha256}" for path, file in outcome.write_set.files.items()}
    patterns = outcome.engine_files
    kept = {path: told for path, told in written.items() if not any(is_named(path, pattern) for pattern in patterns)}
    return {**kept, **dict.fromkeys(outcome.write_set.removed, "removed"), _STDOUT: outcome.stdout}


def _keep_different(one: Mapping[str, str], other: Mapping[str, str]) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return the entries that differ between two digests."""
    different = {path for path in {*one, *other} if one.get(path) != other.get(path)}
    here, there = ({path: told for path, told in each.items() if path in different} for each in (one, other))
    return here, there


def _gather(digest: Mapping[str, str], moving: Container[str]) -> dict[str, list[str]]:
    """Group files whose names change with each run under one name."""
    found: dict[str, list[str]] = {}
    for path, told in sorted(digest.items(), key=itemgetter(1)):
        name = _drop_stamps(path)
        found.setdefault(name if name in moving else path, []).append(told)
    return found


def _drop_stamps(path: str) -> str:
    """Return a path without the parts that change with each run, such as numbers and parts of UUIDs."""
    return _STAMP.sub("*", path)


def _name(paths: list[str]) -> str:
    return name_some([path if path == _STDOUT else show_path(path) for path in paths], _MOST_NAMED)
