from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests.postgres import run_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.postgres import PostgresServer

pytest_plugins = "pytester"

# How long an example takes says more of the machine than of the code.
_UNTIMED = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("random", _UNTIMED, derandomize=False)
settings.register_profile("same", _UNTIMED, derandomize=True, database=None)
settings.load_profile("same" if os.environ.get("CI") or os.environ.get("GOLDEN_TEST_REQUIRE") else "random")


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    # A shell lets what it starts in the background ignore Ctrl-C, and children inherit that; some tests send one.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if settings.get_current_profile_name() == "same":
        # It tries what stands in our code too, but only in what other tests have loaded by then, in whatever order.
        pytest.MonkeyPatch().setattr(providers, "is_local_module_file", lambda _path: False)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A server of PostgreSQL for all tests of this process."""
    yield from run_server()


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> Iterator[str]:
    """The URL of an empty store on a server."""
    url = postgres.make_database()
    yield url
    postgres.drop(url)


@pytest.fixture(params=["sqlite", "postgresql"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str | Path:
    """The place of an empty store, on each database in turn."""
    if request.param == "sqlite":
        return tmp_path / "golden.db"
    return str(request.getfixturevalue("postgres_url"))
