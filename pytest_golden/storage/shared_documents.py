"""What many rows have in common, kept once under the digest of its content.

Which gate runs are people's own. The others ran in a worktree that was made for them and is gone.

Those are the base of `golden verify` and the proposals of `golden cycle`: what passed or failed there is another commit's
news, and no turn in what people ran before and after.

The tally of entries by day, which triggers keep: whether it is right, and how it is counted again.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from sqlalchemy import or_, select, text

from pytest_golden.storage.columns import storable_json
from pytest_golden.storage.folder import PRIVATE_PREFIX
from pytest_golden.storage.schema import ALL_AGENTS, documents, gate_runs
from pytest_golden.storage.statements import Prepared, insert_if_absent

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection


_KEEP = Prepared(insert_if_absent(documents), "digest", "body")
_DIGITS = 32


def keep_document(connection: Connection, body: Any) -> str:
    """Keep a JSON value, unless it is there, and give its digest: the same for values that differ in key order alone.

    Raises:
        ValueError, TypeError: the value is not JSON (a NaN, an object).
    """
    digest = digest_document(body)
    _KEEP.run(connection, {"digest": digest, "body": body})
    return digest


def digest_document(body: Any) -> str:
    """Return the digest under which a JSON value is kept, or would be. Raises as `keep_document`."""
    text = storable_json(json.dumps(body, allow_nan=False, sort_keys=True, separators=(",", ":")))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:_DIGITS]


def read_document(connection: Connection, digest: str) -> Any:
    """Return the document of this digest; None when there is none."""
    return connection.execute(select(documents.c.body).where(documents.c.digest == digest)).scalar_one_or_none()


def is_own_run() -> ColumnElement[bool]:
    """Return the condition that a run is somebody's own; a result without a run counts as one."""
    root = gate_runs.c.workspace_root
    return or_(root.is_(None), root.not_like(f"%/{PRIVATE_PREFIX}%"))


def is_own_place(workspace_root: str | None) -> bool:
    """Tell the same of a run by where it ran."""
    return workspace_root is None or f"/{PRIVATE_PREFIX}" not in workspace_root


_ONE_AGENT, _ALL = "agent_id", f"'{ALL_AGENTS}'"
_COUNTED = " UNION ALL ".join(
    f"SELECT created_at / 86400000 AS day, {agent} AS agent_id, coalesce(intent_type, '') AS intent_type, assessment, "
    "count(*) AS amount FROM entries GROUP BY 1, 2, 3, 4"
    for agent in (_ONE_AGENT, _ALL)
)
# What has come down to nothing stays as a row.
_DIFFERING = text(
    f"SELECT count(*) FROM ({_COUNTED}) AS counted FULL JOIN entry_tally ON counted.day = entry_tally.day "
    "AND counted.agent_id = entry_tally.agent_id AND counted.intent_type = entry_tally.intent_type "
    "AND counted.assessment = entry_tally.assessment "
    "WHERE coalesce(counted.amount, 0) <> coalesce(entry_tally.amount, 0)"
)
_EMPTY = text("DELETE FROM entry_tally")
_FILL = text(f"INSERT INTO entry_tally (day, agent_id, intent_type, assessment, amount) {_COUNTED}")


def find_tally_fault(connection: Connection) -> str | None:
    """Tell what is wrong with the tally, if anything."""
    differing = connection.execute(_DIFFERING).scalar_one()
    return f"the tally of entries by day differs from the entries in {differing} rows" if differing else None


def recount_tally(connection: Connection) -> None:
    """Count it again from the entries."""
    connection.execute(_EMPTY)
    connection.execute(_FILL)
