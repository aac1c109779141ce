"""The actions of a command that has several, such as `golden journal review`: how they are told and declared."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator


class Action(NamedTuple):
    """One action: its name and summary, what declares its arguments, and what does it and gives the exit code.

    `told_below` stands below its options, before what is told of the whole command.
    """

    name: str
    summary: str
    declare: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    told_below: str = ""


def add_actions(
    parser: argparse.ArgumentParser, actions: Iterable[Action], epilog: str
) -> Iterator[tuple[Action, argparse.ArgumentParser]]:
    """Add the actions to a command, and give each with its parser, in which nothing is declared yet."""
    parser.epilog = epilog
    added = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for action in actions:
        yield (
            action,
            added.add_parser(
                action.name,
                help=action.summary,
                description=action.summary,
                epilog=action.told_below + epilog,
                allow_abbrev=False,
                formatter_class=parser.formatter_class,
            ),
        )
