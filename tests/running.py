"""A command that serves, as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PROGRAMS = Path(sys.executable).parent


@contextmanager
def running(
    folder: Path,
    command: str,
    *options: str,
    environment: Mapping[str, str] | None = None,
    before: str = "",
    programs: Path = PROGRAMS,
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run `golden COMMAND OPTIONS` on a free port unless they name one, and give its process and its address.

    `before` is code that is run first, `programs` the folder of the Python that runs all.
    """
    code = f"{before}\nfrom pytest_golden.cli.main import main\nraise SystemExit(main())"
    with subprocess.Popen(
        [str(programs / "python"), "-u", "-c", code, command, "--port", "0", *options],
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            address = process.stdout.readline().strip()
            assert address, process.stderr.read() if process.stderr else ""
            yield process, address
        finally:
            process.kill()
