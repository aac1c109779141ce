"""What `golden doctor` finds of the store: where it is, whether it can be used, and what waits to be taken in."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pytest_golden.cli.findings import Finding, State
from pytest_golden.errors import GoldenError
from pytest_golden.gate.lock import find_state_folder
from pytest_golden.gate.spool import Spool
from pytest_golden.gate.store_place import find_spool_folder, find_store_place
from pytest_golden.regression.wording import format_size
from pytest_golden.storage.file_system import find_type, keeps_shared_memory
from pytest_golden.storage.files import refuse_foreign
from pytest_golden.storage.location import parse_location
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_ELSEWHERE = "give another file by --golden-store or GOLDEN_STORE_URL"


def examine_store(said: str | None, workspace_root: Path) -> Iterator[Finding]:
    """Look at the store that gates of this workspace use; `said` is what `--golden-store` and its like say."""
    state_folder = find_state_folder(workspace_root)
    place = find_store_place(said, state_folder)
    if place is None:
        yield Finding("store", State.ABSENT, "off (none): runs are not remembered")
        return
    try:
        shown = parse_location(place.location)
        spool = Spool(find_spool_folder(place, state_folder))
    except GoldenError as error:
        yield Finding("store", State.BAD, str(error), _ELSEWHERE)
        return
    try:
        if shown.path is not None and not place.is_own:
            refuse_foreign(shown.path)
        if shown.is_on_server:
            Store.look_at(place.location)
        yield Finding("store", State.GOOD, shown.shown) if shown.path is None else _examine_file(shown.path)
    except GoldenError as error:
        yield Finding("store", State.LIMITED, f"{error}; results would be kept aside until it works", _ELSEWHERE)
    waiting = len(spool.files())
    if waiting:
        told = f"the results of {waiting} gate run{'' if waiting == 1 else 's'} wait to be taken in"
        yield Finding("spool", State.LIMITED, told, "the next gate takes them in")


def _examine_file(path: Path) -> Finding:
    if not path.exists():
        return Finding("store", State.GOOD, f"{path}: the first gate makes it")
    Store.look_at(path)
    told = f"{path}, {format_size(path.stat().st_size)}"
    if not os.access(path, os.W_OK) or not os.access(path.parent, os.W_OK):
        return Finding(
            "store",
            State.LIMITED,
            f"{told}; it cannot be written, results would be kept aside until it works",
            _ELSEWHERE,
        )
    if not keeps_shared_memory(path.parent):
        told += f"; on {find_type(path.parent)}, a file system of many machines, it is slower"
        return Finding("store", State.LIMITED, told, _ELSEWHERE)
    return Finding("store", State.GOOD, told)
