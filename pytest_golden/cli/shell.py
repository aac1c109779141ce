"""`golden run NAME --shell`: a shell where the pipeline would run, for looking around and trying things."""

from __future__ import annotations

import shlex
import signal
import sys
from typing import TYPE_CHECKING

from pytest_golden.cli.screen import open_console, print_list, styled
from pytest_golden.errors import SettingsError
from pytest_golden.gateway import AgentRole, ExecutionGateway, Permissions
from pytest_golden.redaction import redact

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_golden.manifest.model import GoldenProjectConfig


def open_shell(project: GoldenProjectConfig, workspace_root: Path, view: str) -> int:
    """Open a shell in a project's view and give its exit code. The gate's lock is not held: it may stay open for long.

    Raises:
        SettingsError: nobody sits at a terminal.
        GatewayError: the view cannot be prepared.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise SettingsError("--shell needs a terminal on stdin and stdout; run it from one, without a pipe")

    def announce(command: tuple[str, ...], folder: str) -> None:
        console = open_console()
        console.print(styled(f"{project.name}: a shell in its view. Nothing that is written here is kept.", "bold"))
        print_list(
            console,
            [("its folder", folder), ("its command", shlex.join(redact(command))), ("to leave", "exit, or Ctrl-D")],
        )
        console.file.flush()
        # A Ctrl-C is for what runs in the shell. A handler, since ignoring it would be inherited by what runs there.
        signal.signal(signal.SIGINT, lambda *_: None)

    before = signal.getsignal(signal.SIGINT)
    try:
        with ExecutionGateway(workspace_root, view=view) as gateway:
            code = gateway.open_shell(project, role=AgentRole.USER, permissions=Permissions(), announce=announce)
            return code if code >= 0 else 128 - code
    finally:
        signal.signal(signal.SIGINT, before)
