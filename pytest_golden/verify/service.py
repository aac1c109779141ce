"""Run the base beside the head, repeat what is unclear, and return what the change did.

The head's gate has already been started when this is called.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_golden.errors import GoldenError, SettingsError
from pytest_golden.gate.state_folder import find_store_place, prepare_state_folder
from pytest_golden.history.base_files import find_changed_baselines
from pytest_golden.redaction.redactor import redact
from pytest_golden.regression.comparison import ProjectRuns, Side, SideRuns, choose_repeats, compare_runs, find_unjudged
from pytest_golden.regression.floor import find_weakenings
from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.verdict import WeakeningKind
from pytest_golden.verify.base_side import BaseSide, BaseUnavailableError
from pytest_golden.verify.failures import identify_failure
from pytest_golden.verify.gates import BrokenDownError, finish_gate, keep_aside, result_of, start_gate
from pytest_golden.verify.model import BaseFacts, RunIds, Verification
from pytest_golden.verify.store import VerificationRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from pytest_golden.manifest.model import Manifest
    from pytest_golden.regression.comparison import Comparison
    from pytest_golden.regression.model import GoldenProjectResult
    from pytest_golden.verify.gates import GateReport, HeadGate, StartedGate
    from pytest_golden.verify.model import VerificationRequest

_LOG_NAME = "verify-head.log"
_ADVICE = "Mend that; `pytest --golden` shows it too"


class Verifier:
    """One verification. `say` receives messages, `show` what is running, if a person watches."""

    def __init__(
        self,
        request: VerificationRequest,
        manifest: Manifest,
        gate: HeadGate,
        *,
        say: Callable[[str], None],
        show: Callable[[str], None] | None = None,
    ) -> None:
        self._request = request
        self._manifest = manifest
        self._gate = gate
        self._say = say
        self._show = show
        self._head_run_ids: list[str] = []

    def run(self) -> Verification:
        """Return what was found, also if the base could not be run.

        Raises:
            SettingsError: the head's gate cannot be run, or the given store is not one of ours.
            KeyboardInterrupt: the verification was interrupted; no child process is left.
        """
        location = self._find_store()
        record = VerificationRecord(location, self._warn)
        if self._request.base.manifest is None:
            found = self._judge_alone()
            record.keep(found, None, RunIds(tuple(self._head_run_ids)))
            return found
        try:
            side = BaseSide(self._request, self._manifest, location=location, say=self._say, show=self._show)
        except BaseUnavailableError as error:
            return self._give_up(str(error))
        with side:
            try:
                found = self._compare(side, record)
            except BaseUnavailableError as error:
                found = self._give_up(str(error), reused=side.reused)
            # Runs in a worktree that lacked something must not be reused by later verifications.
            kept = () if side.gaps or side.missing else tuple(side.run_ids)
            record.keep(found, side.key, RunIds(tuple(self._head_run_ids), kept))
        return found

    def _compare(self, side: BaseSide, record: VerificationRecord) -> Verification:
        base = side.find_runs(record)
        # The head's gate continues only now, so that its results are recorded after the base's.
        self._gate.turn.close()
        self._say(f"base: {_count(base.values())}{', from earlier runs' if side.reused else ''}")
        report = self._finish_head(self._gate.gate)
        runs = self._begin_runs(report, base)
        self._say(f"head: {_count(one.head for one in runs.values())}")
        runs |= {name: ProjectRuns(name, base=one) for name, one in base.items() if name not in runs}
        runs = self._ask_anew(runs, side)
        unjudged = [reason for reason in map(find_unjudged, runs.values()) if reason is not None]
        if unjudged:
            raise BaseUnavailableError("; ".join(unjudged))
        comparisons = compare_runs(self._run_again(runs, side), self._request.repeat)
        _refuse_gaps(comparisons, side)
        alike = {one.runs.name for one in comparisons if one.runs.is_skipped_alike}
        found = self._list_weakenings(report, side)
        # A project that the base skipped too, for the same reason, is no weakening.
        weakened = tuple(one for one in found if one["kind"] != WeakeningKind.NOT_RUN or one["project"] not in alike)
        is_excused = len(weakened) < len(found)
        return Verification(
            base=self._describe_base(available=True, reused=side.reused),
            head=self._gate.head,
            comparisons=comparisons,
            weakened_floor=weakened,
            is_floor_accepted=self._gate.accepts_floor,
            fails_unexplained=report.fails_unexplained or (is_excused and report.fails_for_skips),
        )

    def _judge_alone(self) -> Verification:
        """Judge the head on its own: the base has no manifest."""
        self._gate.turn.close()
        report = self._finish_head(self._gate.gate)
        commit = self._request.base.commit[:12]
        told = f"the base {commit} has no manifest, so there is nothing to compare with: the head is judged on its own"
        return Verification(
            base=self._describe_base(reason=told, reused=False),
            head=self._gate.head,
            comparisons=compare_runs(self._begin_runs(report, {}), self._request.repeat),
            fails_unexplained=report.fails_unexplained,
            is_first=True,
        )

    def _begin_runs(self, report: GateReport, base: Mapping[str, SideRuns]) -> dict[str, ProjectRuns]:
        runs = {}
        for project in self._manifest.projects:
            result = result_of(report, project.name)
            head = SideRuns.begin(result, identify_failure(result))
            runs[project.name] = ProjectRuns(project.name, base.get(project.name, SideRuns()), head, project.needs)
        return runs

    def _list_weakenings(self, report: GateReport, side: BaseSide) -> tuple[Mapping[str, Any], ...]:
        """List the weakenings that the head's gate found and, if the manifest was moved, those that it could not see."""
        base, head = self._request.base, self._request.manifest
        found = list(report.weakened_floor)
        if base.manifest is not None and base.manifest != head:
            names = [project.name for project in self._manifest.projects]
            try:
                changed = find_changed_baselines(base.manifest.parent, base.commit, head.parent, names)
            except GoldenError as error:
                raise BaseUnavailableError(str(error)) from None
            weakenings = find_weakenings(side.manifest, self._manifest, not_run={}, changed_baselines=changed)
            told = (redact(weakening.to_dict()) for weakening in weakenings)
            found += [one for one in told if one not in found]
        return tuple(found)

    def _ask_anew(self, runs: dict[str, ProjectRuns], side: BaseSide) -> dict[str, ProjectRuns]:
        """Run projects on the base that failed on the head and that earlier runs of the base skipped or could not run."""
        names = [name for name, one in runs.items() if side.reused and find_unjudged(one) is not None]
        if not names:
            return runs
        self._say(f"base: running {', '.join(names)}, of which earlier runs tell nothing")
        return runs | {name: replace(runs[name], base=one) for name, one in side.run_anew(names).items()}

    def _run_again(self, runs: Mapping[str, ProjectRuns], side: BaseSide) -> dict[str, ProjectRuns]:
        told, repeat = dict(runs), self._request.repeat
        # A project that is skipped when it is run again never counts, so the number of rounds is limited too.
        for turn in range(2 * repeat):
            wanted = choose_repeats(told, repeat)
            if not wanted:
                break
            for place, names in wanted.items():
                self._say(f"{place}: running {', '.join(names)} again")
                ended = side.repeat(names) if place is Side.BASE else self._repeat_head(names, turn)
                for name, result in ended.items():
                    told[name] = told[name].count(place, result.status, identify_failure(result))
        return told

    def _repeat_head(self, names: Sequence[str], turn: int) -> Mapping[str, GoldenProjectResult]:
        private = self._request.private
        gate = start_gate(self._gate.place, private, f"head-{turn}", keep_aside(private), projects=names)
        return self._finish_head(gate).results

    def _finish_head(self, gate: StartedGate) -> GateReport:
        try:
            report = finish_gate(gate, "head", self._show)
        except BrokenDownError as error:
            raise SettingsError(error.keep(self._manifest.workspace_root, _LOG_NAME, _ADVICE)) from None
        if report.run_id is not None:
            self._head_run_ids.append(report.run_id)
        return report

    def _find_store(self) -> str | Path | None:
        try:
            place = find_store_place(self._request.store, prepare_state_folder(self._manifest.workspace_root))
        except OSError as error:
            self._warn(f"nothing is recorded: {error}")
            return None
        if place is None:
            return None
        # Otherwise the base's gate would refuse another program's file, and the base would seem to be at fault.
        place.parse()
        return place.location

    def _warn(self, text: str) -> None:
        self._say(f"WARNING: {text}")

    def _give_up(self, reason: str, *, reused: bool = False) -> Verification:
        return Verification(self._describe_base(reason=reason, reused=reused), self._gate.head)

    def _describe_base(self, *, available: bool = False, reused: bool, reason: str | None = None) -> BaseFacts:
        base = self._request.base
        return BaseFacts(base.ref, base.commit, base.ref_commit, available, reused, reason)


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
