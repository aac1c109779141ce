"""The reference's table of tools is that of the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.docs.documents import DOCS
from tests.docs.tables import list_rows

if TYPE_CHECKING:
    from mcp_types import Tool

    from tests.mcp.talking import Talk


def test_the_tools_in_the_reference_are_those_of_the_server(talk: Talk) -> None:
    told = list_rows(DOCS / "reference" / "mcp.md", "Tools")
    assert told == tuple(write_row(tool) for tool in talk.tools().values())


def write_row(tool: Tool) -> str:
    required = tool.input_schema.get("required", [])
    taken = [name if name in required else f"[{name}]" for name in tool.input_schema["properties"]]
    assert tool.output_schema is not None
    assert tool.annotations is not None
    writes = "" if tool.annotations.read_only_hint else " (writes)"
    given = ", ".join(f"`{name}`" for name in tool.output_schema["required"])
    arguments = ", ".join(f"`{name}`" for name in taken) or "none"
    return f"| `{tool.name}`{writes} | {arguments} | {given} |"
