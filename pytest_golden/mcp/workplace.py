"""Where the tools work, and for whom: one store, opened when it is first needed, one manifest, and the caller."""

from __future__ import annotations

import hashlib
import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from pytest_golden.errors import StorageError, StorageTrouble
from pytest_golden.journal.rules import is_reserved

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from mcp.server import ServerRequestContext
    from starlette.requests import Request

    from pytest_golden.learning.memory_store import MemoryStore
    from pytest_golden.mcp.agent_tasks import AgentTasks
    from pytest_golden.storage.store import Store
    from pytest_golden.web.services import Services

#: The key of the server's state in its lifespan, which lasts one connection over stdio, and many over HTTP.
SESSION = "session"
_NAMELESS = "mcp"
_LONGEST_NAME = 100
_KEY_DIGITS = 26


class Workplace:
    """A store and a manifest. Threads may share it.

    `open_store` opens the store or tells why there is none; where there is none yet it is asked again by the next call.
    """

    def __init__(
        self,
        open_store: Callable[[], Store],
        manifest: Path,
        rules: Mapping[str, Mapping[str, Any]] | None = None,
        *,
        is_read_only: bool = False,
    ) -> None:
        self.manifest = manifest
        self.is_read_only = is_read_only
        self._open_store = open_store
        self._rules = rules
        self._turn = threading.RLock()
        self._tasks: AgentTasks | None = None
        self._store: Store | None = None
        self._services: Services | None = None
        self._memories: MemoryStore | None = None

    @property
    def root(self) -> Path:
        """Return the folder that agents work in: that of the manifest."""
        return self.manifest.parent

    def open(self) -> Store:
        """Open the store, if it is not open yet.

        Raises:
            GoldenError: there is no store, or it cannot be opened.
        """
        with self._turn:
            if self._store is None:
                self._store = self._open_store()
            return self._store

    def services(self) -> Services:
        """Return the services.

        Raises:
            GoldenError: there is no store, or it cannot be opened.
        """
        with self._turn:
            if self._services is None:
                # The first call loads what calls need: a client that connects does not wait for it.
                from pytest_golden.web.services import Services

                self._services = Services.on(self.open(), self.manifest, self._rules)
            return self._services

    def memories(self) -> MemoryStore:
        """Return the memories of the store, with the embedder that the environment names. Raise as `open` does.

        A read-only place uses no embedder: the vectors that it makes would be written.
        """
        with self._turn:
            if self._memories is None:
                from pytest_golden.learning.memory_store import MemoryStore

                self._memories = MemoryStore.from_env(self.open(), {} if self.is_read_only else os.environ)
            return self._memories

    def tasks(self) -> AgentTasks:
        """Return the open tasks of agents."""
        with self._turn:
            if self._tasks is None:
                from pytest_golden.mcp.agent_tasks import AgentTasks

                self._tasks = AgentTasks()
            return self._tasks

    def notice(self, error: StorageError) -> None:
        """Close a store whose file was moved or removed: the next call opens the file that is there then, or creates one."""
        if error.trouble is StorageTrouble.GONE:
            self.close()

    def close(self) -> None:
        """Close the store, if it was opened."""
        with self._turn:
            store, self._store, self._services, self._memories = self._store, None, None, None
            tasks, self._tasks = self._tasks, None
        if tasks is not None:
            tasks.close()
        if store is not None:
            store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerOptions:
    """`agent` is the caller of every tool (None: the client's name); `session` the key of all calls (None: one per connection)."""

    agent: str | None = None
    session: str | None = None


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls a tool, and in which session."""

    agent: str
    session: str


def find_caller(context: ServerRequestContext[dict[str, str], Any], options: CallerOptions) -> Caller:
    """Return who calls.

    Raises:
        ValueError: the client's name is one of people and this program.
    """
    agent = options.agent or _name_client(context)
    return Caller(agent, options.session or _find_session(context))


def _name_client(context: ServerRequestContext[dict[str, str], Any]) -> str:
    params = context.session.client_params
    told = "" if params is None else params.client_info.name
    name = _seen(told)[:_LONGEST_NAME]
    if is_reserved(name):
        raise ValueError(
            f"the client is called {name!r}, and only people and this program may be: start `golden mcp` with --agent NAME"
        )
    return name or _NAMELESS


def _seen(name: str) -> str:
    return "".join(one for one in name if one.isprintable()).strip()


def _find_session(context: ServerRequestContext[dict[str, str], Any]) -> str:
    """Return one key per connection: over HTTP from the protocol's session, or where it has none (since 2026), from the network's."""
    own = context.lifespan_context[SESSION]
    request: Request | None = context.request
    if request is None:
        return own
    named = request.headers.get("mcp-session-id") or f"{request.client}"
    digits = hashlib.sha256(f"{own} {named}".encode()).hexdigest()
    return f"{own.partition('_')[0]}_{digits[:_KEY_DIGITS].upper()}"
