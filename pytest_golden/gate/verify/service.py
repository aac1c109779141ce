"""Run the base beside the head, run again what is not clear, and say what the change did. The head's gate is started already."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_golden.errors import SettingsError
from pytest_golden.gate.lock import prepare_state_folder
from pytest_golden.gate.store_place import find_store_place
from pytest_golden.gate.verify.base_side import BaseSide, BaseUnavailableError
from pytest_golden.gate.verify.breakdown import BrokenDownError
from pytest_golden.gate.verify.gates import keep_aside, start_gate
from pytest_golden.gate.verify.model import BaseFacts, Verification
from pytest_golden.gate.verify.recording import RunIds, VerificationRecord
from pytest_golden.gate.verify.reports import finish_gate, result_of
from pytest_golden.regression.comparison import (
    ProjectRuns,
    Side,
    SideRuns,
    choose_repeats,
    compare_runs,
    find_unjudged,
)
from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.weakening import WeakeningKind
from pytest_golden.storage.files import refuse_foreign
from pytest_golden.storage.location import parse_location

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from pytest_golden.gate.verify.gates import HeadGate, StartedGate
    from pytest_golden.gate.verify.model import VerificationRequest
    from pytest_golden.gate.verify.reports import GateReport
    from pytest_golden.manifest.model import Manifest
    from pytest_golden.regression.comparison import Comparison

_LOG_NAME = "verify-head.log"
_ADVICE = "Mend that; `pytest --golden` shows it too"


class Verifier:
    """Verifies once. `say` gets news, `show` what is running, where somebody watches."""

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
        """Give what was found; a base that could not be run is part of that.

        Raises:
            SettingsError: the head's gate cannot be run, or what was said to be the store is none.
            KeyboardInterrupt: somebody interrupted it; no child is left.
        """
        location = self._find_store()
        record = VerificationRecord(location, self._warn)
        try:
            side = BaseSide(self._request, self._manifest, location=location, say=self._say, show=self._show)
        except BaseUnavailableError as error:
            return self._give_up(str(error))
        with side:
            try:
                found = self._compare(side, record)
            except BaseUnavailableError as error:
                found = self._give_up(str(error), reused=side.reused)
            # What lacked something on the base must not stand for a run of later verifications.
            kept = () if side.gaps or side.missing else tuple(side.run_ids)
            record.keep(found, side.key, RunIds(tuple(self._head_run_ids), kept))
        return found

    def _compare(self, side: BaseSide, record: VerificationRecord) -> Verification:
        base = side.find_runs(record)
        # The head's gate goes on only now, so that its results are recorded after the base's.
        self._gate.turn.close()
        self._say(f"base: {_count(base.values())}{', from earlier runs' if side.reused else ''}")
        report = self._finish_head(self._gate.gate)
        runs = {
            project.name: ProjectRuns(
                project.name,
                base.get(project.name, SideRuns()),
                SideRuns.begin(result_of(report, project.name)),
                project.needs,
            )
            for project in self._manifest.projects
        }
        self._say(f"head: {_count(one.head for one in runs.values())}")
        runs |= {name: ProjectRuns(name, base=one) for name, one in base.items() if name not in runs}
        runs = self._ask_anew(runs, side)
        self._refuse_unjudged(runs.values())
        comparisons = compare_runs(self._run_again(runs, side), self._request.repeat)
        _refuse_gaps(comparisons, side)
        alike = {one.runs.name for one in comparisons if one.runs.is_skipped_alike}
        weakened = tuple(one for one in report.weakened_floor if not _is_excused(one, alike))
        is_excused = len(weakened) < len(report.weakened_floor)
        return Verification(
            base=self._describe_base(available=True, reused=side.reused),
            head=self._gate.head,
            comparisons=comparisons,
            weakened_floor=weakened,
            is_floor_accepted=self._gate.accepts_floor,
            fails_unexplained=report.fails_unexplained or (is_excused and report.fails_for_skips),
        )

    def _ask_anew(self, runs: dict[str, ProjectRuns], side: BaseSide) -> dict[str, ProjectRuns]:
        """Run on the base what failed on the head and was skipped, or could not be run, when the base was run earlier."""
        names = [name for name, one in runs.items() if side.reused and find_unjudged(one) is not None]
        if not names:
            return runs
        self._say(f"base: running {', '.join(names)}, of which earlier runs tell nothing")
        return runs | {name: replace(runs[name], base=one) for name, one in side.run_anew(names).items()}

    def _run_again(self, runs: Mapping[str, ProjectRuns], side: BaseSide) -> dict[str, ProjectRuns]:
        told, repeat = dict(runs), self._request.repeat
        # A project that is skipped when it is run again never counts: so the rounds are bounded too.
        for turn in range(2 * repeat):
            wanted = choose_repeats(told, repeat)
            if not wanted:
                break
            for place, names in wanted.items():
                self._say(f"{place}: running {', '.join(names)} again")
                ended = side.repeat(names) if place is Side.BASE else self._repeat_head(names, turn)
                for name, status in ended.items():
                    told[name] = told[name].count(place, status)
        return told

    def _repeat_head(self, names: Sequence[str], turn: int) -> dict[str, ResultStatus]:
        private = self._request.private
        gate = start_gate(self._gate.place, private, f"head-{turn}", keep_aside(private), projects=names)
        return {name: result.status for name, result in self._finish_head(gate).results.items()}

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
        file = parse_location(place.location).path
        if not place.is_own and file is not None:
            # Else the base's gate would refuse it, as if the base could not be run.
            refuse_foreign(file)
        return place.location

    def _warn(self, text: str) -> None:
        self._say(f"WARNING: {text}")

    def _refuse_unjudged(self, runs: Iterable[ProjectRuns]) -> None:
        reasons = [reason for reason in map(find_unjudged, runs) if reason is not None]
        if reasons:
            raise BaseUnavailableError("; ".join(reasons))

    def _give_up(self, reason: str, *, reused: bool = False) -> Verification:
        return Verification(self._describe_base(reason=reason, reused=reused), self._gate.head)

    def _describe_base(self, *, available: bool = False, reused: bool, reason: str | None = None) -> BaseFacts:
        base = self._request.base
        return BaseFacts(base.ref, base.commit, base.ref_commit, available, reused, reason)


def _refuse_gaps(comparisons: Iterable[Comparison], side: BaseSide) -> None:
    """Refuse to excuse a failure by one of the base that what the worktree lacked may have caused."""
    excused = [one.runs.name for one in comparisons if one.runs.head.failed and one.runs.base.tally.failed]
    suspects = excused if side.gaps else [name for name in excused if name in side.missing]
    if suspects:
        told = [*side.gaps, *dict.fromkeys(side.missing[name] for name in suspects if name in side.missing)]
        raise BaseUnavailableError(f"{', '.join(suspects)} failed on the base too, but {'; '.join(told)}")


def _is_excused(weakening: Mapping[str, Any], alike: Collection[str]) -> bool:
    """Tell whether the base asks no more: what was skipped there too, for the same reason, is no weakening."""
    return weakening["kind"] == WeakeningKind.NOT_RUN and weakening["project"] in alike


def _count(runs: Iterable[SideRuns]) -> str:
    statuses = [run.status for run in runs if run.status is not None]
    counts = {status: statuses.count(status) for status in ResultStatus}
    return ", ".join(f"{count} {status}" for status, count in counts.items() if count) or "no golden projects"
