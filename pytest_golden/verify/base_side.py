"""Return the base's results: from earlier runs, or from gates in a worktree that is made when it is needed."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pytest_golden.compare.baselines import BASELINES_FOLDER, match_outputs
from pytest_golden.errors import GoldenError, ManifestError
from pytest_golden.history.base_files import (
    describe_ignored_baselines,
    list_committed_baselines,
    list_ignored_baselines,
    read_base_manifest,
)
from pytest_golden.manifest.reader import load_manifest, parse_manifest
from pytest_golden.regression.comparison import SideRuns, tells_nothing
from pytest_golden.settings import NO_STORE
from pytest_golden.verify.base_worktree import BaseEnvironment, BaseWorktree, find_missing_inputs, find_setup_seconds
from pytest_golden.verify.failures import identify_failure
from pytest_golden.verify.gates import BrokenDownError, finish_gate, result_of, start_gate, use_store
from pytest_golden.verify.model import BaseKey
from pytest_golden.verify.store import digest_environment, keep_spooled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pytest_golden.manifest.model import DeclaredOutput, Manifest
    from pytest_golden.regression.model import GoldenProjectResult
    from pytest_golden.verify.gates import GatePlace, GateReport
    from pytest_golden.verify.model import VerificationRequest
    from pytest_golden.verify.store import VerificationRecord

_LOG_NAME = "verify-base.log"
_ADVICE = "Mend that, or give a --base that can be run"


class BaseUnavailableError(GoldenError):
    """The base could not be run, so nothing can be said about the change."""


class BaseSide:
    """The base's side of a verification. Use it in a with-block, which removes the worktree.

    `run_ids` are the gate runs that were made here, `gaps` what the worktree lacked, `missing` what a failed project lacked
    in it, by name. `location` is the store, None for none. `say` receives messages, `show` what is running.
    """

    def __init__(
        self,
        request: VerificationRequest,
        head: Manifest,
        *,
        location: str | Path | None,
        say: Callable[[str], None],
        show: Callable[[str], None] | None,
    ) -> None:
        self._request = request
        self._file = request.base.manifest or request.manifest
        self._workspace_root = head.workspace_root
        self._location = location
        self._say = say
        self._show = show
        self._held = ExitStack()
        self._place: GatePlace | None = None
        self._count = 0
        self.run_ids: list[str] = []
        self.gaps: tuple[str, ...] = ()
        self.missing: dict[str, str] = {}
        self.reused = False
        self.manifest = self._read_manifest()
        self._setup = self.manifest.setup if self.manifest.setup is not None else head.setup
        folder = self._file.parent
        self.key = BaseKey(
            commit=request.base.commit,
            manifest=os.path.relpath(Path(os.path.realpath(folder), self._file.name), request.checkout),
            environment=digest_environment(self.manifest, head.workspace_root, folder),
            setup=self._setup,
        )
        self._baselines = request.manifest.parent / BASELINES_FOLDER
        self._lacking = self._find_lacking_baselines()

    def find_runs(self, record: VerificationRecord) -> dict[str, SideRuns]:
        """Return the runs of every project that the base declares.

        Raises:
            BaseUnavailableError: the base could not be run.
        """
        names = [project.name for project in self.manifest.projects]
        if self._setup is None:
            self._refuse_lacking_baselines(self._lacking)
        found = record.find_base(self.key, names) if self._request.reuses and names else None
        if found is not None:
            self.reused = True
            return found
        if not names:
            return {}
        return self._run_first(names, ())

    def run_anew(self, names: Sequence[str]) -> dict[str, SideRuns]:
        """Run projects about which earlier runs say nothing, and return their runs. Raises as `find_runs`."""
        return self._run_first(names, names)

    def repeat(self, names: Sequence[str]) -> Mapping[str, GoldenProjectResult]:
        """Run some projects once more, and return their results.

        Raises:
            BaseUnavailableError: one of them could not be run again.
        """
        results = self._run(names).results
        if self.reused:
            # A project that passed in the worktree's first run lacks nothing there; reused runs say nothing about that.
            self._note_missing(results.values())
        for result in results.values():
            if tells_nothing(result):
                raise BaseUnavailableError(f"{result.name} could not be run again on the base: {result.error_message}")
        return results

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def _run_first(self, names: Sequence[str], chosen: Sequence[str]) -> dict[str, SideRuns]:
        report = self._run(chosen)
        self._note_missing(report.results.values())
        results = {name: result_of(report, name) for name in names}
        return {name: SideRuns.begin(result, identify_failure(result)) for name, result in results.items()}

    def _note_missing(self, results: Iterable[GoldenProjectResult]) -> None:
        self.missing |= find_missing_inputs(self.manifest.workspace_root, self._get_place().manifest, results)

    def _run(self, names: Sequence[str]) -> GateReport:
        try:
            place = self._get_place()
            self._count += 1
            gate = start_gate(place, self._request.private, f"base-{self._count}", projects=names)
            report = finish_gate(gate, "base", self._show)
        except BaseUnavailableError:
            raise
        except BrokenDownError as error:
            raise BaseUnavailableError(error.keep(self._workspace_root, _LOG_NAME, _ADVICE)) from None
        except (GoldenError, OSError) as error:
            raise BaseUnavailableError(str(error)) from None
        finally:
            self._keep_spooled()
        if report.run_id is not None:
            self.run_ids.append(report.run_id)
        elif self._location is not None:
            self._say("WARNING: the base's results are not recorded: neither the store nor the spool took them")
        return report

    def _keep_spooled(self) -> None:
        if self._place is not None:
            lost = keep_spooled(self._place.manifest, self._request.store, self._workspace_root)
            if lost is not None:
                self._say(f"WARNING: {lost}")

    def _get_place(self) -> GatePlace:
        if self._place is None:
            self._place = self._prepare()
            folder = self._place.manifest.parent / BASELINES_FOLDER
            # A `setup:` may have created some of them.
            self._refuse_lacking_baselines([path for path in self._lacking if not (folder / path).exists()])
        return self._place

    def _prepare(self) -> GatePlace:
        """Check the base out in a worktree, which is removed at the end, and make its environment."""
        request, setup = self._request, self._setup
        self._say(f"base: checking {self.key.commit[:12]} out in a worktree")
        tree = BaseWorktree(request.checkout, request.private, self.key.commit)
        self._held.callback(tree.close)
        environment = BaseEnvironment(request.checkout, tree.root, request.private, request.environment)
        if setup is not None:
            self._say("base: running its `setup:`")
        file = tree.root / self.key.manifest
        longest = find_setup_seconds(() if setup is None else load_manifest(file).projects)
        place = environment.prepare(file, setup, longest)
        self.gaps = tree.find_gaps()
        for gap in self.gaps:
            self._say(f"base: {gap}")
        return _keep_apart(place, self._location, request.private)

    def _refuse_lacking_baselines(self, lacking: Sequence[str]) -> None:
        if lacking:
            told = describe_ignored_baselines(self._baselines, lacking)
            raise BaseUnavailableError(f"the base lacks baselines that only this working tree has: {told}")

    def _find_lacking_baselines(self) -> tuple[str, ...]:
        """Find baselines that git ignores, that the base compares with, and that its commit lacks."""
        ignored = list_ignored_baselines(self._baselines)
        if not ignored:
            return ()
        try:
            committed = frozenset(list_committed_baselines(self._file.parent, self.key.commit))
        except GoldenError as error:
            raise BaseUnavailableError(str(error)) from None
        outputs = {project.name: project.outputs for project in self.manifest.projects}
        return tuple(path for path in ignored if path not in committed and _is_compared(path, outputs))

    def _read_manifest(self) -> Manifest:
        manifest, commit = self._file, self._request.base.commit
        try:
            text = read_base_manifest(manifest, commit).text
            return parse_manifest(text or "", f"{commit[:12]}:{manifest.name}", manifest.parent)
        except ManifestError as error:
            raise BaseUnavailableError(f"the base's manifest cannot be used: {error}") from None
        except GoldenError as error:
            raise BaseUnavailableError(str(error)) from None


def _is_compared(path: str, outputs: Mapping[str, Sequence[DeclaredOutput]]) -> bool:
    """Tell whether an output is compared with this baseline. `path` is relative to the baselines folder."""
    name, _, output = path.partition("/")
    return bool(match_outputs(outputs.get(name, ()), (), (output,)).files)


def _keep_apart(place: GatePlace, location: str | Path | None, private: Path) -> GatePlace:
    """Let the base's gates use the head's store, learn nothing, and write no report of the head's configuration."""
    # The base's configuration may name the head's reports. Variables, unlike options, do not fail an older version there.
    reports = {f"GOLDEN_{kind.upper()}": str(private / f"aside.{kind}") for kind in ("junit", "html")}
    apart = replace(place, environment={**place.environment, **reports}, options=("--golden-learning=off",))
    return use_store(apart, NO_STORE if location is None else str(location))
