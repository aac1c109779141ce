"""The gate run as GitHub's job summary: Markdown for the page of a workflow run. Pure text; `session/` says where to.

What a pipeline printed stands inside `code` and `pre` alone, where GitHub makes no mentions, issue links or emoji of it.

Source: https://github.github.com/gfm/ (entity references 6.2, tables 4.10, HTML blocks 4.6); the limit of 1 MiB a step:
https://docs.github.com/actions/reference/workflow-commands-for-github-actions#step-isolation-and-limits
"""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.wording import format_elapsed
from pytest_golden.report.failure_text import make_visible
from pytest_golden.report.one_line import closing_count, gate_verdict, short_reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_golden.regression.floor import Weakening
    from pytest_golden.regression.model import GoldenProjectResult, RegressionCheckResult

MOST_BYTES = 512 * 1024
_MOST_ROWS = 200
_MOST_OF_LINE = 300
_MOST_OF_FAILURE = 16 * 1024
_ROOM_FOR_COUNTS = 2048
_TABLE_HEAD = "| project | status | time | reason |\n|---|---|--:|---|"
# An underscore inside a word means nothing, and neither does a colon that begins no address.
_SPECIAL = re.compile(r"[\\`*\[\]<>|~&@$]|(?<!\w)_|_(?!\w)|:(?=//)|(?<=www)\.")


def job_summary(
    check: RegressionCheckResult,
    *,
    failures: Mapping[str, str],
    deselected: Sequence[str],
    not_run: Sequence[str],
    weakenings: Sequence[Weakening],
    floor_accepted: bool,
    notes: Iterable[str] = (),
    most_bytes: int = MOST_BYTES,
) -> str:
    """Give the summary as Markdown that ends with a line end.

    Args:
        check: all results, already redacted.
        failures: the whole text of each result that fails the gate, by name.
        deselected: names of the projects that were not selected.
        not_run: names of those whose turn did not come.
        weakenings: what is weaker than in the base.
        floor_accepted: whether a person has accepted that.
        notes: what else a person must see, a line each.
        most_bytes: the room that there is. What does not fit is counted instead.
    """
    room = max(0, most_bytes - _ROOM_FOR_COUNTS)
    weaker = [_describe_weakening(weakening) for weakening in weakenings]
    floor_title = "Weakened floor, accepted" if floor_accepted else "Weakened floor"
    rows, passed = _rows(check.results)
    blocks = [
        f"## Golden projects: {gate_verdict(check, len(failures), len(not_run), is_weaker=bool(weaker) and not floor_accepted)}",
        closing_count(check.results, len(failures), len(deselected), len(not_run)),
    ]
    blocks += _fit("", [f"- {_code(note)}" for note in notes], room // 16, "more notes")
    blocks += _fit(f"### {floor_title}\n", weaker, room // 4, "more ways in which it is weaker")
    blocks += _fit(_TABLE_HEAD, rows, room // 4, "more projects", passed)
    details = [_describe_failure(result, failures[result.name]) for result in check.results if result.name in failures]
    blocks += _fit("", details, room - sum(map(_size, blocks)), "more failures")
    return "\n\n".join(blocks) + "\n"


def _rows(results: Sequence[GoldenProjectResult]) -> tuple[list[str], int]:
    """Give the rows, and how many of what passed they leave out."""
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
    shown = _escape(_cut(make_visible(text), _MOST_OF_FAILURE))
    name = _escape(make_visible(result.name))
    return f"<details><summary><code>{name}</code>: {result.status}</summary>\n\n<pre>\n{shown}\n</pre>\n\n</details>\n"


def _fit(head: str, items: Sequence[str], room: int, left_out_are: str, left_out: int = 0) -> list[str]:
    """Give one block of the first items that fit, and one that counts the others; `left_out` are out already."""
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
    """Give one line that means nothing to Markdown, also in a table."""
    line = _cut(" ".join(make_visible(text).split()), _MOST_OF_LINE)
    return f"<code>{_SPECIAL.sub(lambda found: f'&#{ord(found[0])};', line)}</code>" if line else ""


def _escape(text: str) -> str:
    """Give a text that means nothing to HTML."""
    return html.escape(text, quote=False).replace("@", "&#64;")


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]} [... {len(text) - most:,} more signs]"


def _size(text: str) -> int:
    return len(text.encode("utf-8", "backslashreplace"))
