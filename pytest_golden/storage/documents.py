"""What many rows have in common, kept once under the digest of its content."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from pytest_golden.storage.inserting import insert_if_absent
from pytest_golden.storage.prepared import Prepared
from pytest_golden.storage.schema import documents

if TYPE_CHECKING:
    from sqlalchemy import Connection

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
    """Give the digest under which a JSON value is kept, or would be. Raises as `keep_document`."""
    text = json.dumps(body, allow_nan=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:_DIGITS]


def read_document(connection: Connection, digest: str) -> Any:
    """Give the document of this digest; None when there is none."""
    return connection.execute(select(documents.c.body).where(documents.c.digest == digest)).scalar_one_or_none()
