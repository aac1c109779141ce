"""What earlier runs contribute to a session: unchanged projects, usual durations, and what is known about a failure.

The process that owns the session reads the store; xdist workers receive the answers from it.
"""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    import pytest
    from sqlalchemy import Connection

    from pytest_golden.gate.events import ResultJudged
    from pytest_golden.gate.run_record import RunRecord
    from pytest_golden.history.changes import PastResult
    from pytest_golden.history.checkout import Checkout
    from pytest_golden.history.unchanged import Selection
    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.regression.model import GoldenProjectResult
    from pytest_golden.regression.slowdown import SlowdownJudge


_KEY = "golden_earlier"
# If more projects fail in one run, they have one cause, and git is not asked again.
_MOST_EXPLAINED = 20
_MOST_SEEN = 3


class EarlierRuns:
    """The answers from earlier runs that are needed before anything runs. Each question is asked at most once, when it is first needed."""

    def __init__(
        self,
        find_selection: Callable[[], Selection | None] = lambda: None,
        read_slowdowns: Callable[[], SlowdownJudge] | None = None,
    ) -> None:
        self._find_selection = find_selection
        self._read_slowdowns = read_slowdowns or _know_no_slowdowns

    @cached_property
    def selection(self) -> Selection | None:
        """The projects that are left out as unchanged; None if this was not requested."""
        return self._find_selection()

    @cached_property
    def slowdowns(self) -> SlowdownJudge:
        """The judge of durations."""
        return self._read_slowdowns()

    @property
    def narrowed(self) -> Mapping[str, tuple[str, ...]]:
        """The projects of which only the part that depends on these changed files runs."""
        return {} if self.selection is None else self.selection.narrowed

    def find_left_out(self, project: GoldenProjectConfig) -> GoldenProjectResult | None:
        """Return the result of a project that is left out as unchanged, or None for one that runs."""
        return None if self.selection is None else self.selection.make_result(project)

    def tell_worker(self, workerinput: dict[str, Any]) -> None:
        """Send a worker the answers that it needs."""
        selection = None if self.selection is None else self.selection.to_dict()
        workerinput[_KEY] = json.dumps({"selection": selection, "slowdowns": self.slowdowns.to_dict()})

    @classmethod
    def of_controller(cls, config: pytest.Config) -> EarlierRuns:
        """Return the answers that this worker's controller sent."""
        text = getattr(config, "workerinput", {}).get(_KEY)
        if text is None:
            return cls()
        told = json.loads(text)

        def read_selection() -> Selection | None:
            if told["selection"] is None:
                return None
            from pytest_golden.history.unchanged import Selection

            return Selection.from_dict(told["selection"])

        def read_slowdowns() -> SlowdownJudge:
            from pytest_golden.regression.slowdown import SlowdownJudge

            return SlowdownJudge.from_dict(told["slowdowns"])

        return cls(read_selection, read_slowdowns)


def _know_no_slowdowns() -> SlowdownJudge:
    from pytest_golden.regression.slowdown import SlowdownJudge

    return SlowdownJudge(trouble="no store has the durations of earlier runs")


class GoldenHistory:
    """Reads for the terminal what the store knows. A store that cannot be read is reported once and changes nothing else.

    Lessons are shown unless `learning` is `off`. If it is `on`, it is also recorded that they were shown.
    """

    def __init__(
        self,
        record: RunRecord,
        checkout: Checkout,
        surroundings: Mapping[str, Any],
        workspace_root: Path,
        *,
        learning: str,
        warn: Callable[[str], None],
    ) -> None:
        self._record = record
        self._checkout = checkout
        self._surroundings = surroundings
        self._workspace_root = workspace_root
        self._learning = learning
        self._warn = warn
        self._explained = 0

    def explain(self, project: GoldenProjectConfig, judged: ResultJudged) -> tuple[Mapping[str, Any], ...]:
        """Return what is known about a failure, each as `{kind, lines, ...}`; the lines are for people.

        A project that was interrupted, or that only waited for another project, has no cause of its own: return nothing.
        """
        if not _has_cause(judged.result):
            return ()
        self._explained += 1
        if self._explained > _MOST_EXPLAINED:
            return ()
        known = self._read(lambda connection: tuple(self._explain(connection, project, judged))) or ()
        return (*known, *self._recall(judged))

    def describe_streak(self, name: str) -> str:
        """Say how a project's newest result compares with those before it; empty if there are none.

        If the store does not accept this run, its newest result is an earlier run's, and nothing is said.
        """
        if not self._record.takes:
            return ""
        results = self._read(lambda connection: _list_recent(connection, name)) or ()
        from pytest_golden.history.trends import describe_streak

        return describe_streak(results) if len(results) > 1 else ""

    def _explain(
        self, connection: Connection, project: GoldenProjectConfig, judged: ResultJudged
    ) -> Iterator[Mapping[str, Any]]:
        from pytest_golden.gate.known import find_changed
        from pytest_golden.history.changes import Present
        from pytest_golden.history.inputs import RunInputs
        from pytest_golden.learning.seen_before import find_seen_before
        from pytest_golden.report.history_text import describe_changes

        present = Present(
            self._workspace_root,
            self._checkout,
            judged.declaration,
            self._surroundings,
            within=self._find_folder(project),
            inputs=RunInputs.read(dict(judged.inputs), judged.result.write_set.to_dict()),
        )
        changed = find_changed(connection, judged.result, present)
        if changed is not None:
            yield {
                "kind": "changed_since_pass",
                "lines": list(describe_changes(changed, project.name)),
                **changed.to_dict(),
            }
        error, name = judged.result.error_message or "", project.name
        for seen in (
            find_seen_before(connection, error, prefer=name, limit=_MOST_SEEN) if self._learning != "off" else ()
        ):
            # A failure that has not ended teaches nothing, and the streak already shows that it goes on.
            end = seen.describe_end()
            lines = [] if end is None else [f"seen before in {seen.project}: {end}"]
            yield {"kind": "seen_before", "lines": lines, **seen.to_dict()}

    def _recall(self, judged: ResultJudged) -> tuple[Mapping[str, Any], ...]:
        store = self._record.store
        if store is None or self._learning == "off":
            return ()
        try:
            # A store that does not take this run has no entry for which a lesson could be shown.
            keeps = self._learning == "on" and self._record.takes
            root = self._checkout.root
            from pytest_golden.gate.known import find_known_lessons

            return find_known_lessons(store, judged.result, judged.entry_id, keeps=keeps, root=root)
        except Exception as error:
            self._warn(f"lessons cannot be recalled: {error}")
            return ()

    def _find_folder(self, project: GoldenProjectConfig) -> Path:
        if project.project_dir is not None:
            return self._workspace_root / project.project_dir
        path = self._workspace_root / project.path
        return path if path.is_dir() else path.parent

    def _read(self, ask: Callable[[Connection], Any]) -> Any:
        store = self._record.store
        if store is None:
            return None
        try:
            with store.read() as connection:
                return ask(connection)
        except Exception as error:
            # Whatever is left there by an earlier run or another program, it does not change the verdict of this run.
            self._warn(f"earlier runs cannot be read: {error}")
            return None


def _has_cause(result: GoldenProjectResult) -> bool:
    from pytest_golden.regression.model import ReasonKind

    kinds = {reason.kind for reason in result.reasons}
    return ReasonKind.INTERRUPTED not in kinds and kinds != {ReasonKind.NEED_NOT_PASSED}


def _list_recent(connection: Connection, name: str) -> Sequence[PastResult]:
    """Return a project's newest results, as many as contain the last ten that ran; read more only if some did not run."""
    from pytest_golden.history.past_store import list_results
    from pytest_golden.history.trends import ENOUGH, WINDOW

    results = list_results(connection, name, WINDOW)
    is_enough = len(results) < WINDOW or all(result.counts for result in results)
    return results if is_enough else list_results(connection, name, ENOUGH)
