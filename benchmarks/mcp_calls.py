"""What a tool's call costs beside the service that it calls, in one process, and how long `golden mcp` takes to answer over stdio.

A call goes through the official client and server in memory; the same service is called directly in turns with it. The start is
measured from nothing to the first list of tools, beside a bare server of the same SDK that has one tool and nothing else.

Run: python benchmarks/mcp_calls.py [CALLS] [--starts N]
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import tempfile
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio.from_thread import start_blocking_portal
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from side_by_side import in_turns

from pytest_golden.mcp.tool_server import make_server
from pytest_golden.mcp.workplace import CallerOptions, Workplace
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ENTRIES = 100
_BARE = """
from mcp.server import MCPServer
server = MCPServer("bare")
@server.tool()
def nothing() -> str:
    return ""
server.run()
"""
_GOLDEN = "import sys; from pytest_golden.cli.main import main; sys.exit(main())"


@contextmanager
def connected(server: Any) -> Iterator[Any]:
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(Client(server)) as client:
        yield lambda name, **arguments: portal.call(partial(client.call_tool, name, arguments))


def measure_calls(folder: Path, count: int) -> None:
    place = Workplace(lambda: Store.open(folder / "golden.db"), folder / "golden_projects.yaml")
    with place:
        services = place.services()
        ids = [services.journal.log_intent(f"work {n}", agent_id="bench", session_key="s").id for n in range(_ENTRIES)]
        with connected(make_server(place, CallerOptions(agent="bench", session="s"))) as call:
            pairs = {
                "log_intent": (
                    lambda: services.journal.log_intent("deploy", agent_id="bench", session_key="s"),
                    lambda: call("log_intent", intent="deploy"),
                ),
                "log_outcome": (
                    lambda: services.journal.log_outcome(ids[0], "success", "seen", agent_id="bench"),
                    lambda: call("log_outcome", entry_id=ids[0], result="success", notes="seen"),
                ),
                "review_journal (10)": (
                    lambda: services.pages.list_entries("bench", limit=10),
                    lambda: call("review_journal"),
                ),
                "review_journal (100)": (
                    lambda: services.pages.list_entries("bench", limit=100),
                    lambda: call("review_journal", limit=100),
                ),
                "recall": (
                    lambda: services.lessons.recall("KeyError: 'customer_id'"),
                    lambda: call("recall", text="KeyError: 'customer_id'"),
                ),
                "search_lessons": (
                    lambda: services.learned.list_lessons("customer", limit=10),
                    lambda: call("search_lessons", query="customer"),
                ),
            }
            for name, (floor, ours) in pairs.items():
                ours()
                bare, whole, ratio = in_turns(floor, ours, count)
                beyond = statistics.median(-cpu_seconds(floor) + cpu_seconds(ours) for _ in range(count))
                print(
                    f"{name:20} service {bare * 1e3:6.2f} ms, call {whole * 1e3:6.2f} ms, {ratio:5.1f} times; "
                    f"beyond the service {(whole - bare) * 1e3:6.2f} ms, of the processor {beyond * 1e3:5.2f} ms "
                    "(promised: 20 ms)"
                )


def cpu_seconds(action: Callable[[], object]) -> float:
    """Tell what a call costs the processor, in all threads: what other programs take is not in it."""
    began = time.process_time()
    action()
    return time.process_time() - began


def children_seconds() -> float:
    """Tell what ended child processes have cost the processor."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure_starts(folder: Path, rounds: int) -> None:
    def time_start(code: str, words: list[str]) -> tuple[float, float]:
        parameters = StdioServerParameters(
            command=sys.executable, args=["-c", code, *words], cwd=folder, env=dict(os.environ)
        )
        began, used = time.perf_counter(), children_seconds()
        with (
            start_blocking_portal() as portal,
            portal.wrap_async_context_manager(Client(stdio_client(parameters))) as client,
        ):
            portal.call(client.list_tools)
            elapsed = time.perf_counter() - began
        return elapsed, children_seconds() - used

    time_start(_GOLDEN, ["mcp"])
    pairs = [(time_start(_BARE, []), time_start(_GOLDEN, ["mcp"])) for _ in range(rounds)]
    for place, what in enumerate(("elapsed", "of the processor, with its end")):
        bare, ours = (statistics.median(pair[side][place] for pair in pairs) for side in (0, 1))
        ratio = statistics.median(pair[1][place] / pair[0][place] for pair in pairs)
        print(
            f"start over stdio: bare SDK {bare:.2f} s, golden mcp {ours:.2f} s, {ratio:.2f} times, {what} (promised: 1.5 s)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("calls", metavar="CALLS", type=int, nargs="?", default=50)
    parser.add_argument("--starts", metavar="N", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / ".git").mkdir()
        measure_calls(folder, arguments.calls)
        measure_starts(folder, arguments.starts)


if __name__ == "__main__":
    main()
