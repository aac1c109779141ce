"""The regression checks of a cycle: ours by default, and what is taken for a check of somebody else's."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.clock import new_id
from pytest_golden.errors import GoldenError
from pytest_golden.gate.lock import hold_gate_lock, prepare_state_folder
from pytest_golden.gate.logs import choose_log_folder
from pytest_golden.gate.service import RegressionGuard
from pytest_golden.gateway.service import ExecutionGateway
from pytest_golden.regression.model import RegressionCheckResult

if TYPE_CHECKING:
    from pytest_golden.cycle.config import CycleConfig
    from pytest_golden.gateway.model import Gateway

_LOG = logging.getLogger(__name__)


class CheckedFloor(NamedTuple):
    """What the regression checks found: all results, in what way the floor is lower than it was, and what else is to be said."""

    check: RegressionCheckResult
    weakened_floor: tuple[Mapping[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()


def check_projects(config: CycleConfig, gateway: Gateway | None) -> RegressionCheckResult:
    """Run and judge the cycle's golden projects, through this gateway or one of the project root's own."""
    root = config.project_root
    with hold_gate_lock(root, _LOG.info):
        if gateway is not None:
            return RegressionGuard(gateway).check(config.golden_projects)
        logs = choose_log_folder(prepare_state_folder(root), new_id("gate"))
        with ExecutionGateway(root, log_folder=logs) as own:
            return RegressionGuard(own).check(config.golden_projects)


def read_check(given: Any, config: CycleConfig) -> CheckedFloor:
    """Read what a step of regression checks gave.

    Raises:
        GoldenError: it is no check, or it says nothing of a configured project.
    """
    weakened: Any = ()
    warnings: Any = ()
    check = given
    if isinstance(given, Mapping):
        check, weakened = given.get("regression_check"), given.get("weakened_floor") or ()
        warnings = given.get("warnings") or ()
    if not isinstance(check, RegressionCheckResult):
        raise GoldenError(f"the regression checks gave {check!r:.100}, and not a RegressionCheckResult")
    told = {result.name for result in check.results}
    untold = [project.name for project in config.golden_projects if project.name not in told]
    if untold:
        raise GoldenError(f"the regression checks say nothing of {', '.join(untold)}")
    return CheckedFloor(check, tuple(dict(one) for one in weakened), tuple(map(str, warnings)))
