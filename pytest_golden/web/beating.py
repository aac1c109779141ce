"""The heartbeat inside the server: what is due in the journal is resolved at a rhythm, beside the requests."""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pytest_golden.errors import GoldenError, StorageError, StorageTrouble
from pytest_golden.journal.checks.heartbeat import Heartbeat

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_golden.web.model import ServeOptions
    from pytest_golden.web.services import Services

_LOG = logging.getLogger(__name__)
_MOST_ENDING_SECONDS = 0.5


@contextmanager
def beating(services: Services, options: ServeOptions) -> Iterator[None]:
    """Let the heart beat while the block lasts; a server that only shows has none."""
    seconds = options.heartbeat_seconds
    if seconds is None or options.is_read_only:
        yield
        return
    heart = Heartbeat(
        services.journal,
        workspace_root=options.manifest.parent,
        view=options.sandbox,
        budget_seconds=max(60.0, seconds),
    )
    is_over = threading.Event()
    # A check may take a minute: the server's end does not wait for it, and it stays due.
    thread = threading.Thread(target=_beat, args=(heart, seconds, is_over), name="golden-heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        heart.stop()
        thread.join(_MOST_ENDING_SECONDS)


def _beat(heart: Heartbeat, seconds: float, is_over: threading.Event) -> None:
    while not is_over.is_set():
        # What keeps one beat from its work may be over by the next.
        try:
            heart.beat()
        except GoldenError as error:
            if not (isinstance(error, StorageError) and error.trouble is StorageTrouble.LOCKED):
                _LOG.warning("the heartbeat could not do its work: %s", error)
        except Exception:
            _LOG.exception("the heartbeat could not do its work")
        is_over.wait(seconds)
