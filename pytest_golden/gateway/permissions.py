"""Who may ask the gateway for what."""

from __future__ import annotations

from types import MappingProxyType

from pytest_golden.errors import PermissionDeniedError
from pytest_golden.gateway.model import AgentRole, Permissions

_LOOK_ONLY = Permissions(can_execute_tasks=False, can_edit_source=False)
_EXECUTE = Permissions(can_execute_tasks=True, can_edit_source=False)
_EXECUTE_AND_EDIT = Permissions(can_execute_tasks=True, can_edit_source=True)

#: The most that each role may have. Only an improvement edits sources; a guard that could would guard nothing.
GRANTED = MappingProxyType(
    {
        AgentRole.ENVIRONMENT: _EXECUTE,
        AgentRole.PROJECT: _EXECUTE,
        AgentRole.USER: _EXECUTE,
        AgentRole.OBSERVER: _LOOK_ONLY,
        AgentRole.IMPROVEMENT: _EXECUTE_AND_EDIT,
        AgentRole.REVIEWER: _LOOK_ONLY,
        AgentRole.REGRESSION_GUARD: _EXECUTE,
        AgentRole.CURRICULUM: _LOOK_ONLY,
        AgentRole.CONVERGENCE: _LOOK_ONLY,
    }
)


def require_execution(role: AgentRole | str, permissions: Permissions) -> None:
    """Check that a request for an execution stays within what its role may have.

    Raises:
        PermissionDeniedError: the role is unknown, the permissions ask for more than it may have, or they do not
            include executing.
    """
    try:
        role = AgentRole(role)
    except ValueError:
        allowed = ", ".join(AgentRole)
        raise PermissionDeniedError(f"unknown role {role!r}; the roles are {allowed}") from None
    granted = GRANTED[role]
    for name in Permissions.__slots__:
        if getattr(permissions, name) and not getattr(granted, name):
            raise PermissionDeniedError(f"role {role} may not have {name}; ask with {name}=False")
    if not permissions.can_execute_tasks:
        raise PermissionDeniedError(f"role {role} asked to run a pipeline without can_execute_tasks=True")


def choose_request(
    role: AgentRole | str | None,
    permissions: Permissions | None,
    agent_role: AgentRole | str | None,
    agent_permissions: Permissions | None,
) -> tuple[AgentRole | str, Permissions]:
    """Return the role and the permissions of a request. Callers may use either pair of names.

    Raises:
        TypeError: one of them is missing, or both pairs of names are used.
    """
    names = "`role` and `permissions`, or `agent_role` and `agent_permissions`"
    if not ((role is None and permissions is None) or (agent_role is None and agent_permissions is None)):
        raise TypeError(f"run_pipeline() takes {names}: give one of the two pairs, not both")
    role, permissions = (agent_role, agent_permissions) if role is None and permissions is None else (role, permissions)
    if role is None or permissions is None:
        raise TypeError(f"run_pipeline() needs a role and permissions: give {names}")
    return role, permissions
