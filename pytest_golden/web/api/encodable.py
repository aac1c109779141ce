"""Content of the API that can be written as JSON in UTF-8, whatever others have recorded."""

from __future__ import annotations

import json
from typing import Any


def make_encodable(content: Any) -> Any:
    """Give JSON content with halves of characters as escapes: what others have recorded may hold them, and UTF-8 may not.

    What holds none is given as it is, which is found out many times faster than a copy is made.
    """
    return content if _is_encodable(content) else _escape(content)


def _is_encodable(content: Any) -> bool:
    try:
        json.dumps(content, ensure_ascii=False, default=_pass_over).encode()
    except (TypeError, ValueError):
        # The error of an encoding is a ValueError.
        return False
    return True


def _pass_over(_other: object) -> None:
    """Leave what JSON does not know, as times, to whoever writes the answer."""


def _escape(content: Any) -> Any:
    if isinstance(content, str):
        return content if content.isascii() else content.encode("utf-8", "backslashreplace").decode()
    if isinstance(content, dict):
        return {_escape(key): _escape(item) for key, item in content.items()}
    return [_escape(item) for item in content] if isinstance(content, list | tuple) else content
