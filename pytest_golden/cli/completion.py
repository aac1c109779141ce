"""`golden completion`: print the script with which a shell completes commands, options and files.

bash  golden completion bash > ~/.local/share/bash-completion/completions/golden
zsh   golden completion zsh > "${fpath[1]}/_golden"
fish  golden completion fish > ~/.config/fish/completions/golden.fish
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import shtab

if TYPE_CHECKING:
    import argparse

_SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden completion`."""
    parser.add_argument("shell", choices=_SHELLS, metavar="|".join(_SHELLS), help="The shell.")


def run(arguments: argparse.Namespace) -> int:
    """Print the script."""
    print(shtab.complete(_mark_files(arguments.make_whole_parser()), arguments.shell))
    return 0


def _mark_files(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Let options that name a file be completed by files, in all commands and their actions."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to its arguments
        if action.metavar in {"PATH", "FILE", "STORE", "SOURCE"}:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        if isinstance(action.choices, dict):
            for below in action.choices.values():
                _mark_files(below)
    return parser
