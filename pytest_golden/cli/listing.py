"""Tables for people whose ids and times stay in one piece, so that they can be read and copied."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from pytest_golden.cli.screen import styled

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console
    from rich.text import Text

#: From this width on there is room for more than an id, a time and one text in a row.
WIDE = 110
# Ids that others have made may be longer; these are folded.
_LONGEST_WHOLE = 40
_LEAST_ROOM = 20


def make_listing(
    console: Console,
    titles: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    *,
    whole: Sequence[str] = (),
    right: Sequence[str] = (),
) -> Table:
    """Make a table; columns in `whole` are not folded while the others have room, those in `right` end at one line."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for title in titles:
        table.add_column(title, justify="right" if title in right else "left", overflow="fold")
    lengths = {title: len(title) for title in whole}
    for row in rows:
        for title, told in zip(titles, row, strict=True):
            if title in lengths:
                lengths[title] = min(_LONGEST_WHOLE, max(lengths[title], len(told)))
        table.add_row(*(styled(told) if isinstance(told, str) else told for told in row))
    if console.width - sum(length + 2 for length in lengths.values()) >= _LEAST_ROOM:
        for column in table.columns:
            column.width = lengths.get(str(column.header))
    return table
