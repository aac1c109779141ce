"""The last result of each project and what it ran on, read in a few queries for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Text, literal, select, union_all

from pytest_golden.history.checkout import Checkout
from pytest_golden.history.past_store import IGNORED_DIGEST
from pytest_golden.history.unchanged_tree import IgnoredThen
from pytest_golden.regression.model import ResultStatus
from pytest_golden.storage.schema import documents, gate_results, gate_runs, trajectories
from pytest_golden.storage.statements import json_member, json_member_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import Connection, Row

# SQLite takes no more than 500 parts of one union.
_MOST_ASKED = 250


@dataclass(frozen=True, slots=True)
class LastResult:
    """A project's newest result that is not SKIPPED. `checkout` is shared by all results of one run, which began at `started_at`.

    `where` are the machine and the workspace that it ran in. `reads` are the files of the checkout that it read, `ignored`
    those that git ignored when it began; None where that is not known.
    """

    status: ResultStatus
    checkout: Checkout
    declaration: Mapping[str, Any]
    surroundings: Mapping[str, Any]
    started_at: int
    where: tuple[str, str] = ("", "")
    reads: tuple[str, ...] | None = None
    ignored: IgnoredThen | None = None


def read_last_results(
    connection: Connection, names: Collection[str], *, with_reads: bool = False
) -> dict[str, LastResult]:
    """Return the last result of each project that has one, `with_reads` also the files that it read."""
    rows = [row for some in _cut(sorted(names)) for row in _ask(connection, some)]
    told = _read_documents(
        connection,
        {
            digest
            for row in rows
            for digest in (row.declaration_digest, row.environment_digest, row.ignored_digest)
            if digest
        },
    )
    reads = _read_reads(connection, {row.trajectory_id for row in rows if row.trajectory_id}) if with_reads else {}
    checkouts: dict[str, Checkout] = {}
    ignored: dict[str, IgnoredThen | None] = {}
    for row in rows:
        if row.run_id not in checkouts:
            checkouts[row.run_id] = Checkout(row.commit, row.branch, row.dirty, row.dirty_files)
            ignored[row.run_id] = IgnoredThen.read(told.get(row.ignored_digest))
    return {
        row.project: LastResult(
            ResultStatus(row.status),
            checkouts[row.run_id],
            told.get(row.declaration_digest, {}),
            told.get(row.environment_digest, {}),
            row.started_at,
            (row.host, row.workspace_root),
            reads.get(row.trajectory_id),
            ignored[row.run_id],
        )
        for row in rows
    }


def _ask(connection: Connection, names: Sequence[str]) -> Iterator[Row[Any]]:
    asked = union_all(*(select(literal(name, Text).label("name")) for name in names)).subquery("asked")
    earlier = gate_results.alias("earlier")
    newest = (
        select(earlier.c.number)
        .where(earlier.c.project == asked.c.name, earlier.c.status != ResultStatus.SKIPPED.value)
        .order_by(earlier.c.number.desc())
        .limit(1)
        .correlate(asked)
        .scalar_subquery()
    )
    told_of_result = ("project", "run_id", "status", "declaration_digest", "trajectory_id")
    of_result = [gate_results.c[name] for name in told_of_result]
    told_of_run = ("commit", "branch", "dirty", "dirty_files", "environment_digest", "started_at", "host")
    of_run: list[Any] = [gate_runs.c[name] for name in (*told_of_run, "workspace_root")]
    of_run.append(json_member_text(gate_runs.c.facts, IGNORED_DIGEST, may_be_damaged=True))
    joined = asked.join(gate_results, gate_results.c.number == newest)
    yield from connection.execute(
        select(*of_result, *of_run).select_from(joined.join(gate_runs, gate_runs.c.entry_id == gate_results.c.run_id))
    )


def _read_documents(connection: Connection, digests: Iterable[str]) -> dict[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    for some in _cut(sorted(digests)):
        rows = connection.execute(select(documents.c.digest, documents.c.body).where(documents.c.digest.in_(some)))
        found |= {row.digest: row.body for row in rows if isinstance(row.body, dict)}
    return found


def _read_reads(connection: Connection, ids: Iterable[str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for some in _cut(sorted(ids)):
        asked = select(trajectories.c.id, json_member(trajectories.c.body, "metadata"))
        for row in connection.execute(asked.where(trajectories.c.id.in_(some))):
            reads = row.metadata.get("reads") if isinstance(row.metadata, dict) else None
            if isinstance(reads, list):
                found[row.id] = tuple(map(str, reads))
    return found


def _cut(items: Sequence[str]) -> Iterator[Sequence[str]]:
    return (items[start : start + _MOST_ASKED] for start in range(0, len(items), _MOST_ASKED))
