"""`golden inbox`: list what waits for a person, each with the command for the next step. It changes nothing.

It lists outputs that red runs kept, failures of agents that nobody has judged (of the last 14 days), comments that decided nothing,
signals without an entry, branches of cycles, intents that have had no outcome for a day, lessons that need approval, quarantines that end
within 14 days, and weaker floors that were accepted this week. Only a person sees the text of a lesson that needs approval: at a terminal,
or with --as-person.

exit code: 0 done, even if nothing waits; 2 bad input.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from pytest_golden.cli import options
from pytest_golden.cli.screen import answer, print_indented, show_local, styled
from pytest_golden.clock import utc_now
from pytest_golden.errors import ManifestError
from pytest_golden.gate.inbox_items import KINDS, open_inbox
from pytest_golden.manifest.reader import load_manifest

if TYPE_CHECKING:
    import argparse

    from rich.console import Console

    from pytest_golden.gate.inbox_items import Inbox
    from pytest_golden.manifest.model import Manifest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden inbox`."""
    options.add_options(parser, "--as-person", "--manifest", "--store", "--json")


def run(arguments: argparse.Namespace) -> int:
    """Show what waits."""
    manifest: Manifest | None = None
    with suppress(ManifestError):
        manifest = load_manifest(options.find_manifest(arguments))
    with options.open_store(arguments) as store:
        found = open_inbox(store, manifest, utc_now(), by_person=options.is_person(arguments))
    return answer(arguments, found.to_dict(), lambda console: _show(console, found))


def _show(console: Console, found: Inbox) -> None:
    if not found.items:
        console.print(styled("nothing waits for you"))
    for kind, count in found.counts.items():
        console.print(styled(f"{KINDS[kind]} ({count})", "bold"))
        for item in (one for one in found.items if one.kind == kind):
            when = "" if item.at is None else f"{show_local(item.at)}  "
            print_indented(console, f"{when}{item.who}: {item.title}", 2)
            if item.detail:
                print_indented(console, item.detail, 4)
            print_indented(console, styled(item.action, "dim"), 4)
