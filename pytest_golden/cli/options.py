"""What several commands share: options and the meaning of their values, actions, and a clean end on SIGTERM."""

from __future__ import annotations

import getpass
import os
import signal
import sys
import threading
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.clock import utc_now
from pytest_golden.errors import SettingsError
from pytest_golden.settings import MANIFEST_NAME, Sources, find_manifest_above, read_settings

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from datetime import datetime

    from pytest_golden.settings import GoldenSettings
    from pytest_golden.storage.store import Store


# The names that commands give to the gate's options.
_WIDEST = 79
_FLAGS = {"golden_manifest": "manifest", "golden_store": "store", "golden_attest": "attest"}
_BEGINNING = "run `pytest --golden`, or log an intent with `golden journal log-intent`"
_MOST_DIGITS = 9
_INTERRUPTED = 2
_SHARED: Mapping[str, Mapping[str, Any]] = {
    "--agent": {"metavar": "NAME", "help": "Only this agent (default: all)."},
    "--as-person": {
        "action": "store_true",
        "help": "Act as a person without a terminal, as in your own script. Not for agents.",
    },
    "--by": {"metavar": "NAME", "help": "Who decides (default: the user)."},
    "--json": {"action": "store_true", "help": "Print JSON instead of text."},
    "--manifest": {
        "metavar": "PATH",
        "help": f"The manifest (default: env GOLDEN_MANIFEST, else the nearest {MANIFEST_NAME}, in this folder or above it).",
    },
    "--rules": {
        "metavar": "FILE",
        "help": "The rules of agents, YAML or JSON (default: env GOLDEN_JOURNAL_RULES, else none).",
    },
    # A command that has it declares --manifest too.
    "--store": {
        "metavar": "STORE",
        "help": "The store: a file or URL (default: env GOLDEN_STORE_URL, else .golden/golden.db in the workspace root).",
    },
}
_STORE_OF_GATES = "The store: a file, a URL or none (default: env GOLDEN_STORE_URL, else .golden/golden.db)."


def add_options(parser: argparse.ArgumentParser, *names: str) -> None:
    """Declare options that commands share."""
    for name in names:
        parser.add_argument(name, **_SHARED[name])


def add_gate_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of a command that runs gates: they create a missing store, and `none` is allowed."""
    parser.add_argument("--store", metavar="STORE", help=_STORE_OF_GATES)
    add_options(parser, "--manifest", "--json")


def add_limit_option(parser: argparse.ArgumentParser, default: int, told: str = "The most to show") -> None:
    """Declare `--limit`."""
    parser.add_argument("--limit", metavar="N", default=str(default), help=f"{told} (default {default}).")


class Action(NamedTuple):
    """One action of a command that has several, such as `golden journal review`.

    `run` does it and returns the exit code; the first line of its docstring is the summary, the rest stands below the options
    in the action's help. `declare` declares the arguments.
    """

    name: str
    run: Callable[[argparse.Namespace], int]
    declare: Callable[[argparse.ArgumentParser], object] = lambda _: None


def add_actions(parser: argparse.ArgumentParser, actions: Iterable[Action], *options: str) -> None:
    """Declare the actions of a command with their arguments, and the shared options that each of them has."""
    added = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for action in actions:
        summary, _, rest = (action.run.__doc__ or "").partition("\n\n")
        declared = added.add_parser(
            action.name,
            help=summary,
            description=summary,
            epilog=f"{dedent(rest)}\n{parser.epilog}" if rest else parser.epilog,
            allow_abbrev=False,
            formatter_class=parser.formatter_class,
        )
        declared.set_defaults(run_action=action.run)
        action.declare(declared)
        add_options(declared, *options)


def run_action(arguments: argparse.Namespace) -> int:
    """Run the action that is asked for, and return its exit code."""
    code: int = arguments.run_action(arguments)
    return code


def locate_manifest(settings: GoldenSettings) -> Path:
    """Return the path of the manifest that the command uses; it need not exist."""
    return settings.manifest or find_manifest_above(Path.cwd()) or Path.cwd() / MANIFEST_NAME


def find_manifest(arguments: argparse.Namespace) -> Path:
    """Return the path of the manifest that a command without further settings uses; it need not exist."""
    return locate_manifest(read_command_settings(arguments))


def read_command_settings(arguments: argparse.Namespace) -> GoldenSettings:
    """Read the options that the command line shares with the gate, from flags and environment variables.

    Raises:
        SettingsError: a variable has a value that cannot be used.
    """

    def find_flag(key: str) -> Any:
        return getattr(arguments, _FLAGS.get(key, ""), None)

    here = Path.cwd()
    with refusing_values():
        return read_settings(Sources(find_flag, lambda _: None, os.environ, here, here))


@contextmanager
def refusing_values(told: str = "") -> Iterator[None]:
    """Turn a ValueError inside the with-block into a SettingsError, as bad input; `told` stands before its message."""
    try:
        yield
    except ValueError as error:
        raise SettingsError(f"{told}{error}") from None


def suggest_name(name: str, known: Collection[str], otherwise: str = "`golden history` lists all") -> str:
    """Return the question whether the nearest known name was meant, or another hint if none is near."""
    near = get_close_matches(name, known, n=1)
    return f"did you mean {near[0]!r}?" if near else otherwise


def open_store(arguments: argparse.Namespace, *, makes: bool = False, busy_seconds: float | None = None) -> Store:
    """Open the store that the command uses; with `makes`, create one that does not exist yet.

    Wait up to `busy_seconds` for another writer, as long as a gate does if it is None.

    Raises:
        SettingsError: the store does not exist yet, or cannot exist at that location.
        ManifestError: the manifest, which tells the workspace root, cannot be used.
        StorageError: it cannot be opened.
    """
    # Many commands have these options and open no store.
    from pytest_golden.storage.engine import BUSY_SECONDS
    from pytest_golden.storage.store import Store

    seconds = BUSY_SECONDS if busy_seconds is None else busy_seconds
    return Store.open(locate_store(arguments, makes=makes), busy_seconds=seconds)


def locate_store(arguments: argparse.Namespace, *, makes: bool = False) -> str | Path:
    """Return the location of the store that the command uses, without opening it; with `makes`, it need not exist yet.

    Raises:
        SettingsError: the store does not exist yet, or cannot exist at that location.
        ManifestError: the manifest, which tells the workspace root, cannot be used.
    """
    from pytest_golden.gate.state_folder import find_state_folder, find_store_place

    if arguments.store is not None and not arguments.store.strip():
        raise SettingsError("--store is empty: give a file or none")
    settings = read_command_settings(arguments)
    # If the store's location is given, no manifest is needed.
    state_folder = Path() if settings.store else find_state_folder(find_root(locate_manifest(settings)))
    place = find_store_place(settings.store, state_folder)
    if place is None:
        raise SettingsError("recording is off (`none` in --store or GOLDEN_STORE_URL): name a store")
    file = place.parse()
    if not makes and not file.is_there:
        raise SettingsError(f"nothing is recorded yet in {file.shown}: {_BEGINNING}")
    return place.location


def find_root(manifest: Path) -> Path:
    """Return the workspace root that a manifest declares; the manifest's folder if there is no such file.

    Raises:
        ManifestError: the manifest cannot be used.
    """
    from pytest_golden.manifest.reader import load_manifest

    return load_manifest(manifest).workspace_root if manifest.exists() else manifest.parent


def add_base_options(parser: argparse.ArgumentParser, *, is_required: bool = True) -> None:
    """Declare what commands have that compare with a base."""
    parser.add_argument(
        "--base", metavar="REF", required=is_required, help="The branch, tag or commit to compare with."
    )
    parser.add_argument(
        "--floor",
        choices=("check", "accept"),
        help="Fail on a weakened floor, or accept it (default: env GOLDEN_FLOOR, else check).",
    )
    parser.add_argument(
        "--attest", metavar="PATH", help="Write a signed statement about the commit, its judge and the verdict."
    )


def run_against_base(arguments: argparse.Namespace, work: Callable[[GoldenSettings, Path], int]) -> int:
    """Run a command that compares with a base on its settings and manifest, and end it cleanly if it is interrupted.

    Raises:
        SettingsError: the base or the manifest cannot be used.
    """
    from pytest_golden.verify.gates import VARIABLES_OF_HOOKS

    settings = read_command_settings(arguments)
    if arguments.base is not None and (not arguments.base or arguments.base.startswith("-")):
        raise SettingsError(f"--base {arguments.base!r} is not a git ref: give a branch, a tag or a commit")
    for name in VARIABLES_OF_HOOKS:
        os.environ.pop(name, None)
    manifest = locate_manifest(settings)
    if not manifest.is_file():
        raise SettingsError(
            f"{manifest} is not there: name the manifest by --manifest, or run `golden init` to write a first one"
        )
    if not manifest.parent.samefile(Path.cwd()):
        say(f"commands that are shown are to be typed in {manifest.parent}")
    try:
        with raise_when_ended():
            return work(settings, manifest)
    except KeyboardInterrupt:
        print("golden: interrupted; nothing was decided", file=sys.stderr)
        return _INTERRUPTED


def read_rules(arguments: argparse.Namespace) -> Mapping[str, Mapping[str, Any]]:
    """Read the rules of agents from `--rules`, or from the file that the environment names.

    Raises:
        SettingsError: they cannot be used.
    """
    from pytest_golden.journal.agent_rules import find_rules, read_rules_file

    return find_rules() if arguments.rules is None else read_rules_file(Path(arguments.rules))


def read_limit(text: str, most: int, option: str = "--limit") -> int:
    """Read the value of `--limit`, or of another option that is a limit.

    Raises:
        SettingsError: it is not a number from 1 to `most`.
    """
    # Cut, because Python refuses to read a number with thousands of digits.
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:_MOST_DIGITS]) <= most:
        raise SettingsError(f"{option} {text} cannot be used; give a number from 1 to {most}")
    return int(text)


def read_moment(option: str, text: str) -> datetime:
    """Read a time, or an age such as `90d`, `12h` or `30m`; a time without a zone is local.

    Raises:
        SettingsError: it is neither a time nor an age.
    """
    from pytest_golden.journal.review import parse_timestamp

    with refusing_values(f"{option} "):
        return parse_timestamp(text, utc_now())


def say(text: str) -> None:
    """Print a line that is not an answer on stderr."""
    # Imported only if there is something to say.
    from pytest_golden.report.result_text import make_visible

    print(f"golden: {make_visible(text)}", file=sys.stderr, flush=True)


@contextmanager
def watch_gates() -> Iterator[tuple[Callable[[str], None], Callable[[str], None] | None]]:
    """Yield a function that prints news as lines, and one that shows a gate's last line below, None outside a terminal."""
    from pytest_golden.cli.screen import show_line

    with show_line() as show:

        def say_above(text: str) -> None:
            if sys.stderr.isatty():
                show("")
                sys.stderr.write("\r")
            say(text)

        yield say_above, (lambda line: show(line[:_WIDEST])) if sys.stderr.isatty() else None


def read_duration(option: str, text: str) -> float:
    """Read a duration such as `90s` or `10m` in seconds.

    Raises:
        SettingsError: it is not a duration.
    """
    from pytest_golden.manifest.units import parse_duration

    with refusing_values(f"{option}: "):
        return parse_duration(text)


def is_person(arguments: argparse.Namespace) -> bool:
    """Tell whether a person types the command: at a terminal, or with `--as-person`."""
    # A program that leaves its own terminal to a command as stdin reads at least its messages.
    return arguments.as_person or (os.isatty(0) and os.isatty(2))


def check_person(arguments: argparse.Namespace, what: str, instead: str = "leave it to a person") -> None:
    """Let only a person do this; `instead` tells an agent what it may do.

    Raises:
        SettingsError: nobody sits at a terminal, and `--as-person` is not given.
    """
    if not is_person(arguments):
        raise SettingsError(
            f"{what} is for people, and nobody is at a terminal here: type it in one, or add --as-person to your own script; "
            f"if you are an agent, {instead}"
        )


def find_person(arguments: argparse.Namespace, what: str) -> str:
    """Return the name of the person who judges: `--by`, else the user. Raise as `check_person` does."""
    check_person(arguments, what)
    if arguments.by is not None:
        return str(arguments.by)
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "somebody"


@contextmanager
def raise_when_ended() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into a KeyboardInterrupt inside a with-block, as Ctrl-C is.

    If other code swallows it, an error that follows (such as that of a module whose import was cut off) becomes one too.
    """
    is_asked = False

    def interrupt(number: int, _: object) -> None:
        nonlocal is_asked
        is_asked = True
        if number != signal.SIGINT:
            # A second one would interrupt the cleanup.
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    wanted = [signal.SIGTERM, signal.SIGHUP]
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        wanted.append(signal.SIGINT)
    before = {number: signal.signal(number, interrupt) for number in wanted}
    try:
        yield
    except Exception as error:
        if is_asked:
            raise KeyboardInterrupt from error
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def exit_when_ended() -> Iterator[None]:
    """Let SIGTERM end a server with everything closed and exit code 0, as is usual for a service."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
