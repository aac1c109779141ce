"""Spread tests over xdist workers so that golden projects stay one after another. Imported only under xdist."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from pytest_golden.session.declared import Declared

_GOLDEN_SCOPE = "golden projects"


class GoldenScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """All dependent golden projects are one scope on one worker, in order; an independent one is its own.

    Other tests keep the grouping of the asked `--dist`.
    """

    def __init__(
        self,
        config: pytest.Config,
        log: Any,
        declared: Declared,
        independent: frozenset[str],
        has_result: Callable[[str], bool],
    ) -> None:
        super().__init__(config, log)
        self._declared = declared
        self._independent = independent
        self._has_result = has_result
        self._scope_of_others = _SCOPES.get(config.getoption("dist"), _own_scope)

    def remove_node(self, node: Any) -> str | None:
        """Take a worker out. What it was running when it crashed is not run again: it has its result, an ERROR.

        Whose result came before the crash had ended already, and keeps the one that it has.
        """
        workload: dict[str, dict[str, bool]] = self.assigned_work[node]
        running = next((node_id for unit in workload.values() for node_id, done in unit.items() if not done), None)
        project = self._declared.find_project(running) if running is not None else None
        if running is None or project is None:
            crashed: str | None = super().remove_node(node)
            return crashed
        for unit in workload.values():
            if running in unit:
                unit[running] = True
        super().remove_node(node)
        return None if self._has_result(project.name) else running

    def _assign_work_unit(self, node: Any) -> None:
        """Give a worker its next work. One that is gone, before that was heard of, leaves it to others and to its successor."""
        scope = next(iter(self.workqueue))
        try:
            super()._assign_work_unit(node)
        except OSError:
            self.workqueue[scope] = self.assigned_work[node].pop(scope)
            self.workqueue.move_to_end(scope, last=False)

    def _split_scope(self, nodeid: str) -> str:
        project = self._declared.find_project(nodeid)
        if project is None:
            return self._scope_of_others(nodeid)
        return nodeid if project.name in self._independent else _GOLDEN_SCOPE


def _own_scope(node_id: str) -> str:
    return node_id


def _class_or_module(node_id: str) -> str:
    return node_id.rsplit("::", 1)[0]


def _file(node_id: str) -> str:
    return node_id.split("::", 1)[0]


def _group(node_id: str) -> str:
    at = node_id.rfind("@")
    return node_id[at + 1 :] if at > node_id.rfind("]") else node_id


_SCOPES: dict[str, Callable[[str], str]] = {
    "loadscope": _class_or_module,
    "loadfile": _file,
    "loadgroup": _group,
}
