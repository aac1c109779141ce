"""A cycle's state on the disk: one file, replaced whole after every step, so that a killed cycle can be resumed.

It is a file and not in the store: the cycle is its only writer, it must be written while the store is locked or damaged, and
a state that every step overwrites is no history.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from pytest_golden.cycle.model import CycleState, CycleStep
from pytest_golden.cycle.rules import Round
from pytest_golden.errors import GoldenError
from pytest_golden.gate.state_folder import find_state_folder, prepare_state_folder
from pytest_golden.redaction.redactor import redact
from pytest_golden.storage.folder import flush, replace_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_VERSION = 1
_FOLDER = "cycles"
_ID_FORM = re.compile(r"cycle_[0-9A-HJKMNP-TV-Z]{26}")
_MOST_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Walk:
    """How far a cycle has come: its state, the step that is next or running, and what the rules must remember.

    `failure` says what went wrong. `seen` are fingerprints of earlier proposals. `notes` are those of whoever runs the
    cycle, handed back when it is taken up again.
    """

    state: CycleState
    position: CycleStep | None = CycleStep.ENV_VALIDATION
    present: Round = field(default_factory=Round)
    failure: str | None = None
    seen: tuple[str, ...] = ()
    elapsed_seconds: float = 0.0
    entry_id: str | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)


class CycleFile:
    """The file of one cycle."""

    def __init__(self, project_root: Path, cycle_id: str, *, makes: bool = False) -> None:
        if _ID_FORM.fullmatch(cycle_id) is None:
            raise GoldenError(f"{cycle_id!r:.100} is no cycle's id: it is `cycle_` and 26 letters and digits")
        folder = _find_folder(project_root, makes=makes)
        self.path = folder / f"{cycle_id}.json"
        self.cycle_id = cycle_id
        self._lock_path = folder / f"{cycle_id}.lock"

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the cycle in a with-block, so that no other process walks it.

        Raises:
            GoldenError: another process holds it.
        """
        lock = FileLock(self._lock_path)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise GoldenError(f"{self.cycle_id} is being walked by another process: wait for its end") from None
        except OSError as error:
            raise GoldenError(f"{self._lock_path} cannot be written: {error.strerror or error}") from None
        try:
            yield
        finally:
            with suppress(OSError):
                self._lock_path.unlink()
            lock.release()

    def write(self, walk: Walk) -> None:
        """Write the walk, redacted; when this returns, it is on the disk.

        Raises:
            GoldenError: it cannot be written.
        """
        body = _write_walk(walk)
        text = json.dumps({"version": _VERSION, "digest": _digest(body), "cycle": body}, ensure_ascii=False, indent=1)
        try:
            with replace_file(self.path) as stream:
                stream.write(text.encode("utf-8", "surrogatepass"))
                stream.flush()
                os.fsync(stream.fileno())
            flush(self.path.parent)
        except OSError as error:
            raise GoldenError(f"{self.path} cannot be written: {error.strerror or error}") from None

    def read(self) -> Walk:
        """Read the walk.

        Raises:
            GoldenError: there is no such cycle, or its file is of another version, damaged or edited by hand.
        """
        try:
            if self.path.stat().st_size > _MOST_BYTES:
                raise GoldenError(f"{self.path} is too large to be a cycle's state")
            plain = json.loads(self.path.read_bytes())
        except FileNotFoundError:
            raise GoldenError(f"there is no cycle {self.cycle_id} in {self.path.parent}") from None
        except OSError as error:
            raise GoldenError(f"{self.path} cannot be read: {error.strerror or error}") from None
        except (ValueError, RecursionError):
            raise GoldenError(_damaged(self.path)) from None
        if not isinstance(plain, dict) or plain.get("version") != _VERSION:
            shown = plain.get("version") if isinstance(plain, dict) else None
            raise GoldenError(
                f"{self.path} is of version {shown!r:.40}, and this program reads {_VERSION}: begin a new cycle"
            )
        with suppress(KeyError, TypeError, ValueError, AttributeError):
            walk = _read_walk(plain["cycle"])
            if plain["digest"] == _digest(plain["cycle"]) and walk.state.cycle_id == self.cycle_id:
                return walk
        raise GoldenError(_damaged(self.path))


def find_unfinished(project_root: Path) -> str:
    """Return the id of the newest cycle that has not ended.

    Raises:
        GoldenError: there is none.
    """
    folder = _find_folder(project_root, makes=False)
    found = (path.stem for path in folder.glob("cycle_*.json") if _ID_FORM.fullmatch(path.stem))
    for cycle_id in sorted(found, reverse=True):
        try:
            walk = CycleFile(project_root, cycle_id).read()
        except GoldenError:
            continue
        if walk.position is not None:
            return cycle_id
    raise GoldenError(f"there is no cycle in {folder} that could be taken up again")


def _find_folder(project_root: Path, *, makes: bool) -> Path:
    if not makes:
        return find_state_folder(project_root) / _FOLDER
    try:
        folder = prepare_state_folder(project_root) / _FOLDER
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise GoldenError(f"the cycle's state cannot be kept: {error}") from None
    return folder


def _damaged(path: Path) -> str:
    return f"{path} is damaged or was edited: it is no state that a cycle has left; begin a new cycle"


def _digest(body: Any) -> str:
    told = json.dumps(body, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()


def _write_walk(walk: Walk) -> Any:
    """Return JSON-safe values without secrets. A proposal that these do not say in full has to be made again."""
    proposal = _plain(walk.state.proposal)
    is_whole = proposal == walk.state.proposal
    return {
        "state": _plain(walk.state.to_dict()),
        "weakened_floor": _plain([dict(one) for one in walk.state.weakened_floor]),
        "position": walk.position,
        "round": dict(walk.present._asdict()),
        "proposal": proposal if is_whole else None,
        "has_whole_proposal": is_whole,
        "failure": walk.failure,
        "seen": list(walk.seen),
        "elapsed_seconds": walk.elapsed_seconds,
        "entry_id": walk.entry_id,
        "notes": _plain(dict(walk.notes)),
    }


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(redact(value), default=repr, ensure_ascii=False))


def _read_walk(plain: Mapping[str, Any]) -> Walk:
    state = CycleState.from_dict(plain["state"])
    position = None if plain["position"] is None else CycleStep(plain["position"])
    present = Round(**plain["round"])
    seen = tuple(map(str, plain["seen"]))
    if present.has_proposal and not plain["has_whole_proposal"] and position is CycleStep.REVIEW:
        # A proposal that was not stored whole cannot be reviewed: it is made again, which is no repetition.
        position, present, seen = CycleStep.IMPROVEMENT, Round(present.number), seen[:-1]
    return Walk(
        state=replace(state, proposal=plain["proposal"], weakened_floor=tuple(plain["weakened_floor"])),
        position=position,
        present=present,
        failure=plain["failure"],
        seen=seen,
        elapsed_seconds=float(plain["elapsed_seconds"]),
        entry_id=plain["entry_id"],
        notes=plain["notes"],
    )
