"""What waits to be accepted: copies of the outputs of the newest red run of each project, and what was found about them.

Each project has a folder below `.golden/waiting`: `waiting.json` and the copies, all private. A folder is written beside
its place and renamed, so that a killed process leaves the earlier one or the new one.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pytest_golden.compare.accepting import exchange
from pytest_golden.errors import BaselineError
from pytest_golden.gateway.scratch import LivingFolder, remove_tree
from pytest_golden.regression.model import OutputChange
from pytest_golden.storage.folder import flush, make_folder, open_regular, replace_file
from pytest_golden.values.shape import Count, Shape, VersionedShape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_golden.compare.baselines import ProjectBaselines
    from pytest_golden.manifest.model import DeclaredOutput

_Kind = TypeVar("_Kind", bound=VersionedShape)
RECORD_NAME = "waiting.json"
#: What an agent proposes to accept, beside the record.
PROPOSAL_NAME = "proposed.json"
#: What to do about anything that waits and is not as it should be.
RUN_AGAIN = "run the gate again"
_DRAFT_PREFIX = ".draft-"
_STAGED = "staged"
#: The name of a copy.
COPY_NAME = re.compile(r"[0-9]{1,9}(?:\.[A-Za-z0-9_]{1,16}){0,2}")
_MOST_RECORD_BYTES = 256 << 20
_MOST_PROPOSAL_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class WaitingOutput(Shape):
    """One output of a red run, or one baseline that would be removed.

    `file` is the name of the copy, None if none is kept. `baseline_sha256` is that of the baseline that it was compared with,
    None if there was none, and `unreadable` if it could not be read. `declared` identifies the entries of the manifest that
    name it. `refused` says why it cannot become a baseline, `allowed` why a secret in it is allowed.
    """

    path: str
    change: OutputChange
    message: str = ""
    file: str | None = None
    sha256: str | None = None
    baseline_sha256: str | None = None
    size_bytes: Count | None = None
    rows: Count | None = None
    columns: Count | None = None
    declared: str = ""
    refused: str | None = None
    allowed: str | None = None


@dataclass(frozen=True, slots=True)
class RunOrigin(Shape):
    """The run that outputs come from. `parents` are those of its commit: a merge that CI made is in no other checkout."""

    at: datetime
    commit: str | None = None
    parents: tuple[str, ...] = ()
    dirty: bool | None = None


@dataclass(frozen=True, slots=True)
class WaitingRun(VersionedShape):
    """What waits of one project. `refused` says why none of it can be accepted, `omitted` counts outputs that are not listed."""

    project: str
    origin: RunOrigin
    outputs: tuple[WaitingOutput, ...] = ()
    refused: str | None = None
    omitted: Count = 0


@dataclass(frozen=True, slots=True)
class Proposal(VersionedShape):
    """What somebody who is not a person proposes to accept of one project, for a person to confirm."""

    reason: str
    at: datetime
    paths: tuple[str, ...] = ()
    who: str = ""


class WaitingFolder:
    """The folder with the waiting outputs of all projects."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def shown(self) -> str:
        """Name it for people."""
        return f"{self.path.parent.name}/{self.path.name}"

    def list_projects(self) -> tuple[str, ...]:
        """Return the names of the projects of which something waits, sorted."""
        try:
            found = [entry.name for entry in os.scandir(self.path) if entry.is_dir(follow_symlinks=False)]
        except OSError:
            return ()
        return tuple(sorted(name for name in found if name[0] != "." and (self.path / name / RECORD_NAME).exists()))

    def read(self, name: str) -> WaitingRun | None:
        """Return the waiting outputs of a project; None if there are none.

        Raises:
            BaselineError: the record cannot be read.
        """
        told = _read_small(self.path / name / RECORD_NAME, _MOST_RECORD_BYTES)
        if told is None:
            return None
        run = _parse(WaitingRun, told, f"the waiting outputs of {name}")
        is_sound = all(_is_below(one.path) and (not one.file or COPY_NAME.fullmatch(one.file)) for one in run.outputs)
        if run.project != name or not is_sound:
            raise BaselineError(
                f"the waiting outputs of {name} cannot be read: their record is not one of this project; {RUN_AGAIN}"
            )
        return run

    def read_proposal(self, name: str) -> Proposal | None:
        """Return the proposal for a project; None if there is none.

        Raises:
            BaselineError: it cannot be read.
        """
        told = _read_small(self.path / name / PROPOSAL_NAME, _MOST_PROPOSAL_BYTES)
        if told is None:
            return None
        proposal = _parse(Proposal, told, f"the proposal for {name}")
        if not proposal.paths:
            raise BaselineError(f"the proposal for {name} names no output; {RUN_AGAIN}")
        return proposal

    def propose(self, name: str, proposal: Proposal) -> None:
        """Leave a proposal, in place of an earlier one; the next run of the project removes it.

        Raises:
            OSError: it cannot be written.
        """
        with replace_file(self.path / name / PROPOSAL_NAME) as stream:
            json.dump(proposal.to_dict(), stream, indent=1)

    def begin(self) -> LivingFolder:
        """Return an empty private folder, to be filled and then given to `put`.

        Raises:
            OSError: nothing can be written here.
        """
        make_folder(self.path.parent)
        self.path.mkdir(mode=0o700, exist_ok=True)
        draft = LivingFolder(self.path, _DRAFT_PREFIX)
        (draft.path / _STAGED).mkdir(mode=0o700)
        return draft

    @staticmethod
    def find_staged(draft: LivingFolder) -> Path:
        """Return where in a draft the copies belong."""
        return draft.path / _STAGED

    def put(self, draft: LivingFolder, run: WaitingRun) -> None:
        """Make a draft the waiting outputs of a project, in place of what waited before.

        Raises:
            OSError: it cannot be written.
        """
        staged, place = self.find_staged(draft), self.path / run.project
        write_record(staged, run)
        if not os.path.lexists(place):
            staged.rename(place)
        elif not exchange(staged, place):
            place.rename(draft.path / "replaced")
            staged.rename(place)
        with suppress(OSError):
            flush(self.path)

    def leave(self, run: WaitingRun) -> None:
        """Leave of a project only what still waits; the copies of other outputs are removed.

        Raises:
            OSError: it cannot be written.
        """
        folder = self.path / run.project
        if not run.outputs:
            self.clear(run.project)
            return
        write_record(folder, run)
        kept = {output.file for output in run.outputs} | {RECORD_NAME}
        for entry in os.scandir(folder):
            if entry.name not in kept:
                Path(entry.path).unlink()

    def clear(self, name: str) -> None:
        """Let nothing of a project wait any more.

        Raises:
            OSError: it cannot be removed.
        """
        folder = self.path / name
        if not os.path.lexists(folder):
            return
        gone = self.path / f"{_DRAFT_PREFIX}{os.urandom(8).hex()}"
        # Renamed first, so that no half of it is ever listed.
        folder.rename(gone)
        remove_tree(gone)


def write_record(folder: Path, run: WaitingRun) -> None:
    """Write the record of what waits into a folder.

    Raises:
        OSError: it cannot be written.
    """
    with replace_file(folder / RECORD_NAME) as stream:
        json.dump(run.to_dict(), stream, indent=1)


def _is_below(path: str) -> bool:
    """Tell whether a path stays in the folder that it is relative to: a record may come from elsewhere."""
    return "\0" not in path and not any(part in {"", ".", ".."} for part in path.split("/"))


def _parse(kind: type[_Kind], told: bytes, named: str) -> _Kind:
    try:
        return kind.from_dict(json.loads(told))
    except (ValueError, RecursionError, TypeError) as error:
        raise BaselineError(f"{named} cannot be read: {error}; {RUN_AGAIN}") from None


def _read_small(path: Path, most_bytes: int) -> bytes | None:
    try:
        with open_regular(path) as stream:
            told = stream.read(most_bytes + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise BaselineError(f"{path} cannot be read: {error.strerror or error}") from None
    if len(told) > most_bytes:
        raise BaselineError(f"{path} cannot be read: it is larger than any that the gate writes")
    return told


def digest_entries(entries: Sequence[DeclaredOutput]) -> str:
    """Return what identifies the entries of a manifest that name an output: another rule, another text."""
    told = json.dumps([entry.to_dict() for entry in entries], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()


def digest_file(path: Path) -> str:
    """Return the SHA-256 of a file.

    Raises:
        OSError: it cannot be read, or is a symbolic link.
    """
    with open_regular(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def digest_baseline(baselines: ProjectBaselines, path: str) -> str | None:
    """Return the SHA-256 of a baseline, None if there is none, `unreadable` if it cannot be read."""
    try:
        place = baselines.find(path)
        return None if place is None else digest_file(place)
    except OSError:
        return "unreadable"
