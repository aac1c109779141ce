"""Takes `exit=N` out of the heads of code blocks: it is for the test that follows the pages, not for their readers."""

from __future__ import annotations

import re
from typing import Any

_EXIT = re.compile(r"^(```\w+[^\n]*?) exit=\d+", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Give the page's text to MkDocs without the expected exit codes."""
    return _EXIT.sub(r"\1", markdown)
