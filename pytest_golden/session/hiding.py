"""Take secrets out of what the session itself records: only the gateway knows all of a project's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pytest_golden.redaction import redact, secret_literals

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.session.gateway import SessionGateway

_T = TypeVar("_T")


class SecretHider:
    """Hides by the general rules and by what the session's gateway knows of its projects."""

    def __init__(self, gateway: SessionGateway, projects: Mapping[str, GoldenProjectConfig]) -> None:
        self._gateway = gateway
        self._projects = projects

    def hide(self, project: GoldenProjectConfig, plain: _T) -> _T | None:
        """Take out of JSON-safe values what is taken out of the project's output; None when that cannot be told."""
        redacted = redact(plain)
        try:
            text = self._gateway.call("redact", project, json.dumps(redacted))
            return redacted if text is None else cast("_T", json.loads(text))
        except Exception:
            # A plugged-in gateway may raise anything; what it would have hidden is not kept.
            return None

    def hide_for_all(self, plain: _T) -> _T | None:
        """Take out what is secret in any project: for what belongs to the run as a whole."""
        redacted: _T | None = redact(plain)
        for project in _find_secretive(self._projects.values()):
            redacted = None if redacted is None else self.hide(project, redacted)
        return redacted


def _find_secretive(projects: Iterable[GoldenProjectConfig]) -> tuple[GoldenProjectConfig, ...]:
    """Give one project of each set of secrets."""
    found: dict[Any, GoldenProjectConfig] = {}
    for project in projects:
        secrets = project.pass_env, secret_literals(project.set_env), project.pass_files
        if any(secrets):
            found.setdefault(secrets, project)
    return tuple(found.values())
