"""GitHub's annotations: one line on stdout for each, which the runner shows at the manifest's line.

Source: https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

from typing import Literal

_IN_MESSAGES = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_IN_PROPERTIES = _IN_MESSAGES | str.maketrans({":": "%3A", ",": "%2C"})


def annotation(
    level: Literal["error", "warning", "notice"],
    message: str,
    *,
    title: str | None = None,
    file: str | None = None,
    line: int | None = None,
) -> str:
    """Give an annotation as one line without its end.

    Args:
        level: how bad it is.
        message: what to show; may have several lines.
        title: a heading for it.
        file: a path relative to the repository, with `/`.
        line: a line of that file, counted from 1.
    """
    given = (("file", file), ("line", line), ("title", title))
    properties = ",".join(f"{name}={_escape(str(value), _IN_PROPERTIES)}" for name, value in given if value)
    return f"::{level}{' ' if properties else ''}{properties}::{_escape(message, _IN_MESSAGES)}"


def _escape(text: str, escapes: dict[int, str]) -> str:
    return text.translate(escapes).encode("utf-8", "backslashreplace").decode()
