"""Takes secrets out of what the gate itself records and learns: only the gateway knows all of a project's."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pytest_golden.redaction import redact, secret_arguments, secret_literals
from pytest_golden.regression.model import GoldenProjectResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pytest_golden.manifest.model import GoldenProjectConfig

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
        """Do the same for many names, quickly where there is nothing to hide."""
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
    """Give one project of each set of secrets."""
    found: dict[Any, GoldenProjectConfig] = {}
    for project in projects:
        commands = (project.args, project.command or (), *project.before, *project.after)
        arguments = tuple(literal for command in commands for literal in secret_arguments(command))
        secrets = project.pass_env, secret_literals(project.set_env), project.pass_files, arguments
        if any(secrets):
            found.setdefault(secrets, project)
    return tuple(found.values())
