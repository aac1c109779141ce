"""Checks that are due, and who may run one. Each function works on an open connection, and none of them runs a check.

A claim is a lease: it moves the check's time to the end of the lease and counts a try. So a heartbeat that is killed leaves
a check that falls due again, and one that finishes too late finds that the claim is no longer its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import BigInteger, Connection, Text, and_, bindparam, func, literal_column, or_, select, update

from pytest_golden.storage.schema import expectations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_TIMESTAMP = bindparam("timestamp", type_=BigInteger())
# Expired expectations are left to the sweep.
_IS_DUE = and_(
    expectations.c.status == literal_column("'open'"),
    expectations.c.check_due_at <= _TIMESTAMP,
    or_(expectations.c.expires_at.is_(None), expectations.c.expires_at > _TIMESTAMP),
)
_DUE = (
    select(expectations.c.id, expectations.c.check)
    .where(_IS_DUE)
    .order_by(expectations.c.check_due_at, expectations.c.number)
    .limit(bindparam("most"))
)
_COUNT_DUE = select(func.count()).select_from(expectations).where(_IS_DUE)
_THIS_ONE = expectations.c.id == bindparam("the_expectation", type_=Text())
_CLAIM = (
    update(expectations)
    .where(_THIS_ONE, _IS_DUE)
    .values(check_due_at=bindparam("until", type_=BigInteger()), check_tries=expectations.c.check_tries + 1)
)
_CLAIMED = select(
    expectations.c.entry_id,
    func.coalesce(expectations.c.agent_id, ""),
    *(expectations.c[name] for name in ("description", "check", "check_tries", "expires_at", "created_at")),
).where(_THIS_ONE)
_IS_OURS = and_(
    _THIS_ONE,
    expectations.c.check_tries == bindparam("the_try"),
    expectations.c.check_due_at == bindparam("until", type_=BigInteger()),
)
_END_CLAIM = update(expectations).where(_IS_OURS).values(check_due_at=bindparam("next", type_=BigInteger()))
_GIVE_BACK = (
    update(expectations).where(_IS_OURS).values(check_due_at=_TIMESTAMP, check_tries=expectations.c.check_tries - 1)
)


class Claim(NamedTuple):
    """A check that is claimed until a timestamp, in milliseconds since the epoch; `tries` counts this one."""

    expectation_id: str
    entry_id: str
    agent_id: str
    description: str
    check: Mapping[str, Any]
    tries: int
    expires_at: int | None
    created_at: int
    until: int


def list_due(connection: Connection, timestamp: int, most: int) -> Sequence[Any]:
    """Return `id` and `check` of the expectations whose checks are due, those that wait longest first."""
    return connection.execute(_DUE, {"timestamp": timestamp, "most": most}).all()


def count_due(connection: Connection, timestamp: int) -> int:
    """Count the checks that are due."""
    return int(connection.execute(_COUNT_DUE, {"timestamp": timestamp}).scalar_one())


def claim_check(connection: Connection, expectation_id: str, timestamp: int, until: int) -> Claim | None:
    """Claim a due check until a timestamp; return None when another heartbeat has it, or it is no longer due."""
    names = {"the_expectation": expectation_id, "timestamp": timestamp, "until": until}
    if not connection.execute(_CLAIM, names).rowcount:
        return None
    row: Any = connection.execute(_CLAIMED, {"the_expectation": expectation_id}).one()
    return Claim._make((expectation_id, *row, until))


def end_claim(connection: Connection, claim: Claim, next_at: int | None) -> bool:
    """Set when the check is due again (None: never); return whether the claim was still held."""
    return bool(connection.execute(_END_CLAIM, {**_name(claim), "next": next_at}).rowcount)


def give_back(connection: Connection, claim: Claim, timestamp: int) -> None:
    """Release a check that was not run, due at once, as if it had never been claimed."""
    connection.execute(_GIVE_BACK, {**_name(claim), "timestamp": timestamp})


def _name(claim: Claim) -> dict[str, Any]:
    return {"the_expectation": claim.expectation_id, "the_try": claim.tries, "until": claim.until}
