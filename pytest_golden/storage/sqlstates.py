"""What is wrong with a store on a server, by the codes that PostgreSQL gives its errors, and the words for it. Loads no driver.

Source: https://www.postgresql.org/docs/current/errcodes-appendix.html
"""

from __future__ import annotations

from typing import Any

from pytest_golden.errors import StorageTrouble
from pytest_golden.storage.schema import metadata
from pytest_golden.storage.version import VERSION_TABLE

_READ_ONLY_TRANSACTION = "25006"
_TROUBLES = {
    "53100": StorageTrouble.FULL,
    "55P03": StorageTrouble.LOCKED,
    "40001": StorageTrouble.LOCKED,
    "40P01": StorageTrouble.LOCKED,
    _READ_ONLY_TRANSACTION: StorageTrouble.READ_ONLY,
    "42501": StorageTrouble.READ_ONLY,
    "XX001": StorageTrouble.CORRUPT,
    "XX002": StorageTrouble.CORRUPT,
}
_UNDEFINED_TABLE = "42P01"
# Classes of what is wrong with the connection or the server, not with a statement.
_OF_SERVER = ("08", "53", "57", "58")
_WORDS = {
    StorageTrouble.FULL: "the disk of its server is full; make room",
    StorageTrouble.READ_ONLY: "it cannot be written; let this role read and write its tables, or give another store",
}


def find_trouble_of_server(error: Any) -> StorageTrouble:
    """Tell from the driver's error what is wrong."""
    # All of a version are made at once, so one that is not there was lost.
    if error.sqlstate == _UNDEFINED_TABLE and any(f'"{table}"' in str(error) for table in metadata.tables):
        return StorageTrouble.CORRUPT
    return _TROUBLES.get(error.sqlstate or "", StorageTrouble.UNREACHABLE)


def find_words(error: Any) -> str | None:
    """Say what is wrong where a server's words are others than a file's; an error without a code is the connection's."""
    trouble = find_trouble_of_server(error)
    if error.sqlstate == _UNDEFINED_TABLE and f'"{VERSION_TABLE}"' in str(error):
        return "it has no tables any more; restore them, or run `golden store upgrade --store URL`"
    if error.sqlstate == _READ_ONLY_TRANSACTION:
        return "it cannot be written: it is a standby, or set to be read alone; end that, or give another store"
    if trouble is StorageTrouble.UNREACHABLE and (error.sqlstate or _OF_SERVER[0]).startswith(_OF_SERVER):
        return "its server cannot be used; see that it runs and lets this role in"
    return _WORDS.get(trouble)


def read_message(error: Any) -> str:
    """Give what an error says in one line, without the statement, the values and the hint that the server adds."""
    return " ".join((error.diag.message_primary or str(error)).split())
