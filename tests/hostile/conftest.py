"""The stage of the gateway's own tests, for pipelines that misbehave on it."""

from __future__ import annotations

from tests.gateway.conftest import (
    found,
    home,
    machine_seal,
    make_project,
    open_gateway,
    project_dir,
    run,
    run_elsewhere,
    run_in_view,
    seal,
    sealing,
    supervisor,
    workspace,
)

__all__ = [
    "found",
    "home",
    "machine_seal",
    "make_project",
    "open_gateway",
    "project_dir",
    "run",
    "run_elsewhere",
    "run_in_view",
    "seal",
    "sealing",
    "supervisor",
    "workspace",
]
