from __future__ import annotations

import pytest

# pytester forgets what a session imported; what is here already need not be imported again by each.
import pytest_golden.session.start  # noqa: F401
from tests.session.workspace import Workspace


@pytest.fixture
def workspace(pytester: pytest.Pytester) -> Workspace:
    return Workspace(pytester)
