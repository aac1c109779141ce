"""What the journal gives to a verification, and what a verification leaves there. A store's trouble never changes a verdict."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pytest_golden.errors import GoldenError
from pytest_golden.gate.events import GATE_AGENT
from pytest_golden.gate.surroundings import describe_surroundings
from pytest_golden.gate.verify.private_folder import is_in_private_folder
from pytest_golden.gate.verify.store import (
    list_clean_runs,
    list_ended,
    list_results_of,
    list_verifications,
    mark_regressions,
)
from pytest_golden.redaction import redact
from pytest_golden.regression.comparison import SideRuns, Verdict, tells_nothing
from pytest_golden.regression.model import ReasonKind, ResultStatus
from pytest_golden.storage.documents import digest_document
from pytest_golden.storage.location import parse_location
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from sqlalchemy import Connection

    from pytest_golden.gate.verify.model import Verification
    from pytest_golden.manifest.model import Manifest
    from pytest_golden.regression.model import GoldenProjectResult

VERIFY_TYPE = "verify"
_KINDS = {Verdict.NEW_REGRESSION: "new", Verdict.KNOWN: "known"}
_PATIENCE_SECONDS = 5.0
_ENTRY = "pytest_golden.gate.verify.entry"


@dataclass(frozen=True, slots=True)
class BaseKey:
    """What must be equal for recorded results of a base to stand for new ones. `manifest` is its path in the checkout."""

    commit: str
    manifest: str
    environment: str
    setup: tuple[str, ...] | None

    def to_dict(self) -> dict[str, Any]:
        """Give it as a verification's entry holds it."""
        setup = None if self.setup is None else list(self.setup)
        return {"commit": self.commit, "manifest": self.manifest, "environment": self.environment, "setup": setup}


@dataclass(frozen=True, slots=True)
class RunIds:
    """The gate runs that a verification made: the head's, and those of the base that may stand for later ones."""

    head: tuple[str, ...] = ()
    base: tuple[str, ...] = ()


class VerificationRecord:
    """The store of the head's workspace, as far as a verification needs it; `location` is None for none."""

    def __init__(self, location: str | Path | None, warn: Callable[[str], None]) -> None:
        self._location = location
        self._warn = warn

    def find_base(self, key: BaseKey, names: Iterable[str]) -> dict[str, SideRuns] | None:
        """Give what recorded runs tell of each of the base's projects; None unless they tell of every one."""
        if self._location is None or not _is_there(self._location):
            return None
        try:
            with Store.open(self._location, busy_seconds=_PATIENCE_SECONDS) as store, store.read() as connection:
                results = list_results_of(connection, _list_runs(connection, key))
        except (GoldenError, OSError) as error:
            self._warn(f"earlier runs of the base cannot be asked: {error}")
            return None
        runs = _fold(results)
        return {name: runs[name] for name in names} if all(name in runs for name in names) else None

    def keep(self, verification: Verification, key: BaseKey, runs: RunIds) -> None:
        """Mark the head's failures as new or known, and leave an entry of the verification."""
        if self._location is None:
            return
        kinds = {one.runs.name: _KINDS[one.verdict] for one in verification.comparisons if one.verdict in _KINDS}
        try:
            with Store.open(self._location, busy_seconds=_PATIENCE_SECONDS) as store:
                if runs.head and kinds:
                    with store.write() as connection:
                        mark_regressions(connection, runs.head, kinds)
                import_module(_ENTRY).leave_entry(store, verification, key, runs)
        except (GoldenError, OSError, ValueError) as error:
            self._warn(f"this verification is not recorded: {error}")


def digest_environment(manifest: Manifest, workspace_root: Path, folder: Path) -> str:
    """Give the digest that a gate in this environment, begun in a folder, records with a manifest's projects."""
    surroundings = describe_surroundings(manifest.projects, workspace_root, search_path=[str(folder), *sys.path[1:]])
    return digest_document(surroundings)


def _is_there(location: str | Path) -> bool:
    place = parse_location(location)
    return place.is_on_server or (place.path is not None and place.path.is_file())


def _list_runs(connection: Connection, key: BaseKey) -> list[str]:
    clean = list_clean_runs(connection, key.commit, key.environment)
    # A gate names its manifest from pytest's rootdir, which need not be the checkout's root.
    fits = [run for run in clean if f"/{key.manifest}".endswith(f"/{run.manifest}")]
    # A worktree may have lacked something: its verification says whether its runs may stand for later ones.
    recorded = [run.run_id for run in fits if not is_in_private_folder(run.workspace_root)]
    noted = list_verifications(connection, GATE_AGENT, VERIFY_TYPE)
    wanted = redact(key.to_dict())
    ours = [run for note in noted if note.get("base") == wanted for run in note.get("base_runs", ())]
    return list(dict.fromkeys([*recorded, *list_ended(connection, ours)]))


def _fold(results: Iterable[GoldenProjectResult]) -> dict[str, SideRuns]:
    """Count the results, which come newest first; one that tells nothing stands only where there is no other."""
    runs: dict[str, SideRuns] = {}
    for result in results:
        if any(reason.kind == ReasonKind.INTERRUPTED for reason in result.reasons):
            continue
        present = runs.get(result.name)
        if present is None or not _says_something(present.result):
            runs[result.name] = SideRuns.begin(result)
        elif _says_something(result):
            runs[result.name] = present.count(result.status)
    return runs


def _says_something(result: GoldenProjectResult | None) -> bool:
    return result is not None and result.status is not ResultStatus.SKIPPED and not tells_nothing(result)
