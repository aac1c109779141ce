"""Runs Odibi's command line in Odibi's interpreter and leaves by the exit code that its `main()` returned.

Odibi can abort (exit code 134) or hang while the interpreter shuts down, after its work is done: threads of its native
libraries are still alive then. Leaving by `os._exit` skips that shutdown; what it would have done for the user (stories
that are still being generated, spans in a batch, buffered output) is done here before.

A script of its own: it runs where this package may be missing, and needs the standard library only.
"""

from __future__ import annotations

import os
import sys

if sys.path and os.path.realpath(sys.path[0]) == os.path.dirname(os.path.realpath(__file__)):
    # The folder of this script has an odibi.py of its own.
    del sys.path[0]

import contextlib
import io
import logging
import re
import threading
import traceback
from typing import Any

# Odibi itself allows a minute for the generation of a story.
BACKGROUND_SECONDS = 60.0
SPANS_MILLISECONDS = 2000
LINE_FILLING = re.compile(r"[ \t]+(?=\n)")


class TrimmedStream(io.TextIOWrapper):
    """Text without the spaces with which rich fills each line up to the width of the terminal."""

    def write(self, text: str) -> int:
        """Write the text; the given length counts what was taken, as `print` and loggers expect."""
        super().write(LINE_FILLING.sub("", text))
        return len(text)


def main() -> None:
    """Run Odibi with this script's arguments and end the process."""
    sys.argv[0] = "odibi"
    sys.stdout = trim_lines(sys.stdout)
    code = run_odibi()
    try:
        finish_background_work()
        flush_spans()
    except BaseException:
        traceback.print_exc()
        code = code or 1
    finally:
        flush_output()
        os._exit(code)


def trim_lines(stream: Any) -> TrimmedStream:
    """Return a stream over the same bytes whose lines are trimmed."""
    return TrimmedStream(stream.buffer, encoding=stream.encoding, errors=stream.errors, line_buffering=True)


def run_odibi() -> int:
    """Return the exit code that `sys.exit(odibi.cli.main())` would end with."""
    try:
        from odibi.cli import main as odibi_main

        result = odibi_main()
    except SystemExit as end:
        result = end.code
    except KeyboardInterrupt:
        traceback.print_exc()
        return 130
    except BaseException:
        traceback.print_exc()
        return 1
    if result is None:
        return 0
    if isinstance(result, int):
        return result & 0xFF
    print(result, file=sys.stderr)
    return 1


def finish_background_work() -> None:
    """Let thread pools end what they were given, as the interpreter would, but never wait without end."""
    pools = sys.modules.get("concurrent.futures.thread")
    end_pools = getattr(pools, "_python_exit", None)
    if end_pools is not None:
        waiter = threading.Thread(target=end_pools, daemon=True)
        waiter.start()
        waiter.join(BACKGROUND_SECONDS)


def flush_spans() -> None:
    """Send the OpenTelemetry spans that wait in a batch."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is not None:
        flush = getattr(trace.get_tracer_provider(), "force_flush", None)
        if flush is not None:
            flush(SPANS_MILLISECONDS)


def flush_output() -> None:
    """Write what loggers and streams still hold."""
    with contextlib.suppress(Exception):
        logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


if __name__ == "__main__":
    main()
