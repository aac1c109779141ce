"""`golden init --from COMMAND`: one run through the gateway, and the golden project that it makes a draft of."""

from __future__ import annotations

import glob
import os
import shlex
from collections import Counter
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from pytest_golden.cli.draft import DraftedProject
from pytest_golden.cli.live_status import show_status
from pytest_golden.cli.plan import make_plan
from pytest_golden.errors import SettingsError
from pytest_golden.gate import RegressionGuard
from pytest_golden.gateway import ExecutionGateway
from pytest_golden.manifest.model import GoldenProjectConfig, slug, stem_name
from pytest_golden.regression.unexpected import find_unexpected
from pytest_golden.regression.wording import format_elapsed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_golden.regression.model import GoldenProjectResult

_SHELL_SIGNS = frozenset({"|", "||", "&&", "&", ";", ">", ">>", "<", "2>", "2>&1"})
_MOST_FILES = 10


def try_command(text: str, folder: Path, view: str) -> tuple[GoldenProjectResult, DraftedProject]:
    """Run a command once in a view of the folder; the draft is worth something only when the result is PASSED.

    Raises:
        SettingsError: the text is no command.
    """
    command = split_command(text)
    path = _choose_path(command, folder)
    name = stem_name(path) if path != "." else slug("_".join(Path(word).name for word in command[:2]))
    try:
        project = GoldenProjectConfig(name or "project", path, command=command, project_dir=".")
    except ValueError:
        raise SettingsError(
            f"--from {text!r} cannot be declared; give a plain command such as 'python etl.py'"
        ) from None
    with ExecutionGateway(folder, view=view) as gateway, show_status(text, gateway.present_step):
        result = RegressionGuard(gateway).check_one(project, {})
    took = format_elapsed(result.execution_time_seconds)
    comment = f"drafted from one run of its command, which took {took}"
    written = sorted({*result.write_set.created, *result.write_set.changed})
    writes = generalise_writes(find_unexpected(written, ()), folder)
    runner = make_plan(project, folder).runner or "command"
    return result, DraftedProject(project.name, path, runner, comment, command, ".", writes)


def split_command(text: str) -> tuple[str, ...]:
    """Split a command as a shell would.

    Raises:
        SettingsError: it is empty, a quote is not closed, or it needs a shell.
    """
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise SettingsError(f"--from {text!r} cannot be split into words: {error}") from None
    if not words:
        raise SettingsError("--from has no command; give one such as 'python etl.py'")
    signs = sorted(_SHELL_SIGNS.intersection(words))
    if signs:
        raise SettingsError(f"--from runs a program without a shell, so {signs[0]!r} means nothing; write: sh -c '...'")
    return words


def generalise_writes(written: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Give patterns for written files: a folder that is new as a whole, other files one by one unless they are many."""
    patterns = [_generalise(path, folder) for path in written]
    crowds = Counter(str(PurePosixPath(pattern).parent) for pattern in patterns if not pattern.endswith("/**"))
    for index, pattern in enumerate(patterns):
        parent = str(PurePosixPath(pattern).parent)
        if not pattern.endswith("/**") and crowds[parent] > _MOST_FILES:
            patterns[index] = "*" if parent == "." else f"{parent}/*"
    return tuple(dict.fromkeys(patterns))


def _generalise(path: str, folder: Path) -> str:
    for parent in reversed(PurePosixPath(path).parents[:-1]):
        if not (folder / parent).is_dir():
            return f"{glob.escape(str(parent))}/**"
    return glob.escape(path)


def _choose_path(command: Sequence[str], folder: Path) -> str:
    """Give the file that a command is about, relative to the folder: the first one that it names; else the folder."""
    for word in command:
        path = os.path.relpath(folder / word, folder)
        if not path.startswith(os.pardir) and (folder / path).is_file():
            return Path(path).as_posix()
    return "."
