"""What the header says about this session: what is declared, how it is sealed, and what to be warned of."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from pytest_golden.errors import GoldenError
from pytest_golden.report.failure_text import make_visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_golden.gate.changed import Selection
    from pytest_golden.gateway.model import GatewayAbilities
    from pytest_golden.session.declared import Declared
    from pytest_golden.session.gateway import SessionGateway

FLEET_VIEW = "fleet"
_FOREIGN = "pytest-golden"
_MOST_NAMED = 10
_SHORT = 12


def describe_declared(declared: Declared) -> Iterator[str]:
    """Say what is declared and where."""
    count = len(declared.projects)
    yield f"golden: {declared.label}, {count} project{'' if count == 1 else 's'}"


def describe_real_writes(declared: Declared) -> Iterator[str]:
    """Name what pipelines really write to outside their views."""
    written = {
        name: [mount.path for mount in project.mounts if mount.mode == "write"]
        for name, project in declared.projects.items()
    }
    told = [f"golden: {name} really writes: {', '.join(paths)}" for name, paths in written.items() if paths]
    yield from map(make_visible, told[:_MOST_NAMED])
    if len(told) > _MOST_NAMED:
        yield f"golden: {len(told) - _MOST_NAMED} more really write outside their views: `golden check` names them"


def describe_gateway(gateway: SessionGateway, *, in_full: bool) -> Iterator[str]:
    """Say which view and seal are used; why, where something better exists or when asked for in full."""
    try:
        abilities: GatewayAbilities | None = gateway.call("describe")
    except GoldenError as error:
        yield f"golden sandbox: {error}"
        return
    if abilities is None:
        yield "golden sandbox: a plugged-in gateway, which says nothing about itself"
        return
    if abilities.view == FLEET_VIEW:
        yield f"golden fleet: {abilities.view_reason}"
        return
    seal = "no seal" if abilities.seal == "none" else f"sealed by {abilities.seal}"
    yield f"golden sandbox: {abilities.view} view, {seal}"
    if in_full or abilities.view != "overlay" or abilities.seal == "none":
        yield from (f"  {reason}" for reason in abilities.reasons)


def describe_selection(selection: Selection | None, *, in_full: bool) -> Iterator[str]:
    """Say what is left out, why the others run where that is one reason or asked for, and what broke before."""
    if selection is None:
        return
    count = len(selection.left_out) + len(selection.why)
    at = "" if selection.commit is None else f" ({selection.commit[:_SHORT]})"
    reasons = set(selection.why.values())
    if selection.left_out:
        yield f"golden: {len(selection.left_out)} of {count} projects left out: unchanged since {selection.ref}{at}"
    elif count:
        why = f": {next(iter(reasons))}" if len(reasons) == 1 else ", -v says why"
        yield make_visible(f"golden: no project is left out as unchanged since {selection.ref}{at}{why}")
    if in_full:
        yield from (make_visible(f"  {name} runs: {why}") for name, why in selection.why.items())
    if selection.forewarnings:
        yield "golden: broke before, when files that changed now were changed:"
        yield from (make_visible(f"  {line}") for line in selection.forewarnings)


def warn_of_foreign_distribution() -> Iterator[str]:
    """Warn when the other distribution of nearly the same name is installed: both bring a package of this name."""
    try:
        found = version(_FOREIGN)
    except PackageNotFoundError:
        return
    yield (
        f"golden: the other distribution {_FOREIGN} {found} is installed too and shares the package pytest_golden; "
        "this one keeps working, but uninstalling either breaks both."
    )


def warn_of_nothing(declared: Declared, mode: str) -> str | None:
    """Give the warning of an empty manifest in improvement mode, else None."""
    if declared.projects or mode != "improvement":
        return None
    return f"No golden projects: {declared.label} declares none, so nothing guards this change."
