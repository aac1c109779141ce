"""The server of tools, which runs each call in a worker thread."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from mcp.server import Server, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListResourcesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    TextContent,
    TextResourceContents,
)

from pytest_golden.clock import new_id, utc_now
from pytest_golden.errors import GoldenError, ManifestError, StorageError
from pytest_golden.mcp.tool_answers import Answer, make_answer, make_visible
from pytest_golden.mcp.tools import TOOLS, Arguments, GoldenTool, read_arguments, write_instructions
from pytest_golden.mcp.workplace import SESSION, Caller, CallerOptions, Workplace, find_caller
from pytest_golden.settings import find_version

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    Context = ServerRequestContext[dict[str, str], Any]

_log = logging.getLogger(__name__)
_NAME = "golden"
# As many as the store has connections for; more would only wait there.
_MOST_AT_ONCE = 8
_INBOX = Resource(
    uri="golden://inbox",
    name="inbox",
    title="What waits for a person",
    description="Outputs, failures, news, intents, lessons, quarantines and weaker floors that wait for a person, each with the command that deals with it.",
    mime_type="application/json",
)


def make_server(place: Workplace, options: CallerOptions) -> Server[dict[str, str]]:
    """Make the server; how clients reach it is decided by who runs it."""
    tools = {name: tool for name, tool in TOOLS.items() if not (place.is_read_only and tool.is_writer)}
    described = [tool.describe() for tool in tools.values()]
    seats = anyio.CapacityLimiter(_MOST_AT_ONCE)

    async def list_all(_: Context, __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=described)

    async def call(context: Context, asked: CallToolRequestParams) -> CallToolResult:
        tool = tools.get(asked.name)
        if tool is None:
            return _refuse(_describe_unknown(asked.name, tools, place))
        try:
            caller = find_caller(context, options)
            work = partial(_answer, place, tool, caller, asked.arguments or {})
            # A write is finished even if the client disconnects.
            answer = await anyio.to_thread.run_sync(work, limiter=seats)
        except StorageError as error:
            place.notice(error)
            return _refuse(str(error))
        except (GoldenError, ValueError) as error:
            return _refuse(str(error))
        except Exception:
            _log.exception("the tool %s failed unexpectedly", asked.name)
            return _refuse(f"{asked.name} failed unexpectedly: what happened is in the log of `golden mcp` (stderr)")
        return CallToolResult(
            content=[TextContent(type="text", text=answer.text)], structured_content=answer.value, is_error=False
        )

    list_inbox, read_inbox = _offer_inbox(place, seats)
    return Server(
        _NAME,
        title="Golden projects",
        version=find_version("pytest-golden-projects") or "",
        instructions=write_instructions(is_read_only=place.is_read_only),
        lifespan=_live,
        on_list_tools=list_all,
        on_call_tool=call,
        on_list_resources=list_inbox,
        on_read_resource=read_inbox,
    )


def _offer_inbox(place: Workplace, seats: anyio.CapacityLimiter) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return what lists the only resource, and what reads it."""

    async def list_inbox(_: Context, __: PaginatedRequestParams | None) -> ListResourcesResult:
        return ListResourcesResult(resources=[_INBOX])

    async def read_inbox(_: Context, asked: ReadResourceRequestParams) -> ReadResourceResult:
        if str(asked.uri) != _INBOX.uri:
            raise MCPError(INVALID_PARAMS, f"there is no resource {str(asked.uri)!r:.100}; there is {_INBOX.uri}")
        try:
            text = await anyio.to_thread.run_sync(_read_inbox, place, limiter=seats)
        except (GoldenError, ValueError) as error:
            if isinstance(error, StorageError):
                place.notice(error)
            raise MCPError(INTERNAL_ERROR, make_visible(str(error))) from None
        return ReadResourceResult(
            contents=[TextResourceContents(uri=_INBOX.uri, mime_type=_INBOX.mime_type, text=text)]
        )

    return list_inbox, read_inbox


@asynccontextmanager
async def _live(_: Server[dict[str, str]]) -> AsyncIterator[dict[str, str]]:
    yield {SESSION: new_id("mcp")}


def _read_inbox(place: Workplace) -> str:
    # Imported when it is read, as the tools' work is.
    from pytest_golden.gate.inbox_items import open_inbox

    services = place.services()
    try:
        manifest = services.manifest.read()
    except ManifestError:
        manifest = None
    return make_answer(open_inbox(services.store, manifest, utc_now(), by_person=False).to_dict()).text


def _answer(place: Workplace, tool: GoldenTool, caller: Caller, given: dict[str, Any]) -> Answer:
    # Imported by the first call: a client that connects does not wait for it.
    from pytest_golden.mcp import tool_calls

    work: Callable[[Workplace, Caller, Arguments], dict[str, Any]] = getattr(tool_calls, tool.name)
    return make_answer(work(place, caller, read_arguments(tool.name, tool.kind, given)))


def _describe_unknown(name: str, tools: Mapping[str, GoldenTool], place: Workplace) -> str:
    if place.is_read_only and name in TOOLS:
        return f"{name} writes, and this server only reads: it was started with --read-only"
    return f"there is no tool {name!r:.100}; there are {', '.join(tools)}"


def _refuse(sentence: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=make_visible(sentence))], is_error=True)
