"""Roles and permissions, and outcomes as values."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.errors import PermissionDeniedError
from pytest_golden.gateway.model import (
    GRANTED,
    AgentRole,
    Ending,
    GatewayAbilities,
    Permissions,
    PipelineOutcome,
    WriteSet,
    WrittenFile,
    choose_request,
    require_execution,
)

paths = st.lists(st.text(min_size=1, max_size=20), unique=True, max_size=5).map(tuple)


@given(paths, paths, paths)
def test_write_set_survives_json(created: tuple[str, ...], changed: tuple[str, ...], removed: tuple[str, ...]) -> None:
    files = {path: WrittenFile(path, "file", len(path), "00") for path in (*created, *changed)}
    write_set = WriteSet(created, changed, removed, files)
    assert WriteSet.from_dict(json.loads(json.dumps(write_set.to_dict()))) == write_set


def test_empty_write_set_is_read_from_nothing() -> None:
    assert WriteSet.from_dict({}) == WriteSet()


def test_abilities_are_json_safe() -> None:
    abilities = GatewayAbilities("overlay", "namespaces", ("timeout",), scratch="/tmp", advice="sleep")
    assert json.loads(json.dumps(abilities.to_dict())) == {
        "view": "overlay",
        "seal": "namespaces",
        "limits": ["timeout"],
        "network": "host",
        "limits_by": "polling",
        "reasons": ["scratch in /tmp", "to get better: sleep"],
    }


def test_words_equal_their_plain_text() -> None:
    assert [str(ending) for ending in Ending if ending == "memory_limit"] == ["memory_limit"]
    assert PipelineOutcome(Ending.EXITED).started_at.tzinfo is not None


def test_regression_guard_may_execute() -> None:
    require_execution(AgentRole.REGRESSION_GUARD, Permissions())


def test_role_may_be_given_by_its_plain_word() -> None:
    require_execution("regression_guard", Permissions())


def test_regression_guard_may_not_edit_sources() -> None:
    with pytest.raises(PermissionDeniedError, match="regression_guard may not have can_edit_source"):
        require_execution(AgentRole.REGRESSION_GUARD, Permissions(can_edit_source=True))


def test_only_an_improvement_may_edit_sources() -> None:
    assert [role for role in AgentRole if GRANTED[role].can_edit_source] == [AgentRole.IMPROVEMENT]
    require_execution(AgentRole.IMPROVEMENT, Permissions(can_edit_source=True))


@pytest.mark.parametrize("role", [AgentRole.OBSERVER, AgentRole.REVIEWER, AgentRole.CURRICULUM, AgentRole.CONVERGENCE])
def test_roles_that_only_look_may_not_execute(role: AgentRole) -> None:
    with pytest.raises(PermissionDeniedError, match="may not have can_execute_tasks"):
        require_execution(role, Permissions())


def test_request_without_leave_to_execute_is_refused() -> None:
    with pytest.raises(PermissionDeniedError, match="without can_execute_tasks=True"):
        require_execution(AgentRole.REGRESSION_GUARD, Permissions(can_execute_tasks=False))


def test_unknown_role_is_refused_with_the_known_ones() -> None:
    with pytest.raises(PermissionDeniedError, match=r"unknown role 'king'.*regression_guard"):
        require_execution("king", Permissions())


def test_every_role_has_its_grant() -> None:
    assert set(GRANTED) == set(AgentRole)


def test_request_is_read_under_either_pair_of_names() -> None:
    guard, leave = AgentRole.REGRESSION_GUARD, Permissions()
    assert choose_request(guard, leave, None, None) == (guard, leave)
    assert choose_request(None, None, guard, leave) == (guard, leave)


@pytest.mark.parametrize("given", ["role", "permissions", "agent_role", "agent_permissions"])
def test_request_without_role_or_permissions_is_a_type_error(given: str) -> None:
    values: dict[str, Any] = {"role": None, "permissions": None, "agent_role": None, "agent_permissions": None}
    values[given] = Permissions() if given.endswith("permissions") else "user"
    for some in (values, dict.fromkeys(values)):
        with pytest.raises(
            TypeError, match="needs a role and permissions: give `role` and `permissions`, or `agent_role`"
        ):
            choose_request(**some)


@pytest.mark.parametrize("both", [("user", None, "user", Permissions()), ("user", None, None, Permissions())])
def test_request_under_both_pairs_of_names_is_a_type_error(both: tuple[str, None, str | None, Permissions]) -> None:
    with pytest.raises(TypeError, match="one of the two pairs, not both"):
        choose_request(*both)
