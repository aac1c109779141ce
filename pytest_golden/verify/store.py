"""Read recorded results of the base from the store, and record a verification there.

A store that cannot be used never changes a verdict: the trouble is reported and the verification goes on.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, func, or_, select, update

from pytest_golden.errors import GoldenError
from pytest_golden.gate import state_folder
from pytest_golden.gate.events import GATE_AGENT, Spool
from pytest_golden.history.run_environment import describe_surroundings
from pytest_golden.journal.model import ImmediateResult
from pytest_golden.redaction.redactor import redact
from pytest_golden.regression.comparison import SideRuns, Verdict, tells_nothing
from pytest_golden.regression.model import GoldenProjectResult, ResultStatus
from pytest_golden.regression.verdict import RunStatus
from pytest_golden.storage.folder import flush, make_folder
from pytest_golden.storage.location import parse_location
from pytest_golden.storage.schema import entries, gate_results, gate_runs
from pytest_golden.storage.shared_documents import digest_document, is_own_run, read_document
from pytest_golden.storage.store import Store
from pytest_golden.verify.base_worktree import is_in_private_folder
from pytest_golden.verify.failures import identify_failure

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from sqlalchemy import Connection

    from pytest_golden.manifest.model import GoldenProjectConfig, Manifest
    from pytest_golden.verify.model import BaseKey, Verification

VERIFY_TYPE = "verify"
_REGRESSION_KINDS = {Verdict.NEW_REGRESSION: "new", Verdict.KNOWN: "known"}
_BUSY_SECONDS = 5.0
_MOST_RUNS_LOOKED_AT = 2_000
_MOST_RUNS = 50
_MOST_VERIFICATIONS = 50
_MOST_RECORDED = 200
_INTERRUPTED = RunStatus.INTERRUPTED.value
_FAILED = frozenset({"FAILED", "ERROR"})


class VerificationRecord:
    """The part of the head's store that a verification needs; `location` is None where there is no store."""

    def __init__(self, location: str | Path | None, warn: Callable[[str], None]) -> None:
        self._location = location
        self._warn = warn

    def find_base(self, key: BaseKey, names: Iterable[str]) -> dict[str, SideRuns] | None:
        """Return the recorded runs of each of the base's projects; None unless every project has some."""
        if self._location is None or not parse_location(self._location).is_there:
            return None
        try:
            with Store.open(self._location, busy_seconds=_BUSY_SECONDS) as store, store.read() as connection:
                results = list_results_of(connection, _list_runs(connection, key))
        except (GoldenError, OSError) as error:
            self._warn(f"earlier runs of the base cannot be asked: {error}")
            return None
        runs = _fold(results)
        return {name: runs[name] for name in names} if all(name in runs for name in names) else None

    def keep(
        self, verification: Verification, key: BaseKey | None, head_runs: Sequence[str], base_runs: Sequence[str] = ()
    ) -> None:
        """Mark the head's failures as new or known, and record the verification; `key` is None without a base.

        `head_runs` and `base_runs` are the gate runs that were made for it, of the base those that may be reused.
        """
        if self._location is None:
            return
        kinds = {
            one.runs.name: _REGRESSION_KINDS[one.verdict]
            for one in verification.comparisons
            if one.verdict in _REGRESSION_KINDS
        }
        try:
            with Store.open(self._location, busy_seconds=_BUSY_SECONDS) as store:
                if head_runs and kinds:
                    with store.write() as connection:
                        mark_regressions(connection, head_runs, kinds)
                leave_entry(store, verification, key, head_runs, base_runs)
        except (GoldenError, OSError, ValueError) as error:
            self._warn(f"this verification is not recorded: {error}")


def _list_runs(connection: Connection, key: BaseKey) -> list[str]:
    clean = list_clean_runs(connection, key.commit, key.environment)
    # A gate names its manifest from pytest's rootdir, which need not be the checkout's root.
    fits = [run for run in clean if f"/{key.manifest}".endswith(f"/{run.manifest}")]
    # A worktree may have lacked something: the verification's entry tells whether its runs may be reused.
    recorded = [run.entry_id for run in fits if not is_in_private_folder(run.workspace_root)]
    noted = list_verifications(connection)
    wanted = redact(key.to_dict())
    ours = [run for note in noted if note.get("base") == wanted for run in note.get("base_runs", ())]
    return list(dict.fromkeys([*recorded, *list_ended(connection, ours)]))


def _fold(results: Iterable[GoldenProjectResult]) -> dict[str, SideRuns]:
    """Count the results of each project, newest first; one that says nothing counts only if there is no other."""
    runs: dict[str, SideRuns] = {}
    for result in results:
        if result.is_interrupted:
            continue
        present = runs.get(result.name)
        if present is None or not _says_something(present.result):
            runs[result.name] = SideRuns.begin(result, identify_failure(result))
        elif _says_something(result):
            runs[result.name] = present.count(result.status, identify_failure(result))
    return runs


def _says_something(result: GoldenProjectResult | None) -> bool:
    return result is not None and result.status is not ResultStatus.SKIPPED and not tells_nothing(result)


def leave_entry(
    store: Store,
    verification: Verification,
    key: BaseKey | None,
    head_runs: Sequence[str],
    base_runs: Sequence[str],
) -> None:
    """Write a journal entry with what was found and the runs that were made for it.

    Raises:
        GoldenError: the store does not take it.
    """
    # Imported while pipelines run, since only the end needs it.
    from pytest_golden.journal.service import Journal

    journal = Journal(store)
    base, head = verification.base, verification.head
    shown = (head.commit or "no commit")[:12] + (" with edits" if head.dirty else "")
    entry = journal.log_intent(
        f"verify {shown} against {base.ref} ({(base.commit or 'no commit')[:12]})",
        VERIFY_TYPE,
        agent_id=GATE_AGENT,
        session_key=head_runs[0] if head_runs else None,
    )
    note: Mapping[str, Any] = {
        "base": None if key is None else key.to_dict(),
        "base_runs": list(base_runs),
        "head_runs": list(head_runs),
        "verdicts": {one.runs.name: str(one.verdict) for one in verification.comparisons},
        "weakened_floor": [dict(one) for one in verification.weakened_floor],
        "exit_code": verification.exit_code,
    }
    result = ImmediateResult.FAILURE if verification.exit_code else ImmediateResult.SUCCESS
    told = _summarize(verification)
    journal.log_outcome(entry.id, result, redact(told), actions=[redact(note)], agent_id=GATE_AGENT)


def _summarize(verification: Verification) -> str:
    if not verification.base.available and not verification.is_first:
        return f"base unavailable: {verification.base.reason}"
    counts = {verdict: sum(one.verdict is verdict for one in verification.comparisons) for verdict in Verdict}
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count) or "no project"
    return f"{told}, floor weakened" if verification.weakened_floor else told


def digest_environment(manifest: Manifest, workspace_root: Path, folder: Path) -> str:
    """Return the digest of the environment that a gate started in `folder` records for a manifest's projects."""
    environment = describe_surroundings(manifest.projects, workspace_root, search_path=[str(folder), *sys.path[1:]])
    return digest_document(environment)


def keep_spooled(
    worktree_root: Path, store: str | None, workspace_root: Path, run_ids: Collection[str] | None = None
) -> str | None:
    """Move results that wait in a worktree's spool to the workspace's, from which its next gate records them.

    Return what is lost if that fails, else None. `worktree_root` is the workspace root in the worktree; `store` is the
    workspace's given store, None if none was given. With `run_ids` only the files of these gates are moved: a proposal may bring files of its own.
    """
    try:
        state = state_folder.prepare_state_folder(workspace_root)
        place = state_folder.find_store_place(store, state)
        if place is not None:
            there = state_folder.find_state_folder(worktree_root)
            waiting = Spool(
                state_folder.find_spool_folder(state_folder.StorePlace(place.location, is_own=False), there)
            ).files()
            _move_to_spool(
                [path for path in waiting if run_ids is None or path.stem in run_ids],
                state_folder.find_spool_folder(place, state),
            )
    except (GoldenError, OSError) as error:
        return f"results of a gate in a worktree that the store did not accept are not recorded: {error}"
    return None


def _move_to_spool(files: Iterable[Path], folder: Path) -> None:
    for path in files:
        make_folder(folder)
        # A reader removes each file after reading it, so it must appear complete and be on the disk.
        part = folder / f".{path.name}.part"
        shutil.copyfile(path, part, follow_symlinks=False)
        flush(part)
        part.replace(folder / path.name)
        path.unlink()


def list_clean_runs(connection: Connection, commit: str, environment_digest: str) -> Sequence[Any]:
    """Return the newest runs that ended on a commit without edits, in this environment; newest first."""
    oldest = select(func.max(gate_runs.c.number) - _MOST_RUNS_LOOKED_AT).scalar_subquery()
    return connection.execute(
        select(gate_runs.c.entry_id, gate_runs.c.manifest, gate_runs.c.workspace_root)
        .where(gate_runs.c.number > oldest, gate_runs.c.commit == commit, gate_runs.c.dirty.is_(False))
        .where(gate_runs.c.environment_digest == environment_digest, _has_ended())
        .order_by(gate_runs.c.number.desc())
        .limit(_MOST_RUNS)
    ).all()


def list_ended(connection: Connection, run_ids: Iterable[str]) -> tuple[str, ...]:
    """Return those of these runs that ended and were not interrupted."""
    of_runs = gate_runs.c.entry_id.in_(list(run_ids))
    return tuple(connection.scalars(select(gate_runs.c.entry_id).where(of_runs, _has_ended())))


def list_verifications(connection: Connection) -> tuple[Mapping[str, Any], ...]:
    """Return the notes of the newest verifications, newest first."""
    rows = connection.scalars(
        select(entries.c.actions)
        .where(entries.c.agent_id == GATE_AGENT, entries.c.intent_type == VERIFY_TYPE)
        .order_by(entries.c.number.desc())
        .limit(_MOST_VERIFICATIONS)
    )
    return tuple(action for actions in rows for action in actions or () if isinstance(action, dict))


def list_results_of(connection: Connection, run_ids: Iterable[str]) -> tuple[GoldenProjectResult, ...]:
    """Return the results of these runs, newest first. Failed results include their steps, so that failures can be compared.

    A failed result whose steps have been removed is left out.
    """
    rows = connection.scalars(
        select(gate_results.c.result)
        .where(gate_results.c.run_id.in_(list(run_ids)))
        .order_by(gate_results.c.number.desc())
    ).all()
    whole = (_add_steps(connection, plain) for plain in rows)
    return tuple(GoldenProjectResult.from_dict(plain) for plain in whole if plain is not None)


def list_recorded(
    connection: Connection, project: GoldenProjectConfig, environment_digest: str
) -> dict[str, GoldenProjectResult]:
    """Return a project's newest results by commit: of people's own runs, without edits, declared as it is now, in this environment.

    Which baselines a commit had is not looked at.
    """
    # Only a search asks for this, and it loads what reads trajectories.
    from pytest_golden.history.changes import compare_declarations

    rows = connection.execute(
        select(gate_results.c.result, gate_results.c.declaration_digest, gate_runs.c.commit)
        .join(gate_runs, gate_runs.c.entry_id == gate_results.c.run_id)
        .where(gate_results.c.project == project.name, gate_results.c.is_narrowed.is_(False), is_own_run())
        .where(gate_runs.c.dirty.is_(False), gate_runs.c.environment_digest == environment_digest, _has_ended())
        .order_by(gate_results.c.number.desc())
        .limit(_MOST_RECORDED)
    ).all()
    now = project.to_dict()
    digests = {row.declaration_digest for row in rows}
    same = {one for one in digests if not compare_declarations(read_document(connection, one) or {}, now)}
    found: dict[str, GoldenProjectResult] = {}
    for row in rows:
        whole = _add_steps(connection, row.result) if row.declaration_digest in same else None
        result = None if whole is None else GoldenProjectResult.from_dict(whole)
        if result is not None and result.accepted is None and not result.is_interrupted and _says_something(result):
            # A failure is one, whatever a gate made of it then.
            found.setdefault(row.commit, replace(result, quarantined=None))
    return found


def mark_regressions(connection: Connection, run_ids: Iterable[str], kinds: Mapping[str, str]) -> None:
    """Note on the failures of these runs whether each is new or known, by project."""
    rows = connection.execute(
        select(gate_results.c.number, gate_results.c.project, gate_results.c.result)
        .where(gate_results.c.run_id.in_(list(run_ids)), gate_results.c.project.in_(list(kinds)))
        .where(or_(gate_results.c.is_regression, gate_results.c.status.in_(["FAILED", "ERROR"])))
    ).all()
    for row in rows:
        kind = kinds[row.project]
        connection.execute(
            update(gate_results)
            .where(gate_results.c.number == row.number)
            .values(regression_kind=kind, result={**row.result, "regression_kind": kind})
        )


def _add_steps(connection: Connection, plain: Mapping[str, Any]) -> Mapping[str, Any] | None:
    if plain["status"] not in _FAILED or not plain.get("steps_total"):
        return plain
    # Imported here: a base that passed does not need it.
    from pytest_golden.trajectory.store import find_dict_form

    kept = find_dict_form(connection, plain["trajectory_id"])
    return None if kept is None else {**plain, "steps": kept["steps"]}


def _has_ended() -> Any:
    return and_(gate_runs.c.finished_at.is_not(None), gate_runs.c.final_status != _INTERRUPTED)
