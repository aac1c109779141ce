"""GitHub's annotations: one line on stdout for each, which the runner shows at the manifest's line.

Also what keeps the runner from taking other lines, such as what a pipeline printed, for commands.

Source: https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Level = Literal["error", "warning", "notice"]

# GitHub shows so many of each level for a step; of more it shows the first ones and says nothing of the others.
MOST_OF_LEVEL = 10
_IN_MESSAGES = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_IN_PROPERTIES = _IN_MESSAGES | str.maketrans({":": "%3A", ",": "%2C"})
# The runner takes both for commands, the one at the beginning of a line behind any blanks, the other one anywhere.
# Source: https://github.com/actions/runner/blob/main/src/Runner.Common/ActionCommand.cs
_COMMAND = re.compile(r"(?m)(?:^(?P<blanks>[^\S\n]*):(?=:))|#(?=#\[)")


class Annotation(NamedTuple):
    """What to say where: see `annotation`."""

    level: Level
    message: str
    title: str
    line: int | None = None


def annotate(told: Sequence[Annotation], *, file: str | None) -> Iterator[str]:
    """Give the annotations as lines, of each level as many as GitHub shows: the last one counts those left out."""
    for level in dict.fromkeys(one.level for one in told):
        same = [one for one in told if one.level == level]
        shown = same if len(same) <= MOST_OF_LEVEL else same[: MOST_OF_LEVEL - 1]
        for one in shown:
            yield annotation(level, one.message, title=one.title, file=file, line=one.line)
        if left := same[len(shown) :]:
            titles = "\n".join(one.title for one in left)
            yield annotation(
                level, f"{len(left)} more, told in the summary of the job:\n{titles}", title="and more", file=file
            )


def annotation(
    level: Level,
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


def is_on_github() -> bool:
    """Tell whether GitHub's runner reads what is printed here."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def disarm(text: str) -> str:
    """Escape what the runner would take for a command; elsewhere nothing is changed."""
    return _COMMAND.sub(_write_out, text) if is_on_github() else text


def _write_out(found: re.Match[str]) -> str:
    blanks = found["blanks"]
    return "\\x23" if blanks is None else f"{blanks}\\x3a"


def _escape(text: str, escapes: dict[int, str]) -> str:
    return text.translate(escapes).encode("utf-8", "backslashreplace").decode()
