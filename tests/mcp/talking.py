"""The SDK's own client, spoken to without await."""

from __future__ import annotations

import json
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from anyio.from_thread import start_blocking_portal
from mcp.client import Client
from mcp_types import CallToolResult, Implementation, TextContent, TextResourceContents

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anyio.from_thread import BlockingPortal
    from mcp_types import Tool

MODES = ("legacy", "auto")


class Talk:
    """One connection of a client."""

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self._portal = portal
        self.client = client

    def call(self, tool: str, /, **arguments: Any) -> CallToolResult:
        answer: CallToolResult = self._portal.call(partial(self.client.call_tool, tool, arguments))
        return answer

    def ask(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        answer = self.call(tool, **arguments)
        assert not answer.is_error, read_text(answer)
        assert json.loads(read_text(answer)) == answer.structured_content
        told: dict[str, Any] = answer.structured_content
        return told

    def refusal(self, tool: str, /, **arguments: Any) -> str:
        answer = self.call(tool, **arguments)
        assert answer.is_error, read_text(answer)
        assert answer.structured_content is None
        return read_text(answer)

    def short_refusal(self, tool: str, /, **arguments: Any) -> str:
        """Return a refusal of one line that an agent has room for."""
        told = self.refusal(tool, **arguments)
        assert "\n" not in told
        assert len(told) < 4096
        return told

    def tools(self) -> dict[str, Tool]:
        return {tool.name: tool for tool in self._portal.call(self.client.list_tools).tools}

    def read(self, uri: str) -> Any:
        (content,) = self._portal.call(partial(self.client.read_resource, uri)).contents
        assert isinstance(content, TextResourceContents)
        return json.loads(content.text)

    def resources(self) -> list[str]:
        return [one.uri for one in self._portal.call(self.client.list_resources).resources]


def read_text(answer: CallToolResult) -> str:
    (content,) = answer.content
    assert isinstance(content, TextContent)
    return content.text


@contextmanager
def talk_to(server: Any, *, name: str = "tess", mode: str = "auto") -> Iterator[Talk]:
    """Connect to a server, a transport or a URL."""
    client = Client(server, mode=mode, client_info=Implementation(name=name, version="1"))
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client) as connected:
        yield Talk(portal, connected)
