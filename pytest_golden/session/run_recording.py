"""Record this session's gate run in the store, and keep its live row there, in the process that shows and writes results.

The database library is imported while the first pipeline runs: it costs more than all the rest of a start.
"""

from __future__ import annotations

import os
import platform
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from pytest_golden.clock import monotonic_seconds, new_id, utc_now
from pytest_golden.compare.baselines import find_baselines_folder
from pytest_golden.gate import state_folder
from pytest_golden.gate.events import FailureExplained, ResultJudged, RunBegun, RunEnded, Spool
from pytest_golden.gateway.model import GatewayAbilities
from pytest_golden.history import run_environment
from pytest_golden.history.checkout import Checkout, read_checkout
from pytest_golden.history.inputs import InputReader, describe_ignored
from pytest_golden.journal.model import ImmediateResult, SignalType
from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.slowdown import SlowdownJudge
from pytest_golden.regression.verdict import RunStatus
from pytest_golden.session.declared import name_session
from pytest_golden.session.earlier import GoldenHistory
from pytest_golden.session.live_line import Errand, Ticker
from pytest_golden.session.scheduler import count_workers, is_distributed
from pytest_golden.settings import MODEL_VARIABLE, NO_STORE
from pytest_golden.storage.columns import from_ms, to_ms
from pytest_golden.storage.folder import STATE_FOLDER
from pytest_golden.values.loading import loading

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from pytest_golden.gate.live import RunningProject
    from pytest_golden.gate.run_record import RunRecord
    from pytest_golden.gate.state_folder import StorePlace
    from pytest_golden.journal.model import JournalEntry
    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.regression.model import GoldenProjectResult
    from pytest_golden.regression.verdict import RunVerdict, Weakening
    from pytest_golden.session.gateway import GoldenSession
    from pytest_golden.storage.store import Store


# How often the live row is refreshed while nothing changes.
_SECONDS_OF_SILENCE = 10.0
# The first pipeline is started meanwhile: a thread that imports would slow that down.
_SECONDS_TO_START = 0.15
_LONGEST_STEP = 200


class _Opened(NamedTuple):
    """What exists after the store has been opened."""

    record: RunRecord
    history: GoldenHistory
    live: LiveRow


@loading(is_last=True)
def _load() -> None:
    import pytest_golden.gate.run_record  # noqa: F401


class GoldenRecording:
    """Begins the record when golden projects will run, adds each result, and ends it with the session.

    `run_id` is the id of the run's journal entry: the session's own id with another prefix. `say` receives
    messages about the store; those to repeat at the end are added to `warnings`, the session's own.
    """

    def __init__(self, session: GoldenSession, say: Callable[[str], None], warnings: list[str]) -> None:
        self.run_id = f"entry_{name_session(session.config).partition('_')[2]}"
        self._opening: Errand[_Opened] | None = None
        # Messages while a thread opens the store; None at any other time.
        self._unsaid: list[str] | None = None
        self._opened: _Opened | None = None
        self._session = session
        self._settings = session.settings
        self._declared = session.declared
        self._warnings = warnings
        self._hider = session.make_hider()
        #: Removes from plain values what the store does not keep; returns None if that is not known.
        self.hide = self._hider.hide_for_all
        self._say_now = say
        # Read now, so that an unusable location is refused before anything runs.
        self._shown_place = self._show_place()
        self._expectations: dict[str, str] = {}
        self._checkout = Checkout()
        self._inputs: InputReader | None = None
        self._began_at = monotonic_seconds()
        self._may_learn = False
        self._has_ended = False
        self._told: list[str] = []
        self._held: list[str] | None = None

    @property
    def _may_ask_model(self) -> bool:
        return self._settings.learning == "on" and bool(os.environ.get(MODEL_VARIABLE, "").strip())

    @property
    def entry_id(self) -> str | None:
        """The id of the run's entry; None if it has none and will not get one."""
        opened = self._get_opened()
        return self.run_id if opened is not None and opened.record.is_kept else None

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionstart(self) -> Generator[None, None, None]:
        """While xdist's workers start and collect, load what the record needs: later it would hold up their tests."""
        yield
        if self._declared.projects and is_distributed(self._session.config):
            self._find_abilities()
            Errand(_load, name="golden-loading")

    def pytest_report_header(self) -> list[str]:
        """Say where results go, and which language model is asked afterwards."""
        if not self._declared.projects:
            return []
        model = None
        if self._may_ask_model:
            # Imported only if a language model is named.
            from pytest_golden.session.model_wording import describe_model

            model = describe_model(os.environ)
        return [f"golden store: {self._shown_place}", *([model] if model else [])]

    def pytest_runtest_setup(self) -> None:
        """Restart the live row if a test has forked this process."""
        if self._opening is not None and self._opening.is_done:
            opened = self._get_opened()
            if opened is not None:
                opened.live.start()

    def end(
        self,
        verdict: RunVerdict,
        results: Iterable[GoldenProjectResult],
        weakenings: Sequence[Weakening],
        left_out: Mapping[str, Sequence[str]],
    ) -> None:
        """End the record with the run's verdict. `left_out` are the projects that were `deselected` or `not_run`."""
        opened = self._get_opened()
        if opened is not None:
            opened.live.stop()
            self._held = []
            opened.record.end(self._describe_end(verdict, results, weakenings, left_out))
            self._has_ended = True
            self._sum_up(self._held, has_recovered=opened.record.has_recovered)
            self._held = None
            self._may_learn = self._settings.learning == "on" and verdict.status is not RunStatus.INTERRUPTED

    def pytest_unconfigure(self) -> None:
        """Learn from what was recorded, after all output for the person who waits, and close the store."""
        opened = self._get_opened()
        if opened is not None:
            opened.live.stop()
            try:
                if self._may_learn and opened.record.store is not None and opened.record.takes:
                    self._learn(opened.record.store)
            finally:
                opened.record.close()

    def begin(self, selected: Collection[str]) -> None:
        """Begin the record of these projects, if it has not begun; the workspace's lock must be held.

        A thread opens the store, and whatever needs it waits for that.
        """
        if self._opening is not None:
            return
        try:
            folder = state_folder.prepare_state_folder(self._session.root)
            place = state_folder.find_store_place(self._settings.store, folder)
            if place is None:
                return
            begun = self._describe_begin(selected)
            spool = Spool(state_folder.find_spool_folder(place, folder))
        except Exception as error:
            # The gate runs even if its environment cannot be read.
            self.warn(f"this run is not recorded: {error}")
            return
        if place.is_own and folder.name != STATE_FOLDER:
            told = f"{STATE_FOLDER} cannot be written, so this run is recorded in {place.location}"
            self._say(f"golden: {told}; see it with `golden history --store {place.location}`")
        has_substitute = place.is_own and folder.name == STATE_FOLDER
        substitute = state_folder.find_substitute(folder.parent) if has_substitute else None
        self._unsaid = []
        opens = partial(self._open, place, spool, begun, substitute)
        self._opening = Errand(opens, name="golden-store", pause_seconds=_SECONDS_TO_START)
        if not place.is_own and place.parse().path is not None:
            # The seal hides a store elsewhere, and can only hide an existing file.
            self._get_opened()

    @loading(is_last=True)
    def _open(self, place: StorePlace, spool: Spool, begun: RunBegun, substitute: Path | None) -> _Opened:
        from pytest_golden.gate.run_record import RunRecord

        record = RunRecord(
            place.location,
            spool,
            is_own_store=place.is_own,
            clock=utc_now,
            say=lambda text: self._say(f"golden: {text}"),
            warn=self.warn,
            substitute=substitute,
            merge=_merge_substitute,
        )
        history = GoldenHistory(
            record,
            # With the marks of what is stored: else each path with one would be a change since the last pass.
            Checkout(root=self._checkout.root, **begun.checkout),
            begun.surroundings,
            self._session.root,
            learning=self._settings.learning,
            warn=self.warn,
        )
        record.begin(begun)
        live = LiveRow(self.run_id, record, self._session, total=len(begun.expectations), hide=self._hider.hide_for_all)
        live.start()
        return _Opened(record, history, live)

    def _get_opened(self) -> _Opened | None:
        """Wait until the store is open, and print its messages; None if this run is not recorded."""
        if self._opening is None or self._unsaid is None:
            return self._opened
        trouble = None
        try:
            self._opened = self._opening.get_answer()
        except Exception as error:
            trouble = f"this run is not recorded: {error}"
        unsaid, self._unsaid = self._unsaid, None
        for text in unsaid:
            self._say(text)
        if trouble is not None:
            self.warn(trouble)
        return self._opened

    def _say(self, text: str) -> None:
        if self._unsaid is None:
            self._say_now(text)
        else:
            self._unsaid.append(text)

    def read_slowdowns(self) -> SlowdownJudge:
        """Return what judges durations by the store's records; a run that accepts its outputs accepts its durations too."""
        projects, root = tuple(self._declared.projects.values()), self._session.root
        if self._settings.update or not any(project.max_slowdown is not None for project in projects):
            return SlowdownJudge(is_off=True)
        abilities, workers = self._find_abilities(), count_workers(self._session.config)
        from pytest_golden.history.past_store import read_slowdown_judge

        opened = self._get_opened()
        if opened is not None:
            return read_slowdown_judge(opened.record.store, projects, root, abilities, workers=workers)
        # xdist workers need it before the record begins.
        with self.open_earlier() as store:
            return read_slowdown_judge(store, projects, root, abilities, workers=workers)

    def open_earlier(self) -> AbstractContextManager[Store | None]:
        """Open the store to read earlier runs before this one begins; yield None if there is none or it cannot be opened."""
        from pytest_golden.gate.run_record import open_existing

        return open_existing(self._find_place())

    def _find_abilities(self) -> GatewayAbilities | None:
        try:
            abilities = self._session.gateway.call("describe")
        except Exception:
            # A plugged-in gateway may raise anything; then its view is not known.
            return None
        return abilities if isinstance(abilities, GatewayAbilities) else None

    def keep(self, result: GoldenProjectResult, *, fails: bool) -> tuple[GoldenProjectResult, JournalEntry | None]:
        """Record a result, durably when this returns, and add to a failure what earlier runs know about it.

        Return the entry too, if the store took it. `fails` tells whether the result fails the gate.
        """
        opened = self._get_opened()
        if opened is None:
            return result, None
        project = self._declared.projects[result.name]
        result = self._hider.hide_in_result(result)
        judged = ResultJudged(
            run_id=self.run_id,
            entry_id=new_id("entry"),
            signal_id=new_id("signal"),
            moment=to_ms(utc_now()),
            expectation_id=self._expectations.get(result.name),
            fails=fails,
            declaration=self._hider.hide_for_all(project.to_dict()) or {},
            result=result,
            inputs=self._read_inputs(project, result),
        )
        entry = opened.record.record(judged)
        if judged.fails:
            known = (self._hider.hide_for_all(dict(one)) for one in opened.history.explain(project, judged))
            result = replace(result, known=tuple(one for one in known if one is not None))
            if result.known:
                opened.record.record(FailureExplained(self.run_id, judged.entry_id, result.known))
        return result, entry

    def _read_inputs(self, project: GoldenProjectConfig, result: GoldenProjectResult) -> dict[str, Any]:
        if self._inputs is None or result.status is ResultStatus.SKIPPED:
            return {}
        try:
            return self._hider.hide_for_all(self._inputs.read(project)) or {}
        except Exception as error:
            self.warn(f"the inputs of {project.name} are not known: {error}")
            return {}

    def warn(self, text: str) -> None:
        """Warn about the store, each text once; what comes up at the end waits for the summary."""
        if text in self._told:
            return
        self._told.append(text)
        if self._held is None:
            self._say(f"golden: WARNING: {text}")
        else:
            self._held.append(text)

    def describe_streak(self, name: str) -> str:
        """Describe how a project's result compares with those before it; empty if they are not known."""
        opened = self._get_opened()
        return "" if opened is None else opened.history.describe_streak(name)

    def _sum_up(self, held: list[str], *, has_recovered: bool) -> None:
        """Leave only the last warning to the summary, and print the other ones."""
        for text in held[:-1]:
            self._say(f"golden: WARNING: {text}")
        if self._told and not has_recovered:
            self._warnings.append(self._told[-1])

    def _show_place(self) -> str:
        place = self._find_place()
        if place is None:
            return NO_STORE
        shown, root = place.parse().shown, self._session.root
        return os.path.relpath(shown, root) if Path(shown).is_relative_to(root) else shown

    def _find_place(self) -> StorePlace | None:
        return state_folder.find_store_place(self._settings.store, state_folder.find_state_folder(self._session.root))

    def _learn(self, store: Store) -> None:
        try:
            from pytest_golden.gate.teaching import GateLearner, find_budget

            manifest = self._declared.manifest
            GateLearner(
                store, manifest.workspace_root, self._declared.manifest_path, hide=self._hider.hide_for_all
            ).learn(find_budget(monotonic_seconds() - self._began_at))
            if self._may_ask_model:
                from pytest_golden.session.model_wording import reword

                reword(store, os.environ, self._say)
        except KeyboardInterrupt:
            self._say("golden: learning was interrupted; the next gate continues it")
        except Exception as error:
            # The verdict stands, and an exception here would replace pytest's exit code.
            self._say(f"golden: nothing was learned from this run: {error}")

    def _describe_begin(self, selected: Iterable[str]) -> RunBegun:
        root = self._session.root
        projects = self._declared.projects.values()
        checkout = read_checkout(root)
        self._checkout = checkout
        reports = (self._settings.junit, self._settings.json, self._settings.html)
        self._inputs = InputReader(root, checkout, projects, reports)
        workers = count_workers(self._session.config)
        self._expectations = {name: new_id("expectation") for name in selected}
        told: dict[str, Any] = {
            "workspace_root": str(root),
            "manifest": self._declared.label,
            "command_line": ["pytest", *map(str, self._session.config.invocation_params.args)],
            "checkout": checkout.to_dict(),
            "facts": {
                "mode": self._settings.mode,
                "require": self._settings.require,
                "floor_base": self._settings.base,
                "learning": self._settings.learning,
                run_environment.ENVIRONMENT: run_environment.describe_run_environment(
                    projects, root, self._find_abilities(), workers=workers
                ),
                run_environment.ACCEPTS: self._settings.update,
                **({} if self._session.shard is None else self._session.shard.facts),
            },
        }
        unknown = {name: type(value)() for name, value in told.items()}
        told = self._hider.hide_for_all(told) or {**unknown, "checkout": Checkout().to_dict()}
        ignored = describe_ignored(checkout, self._hider.hide_names)
        told["facts"] |= {} if ignored is None else {run_environment.IGNORED: ignored}
        return RunBegun(
            run_id=self.run_id,
            moment=to_ms(utc_now()),
            command_line=tuple(told.pop("command_line")),
            surroundings=run_environment.describe_surroundings(projects, root),
            host=platform.node(),
            pid=os.getpid(),
            expectations=self._expectations,
            **told,
        )

    def _describe_end(
        self,
        verdict: RunVerdict,
        results: Iterable[GoldenProjectResult],
        weakenings: Sequence[Weakening],
        left_out: Mapping[str, Sequence[str]],
    ) -> RunEnded:
        # A session that ended early may have exit status 0.
        is_cut = verdict.is_good and bool(verdict.not_run)
        immediate = ImmediateResult.PARTIAL if is_cut else _IMMEDIATE.get(verdict.status, ImmediateResult.UNKNOWN)
        return RunEnded(
            run_id=self.run_id,
            moment=to_ms(utc_now()),
            immediate_result=immediate.value,
            notes=verdict.sentence,
            verdict=verdict.to_dict(),
            is_correction=self._has_ended,
            facts={
                **{word: list(names) for word, names in left_out.items()},
                "floor_accepted": verdict.floor_accepted,
                "weakened_floor": self._hider.hide_for_all([one.to_dict() for one in weakenings]) or [],
            },
            news=tuple(self._list_news(verdict, weakenings)),
            dirty_files=self._read_accepted_edits(results) if self._settings.update else None,
        )

    def _read_accepted_edits(self, results: Iterable[GoldenProjectResult]) -> Mapping[str, str | None] | None:
        """Return the redacted edits of the checkout after baselines were accepted; None if none were."""
        from pytest_golden.history.base_files import find_accepted_edits

        manifest = self._declared.manifest
        folder = find_baselines_folder(self._declared.manifest_path, manifest.workspace_root)
        edits = find_accepted_edits(self._checkout, folder, results)
        return None if edits is None else self._hider.hide_for_all(dict(edits))

    def _list_news(self, verdict: RunVerdict, weakenings: Sequence[Weakening]) -> Generator[dict[str, Any], None, None]:
        """Return the signals about the whole run, for what no project's own signal says.

        A weakened floor that a person accepted does not change the verdict, but is recorded too.
        """
        if weakenings:
            accepted = verdict.floor_accepted
            named = (f"{one.project}: {one.message}" if one.project else one.message for one in weakenings)
            told = self._hider.hide_for_all("; ".join(named)) or "hidden"
            data = {"floor_base": self._hider.hide_for_all(self._settings.base), "accepted": accepted}
            summary = f"weakened floor{', accepted by a person' if accepted else ''}: {told}"
            yield _make_news(SignalType.NEUTRAL if accepted else SignalType.NEGATIVE, summary, data)
        causes = list(verdict.causes)
        if verdict.status is RunStatus.INTERRUPTED and not verdict.not_run:
            # Without this, a run whose projects had all passed before would count as a success.
            causes.append("interrupted after its last golden project")
        if causes:
            yield _make_news(SignalType.NEGATIVE, "; ".join(causes), {})


_IMMEDIATE: Mapping[RunStatus | None, ImmediateResult] = {
    RunStatus.PASSED: ImmediateResult.SUCCESS,
    RunStatus.FAILED: ImmediateResult.FAILURE,
    RunStatus.ERROR: ImmediateResult.FAILURE,
    RunStatus.INTERRUPTED: ImmediateResult.PARTIAL,
}


def _make_news(signal_type: SignalType, summary: str, data: dict[str, Any]) -> dict[str, Any]:
    return {"id": new_id("signal"), "signal_type": signal_type.value, "summary": summary, "data": data}


def _merge_substitute(location: str | Path, folder: Path) -> int:
    # Few gates use a substitute.
    from pytest_golden.verify.merging_store import take_in_substitute

    return take_in_substitute(location, folder)


class LiveRow(Ticker):
    """Keeps the live row of one run up to date for other processes that watch it. It does not wait for a busy store.

    The end of the run removes the row.

    `total` counts the selected projects. `hide` removes the secrets of all projects from a text.
    """

    def __init__(
        self, run_id: str, record: RunRecord, session: GoldenSession, *, total: int, hide: Callable[[str], str | None]
    ) -> None:
        super().__init__(self._tell, name="golden-live-row")
        self._run_id = run_id
        self._record = record
        self._session = session
        self._total = total
        self._hide = hide
        self._process: dict[str, str | int] = {}
        self._told: tuple[RunningProject, ...] | None = None
        self._told_at = 0.0

    def _tell(self) -> None:
        """Write what is running to the store, if it has changed or was written a while ago.

        Raises:
            StorageError: the store does not accept it now.
        """
        self._session.note_present_step()
        self._session.note_elsewhere()
        running, now = self._describe(), monotonic_seconds()
        if running == self._told and now - self._told_at < _SECONDS_OF_SILENCE:
            return
        store = self._record.store
        if store is None or not self._record.takes:
            return
        from pytest_golden.gate.live import describe_machine
        from pytest_golden.gate.store import write_beat

        self._process = self._process or {"pid": os.getpid(), "machine": describe_machine(), "total_count": self._total}
        with store.write_aside() as connection:
            write_beat(connection, self._run_id, utc_now(), running, **self._process)
        self._told, self._told_at = running, now

    def _describe(self) -> tuple[RunningProject, ...]:
        from pytest_golden.gate.live import RunningProject

        return tuple(
            RunningProject(one.name, from_ms(int(one.since * 1000)), self._hide_step(one.step))
            for one in self._session.board.list_running()
        )

    def _hide_step(self, step: str | None) -> str | None:
        hidden = None if step is None else self._hide(step)
        return None if hidden is None else hidden[:_LONGEST_STEP]
