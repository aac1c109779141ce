"""`GoldenAdapter`: lets `gepa.optimize` improve texts of golden projects, judged as the gate judges them.

GEPA swallows what goes wrong between two evaluations and goes on until its budget is spent. So everything that can be
known before is refused when the adapter is made, and everything later at the next `evaluate`, whose errors GEPA raises.
"""

from __future__ import annotations

import logging
import threading
import weakref
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pytest_golden.errors import GoldenError, StorageError
from pytest_golden.gate.baselines import BaselineKeeper, find_baselines_folder
from pytest_golden.gate.gepa.components import find_components
from pytest_golden.gate.gepa.rollouts import make_output, make_trajectory, reflect_on
from pytest_golden.gate.gepa.rules import is_not_by_text, score_result, was_interrupted
from pytest_golden.gate.service import RegressionGuard
from pytest_golden.gateway import ExecutionGateway
from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.learning.reflective.known import find_known
from pytest_golden.manifest import Manifest, load_manifest
from pytest_golden.manifest.model import GoldenProjectConfig
from pytest_golden.regression.model import GoldenProjectResult, Reason, ResultStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gepa.core.adapter import EvaluationBatch, ProposalFn

    from pytest_golden.gateway.model import AgentRole, Permissions, PipelineOutcome
    from pytest_golden.gateway.written_files import Examine
    from pytest_golden.storage.store import Store

    Batch = EvaluationBatch[dict[str, Any], dict[str, Any]]

_log = logging.getLogger(__name__)
_RECORD_KEYS = frozenset({"project", "task", "verdict", "reasons", "steps"})


class GoldenAdapter:
    """Golden projects as GEPA's data set, and some of their files as the texts that it improves.

    Each candidate is put into the copy-on-write view of each run and nowhere else. A run is judged by the gate's rules,
    retries included; what a project `needs` is taken as it is. Nothing is recorded. Use it as a with-block, or `close` it.

    Args:
        manifest: a manifest, or the path of one.
        components: the path of a file in the project's folder for each name. Every project has all of them, with equal
            texts where the folders differ.
        projects: the names of the golden projects to use; all by default.
        view: `auto`, `overlay` or `copy`, as for the gate.
        store: where what is known of a failure is looked up for the reflection; nowhere by default.

    Raises:
        GoldenError: GEPA could not improve anything with these: the message says why, and what to do.
    """

    #: Whoever overrides it proposes texts instead of GEPA's reflection. GEPA asks for the attribute even where it is None.
    propose_new_texts: ProposalFn | None = None

    def __init__(
        self,
        manifest: Manifest | Path | str,
        components: Mapping[str, str | Path],
        *,
        projects: Iterable[str] | None = None,
        view: str = "auto",
        store: MemoryStore | Store | None = None,
    ) -> None:
        self._batch_type = _load_batch_type()
        self._check_proposer()
        read = load_manifest(manifest) if isinstance(manifest, (str, Path)) else manifest
        if not isinstance(read, Manifest):
            raise GoldenError(f"manifest must be a Manifest or the path of one, not {manifest!r:.100}")
        self._projects = {project.name: project for project in _choose(read, projects)}
        self._root, self._view = read.workspace_root, view
        self._baselines = BaselineKeeper(find_baselines_folder(read.path, read.workspace_root))
        self._store = store.store if isinstance(store, MemoryStore) else store
        self._lock = threading.Lock()
        self._gateway: ExecutionGateway | None = None
        self._closing: weakref.finalize[[], GoldenAdapter] | None = None
        self._trouble: Exception | None = None
        gateway = self._open()
        self._components = find_components(components, self._projects.values(), self._root, gateway.redact)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove all scratch; safe to call twice, and what is evaluated later makes its own."""
        with self._lock:
            if self._closing is not None:
                self._closing()
            self._gateway = self._closing = None

    def seed_candidate(self) -> dict[str, str]:
        """Give the texts as they were when the adapter was made, by name."""
        return dict(self._components.texts)

    def projects(self) -> list[GoldenProjectConfig]:
        """Give the golden projects in the order of the manifest: a data set for `trainset` and `valset`."""
        return list(self._projects.values())

    def evaluate(
        self, batch: Sequence[GoldenProjectConfig], candidate: Mapping[str, str], capture_traces: bool = False
    ) -> Batch:
        """Run each project with the candidate's texts and judge it: 1.0 for PASSED, less for anything else.

        GEPA fills a batch by repeating projects where there are few; each is run and counted once.

        Raises:
            GoldenError: the batch is empty or holds what is no project of this adapter, the candidate lacks a component, a
                component's file is gone, or a reflective dataset could not be made since the last call.
            KeyboardInterrupt: a person stopped a run.
        """
        self._raise_trouble()
        self._check_proposer()
        texts = self._components.check_candidate(candidate)
        projects = [self._known(project) for project in batch]
        if not projects:
            raise GoldenError("an empty batch: without trajectories GEPA would do nothing, and say nothing")
        with self._lock:
            ran = {project.name: self._run(project, texts) for project in dict.fromkeys(projects)}
        if all(map(is_not_by_text, ran.values())):
            told = "; ".join(f"{result.name}: {result.error_message}" for result in ran.values())
            _log.warning("no project of this batch could be run properly: %s", told)
        traces = (
            {project.name: self._trace(project, ran[project.name]) for project in projects} if capture_traces else {}
        )
        return self._batch_type(
            outputs=[make_output(ran[project.name]) for project in projects],
            scores=[score_result(ran[project.name]) for project in projects],
            trajectories=[traces[project.name] for project in projects] if capture_traces else None,
            num_metric_calls=len(ran),
        )

    def make_reflective_dataset(
        self, candidate: Mapping[str, str], eval_batch: Batch, components_to_update: Sequence[str]
    ) -> dict[str, list[dict[str, Any]]]:
        """Give the records of a batch for each of these components, one for each project, the worst result first.

        Raises:
            GoldenError: there are no trajectories, or a component is unknown. GEPA only logs that, so that the next call of
                `evaluate` raises it again.
        """
        try:
            self._components.check_candidate(candidate)
            return self._reflect(_check_trajectories(eval_batch), self._check_components(components_to_update))
        except Exception as error:
            self._trouble = error
            raise

    def _reflect(
        self, trajectories: Sequence[Mapping[str, Any]], names: Sequence[str]
    ) -> dict[str, list[dict[str, Any]]]:
        distinct = {trajectory["project"]: trajectory for trajectory in trajectories}.values()
        ranked = sorted(distinct, key=lambda trajectory: float(trajectory["score"]))
        declared = self._components.declared
        return {name: [reflect_on(trajectory, name, declared[name]) for trajectory in ranked] for name in names}

    def _raise_trouble(self) -> None:
        trouble, self._trouble = self._trouble, None
        if trouble is not None:
            raise GoldenError(f"no reflective dataset could be made after the last evaluation: {trouble}") from trouble

    def _check_proposer(self) -> None:
        proposer = getattr(self, "propose_new_texts", self)
        if proposer is not None and (proposer is self or not callable(proposer)):
            raise GoldenError(
                "the adapter's `propose_new_texts` must be None or a function; without it GEPA proposes nothing"
            )

    def _check_components(self, names: Sequence[str]) -> list[str]:
        declared = self._components.declared
        unknown = [str(name) for name in names if name not in declared]
        if unknown or not names:
            told = f"unknown: {', '.join(unknown)}" if unknown else "none named"
            raise GoldenError(f"components to update: {told}; known are {', '.join(declared)}")
        return list(names)

    def _known(self, project: object) -> GoldenProjectConfig:
        if not isinstance(project, GoldenProjectConfig) or self._projects.get(project.name) != project:
            named = project.name if isinstance(project, GoldenProjectConfig) else f"{project!r:.100}"
            raise GoldenError(f"{named} is no golden project of this adapter; take them from `adapter.projects()`")
        return project

    def _run(self, project: GoldenProjectConfig, candidate: Mapping[str, str]) -> GoldenProjectResult:
        try:
            stand_ins = self._components.stand_ins(project, candidate)
        except UnicodeEncodeError as error:
            return _unwritable(project, f"the text cannot be written as UTF-8: {error.reason}")
        guard = RegressionGuard(_CandidateGateway(self._open(), stand_ins), baselines=self._baselines)
        result = guard.check_one(project, {})
        if was_interrupted(result):
            raise KeyboardInterrupt
        return result

    def _trace(self, project: GoldenProjectConfig, result: GoldenProjectResult) -> dict[str, Any]:
        known = ""
        if self._store is not None and result.error_message:
            try:
                with self._store.read() as connection:
                    known = find_known(connection, result.error_message, project.name)
            except StorageError as error:
                _log.warning("nothing can be looked up about a failure: %s", error)
        return make_trajectory(project, result, known)

    def _open(self) -> ExecutionGateway:
        if self._gateway is None:
            self._gateway = ExecutionGateway(self._root, view=self._view)
            # Whoever forgets to close it leaves no process behind.
            self._closing = weakref.finalize(self, self._gateway.close)
        return self._gateway


@dataclass(frozen=True, slots=True)
class _CandidateGateway:
    """Executes golden projects with a candidate's files in their views."""

    gateway: ExecutionGateway
    stand_ins: Mapping[str, bytes]

    def run_pipeline(
        self,
        project: GoldenProjectConfig,
        *,
        role: AgentRole,
        permissions: Permissions,
        examine: Examine | None = None,
    ) -> PipelineOutcome:
        """Execute one golden project and give the facts."""
        return self.gateway.run_pipeline(
            project, role=role, permissions=permissions, stand_ins=self.stand_ins, examine=examine
        )

    def redact(self, project: GoldenProjectConfig, text: str) -> str:
        """Take a project's secrets out of a text."""
        return self.gateway.redact(project, text)


def _unwritable(project: GoldenProjectConfig, message: str) -> GoldenProjectResult:
    """Give the result of a candidate that no file can hold: that is news of the candidate, and not the end of the search."""
    return GoldenProjectResult(
        project.name,
        project.path,
        ResultStatus.ERROR,
        error_message=message,
        reasons=(Reason("text_unwritable", message),),
        attempts=0,
    )


def _load_batch_type() -> type[Batch]:
    try:
        from gepa.core.adapter import EvaluationBatch  # noqa: PLC0415 - loads what is in an extra
    except ImportError as error:
        raise GoldenError("GoldenAdapter needs the library gepa: pip install 'pytest-golden-projects[gepa]'") from error
    batch_type: type[Batch] = EvaluationBatch
    return batch_type


def _choose(manifest: Manifest, names: Iterable[str] | None) -> tuple[GoldenProjectConfig, ...]:
    if not manifest.projects:
        raise GoldenError("the manifest declares no golden projects, so that there is nothing to learn from")
    if names is None:
        return manifest.projects
    wanted = (names,) if isinstance(names, str) else tuple(names)
    known = {project.name for project in manifest.projects}
    unknown = [str(name) for name in wanted if name not in known]
    if unknown or not wanted:
        told = f"no golden project is called {', '.join(unknown)}" if unknown else "no golden project is named"
        raise GoldenError(f"{told}; the manifest has {', '.join(sorted(known))}")
    return tuple(project for project in manifest.projects if project.name in wanted)


def _check_trajectories(batch: Batch) -> Sequence[Mapping[str, Any]]:
    trajectories = list(batch.trajectories or ())
    if not trajectories:
        raise GoldenError("the evaluation has no trajectories: call `evaluate(..., capture_traces=True)`")
    with suppress(AttributeError):
        if all(trajectory.keys() >= _RECORD_KEYS for trajectory in trajectories):
            return trajectories
    raise GoldenError("the evaluation's trajectories are none of this adapter's: pass on what `evaluate` gave")
