"""How a verification is shown to people: a line a project, what failed newly in full, and one sentence at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from pytest_golden.cli.screen import open_console, print_indented, print_table, styled
from pytest_golden.regression.comparison import Verdict
from pytest_golden.report.result_text import explain_failure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from pytest_golden.regression.comparison import Comparison, SideRuns
    from pytest_golden.verify.model import Verification

_STYLES = {
    Verdict.OK: "green",
    Verdict.FIXED: "bold green",
    Verdict.NEW_REGRESSION: "bold red",
    Verdict.KNOWN: "yellow",
    Verdict.UNSTABLE: "yellow",
}
_MEANINGS = {
    Verdict.NEW_REGRESSION: "this change broke it",
    Verdict.KNOWN: "it failed before this change too, for the same reason",
    Verdict.UNSTABLE: "it does not always fail, and not provably more often than before",
    Verdict.FIXED: "it failed before this change",
    Verdict.NEW_PROJECT: "the base does not declare it",
    Verdict.REMOVED: "only the base declares it",
    Verdict.SKIPPED: "it was not run",
}


def show_verification(found: Verification) -> None:
    """Print what was found on stdout."""
    console = open_console()
    print_table(console, _make_table(found))
    failing = frozenset(found.failing)
    for one in found.comparisons:
        if one.runs.name in failing and one.runs.head.result is not None:
            named = "new regression " if one.verdict is Verdict.NEW_REGRESSION else "failing "
            console.print()
            console.print(Text.assemble((named, "bold red"), styled(one.runs.name, "bold")))
            print_indented(console, explain_failure(one.runs.head.result, shell_command=None), 2)
            _show_base_failure(console, one)
    _show_floor(console, found)
    console.print()
    console.print(styled(_sum_up(found), "bold green" if found.exit_code == 0 else "bold red"))


def _show_base_failure(console: Console, one: Comparison) -> None:
    base = one.runs.base.result
    if base is not None and one.runs.fails_otherwise:
        print_indented(console, f"on the base it failed for another reason: {base.error_message}", 2)


def _make_table(found: Verification) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for column in ("project", "verdict", "base", "head", ""):
        table.add_column(column, no_wrap=column != "", overflow="fold")
    for one in found.comparisons:
        table.add_row(
            styled(one.runs.name),
            styled(str(one.verdict).replace("_", " "), _STYLES.get(one.verdict, "")),
            styled(_show_side(one.runs.base)),
            styled(_show_side(one.runs.head)),
            styled(_explain(one)),
        )
    return table


def _show_side(runs: SideRuns) -> str:
    """Return the status, or how many of its runs passed where there are several."""
    if runs.status is None:
        return "-"
    return str(runs.status) if runs.tally.total < 2 else f"{runs.tally.passed} of {runs.tally.total} passed"


def _explain(one: Comparison) -> str:
    told = _MEANINGS.get(one.verdict, "")
    if one.verdict in {Verdict.NEW_REGRESSION, Verdict.UNSTABLE} and one.runs.fails_otherwise:
        told += "; on the base it failed for another reason"
    if one.verdict is Verdict.NEW_REGRESSION and one.runs.is_settled:
        return f"{told}, and it repeats byte for byte"
    p_value = one.runs.p_value
    is_shown = p_value is not None and (one.runs.base.tally.total > 1 or one.runs.head.tally.total > 1)
    return f"{told} (by chance alone: {p_value:.2g})" if is_shown else told


def _show_floor(console: Console, found: Verification) -> None:
    if not found.weakened_floor:
        return
    console.print()
    console.print(styled("weakened floor", "bold yellow" if found.is_floor_accepted else "bold red"))
    for one in found.weakened_floor:
        named = f"{one['project']}: " if one.get("project") else ""
        print_indented(console, f"{named}{one['message']}", 2)
    accepted = "It is accepted." if found.is_floor_accepted else "A person accepts this with --floor accept."
    print_indented(console, accepted, 2)


def _sum_up(found: Verification) -> str:
    return "; ".join(_list_news(found))


def _list_news(found: Verification) -> Iterator[str]:
    counts = {verdict: sum(one.verdict is verdict for one in found.comparisons) for verdict in Verdict}
    broken = counts.pop(Verdict.NEW_REGRESSION)
    if found.is_first:
        yield f"the first manifest: {len(found.failing)} of {len(found.comparisons)} failing"
    else:
        yield f"{broken} new regression{'' if broken == 1 else 's'}" if broken else "no new regression"
    rest = ", ".join(
        f"{count} {'new projects' if verdict is Verdict.NEW_PROJECT and count > 1 else str(verdict).replace('_', ' ')}"
        for verdict, count in counts.items()
        if count
    )
    if rest:
        yield rest
    if found.weakened_floor:
        yield f"the floor is weaker{', which is accepted' if found.is_floor_accepted else ''}"
    if found.fails_unexplained:
        yield "the head's gate fails for what was skipped"
