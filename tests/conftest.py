from __future__ import annotations

import signal

pytest_plugins = "pytester"


def pytest_configure() -> None:
    # A shell lets what it starts in the background ignore Ctrl-C, and children inherit that; some tests send one.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
