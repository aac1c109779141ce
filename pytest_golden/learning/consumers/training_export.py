"""Training examples as JSON Lines, for whoever trains or evaluates with them."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from pytest_golden.errors import GoldenError
from pytest_golden.learning.consumers.store import iter_training_examples
from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.trajectory.vocabulary import check_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from pytest_golden.storage.store import Store


def export_training_examples(store: MemoryStore | Store, path: str | os.PathLike[str], agent: str | None = None) -> int:
    """Write the training examples, oldest first and one a line, and give how many they are; memory stays flat.

    A line is `{training_id, outcome, plan, created_at}`, without secrets, in ASCII. The file is replaced at once, so that
    a reader never sees half of it; what a link leads to is replaced, and a device or a pipe (`/dev/stdout`) is written to
    as it is.

    Args:
        store: where they are kept.
        path: the file.
        agent: those of this agent alone.

    Raises:
        GoldenError: the file cannot be written.
        StorageError: the store cannot be read.
        ValueError: the agent's name is blank.
    """
    if agent is not None:
        check_text("agent", agent)
    target = Path(path)
    opened = store.store if isinstance(store, MemoryStore) else store
    if opened.path is not None and target.exists() and target.samefile(opened.path):
        raise GoldenError(f"{target} is the store itself; name another file")
    with opened.read() as connection:
        try:
            return _write_to(target, iter_training_examples(connection, agent))
        except OSError as error:
            message = f"{target} cannot be written ({error.strerror}); name a file in a folder that you may write to"
            raise GoldenError(message) from error


def _write_to(target: Path, values: Iterable[Mapping[str, Any]]) -> int:
    if target.exists() and not target.is_file() and not target.is_dir():
        with target.open("w", encoding="ascii", newline="\n") as file:
            return _write_lines(file, values)
    return _replace(target.resolve(), values)


def _replace(target: Path, values: Iterable[Mapping[str, Any]]) -> int:
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".training-")
    draft = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii", newline="\n") as file:
            count = _write_lines(file, values)
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return count


def _write_lines(file: TextIO, values: Iterable[Mapping[str, Any]]) -> int:
    count = 0
    for count, value in enumerate(values, 1):  # noqa: B007 - how many there were
        file.write(f"{json.dumps(value, allow_nan=False)}\n")
    return count
