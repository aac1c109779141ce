"""Run the base beside the head, repeat what is unclear, and return what the change did.

The head's gate has already been started when this is called. The base's results are from earlier runs, or from gates in a
worktree that is made when it is needed.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.compare.baselines import match_outputs
from pytest_golden.errors import GoldenError, SettingsError
from pytest_golden.gate.state_folder import find_store_place, prepare_state_folder
from pytest_golden.history import base_files
from pytest_golden.history.suspects import is_source, list_fixes
from pytest_golden.manifest.reader import load_manifest
from pytest_golden.redaction.redactor import redact
from pytest_golden.regression import comparison
from pytest_golden.regression.comparison import ProjectRuns, Side, SideRuns, find_unjudged
from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.verdict import WeakeningKind
from pytest_golden.settings import BASELINES_FOLDER, NO_STORE
from pytest_golden.verify import base_worktree, gates
from pytest_golden.verify.failures import identify_failure
from pytest_golden.verify.gates import BrokenDownError, finish_gate, result_of, start_gate
from pytest_golden.verify.model import BaseFacts, BaseKey, Verification
from pytest_golden.verify.store import VerificationRecord, digest_environment, keep_spooled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pytest_golden.manifest.model import DeclaredOutput, Manifest
    from pytest_golden.regression.comparison import Comparison
    from pytest_golden.regression.model import GoldenProjectResult
    from pytest_golden.verify.gates import BaseCommit, GatePlace, GateReport, HeadCommit, StartedGate

_MOST_FIXES = 20
# The name of the log that is kept of a side that broke down, and what to do then.
_KEPT_OF_BASE = ("verify-base.log", "Mend that, or give a --base that can be run")
_KEPT_OF_HEAD = ("verify-head.log", "Mend that; `pytest --golden` shows it too")


@dataclass(slots=True)
class Verifier:
    """One verification. `say` receives messages, `show` what is running, if a person watches.

    `checkout` is the root of the head's checkout, `private` this verification's own folder, `store` the given store, None if
    none was given. `gate` is the head's own gate, starting or running: it waits for the workspace's lock, which `turn` holds
    until it is closed. `place` is where projects are run again. `accepts_floor` tells whether a weakened floor is accepted,
    `reuses` whether recorded results of the base may replace new runs. `is_fix`: the head mends something, whatever its messages say.
    """

    manifest: Path
    declared: Manifest
    base: BaseCommit
    head: HeadCommit
    checkout: Path
    private: Path
    store: str | None
    gate: StartedGate
    place: GatePlace
    turn: ExitStack
    repeat: int
    accepts_floor: bool
    reuses: bool
    is_fix: bool
    say: Callable[[str], None]
    show: Callable[[str], None] | None = None
    head_run_ids: list[str] = field(default_factory=list, init=False)

    def run(self) -> Verification:
        """Return what was found, also if the base could not be run.

        Raises:
            SettingsError: the head's gate cannot be run, or the given store is not one of ours.
            KeyboardInterrupt: the verification was interrupted; no child process is left.
        """
        location = self._find_store()
        record = VerificationRecord(location, self._warn)
        if self.base.manifest is None:
            found = self._judge_alone()
            record.keep(found, None, self.head_run_ids)
            return found
        try:
            side = BaseSide(self, location)
        except BaseUnavailableError as error:
            return self._give_up(str(error))
        with side.held:
            try:
                found = self._compare(side, record)
            except BaseUnavailableError as error:
                found = self._give_up(str(error), reused=side.reused)
            # Runs in a worktree that lacked something must not be reused by later verifications.
            kept = () if side.gaps or side.missing else tuple(side.run_ids)
            record.keep(found, side.key, self.head_run_ids, kept)
        return found

    def _compare(self, side: BaseSide, record: VerificationRecord) -> Verification:
        base = side.find_runs(record)
        # The head's gate continues only now, so that its results are recorded after the base's.
        self.turn.close()
        self.say(f"base: {_count(base.values())}{', from earlier runs' if side.reused else ''}")
        report = self._finish_head(self.gate)
        runs = self._begin_runs(report, base)
        self.say(f"head: {_count(one.head for one in runs.values())}")
        runs |= {name: ProjectRuns(name, base=one) for name, one in base.items() if name not in runs}
        runs = self._ask_anew(runs, side)
        unjudged = [reason for reason in map(find_unjudged, runs.values()) if reason is not None]
        if unjudged:
            raise BaseUnavailableError("; ".join(unjudged))
        comparisons = comparison.compare_runs(self._run_again(runs, side), self.repeat)
        _refuse_gaps(comparisons, side)
        alike = {one.runs.name for one in comparisons if one.runs.is_skipped_alike}
        found = [redact(one) for one in report.weakened_floor]
        # A project that the base skipped too, for the same reason, is not a weakening.
        weakened = tuple(one for one in found if one["kind"] != WeakeningKind.NOT_RUN or one["project"] not in alike)
        is_excused = len(weakened) < len(found)
        return Verification(
            base=self._describe_base(available=True, reused=side.reused),
            head=self.head,
            comparisons=comparisons,
            weakened_floor=weakened,
            is_floor_accepted=self.accepts_floor,
            environment=report.environment,
            fails_unexplained=report.fails_unexplained or (is_excused and report.fails_for_skips),
            unprotected_fixes=tuple(self._list_unprotected(comparisons)),
        )

    def _list_unprotected(self, comparisons: Iterable[Comparison]) -> Iterator[Mapping[str, str]]:
        """Yield the commits of the change that mend a program, if no project shows that they do."""
        if self.head.commit is None or any(one.verdict is comparison.Verdict.FIXED for one in comparisons):
            return
        try:
            commits = f"{self.base.commit}..{self.head.commit}"
            fixes = list_fixes(self.checkout, commits, by_message=not self.is_fix)
        except GoldenError:
            # Of a shallow clone, git does not know what the change consists of.
            return
        mending = (fix for fix in fixes if any(map(is_source, fix.files)))
        yield from ({"commit": fix.commit, "subject": redact(fix.subject)} for fix in islice(mending, _MOST_FIXES))

    def _judge_alone(self) -> Verification:
        """Judge the head on its own: the base has no manifest."""
        self.turn.close()
        report = self._finish_head(self.gate)
        commit = self.base.commit[:12]
        told = f"the base {commit} has no manifest, so there is nothing to compare with: the head is judged on its own"
        return Verification(
            base=self._describe_base(reason=told, reused=False),
            head=self.head,
            comparisons=comparison.compare_runs(self._begin_runs(report, {}), self.repeat),
            environment=report.environment,
            fails_unexplained=report.fails_unexplained,
            is_first=True,
        )

    def _begin_runs(self, report: GateReport, base: Mapping[str, SideRuns]) -> dict[str, ProjectRuns]:
        runs = {}
        for project in self.declared.projects:
            result = result_of(report, project.name)
            head = SideRuns.begin(result, identify_failure(result))
            runs[project.name] = ProjectRuns(project.name, base.get(project.name, SideRuns()), head, project.needs)
        return runs

    def _ask_anew(self, runs: dict[str, ProjectRuns], side: BaseSide) -> dict[str, ProjectRuns]:
        """Run projects on the base that failed on the head and of which earlier runs tell nothing that could excuse it.

        That is so if they skipped it or could not run it, and also if it failed: perhaps for something that was missing then.
        """
        names = [name for name, one in runs.items() if side.reused and _tells_too_little(one)]
        if not names:
            return runs
        self.say(f"base: running {', '.join(names)} anew, since only a run of today can excuse a failure")
        return runs | {name: replace(runs[name], base=one) for name, one in side.run_anew(names).items()}

    def _run_again(self, runs: Mapping[str, ProjectRuns], side: BaseSide) -> dict[str, ProjectRuns]:
        told, repeat = dict(runs), self.repeat
        # A project that is skipped when it is run again never counts, so the number of rounds is limited too.
        for turn in range(2 * repeat):
            wanted = comparison.choose_repeats(told, repeat)
            if not wanted:
                break
            for place, names in wanted.items():
                self.say(f"{place}: running {', '.join(names)} again")
                ended = side.repeat(names) if place is Side.BASE else self._repeat_head(names, turn)
                for name, result in ended.items():
                    told[name] = told[name].count(place, result.status, identify_failure(result))
        return told

    def _repeat_head(self, names: Sequence[str], turn: int) -> Mapping[str, GoldenProjectResult]:
        private = self.private
        gate = start_gate(self.place, private, f"head-{turn}", gates.keep_aside(private), projects=names)
        return self._finish_head(gate).results

    def _finish_head(self, gate: StartedGate) -> GateReport:
        try:
            report = finish_gate(gate, "head", self.show)
        except BrokenDownError as error:
            raise SettingsError(error.keep(self.declared.workspace_root, *_KEPT_OF_HEAD)) from None
        if report.run_id is not None:
            self.head_run_ids.append(report.run_id)
        return report

    def _find_store(self) -> str | Path | None:
        try:
            place = find_store_place(self.store, prepare_state_folder(self.declared.workspace_root))
        except OSError as error:
            self._warn(f"nothing is recorded: {error}")
            return None
        if place is None:
            return None
        # Otherwise the base's gate would refuse another program's file, and the base would seem to be at fault.
        place.parse()
        return place.location

    def _warn(self, text: str) -> None:
        self.say(f"WARNING: {text}")

    def _give_up(self, reason: str, *, reused: bool = False) -> Verification:
        return Verification(self._describe_base(reason=reason, reused=reused), self.head)

    def _describe_base(self, *, available: bool = False, reused: bool, reason: str | None = None) -> BaseFacts:
        base = self.base
        return BaseFacts(base.ref, base.commit, base.ref_commit, available, reused, reason)


def _tells_too_little(project: ProjectRuns) -> bool:
    base = project.base
    return project.head.failed and bool(base.failed or base.tally.failed or find_unjudged(project) is not None)


def _refuse_gaps(comparisons: Iterable[Comparison], side: BaseSide) -> None:
    """Raise if a failure would be excused by a failure on the base that a gap of the worktree may have caused."""
    excused = [one.runs.name for one in comparisons if one.runs.head.failed and one.runs.base.tally.failed]
    suspects = excused if side.gaps else [name for name in excused if name in side.missing]
    if suspects:
        told = [*side.gaps, *dict.fromkeys(side.missing[name] for name in suspects if name in side.missing)]
        raise BaseUnavailableError(f"{', '.join(suspects)} failed on the base too, but {'; '.join(told)}")


def _count(runs: Iterable[SideRuns]) -> str:
    statuses = [run.status for run in runs if run.status is not None]
    counts = {status: statuses.count(status) for status in ResultStatus}
    return ", ".join(f"{count} {status}" for status, count in counts.items() if count) or "no golden projects"


def tell_broken_base(error: GoldenError, workspace_root: Path) -> str:
    """Say why the base cannot be run; what a broken down gate or setup printed is kept in the workspace."""
    return error.keep(workspace_root, *_KEPT_OF_BASE) if isinstance(error, BrokenDownError) else str(error)


class BaseUnavailableError(GoldenError):
    """The base could not be run, so nothing can be said about the change."""


class BaseSide:
    """The base's side of a verification. Use it in a with-block, which removes the worktree.

    `run_ids` are the gate runs that were made here, `gaps` what the worktree lacked, `missing` what a failed project lacked
    in it, by name. `location` is the store, None for none.
    """

    def __init__(self, verifier: Verifier, location: str | Path | None) -> None:
        self._verifier = verifier
        self._file = verifier.base.manifest or verifier.manifest
        self._location = location
        self.held = ExitStack()
        self._place: GatePlace | None = None
        self._count = 0
        self.run_ids: list[str] = []
        self.gaps: tuple[str, ...] = ()
        self.missing: dict[str, str] = {}
        self.reused = False
        self.manifest = self._read_manifest()
        declared = verifier.declared
        # The head's own `setup:` would run the change's commands where the base is judged.
        self._setup = self.manifest.setup
        folder = self._file.parent
        self.key = BaseKey(
            commit=verifier.base.commit,
            manifest=os.path.relpath(Path(os.path.realpath(folder), self._file.name), verifier.checkout),
            environment=digest_environment(self.manifest, declared.workspace_root, folder),
            setup=self._setup,
        )
        self._baselines = verifier.manifest.parent / BASELINES_FOLDER
        self._lacking = self._find_lacking_baselines()

    def find_runs(self, record: VerificationRecord) -> dict[str, SideRuns]:
        """Return the runs of every project that the base declares.

        Raises:
            BaseUnavailableError: the base could not be run.
        """
        names = [project.name for project in self.manifest.projects]
        if self._setup is None:
            self._refuse_lacking_baselines(self._lacking)
        found = record.find_base(self.key, names) if self._verifier.reuses and names else None
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
            if comparison.tells_nothing(result):
                raise BaseUnavailableError(f"{result.name} could not be run again on the base: {result.error_message}")
        return results

    def _run_first(self, names: Sequence[str], chosen: Sequence[str]) -> dict[str, SideRuns]:
        report = self._run(chosen)
        self._note_missing(report.results.values())
        results = {name: result_of(report, name) for name in names}
        return {name: SideRuns.begin(result, identify_failure(result)) for name, result in results.items()}

    def _note_missing(self, results: Iterable[GoldenProjectResult]) -> None:
        self.missing |= base_worktree.find_missing_inputs(
            self.manifest.workspace_root, load_manifest(self._get_place().manifest), results
        )

    def _run(self, names: Sequence[str]) -> GateReport:
        try:
            place = self._get_place()
            self._count += 1
            gate = start_gate(place, self._verifier.private, f"base-{self._count}", projects=names)
            report = finish_gate(gate, "base", self._verifier.show)
        except BaseUnavailableError:
            raise
        except GoldenError as error:
            told = tell_broken_base(error, self._verifier.declared.workspace_root)
            raise BaseUnavailableError(told) from None
        except OSError as error:
            raise BaseUnavailableError(str(error)) from None
        finally:
            if self._place is not None:
                lost = keep_spooled(
                    load_manifest(self._place.manifest).workspace_root,
                    self._verifier.store,
                    self._verifier.declared.workspace_root,
                )
                if lost is not None:
                    self._verifier.say(f"WARNING: {lost}")
        if report.run_id is not None:
            self.run_ids.append(report.run_id)
        elif self._location is not None:
            self._verifier.say(
                "WARNING: the base's results are not recorded: neither the store nor the spool took them"
            )
        return report

    def _get_place(self) -> GatePlace:
        if self._place is None:
            self._place = self._prepare()
            folder = self._place.manifest.parent / BASELINES_FOLDER
            # A `setup:` may have created some of them.
            self._refuse_lacking_baselines([path for path in self._lacking if not (folder / path).exists()])
        return self._place

    def _prepare(self) -> GatePlace:
        """Check the base out in a worktree, which is removed at the end, and make its environment."""
        verifier, setup = self._verifier, self._setup
        self._verifier.say(f"base: checking {self.key.commit[:12]} out in a worktree")
        tree = base_worktree.BaseWorktree(verifier.checkout, verifier.private, self.key.commit)
        self.held.callback(tree.close)
        passed = verifier.declared.list_passed()
        environment = base_worktree.BaseEnvironment(
            verifier.checkout, tree.root, verifier.private, verifier.place.environment, passed
        )
        if setup is not None:
            self._verifier.say("base: running its `setup:`")
        file = tree.root / self.key.manifest
        longest = base_worktree.find_setup_seconds(() if setup is None else load_manifest(file).projects)
        place = environment.prepare(file, setup, longest)
        self.gaps = tree.find_gaps()
        for gap in self.gaps:
            self._verifier.say(f"base: {gap}")
        return _keep_apart(place, self._location, verifier.private)

    def _refuse_lacking_baselines(self, lacking: Sequence[str]) -> None:
        if lacking:
            told = base_files.describe_ignored_baselines(self._baselines, lacking)
            raise BaseUnavailableError(f"the base lacks baselines that only this working tree has: {told}")

    def _find_lacking_baselines(self) -> tuple[str, ...]:
        """Find baselines that git ignores, that the base compares with, and that its commit lacks."""
        ignored = base_files.list_ignored_baselines(self._baselines)
        if not ignored:
            return ()
        try:
            committed = frozenset(base_files.list_committed_baselines(self._file.parent, self.key.commit))
        except GoldenError as error:
            raise BaseUnavailableError(str(error)) from None
        outputs = {project.name: project.outputs for project in self.manifest.projects}
        return tuple(path for path in ignored if path not in committed and _is_compared(path, outputs))

    def _read_manifest(self) -> Manifest:
        try:
            return base_worktree.read_manifest_of(self._verifier.base)
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
    return gates.use_store(apart, NO_STORE if location is None else str(location))
