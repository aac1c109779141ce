"""`GoldenAdapter`: lets `gepa.optimize` improve texts of golden projects, judged as the gate judges them.

GEPA ignores errors between two evaluations and continues until its budget is spent. So everything that can be checked in advance is
checked when the adapter is made. Every other error is raised by the next `evaluate`, because GEPA raises its errors.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self, cast

from pytest_golden.compare.baselines import find_baselines_folder
from pytest_golden.compare.examination import BaselineKeeper
from pytest_golden.errors import GoldenError, StorageError
from pytest_golden.gate.service import RegressionGuard
from pytest_golden.gateway.content import find_regular_file
from pytest_golden.gateway.resolution import ProjectUnusableError, resolve_project
from pytest_golden.gateway.service import ExecutionGateway
from pytest_golden.gateway.write_set import take_fingerprint
from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.learning.training import check_names, find_known, join_lines, make_record
from pytest_golden.manifest.model import GoldenProjectConfig, Manifest
from pytest_golden.manifest.reader import load_manifest
from pytest_golden.redaction.redactor import redact
from pytest_golden.regression.model import (
    MACHINE_KINDS,
    START_KINDS,
    GoldenProjectResult,
    Reason,
    ReasonKind,
    ResultStatus,
    result_without_run,
)
from pytest_golden.regression.wording import is_note_of_harness, says_it_failed
from pytest_golden.storage.location import list_sqlite_files

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from gepa.core.adapter import EvaluationBatch, ProposalFn

    from pytest_golden.gateway.model import Gateway
    from pytest_golden.gateway.resolution import ResolvedProject
    from pytest_golden.storage.store import Store

    Batch = EvaluationBatch[dict[str, Any], dict[str, Any]]

PERFECT = 1.0
_ENDED_AS_DECLARED, _MOST_BY_STEPS, _FAILED = 0.75, 0.5, 0.1
# The pipeline itself did not end as declared.
_BY_ENDING = frozenset({ReasonKind.EXIT_CODE, ReasonKind.UNEXPECTED_SUCCESS, ReasonKind.PATTERN_ABSENT})
# No text of a project can cause these, so they say nothing about a candidate.
_NOT_BY_TEXT = MACHINE_KINDS | START_KINDS | {ReasonKind.PATH_NOT_ALLOWED, ReasonKind.SKIP_IF_MISSING}
_MOST_STEPS, _MOST_FILES, _MOST_BYTES_OF_TEXT = 100, 50, 1 << 20
_log = logging.getLogger(__name__)
_RECORD_KEYS = frozenset({"project", "task", "verdict", "reasons", "steps"})


class GoldenAdapter:
    """Golden projects as GEPA's data set, and some of their files as the texts that it improves.

    A candidate is only put into the copy-on-write views of its runs. A run is judged by the gate's rules,
    including retries; projects that it `needs` are not run again. Nothing is recorded. Use it as a `with` block, or call `close`.

    Args:
        manifest: a manifest, or the path of one.
        components: for each name, the path of a file in the project's folder. Every project has all of them, and if projects have different
            folders, the texts are equal.
        projects: the names of the golden projects to use; all by default.
        view: `auto`, `overlay` or `copy`, as for the gate.
        store: a store to look up what earlier runs know of a failure, for the reflection; none by default.

    Raises:
        GoldenError: GEPA could not improve anything with these arguments; the message says why, and what to do.
    """

    #: A subclass may override it to propose texts instead of GEPA's reflection. GEPA reads the attribute even if it is None.
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
        """Remove all scratch folders. Calling it twice is safe, and a later evaluation makes its own."""
        with self._lock:
            if self._closing is not None:
                self._closing()
            self._gateway = self._closing = None

    def seed_candidate(self) -> dict[str, str]:
        """Return the texts by name, as they were when the adapter was made."""
        return dict(self._components.texts)

    def projects(self) -> list[GoldenProjectConfig]:
        """Return the golden projects in the order of the manifest: a data set for `trainset` and `valset`."""
        return list(self._projects.values())

    def evaluate(
        self, batch: Sequence[GoldenProjectConfig], candidate: Mapping[str, str], capture_traces: bool = False
    ) -> Batch:
        """Run each project with the candidate's texts and judge it: 1.0 for PASSED, less for anything else.

        GEPA repeats projects to fill a batch; each one is run and counted once.

        Raises:
            GoldenError: the batch is empty or holds something else than projects of this adapter, the candidate lacks a component, a
                component's file is gone, or a reflective dataset could not be made since the last call.
            KeyboardInterrupt: a person stopped a run.
        """
        trouble, self._trouble = self._trouble, None
        if trouble is not None:
            raise GoldenError(f"no reflective dataset could be made after the last evaluation: {trouble}") from trouble
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
        """Return the records of a batch for each of these components: one per project, the worst result first.

        Raises:
            GoldenError: there are no trajectories, or a component is unknown. GEPA only logs this error, so the next call of
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
            raise GoldenError(f"{named} is not a golden project of this adapter; take them from `adapter.projects()`")
        return project

    def _run(self, project: GoldenProjectConfig, candidate: Mapping[str, str]) -> GoldenProjectResult:
        try:
            stand_ins = self._components.stand_ins(project, candidate)
        except UnicodeEncodeError as error:
            # Only this candidate is wrong; the search goes on.
            reason = Reason("text_unwritable", f"the text cannot be written as UTF-8: {error.reason}")
            return result_without_run(project, ResultStatus.ERROR, reason)
        gateway = self._open()
        run = partial(gateway.run_pipeline, stand_ins=stand_ins)
        candidate_gateway = cast("Gateway", SimpleNamespace(run_pipeline=run, redact=gateway.redact))
        result = RegressionGuard(candidate_gateway, baselines=self._baselines).check_one(project, {})
        if result.is_interrupted:
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
            hidden = () if self._store is None else list_sqlite_files(self._store.path)
            self._gateway = ExecutionGateway(self._root, view=self._view, hidden=hidden)
            # Even an adapter that is never closed leaves no process behind.
            self._closing = weakref.finalize(self, self._gateway.close)
        return self._gateway


def _load_batch_type() -> type[Batch]:
    try:
        from gepa.core.adapter import EvaluationBatch
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
    raise GoldenError("the evaluation's trajectories are none of this adapter's: pass on what `evaluate` returned")


def make_output(result: GoldenProjectResult) -> dict[str, Any]:
    """Return the output of a run, small enough to keep for every candidate."""
    return redact(
        {
            "project": result.name,
            "status": str(result.status),
            "exit_code": result.exit_code,
            "error_message": result.error_message,
            "output_summary": result.output_summary,
            "execution_time_seconds": result.execution_time_seconds,
            "written": [*result.write_set.created, *result.write_set.changed][:_MOST_FILES],
            "removed": list(result.write_set.removed[:_MOST_FILES]),
        }
    )


def make_trajectory(project: GoldenProjectConfig, result: GoldenProjectResult, known: str = "") -> dict[str, Any]:
    """Return what a reflection needs to know about a run; `known` is what earlier runs know about its failure."""
    return redact(
        {
            **make_output(result),
            "score": score_result(result),
            "verdict": describe_verdict(result, score_result(result)),
            "reasons": [reason.to_dict() for reason in result.reasons],
            "steps": name_steps(result)[:_MOST_STEPS],
            "step_errors": find_step_errors(result)[-_MOST_STEPS:],
            "known": known,
            "task": {
                "golden project": project.display_title,
                "description": project.description,
                "pipeline": str(project.path),
                "expected outcome": project.expected_outcome,
            },
        }
    )


def reflect_on(trajectory: Mapping[str, Any], component: str, path: str) -> dict[str, Any]:
    """Return the record of a run for one of its texts."""
    inputs = {"component": component, "file": path, **trajectory["task"]}
    outputs = {
        "steps": " → ".join(trajectory["steps"]),
        "files written": join_lines(trajectory["written"]),
        "output": trajectory["output_summary"],
    }
    findings = {
        "reasons": join_lines(reason["message"] for reason in trajectory["reasons"]),
        "failed steps": join_lines(trajectory["step_errors"]),
        "known of this failure": trajectory["known"],
    }
    return make_record(inputs, outputs, trajectory["verdict"], findings)


def score_result(result: GoldenProjectResult) -> float:
    """Return the score of a result for an optimiser.

    | result | score |
    |---|---|
    | PASSED | 1.0 |
    | FAILED, though the pipeline itself ended as declared | 0.75 |
    | FAILED otherwise | 0.1, and up to 0.5 by the share of its steps that have no error |
    | ERROR, SKIPPED | 0.0 |
    """
    if result.status is ResultStatus.PASSED:
        return PERFECT
    if result.status is not ResultStatus.FAILED:
        return 0.0
    if not result.has_reason(_BY_ENDING):
        return _ENDED_AS_DECLARED
    steps = _list_steps(result)
    done = sum(not says_it_failed(step) for step in steps)
    return _FAILED + (_MOST_BY_STEPS - _FAILED) * (done / len(steps) if steps else 0.0)


def is_not_by_text(result: GoldenProjectResult) -> bool:
    """Tell whether a project did not pass for a reason that no candidate can cause or remove."""
    return result.has_reason(_NOT_BY_TEXT)


def describe_verdict(result: GoldenProjectResult, score: float) -> str:
    """Say in our own words what the result means for the text."""
    if result.status is ResultStatus.PASSED:
        return "PASSED, score 1.0: keep what makes it pass."
    blame = "not by this text: the harness could not run it properly" if is_not_by_text(result) else "to be improved"
    return f"{result.status}, score {score:.2f}, {blame}."


def name_steps(result: GoldenProjectResult) -> list[str]:
    """Return the content of each step."""
    return [str(step.get("content", "?")) for step in _list_steps(result)]


def find_step_errors(result: GoldenProjectResult) -> list[str]:
    """Return each failed step with its error."""
    errors = [(step, (step.get("metadata") or {}).get("error")) for step in result.steps if says_it_failed(step)]
    return [
        f"{step.get('content', '?')}: {'failed' if error is None or error is True else error}" for step, error in errors
    ]


def _list_steps(result: GoldenProjectResult) -> list[Mapping[str, Any]]:
    """Return the steps, without the harness's note that a run left none."""
    return [
        step
        for step in result.steps
        if not is_note_of_harness(step.get("type"), step.get("content"), (step.get("metadata") or {}).get("error"))
    ]


@dataclass(frozen=True, slots=True)
class Components:
    """All components: their declared paths, their current texts, and their locations in each project.

    `places` has, for each project, its folder and the path of each component below it, with links resolved.
    """

    declared: Mapping[str, str]
    texts: Mapping[str, str]
    places: Mapping[str, tuple[Path, Mapping[str, str]]]

    def check_candidate(self, candidate: object) -> Mapping[str, str]:
        """Return the candidate's texts.

        Raises:
            GoldenError: the candidate is not a mapping, lacks a component, has an unknown one, or one that is not a string.
        """
        if not isinstance(candidate, Mapping):
            raise GoldenError(f"a candidate must be a mapping of names to texts, not {candidate!r:.100}")
        missing = [name for name in self.declared if name not in candidate]
        unknown = [str(name) for name in candidate if name not in self.declared]
        if missing or unknown:
            wrong = f"lacks {', '.join(missing)}" if missing else f"has {', '.join(unknown)}, which is not a component"
            raise GoldenError(f"the candidate {wrong}; start from `adapter.seed_candidate()`")
        for name, text in candidate.items():
            if not isinstance(text, str):
                raise GoldenError(f"the candidate's {name} must be text, not {text!r:.100}")
        return candidate

    def stand_ins(self, project: GoldenProjectConfig, candidate: Mapping[str, str]) -> dict[str, bytes]:
        """Return the candidate's texts by the paths of the files that they replace.

        Raises:
            GoldenError: a file was removed after the adapter was made.
            UnicodeEncodeError: a text cannot be written to a file.
        """
        folder, paths = self.places[project.name]
        for name, path in paths.items():
            if find_regular_file(str(folder), path) is None:
                raise GoldenError(f"component {name}: {folder / path} is gone; put it back, or leave it out")
        return {path: candidate[name].encode() for name, path in paths.items()}


def find_components(
    declared: object,
    projects: Iterable[GoldenProjectConfig],
    workspace_root: Path,
    redact_for: Callable[[GoldenProjectConfig, str], str],
) -> Components:
    """Find each component in each project's folder and read it.

    Refuses everything that would make GEPA work without any effect: a text that no pipeline would see, that
    differs between projects, or that must not be sent to a model.

    Raises:
        GoldenError: a component is missing, is outside the folder, is not visible to a pipeline, is not text, differs, or holds a secret.
    """
    paths = _check_paths(declared)
    places: dict[str, tuple[Path, Mapping[str, str]]] = {}
    texts: dict[str, tuple[str, Path]] = {}
    for project in projects:
        try:
            resolved = resolve_project(project, workspace_root)
        except ProjectUnusableError as error:
            raise GoldenError(f"golden project {project.name}: {error}") from error
        seen = take_fingerprint(str(resolved.project_dir)).marks.keys()
        found = {name: _find(resolved, name, path, seen) for name, path in paths.items()}
        if len(set(found.values())) < len(found):
            raise GoldenError(f"two components are one file in {resolved.project_dir}: {', '.join(paths.values())}")
        places[project.name] = resolved.project_dir, found
        for name, path in found.items():
            file = resolved.project_dir / path
            text = _read(file, name)
            if redact_for(project, text) != text:
                raise GoldenError(
                    f"component {name}: {file} holds a secret, and GEPA sends the text to a model;"
                    " move it into a variable of `pass_env` or `set_env`"
                )
            known, where = texts.setdefault(name, (text, file))
            if known != text:
                raise GoldenError(
                    f"component {name}: {where} and {file} differ, and a candidate has one text for both;"
                    " make them equal, or give `projects=` those that share it"
                )
    return Components(paths, {name: text for name, (text, _) in texts.items()}, places)


def _check_paths(declared: object) -> dict[str, str]:
    names = check_names(declared)
    if not isinstance(declared, Mapping):
        raise GoldenError("components must be a mapping of names to paths in the project's folder")
    for name in names:
        path = declared[name]
        if not isinstance(path, (str, PurePath)) or not str(path).strip() or "\0" in str(path):
            raise GoldenError(f"component {name}: {path!r:.100} is not a path of a file in the project's folder")
    return {name: str(declared[name]) for name in names}


def _find(project: ResolvedProject, name: str, path: str, seen: Collection[str]) -> str:
    folder = project.project_dir
    of = f"of golden project {project.config.name}"
    try:
        real = Path(os.path.realpath(folder / path, strict=True))
    except OSError as error:
        raise GoldenError(
            f"component {name}: {path} is not in {folder}, the folder {of} ({error.strerror or error});"
            " give a path relative to that folder"
        ) from error
    if not real.is_relative_to(folder):
        raise GoldenError(f"component {name}: {path} leads to {real}, outside {folder}, the folder {of}")
    relative = real.relative_to(folder).as_posix()
    if find_regular_file(str(folder), relative) is None:
        raise GoldenError(f"component {name}: {real} is not a regular file")
    mounted = any(real.is_relative_to(mount.path) for mount in project.mounts)
    if relative not in seen or mounted:
        why = "`mounts:` puts the original there" if mounted else "it lies in a cache, a virtual environment or .git"
        raise GoldenError(f"component {name}: the pipeline {of} would not see another {relative}, since {why}")
    return relative


def _read(file: Path, name: str) -> str:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise GoldenError(f"component {name}: {file} cannot be read: {error.strerror or error}") from error
    if len(content) > _MOST_BYTES_OF_TEXT:
        raise GoldenError(f"component {name}: {file} has {len(content):,} bytes; a text of 1 MiB is the longest")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise GoldenError(f"component {name}: {file} is not UTF-8 text: {error.reason} at {error.start}") from error
