"""The session under xdist: hand golden projects to workers in order, and leave other tests to the scheduler of `--dist`."""

from __future__ import annotations

import shutil
import tempfile
from bisect import insort
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.errors import SettingsError
from pytest_golden.session.declared import tell_worker

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Sequence

    from pytest_golden.regression.model import GoldenProjectResult
    from pytest_golden.session.earlier import EarlierRuns
    from pytest_golden.session.gateway import GoldenSession


_NOTES_KEY = "golden_notes"
# A worker starts a test only if it knows the next one, or that there is none. So it needs two.
_ENOUGH = 2


class GoldenDistribution:
    """The controller's hooks under xdist. `notes` is the scratch folder that the workers write to."""

    def __init__(self, session: GoldenSession, earlier: EarlierRuns, notes: Path) -> None:
        self._session = session
        self._earlier = earlier
        self._with_result: set[str] = set()
        self._notes = notes

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker which session it belongs to, where the notes are, and what earlier runs say."""
        tell_worker(node.config, node.workerinput)
        self._earlier.tell_worker(node.workerinput)
        node.workerinput[_NOTES_KEY] = str(self._notes)

    @pytest.hookimpl(optionalhook=True, wrapper=True)
    def pytest_xdist_make_scheduler(self) -> Generator[None, Any, Any]:
        """Return a scheduler that hands out golden projects and leaves other tests to the requested one."""
        asked_for = yield
        return None if asked_for is None else GoldenScheduling(self._session, asked_for, self._with_result)

    def pytest_golden_result_recorded(self, result: GoldenProjectResult) -> None:
        """Remember which projects have a result: their worker may crash before it reports them as done."""
        self._with_result.add(result.name)

    def pytest_unconfigure(self) -> None:
        """Remove the notes."""
        shutil.rmtree(self._notes, ignore_errors=True)


class GoldenScheduling:
    """xdist's `Scheduling`: `others` schedules the ordinary tests, golden projects follow in declaration order.

    All dependent projects run on one worker, one after another; independent ones run on any worker. `with_result` are the
    names of the projects that have a result, and grow.
    """

    def __init__(self, session: GoldenSession, others: Any, with_result: Collection[str]) -> None:
        from pytest_golden.manifest.model import find_independent

        self._session = session
        self._others = others
        self._declared = session.declared
        self._independent = find_independent(session.declared.projects.values())
        self._with_result = with_result
        self._workers: dict[Any, _Worker] = {}
        self._collections: dict[Any, list[str]] = {}
        # Node ids of all tests, and the index of the first golden one: they come last. Known once tests are handed out.
        self._ids: list[str] | None = None
        self._first_golden = 0
        self._is_aborted = False
        # Indices of golden projects that no worker has, in declaration order.
        self._dependents: list[int] = []
        self._independents: list[int] = []
        self._dependents_worker: _Worker | None = None

    @property
    def nodes(self) -> list[Any]:
        """The workers that are ready or run tests."""
        return list(self._workers)

    @property
    def collection_is_completed(self) -> bool:
        """Whether as many workers have collected as there were at the start."""
        return self._ids is not None or len(self._collections) >= count_workers(self._session.config)

    @property
    def tests_finished(self) -> bool:
        """Whether all tests are handed out and no worker has more than its last one."""
        if self._ids is None or self._dependents or self._independents:
            return False
        return all(len(worker.queued) < _ENOUGH for worker in self._workers.values()) and self._others.tests_finished

    @property
    def has_pending(self) -> bool:
        """Whether tests are handed out and not all of them have ended."""
        return bool(self._dependents or self._independents or any(worker.queued for worker in self._workers.values()))

    def add_node(self, node: Any) -> None:
        """Add a worker that is ready to collect."""
        worker = self._workers[node] = _Worker(node)
        # xdist's own schedulers refuse a worker that joins later when they have no tests.
        if self._ids is None or self._first_golden:
            self._others.add_node(worker)

    def add_node_collection(self, node: Any, collection: Sequence[str]) -> None:
        """Receive what a worker has collected. A worker that replaces another must have collected the same tests."""
        if self._ids is None:
            self._collections[node] = list(collection)
            return
        if list(collection) != self._ids:
            self._abort(node)
        if self._first_golden:
            self._others.add_node_collection(self._workers[node], list(collection)[: self._first_golden])

    def schedule(self) -> None:
        """Hand out the first tests, or tests for a worker that has joined later."""
        if self._ids is None:
            self._share_collections()
        self._others.schedule()
        if not self._first_golden:
            for worker in self._workers.values():
                worker.shutdown()
        self._hand_out()

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        """Note that a worker has run a test, and hand out more."""
        worker = self._workers[node]
        del worker.queued[item_index]
        if item_index < self._first_golden:
            self._others.mark_test_complete(worker, item_index, duration)
        self._hand_out()

    def mark_test_pending(self, item: str) -> None:
        """Run a test again after its worker crashed. A golden project is not run again: its result is ERROR."""
        if self._declared.find_project(item) is None:
            self._others.mark_test_pending(item)

    def remove_pending_tests_from_node(self, node: Any, indices: Sequence[int]) -> None:
        """Take back ordinary tests that `--dist worksteal` removed from a worker."""
        worker = self._workers[node]
        for index in indices:
            del worker.queued[index]
        self._others.remove_pending_tests_from_node(worker, indices)
        self._hand_out()

    def remove_node(self, node: Any) -> str | None:
        """Remove a worker that has ended, and return the node id of the test that crashed it, if any.

        A golden project that crashed its worker is not run again: xdist's report makes it an ERROR, unless its result came
        before the crash. The worker's next golden projects go to other workers.

        Raises:
            KeyError: the worker was never ready.
        """
        worker = self._workers.pop(node)
        self._collections.pop(node, None)
        if self._dependents_worker is worker:
            self._dependents_worker = None
        first, was_received = next(iter(worker.queued.items()), (-1, True))
        crashed: str | None = self._others.remove_node(worker) if worker in self._others.nodes else None
        if first >= self._first_golden and was_received and self._ids is not None:
            del worker.queued[first]
            name = self._name(first)
            crashed = None if name in self._with_result else self._ids[first]
            if crashed is not None and name is not None:
                from pytest_golden.regression.model import ResultStatus

                # Let the workers know it: perhaps it had not begun there.
                self._session.board.note_ended(name, ResultStatus.ERROR)
        elif crashed is not None and not was_received:
            # It never received that test, and xdist's schedulers by scope have already handed it out again.
            with suppress(NotImplementedError):
                self._others.mark_test_pending(crashed)
            crashed = None
        self._put_back(index for index in worker.queued if index >= self._first_golden)
        self._hand_out()
        return crashed

    def _share_collections(self) -> None:
        ids = next(iter(self._collections.values()))
        is_same = all(collected == ids for collected in self._collections.values())
        golden = (index for index, node_id in enumerate(ids) if self._declared.find_project(node_id) is not None)
        # If collections differ, the scheduler of `--dist` reports that and hands nothing out, so it gets all tests.
        shared = next(golden, len(ids)) if is_same else max(map(len, self._collections.values()))
        for node, collected in self._collections.items():
            self._others.add_node_collection(self._workers[node], collected[:shared])
        self._ids, self._first_golden = ids, shared
        self._put_back(range(shared, len(ids)))

    def _hand_out(self) -> None:
        """Send golden projects to the workers with the fewest tests, and shut down workers for which none are left."""
        ready = [worker for worker in self._workers.values() if worker.is_ready]
        if not ready or any(worker.is_lost for worker in self._workers.values()):
            # The tests of a lost worker come back when xdist removes it.
            return
        while ready:
            worker = min(ready, key=lambda one: len(one.queued))
            waiting = self._find_waiting(worker)
            if waiting and len(worker.queued) < _ENOUGH:
                if waiting is self._dependents:
                    self._dependents_worker = worker
                worker.send_runtest_some([waiting.pop(0)])
                if worker.is_lost:
                    return
                continue
            if not waiting:
                worker.node.shutdown()
            ready.remove(worker)

    def _find_waiting(self, worker: _Worker) -> list[int]:
        """Return the queue that holds this worker's next project: in declaration order, dependents on one worker only."""
        if self._dependents and self._dependents_worker is worker:
            return self._dependents
        if self._dependents and self._dependents_worker is None:
            return min(filter(None, (self._dependents, self._independents)), key=lambda queue: queue[0])
        return self._independents

    def _put_back(self, indices: Iterable[int]) -> None:
        if self._ids is None or self._is_aborted:
            return
        for index in indices:
            insort(self._independents if self._name(index) in self._independent else self._dependents, index)

    def _name(self, index: int) -> str | None:
        project = self._declared.find_project(self._ids[index]) if self._ids is not None else None
        return None if project is None else project.name

    def _abort(self, node: Any) -> None:
        """Report that a new worker has collected different tests, and hand out no more golden projects."""
        self._is_aborted = True
        self._dependents.clear()
        self._independents.clear()
        message = (
            f"{node.gateway.id} replaces a worker but collected different tests, so no further golden projects run: "
            "do not change tests or the manifest while a session runs."
        )
        report = pytest.CollectReport(nodeid=node.gateway.id, outcome="failed", longrepr=message, result=[])
        self._session.config.hook.pytest_collectreport(report=report)


class _Worker:
    """A worker as the scheduler of `--dist` sees it. Everything not defined here is left to xdist's own object.

    When that scheduler shuts a worker down, it has no more tests for it: the worker then receives golden projects, and is
    really shut down when none are left for it. This uses only what xdist documents: its `Scheduling` protocol, and the
    commands that it sends to its nodes.
    """

    def __init__(self, node: Any) -> None:
        self.node = node
        # Indices of the tests that it has, in order, and whether it has received them.
        self.queued: dict[int, bool] = {}
        # It has no more ordinary tests.
        self.is_released = False
        # It was already gone when a test was sent to it; xdist will remove it.
        self.is_lost = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.node, name)

    @property
    def shutting_down(self) -> bool:
        """Whether it receives no more ordinary tests."""
        return self.is_released or self.is_lost or self.node.shutting_down

    @property
    def is_ready(self) -> bool:
        """Whether it can receive golden projects."""
        return self.is_released and not self.is_lost and not self.node.shutting_down

    def send_runtest_some(self, indices: Sequence[int]) -> None:
        """Send it tests to run."""
        try:
            self.node.send_runtest_some(indices)
        except OSError:
            self.is_lost = True
        self.queued.update(dict.fromkeys(indices, not self.is_lost))

    def send_steal(self, indices: Sequence[int]) -> None:
        """Ask it to give tests back that it has not begun."""
        try:
            self.node.send_steal(indices)
        except OSError:
            self.is_lost = True

    def shutdown(self) -> None:
        """Note that the scheduler of `--dist` has no more tests for this worker."""
        self.is_released = True


def make_notes(config: pytest.Config) -> Path | None:
    """Return the folder of the notes: a new one in the controller of xdist, its controller's in a worker, else None."""
    if is_distributed(config):
        return Path(tempfile.mkdtemp(prefix="golden-notes-"))
    folder = getattr(config, "workerinput", {}).get(_NOTES_KEY)
    return Path(folder) if folder else None


def is_worker(config: pytest.Config) -> bool:
    """Tell whether this process is an xdist worker."""
    return hasattr(config, "workerinput")


def count_workers(config: pytest.Config) -> int:
    """Count the processes that run tests at the same time: xdist's workers, or this one alone."""
    if not is_distributed(config):
        return 1
    # As `popen`, or `3*popen`.
    counts = (str(spec).partition("*") for spec in config.getoption("tx"))
    return sum(int(count) if star and count.isdecimal() else 1 for count, star, _ in counts)


def is_distributed(config: pytest.Config) -> bool:
    """Tell whether this process is the controller of xdist workers.

    Raises:
        SettingsError: `--dist each` is given, with which every worker would run every project.
    """
    if is_worker(config) or not config.pluginmanager.hasplugin("xdist"):
        return False
    dist = config.getoption("dist", "no")
    if dist == "each":
        raise SettingsError(
            "--dist each would run every golden project on every worker: use another --dist, or leave --golden out."
        )
    return dist != "no" and bool(config.getoption("tx")) and not config.option.collectonly
