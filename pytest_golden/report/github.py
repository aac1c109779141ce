"""What GitHub Actions shows of a gate run: annotations as workflow commands, and the job summary as Markdown.

Source: https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

import html
import os
import re
from typing import TYPE_CHECKING, Literal, NamedTuple

from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.wording import format_elapsed
from pytest_golden.report.result_text import cut, make_visible, short_reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_golden.regression.model import GoldenProjectResult
    from pytest_golden.regression.verdict import RegressionCheckResult, RunVerdict, Weakening


Level = Literal["error", "warning", "notice"]
# GitHub shows at most this many annotations of each level for a step, and does not mention the others.
MOST_OF_LEVEL = 10
_IN_MESSAGES = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_IN_PROPERTIES = _IN_MESSAGES | str.maketrans({":": "%3A", ",": "%2C"})
# The runner takes both for commands: `::` at the beginning of a line, after any blanks, and `##[` anywhere.
# Source: https://github.com/actions/runner/blob/main/src/Runner.Common/ActionCommand.cs
_COMMAND = re.compile(r"(?m)(?:^(?P<blanks>[^\S\n]*):(?=:))|#(?=#\[)")
MOST_BYTES = 512 * 1024
_MOST_ROWS = 200
_MOST_OF_LINE = 300
_MOST_OF_FAILURE = 16 * 1024
_ROOM_FOR_COUNTS = 2048
_TABLE_HEAD = "| project | status | time | reason |\n|---|---|--:|---|"
# An underscore inside a word means nothing, and neither does a colon that begins no address.
_SPECIAL = re.compile(r"[\\`*\[\]<>|~&@$]|(?<!\w)_|_(?!\w)|:(?=//)|(?<=www)\.")


class Annotation(NamedTuple):
    """An annotation: its message, which may have several lines, a heading, and a line of a file, counted from 1."""

    level: Level
    message: str
    title: str = ""
    line: int | None = None

    def write(self, file: str | None) -> str:
        """Return it as one line without its end; `file` is a path relative to the repository, with `/`."""
        given = (("file", file), ("line", self.line), ("title", self.title))
        properties = ",".join(f"{name}={_escape(str(value), _IN_PROPERTIES)}" for name, value in given if value)
        return f"::{self.level}{' ' if properties else ''}{properties}::{_escape(self.message, _IN_MESSAGES)}"


def annotate(told: Sequence[Annotation], *, file: str | None) -> Iterator[str]:
    """Yield the annotations as lines, at most as many of each level as GitHub shows; the last one counts those left out."""
    for level in dict.fromkeys(one.level for one in told):
        same = [one for one in told if one.level == level]
        shown = same if len(same) <= MOST_OF_LEVEL else same[: MOST_OF_LEVEL - 1]
        for one in shown:
            yield one.write(file)
        if left := same[len(shown) :]:
            titles = "\n".join(one.title for one in left)
            message = f"{len(left)} more, told in the summary of the job:\n{titles}"
            yield Annotation(level, message, "and more").write(file)


def _escape(text: str, escapes: dict[int, str]) -> str:
    return text.translate(escapes).encode("utf-8", "backslashreplace").decode()


def is_on_github() -> bool:
    """Tell whether GitHub's runner reads what is printed here."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def disarm(text: str) -> str:
    """Escape what GitHub's runner would take for a command, such as a pipeline's output; elsewhere, change nothing."""
    return _COMMAND.sub(_disarm_one, text) if is_on_github() else text


def _disarm_one(found: re.Match[str]) -> str:
    blanks = found["blanks"]
    return "\\x23" if blanks is None else f"{blanks}\\x3a"


def job_summary(
    check: RegressionCheckResult,
    *,
    verdict: RunVerdict,
    failures: Mapping[str, str],
    weakenings: Sequence[Weakening],
    notes: Iterable[str] = (),
    most_bytes: int = MOST_BYTES,
) -> str:
    """Return the summary of a gate run as Markdown, with a newline at the end.

    A pipeline's output appears only inside `code` and `pre`, where GitHub makes no mentions, issue links or emoji of it.

    Source: https://github.github.com/gfm/ (entity references 6.2, tables 4.10, HTML blocks 4.6); the limit of 1 MiB a step:
    https://docs.github.com/actions/reference/workflow-commands-for-github-actions#step-isolation-and-limits

    Args:
        check: all results, already redacted.
        verdict: the run's verdict.
        failures: the whole text of each result that fails the gate, by name.
        weakenings: what is weaker than in the base.
        notes: what else a person must see, a line each.
        most_bytes: the limit of the summary's size. What does not fit is counted instead.
    """
    room = max(0, most_bytes - _ROOM_FOR_COUNTS)
    weaker = [_describe_weakening(weakening) for weakening in weakenings]
    floor_title = "Weakened floor" if verdict.is_floor_bad else "Weakened floor, accepted"
    rows, passed = _rows(check.results)
    blocks = [f"## Golden projects: {verdict.heading}", *([verdict.count] if verdict.count else [])]
    blocks += _fit("", [f"- {_code(note)}" for note in notes], room // 16, "more notes")
    blocks += _fit(f"### {floor_title}\n", weaker, room // 4, "more ways in which it is weaker")
    blocks += _fit(_TABLE_HEAD, rows, room // 4, "more projects", passed)
    details = [_describe_failure(result, failures[result.name]) for result in check.results if result.name in failures]
    blocks += _fit("", details, room - sum(map(_size, blocks)), "more failures")
    return "\n\n".join(blocks) + "\n"


def _rows(results: Sequence[GoldenProjectResult]) -> tuple[list[str], int]:
    """Return the rows, and how many passed projects they leave out."""
    is_cut = len(results) > _MOST_ROWS
    shown = [result for result in results if not is_cut or result.status is not ResultStatus.PASSED]
    return [_row(result) for result in shown], len(results) - len(shown)


def _row(result: GoldenProjectResult) -> str:
    took = "" if result.status is ResultStatus.SKIPPED else format_elapsed(result.execution_time_seconds)
    return f"| {_code(result.name)} | {result.status} | {took} | {_code(short_reason(result))} |"


def _describe_weakening(weakening: Weakening) -> str:
    name = f"{_code(weakening.project)}: " if weakening.project else ""
    return f"- {name}{_code(weakening.message)}"


def _describe_failure(result: GoldenProjectResult, text: str) -> str:
    return collapse(f"<code>{_escape_html(make_visible(result.name))}</code>: {result.status}", text)


def collapse(heading: str, text: str) -> str:
    """Return a text that a reader unfolds; the heading is HTML."""
    shown = _escape_html(cut(make_visible(text), _MOST_OF_FAILURE))
    return f"<details><summary>{heading}</summary>\n\n<pre>\n{shown}\n</pre>\n\n</details>\n"


def _fit(head: str, items: Sequence[str], room: int, left_out_are: str, left_out: int = 0) -> list[str]:
    """Return a block of the first items that fit, and one that counts the others; `left_out` are left out already."""
    taken: list[str] = []
    for item in items:
        room -= _size(item) + 1
        if room < 0:
            break
        taken.append(item)
    blocks = ["\n".join([head, *taken] if head else taken)] if taken else []
    if left_out and len(taken) == len(items):
        return [*blocks, f"{left_out} that passed are not listed."]
    left_out += len(items) - len(taken)
    return [*blocks, f"{left_out} {left_out_are} than fit in here: the log has them."] if left_out else blocks


def _code(text: str) -> str:
    """Return a text as one line of code that has no meaning in Markdown, also in a table."""
    line = cut(" ".join(make_visible(text).split()), _MOST_OF_LINE)
    return f"<code>{_SPECIAL.sub(lambda found: f'&#{ord(found[0])};', line)}</code>" if line else ""


def _escape_html(text: str) -> str:
    """Return a text that has no meaning in HTML, and mentions nobody."""
    return html.escape(text, quote=False).replace("@", "&#64;")


def _size(text: str) -> int:
    return len(text.encode("utf-8", "backslashreplace"))
