"""What earlier runs have to say in this session: about a failure at hand, and about each project's streak."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_golden.gate import lessons
from pytest_golden.gate.changes import Present
from pytest_golden.gate.input_changes import RunInputs
from pytest_golden.gate.known import find_changed, find_seen
from pytest_golden.gate.store import list_results
from pytest_golden.gate.streak import ENOUGH, WINDOW, describe_streak
from pytest_golden.regression.model import ReasonKind
from pytest_golden.report.history_text import describe_changes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from sqlalchemy import Connection

    from pytest_golden.gate.checkout import Checkout
    from pytest_golden.gate.events import ResultJudged
    from pytest_golden.gate.past import PastResult
    from pytest_golden.gate.run_record import RunRecord
    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.regression.model import GoldenProjectResult

# When more fail at once, the cause is the same, and git is asked no more.
_MOST_EXPLAINED = 20


class GoldenHistory:
    """Reads the store for the terminal. What cannot be read is said once and costs nothing else.

    `recalls` tells whether what was learned is shown, `learns` whether it is kept that it was.
    """

    def __init__(
        self,
        record: RunRecord,
        checkout: Checkout,
        surroundings: Mapping[str, Any],
        workspace_root: Path,
        *,
        recalls: bool,
        learns: bool = False,
        warn: Callable[[str], None],
    ) -> None:
        self._record = record
        self._checkout = checkout
        self._surroundings = surroundings
        self._workspace_root = workspace_root
        self._recalls = recalls
        self._learns = learns
        self._warn = warn
        self._explained = 0

    def explain(self, project: GoldenProjectConfig, judged: ResultJudged) -> tuple[Mapping[str, Any], ...]:
        """Give what is known of a failure: `{kind, lines, ...}` each, the lines for people.

        One that was interrupted, or only waited for another project, has no cause of its own.
        """
        if not _has_cause(judged.result):
            return ()
        self._explained += 1
        if self._explained > _MOST_EXPLAINED:
            return ()
        known = self._read(lambda connection: tuple(self._explain(connection, project, judged))) or ()
        return (*known, *self._recall(judged))

    def describe_streak(self, name: str) -> str:
        """Say how a project's newest result fits in with those before it; empty when there are none.

        What a store that does not take this run has last is an earlier run's result, and nothing is said of it.
        """
        if not self._record.takes:
            return ""
        results = self._read(lambda connection: _list_recent(connection, name)) or ()
        return describe_streak(results) if len(results) > 1 else ""

    def _explain(
        self, connection: Connection, project: GoldenProjectConfig, judged: ResultJudged
    ) -> Iterator[Mapping[str, Any]]:
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
            yield {"kind": "changed_since_pass", "lines": list(describe_changes(changed)), **changed.to_dict()}
        for seen in find_seen(connection, judged.result) if self._recalls else ():
            yield {"kind": "seen_before", "lines": [str(seen)], **seen.to_dict()}

    def _recall(self, judged: ResultJudged) -> tuple[Mapping[str, Any], ...]:
        store = self._record.store
        if store is None or not self._recalls:
            return ()
        try:
            # A store that does not take this run has no entry for which a lesson could be shown.
            keeps = self._learns and self._record.takes
            root = self._checkout.root
            return lessons.find_known_lessons(store, judged.result, judged.entry_id, keeps=keeps, root=root)
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
            # Whatever an earlier run, or another program, has left there: the verdict of this one stands.
            self._warn(f"earlier runs cannot be asked: {error}")
            return None


def _has_cause(result: GoldenProjectResult) -> bool:
    kinds = {reason.kind for reason in result.reasons}
    return ReasonKind.INTERRUPTED not in kinds and kinds != {ReasonKind.NEED_NOT_PASSED}


def _list_recent(connection: Connection, name: str) -> Sequence[PastResult]:
    """Give a project's newest results: as many as hold the last ten that ran, in few reads where all did."""
    results = list_results(connection, name, WINDOW)
    is_enough = len(results) < WINDOW or all(result.counts for result in results)
    return results if is_enough else list_results(connection, name, ENOUGH)
