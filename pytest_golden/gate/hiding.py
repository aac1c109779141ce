"""What a gate keeps and hides: secrets removed from what it records, folders that only its user owns, runs to keep."""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pytest_golden.redaction.literals import secret_arguments, secret_literals
from pytest_golden.redaction.redactor import redact
from pytest_golden.regression.model import GoldenProjectResult
from pytest_golden.regression.rules import judge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from pytest_golden.gateway.model import PipelineOutcome
    from pytest_golden.history.trends import SlowdownJudge
    from pytest_golden.manifest.model import GoldenProjectConfig

    KeepIf = Callable[[GoldenProjectConfig, PipelineOutcome], bool]

_T = TypeVar("_T")


class SecretHider:
    """Hides by the general rules and by what a gateway knows of its projects.

    `redact_own` takes out of a text what is secret in a project, as `ExecutionGateway.redact` does; None where it cannot.
    """

    def __init__(
        self, redact_own: Callable[[GoldenProjectConfig, str], str | None], projects: Iterable[GoldenProjectConfig]
    ) -> None:
        self._redact_own = redact_own
        self._secretive = _find_secretive(projects)

    def hide_for_all(self, plain: _T) -> _T | None:
        """Take out of JSON-safe values what is secret in any project: one may stand in the text of another.

        None when that cannot be told.
        """
        redacted: _T | None = redact(plain)
        for project in self._secretive:
            redacted = None if redacted is None else self._hide(project, redacted)
        return redacted

    def hide_names(self, names: Sequence[str]) -> Sequence[str] | None:
        """Remove secrets from many names; fast if there are none. None if that cannot be told."""
        together = "\n".join(names)
        return names if self.hide_for_all(together) == together else self.hide_for_all(list(names))

    def hide_in_result(self, result: GoldenProjectResult) -> GoldenProjectResult:
        """Take out of a result, from which its own project's secrets are gone, those of the others."""
        others = [project for project in self._secretive if project.name != result.name]
        plain: dict[str, Any] | None = result.to_dict() if others else None
        for project in others:
            plain = None if plain is None else self._hide(project, plain)
        return result if plain is None else replace(GoldenProjectResult.from_dict(plain), name=result.name)

    def _hide(self, project: GoldenProjectConfig, plain: _T) -> _T | None:
        try:
            text = self._redact_own(project, json.dumps(plain))
            return plain if text is None else cast("_T", json.loads(text))
        except Exception:
            # A plugged-in gateway may raise anything; what it would have hidden is not kept.
            return None


def _find_secretive(projects: Iterable[GoldenProjectConfig]) -> tuple[GoldenProjectConfig, ...]:
    """Return one project of each set of secrets."""
    found: dict[Any, GoldenProjectConfig] = {}
    for project in projects:
        commands = (project.args, project.command or (), *project.before, *project.after)
        arguments = tuple(literal for command in commands for literal in secret_arguments(command))
        secrets = project.pass_env, secret_literals(project.set_env), project.pass_files, arguments
        if any(secrets):
            found.setdefault(secrets, project)
    return tuple(found.values())


def make_own_folder(folder: Path) -> None:
    """Make a folder among those of other people, which they may have prepared.

    Raises:
        PermissionError: it is somebody else's, or no folder.
    """
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    if not is_own_folder(folder):
        message = f"{folder} is somebody else's; remove it, or let TMPDIR name another folder"
        raise PermissionError(message)


def is_own_folder(folder: Path) -> bool:
    """Tell whether it is a folder, and this user's."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and (not hasattr(os, "getuid") or found.st_uid == os.getuid())


def choose_keeping(word: str, read_slowdowns: Callable[[], SlowdownJudge] | None = None) -> KeepIf | None:
    """Return the rule for `--golden-keep` and `GOLDEN_KEEP`: `none`, `failed` or `all`; None keeps nothing.

    `read_slowdowns` returns what judges durations, since a run may fail only because it is slow. It is called after a run.
    """
    if word != "failed":
        return _RULES[word]

    def has_failed(project: GoldenProjectConfig, outcome: PipelineOutcome) -> bool:
        result = judge(project, outcome)
        if read_slowdowns is not None:
            result = read_slowdowns().judge(project, result)
        return result.status.is_failure

    return has_failed


def _always(project: GoldenProjectConfig, outcome: PipelineOutcome) -> bool:  # noqa: ARG001 - the gateway gives both
    return True


_RULES: Mapping[str, KeepIf | None] = {"none": None, "all": _always}
