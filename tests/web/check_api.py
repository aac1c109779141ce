"""Runs schemathesis over the JSON API of a real server on a seeded store: `python -m tests.web.check_api`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.web.seeded import TOKEN, seed, serving

# `st` stands beside the interpreter of the environment that it was installed into.
_PROGRAM = Path(sys.executable).with_name("st")
_CONFIG = Path(__file__).with_name("schemathesis.toml")


def main(words: list[str]) -> int:
    """Return the exit code of schemathesis."""
    with tempfile.TemporaryDirectory() as told:
        folder = Path(told)
        result = seed(folder)
        with serving(folder, "--require-token", "--heartbeat-seconds", "3600") as (process, address):
            # A failure is told as it is found: making it smaller takes longer than all the rest.
            options = ["--no-shrink", "--continue-on-failure", "--no-color"]
            command = [str(_PROGRAM), "--config-file", str(_CONFIG), "run", *options, f"{address}/api/v1/openapi.json"]
            ran = subprocess.run(
                [*command, "--header", f"Authorization: Bearer {TOKEN}", *words],
                env={**os.environ, "RESULT_ID": result},
                check=False,
            )
            process.terminate()
            _, complaint = process.communicate(timeout=10)
    sys.stderr.write(complaint)
    return ran.returncode or (1 if complaint else 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
