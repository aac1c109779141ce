"""What many rows have in common, kept once under the digest of its content; and which gate runs are people's own.

The other runs are the base of `golden verify` and the proposals of `golden cycle`: they ran in a private worktree, and what
passed or failed there is news of another commit.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from sqlalchemy import or_, select

from pytest_golden.storage.columns import storable_json
from pytest_golden.storage.folder import PRIVATE_PREFIX
from pytest_golden.storage.schema import documents, gate_runs
from pytest_golden.storage.statements import Prepared, insert_if_absent

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection


_KEEP = Prepared(insert_if_absent(documents), "digest", "body")
_DIGITS = 32
#: What names the document of a result's inputs, in its JSON, and that of the ignored files, in a run's facts.
INPUTS_DIGEST, IGNORED_DIGEST = "inputs_digest", "ignored_digest"


def keep_document(connection: Connection, body: Any) -> str:
    """Store a JSON value unless it is stored already, and return its digest, which does not depend on the order of keys.

    Raises:
        ValueError, TypeError: the value is not JSON (a NaN, an object).
    """
    digest = digest_document(body)
    _KEEP.leave(connection, {"digest": digest, "body": body})
    return digest


def digest_document(body: Any) -> str:
    """Return the digest of a JSON value. Raises as `keep_document`."""
    text = storable_json(json.dumps(body, allow_nan=False, sort_keys=True, separators=(",", ":")))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:_DIGITS]


def read_document(connection: Connection, digest: str) -> Any:
    """Return the document with this digest; None if there is none."""
    return connection.execute(select(documents.c.body).where(documents.c.digest == digest)).scalar_one_or_none()


def is_own_run() -> ColumnElement[bool]:
    """Return the SQL condition for a person's own run; a result without a run counts as one."""
    root = gate_runs.c.workspace_root
    return or_(root.is_(None), root.not_like(f"%/{PRIVATE_PREFIX}%"))


def is_own_place(workspace_root: str | None) -> bool:
    """Tell the same from the folder of a run."""
    return workspace_root is None or f"/{PRIVATE_PREFIX}" not in workspace_root
