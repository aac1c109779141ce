"""Make a worker that is started with `--preload` of this file answer with pickles that run code where they are loaded.

`ROGUE` says where they are: in the `answer` of an attempt, in that of a `call`, in an `error` or in an `event`. With `nonsense` it answers with no
pickle, and with no answer either.
"""

from __future__ import annotations

import os
import pickle
from typing import TYPE_CHECKING, Any

from distributed import worker as dask_worker
from distributed.protocol import core, to_serialize

from pytest_golden.fleet import shipping

if TYPE_CHECKING:
    from distributed import Worker


class Trap:
    """Creates a folder where it is loaded."""

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return os.mkdir, (os.environ["TRAP"],)


def dask_setup(worker: Worker) -> None:
    """Set the trap, as Dask calls this function at the start of a worker."""
    trap = pickle.dumps(Trap())
    where = os.environ["ROGUE"]
    if where == "event":
        worker.log_event("warn", {"category": trap, "message": trap})
        # What is said before anybody listens is lost.
        worker.periodic_callbacks["heartbeat"].callback = lambda: worker.log_event("warn", {"message": trap})
    elif where == "error":
        dask_worker.error_message = lambda _: _make_error(trap)
        del shipping.write_answer
    elif where == "nonsense":
        shipping.write_answer = lambda answer: b"{}"
    else:
        kind, serialize = bytes if where == "answer" else tuple, core.serialize_and_split
        core.serialize_and_split = lambda item, *rest, **named: (
            _make_pickle(trap) if type(item.data) is kind else serialize(item, *rest, **named)
        )


def _make_error(trap: bytes) -> dict[str, Any]:
    given = to_serialize(trap)
    return {"status": "error", "exception": given, "traceback": given, "exception_text": "", "traceback_text": ""}


def _make_pickle(trap: bytes) -> tuple[dict[str, Any], list[bytes]]:
    return {"serializer": "pickle", "writeable": ()}, [trap]
