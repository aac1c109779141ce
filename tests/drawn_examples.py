"""How hypothesis draws its examples. A module of its own, since the gate loads `conftest.py` where hypothesis is not installed."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

# How long an example takes says more of the machine than of the code.
_UNTIMED = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("random", _UNTIMED, derandomize=False)
# The same examples each time find only what has changed; a person's runs try new and more ones.
settings.register_profile("same", _UNTIMED, derandomize=True, database=None, max_examples=40)
settings.load_profile("same" if os.environ.get("CI") or os.environ.get("GOLDEN_TEST_REQUIRE") else "random")


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    if settings.get_current_profile_name() == "same":
        # It tries what stands in our code too, but only in what other tests have loaded by then, in whatever order.
        pytest.MonkeyPatch().setattr(providers, "is_local_module_file", lambda _path: False)
