"""What the measurements of the web face share: which addresses are asked for, and the bare site that they stand beside."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from journal_store import AGENTS, CROWDED_ENTRY
from sqlalchemy import func, select

from pytest_golden.journal.model import RoutedBy
from pytest_golden.storage.paging import Listing
from pytest_golden.storage.schema import entries, gate_results, gate_runs, memories, signals, trajectories

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Column, Connection

    from pytest_golden.storage.store import Store

BUSY, QUIET = AGENTS[0], AGENTS[-1]
_API = "/api/v1"
_BARE_SITE = Path(__file__).with_name("bare_site.py")
_ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)\s*")


class Found:
    """What is in a store that pages are about."""

    def __init__(self, store: Store) -> None:
        with store.read() as connection:
            newest = select(gate_runs.c.entry_id).where(gate_runs.c.host == "large")
            self.run = str(connection.scalar(newest.order_by(gate_runs.c.number.desc()).limit(1)))
            ended = select(gate_results.c.entry_id).where(gate_results.c.run_id == self.run)
            self.result, self.largest_result = (
                str(connection.scalar(ended.order_by(gate_results.c.number).limit(1).offset(place))) for place in (3, 0)
            )
            self.signal = _newest(
                connection, signals.c.id, signals.c.number, signals.c.routed_by == RoutedBy.MATCH_HINT
            )
            self.entry = _newest(
                connection,
                entries.c.id,
                entries.c.number,
                (entries.c.agent_id == BUSY) & (entries.c.id != CROWDED_ENTRY),
            )
            self.session = _newest(
                connection, entries.c.session_key, entries.c.number, entries.c.session_key.is_not(None)
            )
            self.lesson, self.plan = (
                _newest(connection, memories.c.key, memories.c.number, memories.c.namespace.like(f"{kind}/%"))
                for kind in ("lessons", "plans")
            )


def list_pages(store: Store) -> dict[str, str]:
    """Return by name the addresses of all pages, with the filters and places that are hardest to find."""
    found = Found(store)
    late = {
        "runs": _deep("runs", False),
        "journal": _deep("entries", None, "all", None, None),
        "journal of a quiet agent": _deep("entries", QUIET, "all", None, None),
        "signals": _deep("signals", None, None),
        "projects": Listing("projects", kinds=(str,)).write_cursor(("p949",)),
    }
    return {
        "runs": "/",
        "runs, last page": f"/?cursor={late['runs']}",
        "a run": f"/runs/{found.run}",
        "a result": f"/results/{found.result}",
        "a result, the largest": f"/results/{found.largest_result}",
        "projects": "/projects",
        "projects, last page": f"/projects?cursor={late['projects']}",
        "a project": "/projects/p0",
        "journal": "/journal",
        "journal, last page": f"/journal?cursor={late['journal']}",
        "journal, busy agent": f"/journal?agent={BUSY}",
        "journal, quiet agent, last page": f"/journal?agent={QUIET}&cursor={late['journal of a quiet agent']}",
        "journal, partial refunds": "/journal?filter=partial&type=refund",
        "journal, quiet, open refunds": f"/journal?agent={QUIET}&filter=open&type=refund",
        "journal, quiet, successful refunds": f"/journal?agent={QUIET}&filter=success&type=refund",
        "journal, a type of nobody": "/journal?type=nobodys",
        "journal, quiet, a type of nobody": f"/journal?agent={QUIET}&type=nobodys",
        "journal, an agent of no name": "/journal?agent=nobody",
        "journal, a session": f"/journal?session={quote(found.session)}",
        "waiting": "/waiting",
        "search, common words": "/search?q=" + quote("refund"),
        "search, of nothing": "/search?q=" + quote("nobody ever wrote this"),
        "cycles": "/cycles",
        "agents": "/agents",
        "outcomes": "/outcomes",
        "an entry": f"/journal/{found.entry}",
        "an entry, crowded": f"/journal/{CROWDED_ENTRY}",
        "an entry, a gate run": f"/journal/{found.run}",
        "expectations": "/expectations",
        "expectations, quiet agent": f"/expectations?agent={QUIET}",
        "summary": "/summary",
        "summary, a year": "/summary?since=365d",
        "summary, busy agent": f"/summary?agent={BUSY}&since=30d",
        "signals": "/signals",
        "signals, last page": f"/signals?cursor={late['signals']}",
        "signals, orphans": "/signals?routed_by=orphan",
        "signals, quiet agent": f"/signals?agent={QUIET}",
        "signals, quiet agent, by session": f"/signals?agent={QUIET}&routed_by=session_key",
        "a signal": f"/signals/{found.signal}",
        "lessons": "/lessons",
        "lessons, harmful": "/lessons?filter=harmful",
        "lessons, all words": "/lessons?q=" + quote("column frame query load"),
        "lessons, a rare word": "/lessons?q=table_77",
        "a lesson": f"/lessons/{found.lesson}",
        "plans": "/plans",
        "plans, all words": "/plans?q=" + quote("mend column frame table"),
        "a plan": f"/plans/{found.plan}",
        "sign in": "/sign-in",
    }


def list_of_api(store: Store) -> dict[str, str]:
    """Return by name the addresses of the JSON API that programs read, lists as long as they may be."""
    found = Found(store)
    lists = {
        f"api, {name}": f"{_API}/{name}?limit=200"
        for name in ("runs", "projects", "entries", "expectations", "signals", "lessons", "plans", "agents")
    }
    one = {
        f"api, a {name}": f"{_API}/{path}"
        for name, path in {
            "result": f"results/{found.result}",
            "project": "projects/p0",
            "journal entry": f"entries/{found.entry}",
            "crowded journal entry": f"entries/{CROWDED_ENTRY}",
            "signal": f"signals/{found.signal}",
            "lesson": f"lessons/{found.lesson}",
            "plan": f"plans/{found.plan}",
        }.items()
    }
    return {**lists, **one, "api, summary": f"{_API}/summary", "api, a run of 1,000": f"{_API}/runs/{found.run}"}


def count_rows(store: Store) -> str:
    """Tell how much there is."""
    tables = {"entries": entries, "signals": signals, "gate runs": gate_runs, "results": gate_results}
    with store.read() as connection:
        told = {name: connection.scalar(select(func.max(table.c.number))) or 0 for name, table in tables.items()}
        told["trajectories"] = connection.scalar(select(func.count()).select_from(trajectories)) or 0
    return ", ".join(f"{count:,} {name}" for name, count in told.items())


@contextmanager
def golden_serve(store: Path, manifest: Path, *words: str) -> Iterator[tuple[str, int]]:
    """Run `golden serve` in a process of its own, and give its address and its process."""
    code = "import sys; from pytest_golden.cli.main import main; sys.exit(main())"
    options = ("--port", "0", "--store", str(store), "--manifest", str(manifest))
    with _served([sys.executable, "-c", code, "serve", *options, *words]) as served:
        yield served


@contextmanager
def bare_site() -> Iterator[tuple[str, int]]:
    """Run the bare site in a process of its own, and give its address and its process."""
    with _served([sys.executable, str(_BARE_SITE)]) as served:
        yield served


@contextmanager
def _served(command: Sequence[str]) -> Iterator[tuple[str, int]]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = process.stdout.readline()
        if not _ADDRESS.fullmatch(address):
            raise RuntimeError(f"the server told {address!r} and no address")
        yield address.strip(), process.pid
    finally:
        process.terminate()
        process.wait()


def _newest(connection: Connection, wanted: Column[Any], number: Column[Any], where: Any) -> str:
    return str(connection.scalar(select(wanted).where(where).order_by(number.desc()).limit(1)))


def _deep(*bound: Any) -> str:
    """Return the cursor of a list's last items."""
    return Listing(*bound, kinds=(int,)).write_cursor((60,))
