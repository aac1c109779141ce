"""`golden recall TEXT`: what is known of a failure, by its message or by any words. It reads; it runs nothing."""

from __future__ import annotations

from contextlib import suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING

from pytest_golden.cli.limit_option import add_limit_option, read_limit
from pytest_golden.cli.manifest_option import (
    add_json_option,
    add_manifest_option,
    locate_manifest,
    read_command_settings,
)
from pytest_golden.cli.recall_diff import add_diff_option, run_diff
from pytest_golden.cli.screen import open_console, print_indented, print_json, styled
from pytest_golden.cli.store_option import add_store_option, open_store
from pytest_golden.errors import ManifestError, SettingsError
from pytest_golden.gate.lessons.telling import tell_lesson
from pytest_golden.gate.store import list_projects
from pytest_golden.learning import recall_memories
from pytest_golden.learning.lessons.model import RecallReason
from pytest_golden.learning.words import words_of
from pytest_golden.manifest import load_manifest
from pytest_golden.redaction import redact

if TYPE_CHECKING:
    import argparse

    from rich.console import Console

    from pytest_golden.learning import MemoryHit, Recollection, SeenBefore
    from pytest_golden.learning.lessons.model import Recalled
    from pytest_golden.storage.store import Store

_DEFAULT_LIMIT, _MOST = 5, 200
# It reads; only that a lesson was shown is written, and for that nobody waits.
_BUSY_SECONDS = 2.0
_MOST_OF_VALUE = 200
_EPILOG = """\
TEXT is the message of a failure, or words of it. The same failure is known again whatever its numbers, times, paths and
quoted values are; the rest is found by words. What the last gate run left is known when it was learned from.

exit code: 0 told, also when nothing is known; 2 bad input."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden recall`."""
    parser.epilog = _EPILOG
    parser.add_argument("text", metavar="TEXT", nargs="*", help="A failure's message, or words of it.")
    add_diff_option(parser)
    parser.add_argument("--project", metavar="NAME", help="Tell of this golden project alone.")
    add_limit_option(parser, _DEFAULT_LIMIT, "How much of each kind to tell at most")
    add_manifest_option(parser)
    add_store_option(parser)
    add_json_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Tell what is known."""
    if arguments.diff is not None:
        if arguments.text:
            raise SettingsError("TEXT and --diff are two questions: give one of them")
        return run_diff(arguments)
    limit = read_limit(arguments.limit, _MOST)
    text = " ".join(arguments.text)
    if not text.strip():
        raise SettingsError("TEXT is blank: give a failure's message, or words of it; or ask with --diff REF")
    with open_store(arguments, busy_seconds=_BUSY_SECONDS) as store:
        known = recall_memories(store, text, project=arguments.project, limit=limit)
        if arguments.project is not None and not known.seen and not known.memories:
            _refuse_unknown(arguments, store)
    if arguments.json:
        print_json({"text": redact(text), **known.to_dict()})
    else:
        _show(open_console(), known)
    return 0


def _refuse_unknown(arguments: argparse.Namespace, store: Store) -> None:
    """Refuse a project that neither the store nor the manifest knows; a manifest that cannot be read knows none."""
    with store.read() as connection:
        known = list_projects(connection)
    with suppress(ManifestError):
        manifest = load_manifest(locate_manifest(read_command_settings(arguments)))
        known += tuple(project.name for project in manifest.projects)
    if arguments.project not in known:
        near = get_close_matches(arguments.project, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "; `golden history` lists all"
        raise SettingsError(f"no golden project called {arguments.project!r} has a run in {store.where}{hint}")


def _show(console: Console, known: Recollection) -> None:
    if not known.lessons and not known.seen and not known.memories:
        console.print(styled("nothing is known of this"))
    for recalled in known.lessons:
        _show_lesson(console, recalled)
    for one in known.seen:
        _show_seen(console, one)
    if known.memories:
        console.print(styled("memories with these words", "bold"))
    for hit in known.memories:
        _show_memory(console, hit)


def _show_lesson(console: Console, recalled: Recalled) -> None:
    first, *more = tell_lesson(recalled.lesson)
    alike = "" if recalled.why == RecallReason.SIGNATURE else "reads alike: "
    console.print(styled(f"{alike}{first}", "bold green"))
    for line in (*more, recalled.lesson.why):
        if line.strip():
            print_indented(console, line.strip(), 2)
    console.print(styled(f"  {recalled.lesson.id}", "dim"))


def _show_seen(console: Console, seen: SeenBefore) -> None:
    alike = "" if seen.why == "signature" else "reads alike: "
    console.print(styled(f"{alike}{seen}", "bold" if seen.why == "signature" else ""))
    print_indented(console, seen.message, 2)


def _show_memory(console: Console, hit: MemoryHit) -> None:
    memory = hit.memory
    console.print(styled(f"  {'/'.join(memory.namespace)}  {memory.key}", "dim"))
    told = " ".join(_describe(hit).split())
    print_indented(console, told if len(told) <= _MOST_OF_VALUE else f"{told[: _MOST_OF_VALUE - 4]} ...", 4)


def _describe(hit: MemoryHit) -> str:
    """Give an outcome in a few words, and the words of anything else."""
    value = hit.memory.value
    if "task_description" not in value:
        return str(value["lesson"]) if "lesson" in value else words_of(value)
    ending = "success" if value.get("success") else f"failure: {value.get('error_message') or 'no message'}"
    return f"{hit.memory.updated_at:%Y-%m-%d} {value['task_description']}: {ending}"
