"""The command `golden`: finds the subcommand, and turns every error into one sentence and an exit code.

Only the module of the command that is typed is imported, so that `golden --version` costs nothing.
"""

from __future__ import annotations

import argparse
import difflib
import io
import os
import sys
import textwrap
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from pytest_golden.cli.commands import COMMANDS
from pytest_golden.errors import GoldenError, ManifestError, SettingsError
from pytest_golden.settings import find_version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_golden.cli.commands import Command

BAD_INPUT = 2
_INTERRUPTED = 130
_PIPE_CLOSED = 141
_WIDEST_PARAGRAPH = 118


def main(argv: Sequence[str] | None = None) -> int:
    """Run `golden` with these arguments (default: those of the process) and return the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run(words)
        sys.stdout.flush()
    except SystemExit as end:
        return int(end.code or 0)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        _forget_stdout()
        return _PIPE_CLOSED
    except GoldenError as error:
        return _refuse(_in_one_sentence(error), words)
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        return _refuse(f"{error.strerror or error}{where}", words)
    return code


def _run(words: list[str]) -> int:
    name = next((word for word in words if not word.startswith("-")), None)
    if name is not None and name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean `golden {near[0]}`?" if near else f"there are {', '.join(COMMANDS)}"
        raise SettingsError(f"there is no command {name!r}; {hint}")
    command = None if name is None else COMMANDS[name]()
    arguments = _make_parser({} if command is None or name is None else {name: command}).parse_args(words)
    if command is None:
        raise SettingsError("name a command, one of " + ", ".join(COMMANDS) + "; `golden --help` tells what they do")
    return command.run(arguments)


class _Parser(argparse.ArgumentParser):
    """A parser that reports bad arguments in one sentence, without the usage."""

    def error(self, message: str) -> NoReturn:
        raise SettingsError(f"{message}; see `{self.prog} --help`")


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Wraps paragraphs to the width of the terminal, except those with columns."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = (
            told if "  " in told else textwrap.fill(told, min(width, _WIDEST_PARAGRAPH)) for told in text.split("\n\n")
        )
        return textwrap.indent("\n\n".join(paragraphs), indent)


class _Version(argparse.Action):
    """Looks up the version only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        # The package's own __version__ may be that of the other distribution that shares the package's name.
        print(f"golden {find_version('pytest-golden-projects') or '(not installed)'}")
        parser.exit()


def make_whole_parser() -> argparse.ArgumentParser:
    """Return the parser with the arguments of all commands, for which all of them are loaded."""
    return _make_parser({name: load() for name, load in COMMANDS.items()})


def _make_parser(loaded: Mapping[str, Command]) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="golden",
        description="Golden projects: pipelines that must always work. `pytest --golden` is the gate; `golden` does everything else.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="Print the version.")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for known, load in COMMANDS.items():
        declared = commands.add_parser(
            known, help=load.__doc__, description=load.__doc__, allow_abbrev=False, formatter_class=_Formatter
        )
        if known in loaded:
            declared.epilog = (loaded[known].__doc__ or "").partition("\n\n")[2].strip()
            loaded[known].add_arguments(declared)
    # For the command that completes all of them.
    parser.set_defaults(make_whole_parser=make_whole_parser)
    return parser


def _in_one_sentence(error: GoldenError) -> str:
    if not isinstance(error, ManifestError) or len(error.problems) < 2:
        return str(error)
    more = len(error.problems) - 1
    return f"{error.problems[0]} (and {more} more problem{'s' if more > 1 else ''}: `golden check` lists them all)"


def _refuse(sentence: str, words: Sequence[str]) -> int:
    from pytest_golden.cli.options import say
    from pytest_golden.cli.screen import print_json

    if "--json" in words:
        print_json({"error": sentence})
    say(sentence)
    return BAD_INPUT


def _forget_stdout() -> None:
    """Discard what the interpreter flushes at its end: it would complain about the closed pipe."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
