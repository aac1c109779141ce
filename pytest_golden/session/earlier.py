"""What a session takes from earlier runs before it executes anything: how long projects usually take, and which are unchanged.

The process that owns the session asks the store; xdist workers get the answers from it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_golden.gate.changed import Selection
from pytest_golden.gate.trends import SlowdownJudge

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.regression.model import GoldenProjectResult

_KEY = "golden_earlier"


class EarlierRuns:
    """What earlier runs say. `read_slowdowns` is asked when the first project runs; `selection` is known from the start."""

    def __init__(self, selection: Selection | None = None) -> None:
        self.selection = selection
        self.read_slowdowns: Callable[[], SlowdownJudge] = lambda: SlowdownJudge(
            trouble="no store keeps how long earlier runs took"
        )
        self._slowdowns: SlowdownJudge | None = None

    @property
    def slowdowns(self) -> SlowdownJudge:
        """What judges durations, read once."""
        if self._slowdowns is None:
            self._slowdowns = self.read_slowdowns()
        return self._slowdowns

    def find_left_out(self, project: GoldenProjectConfig) -> GoldenProjectResult | None:
        """Give the result of a project that is left out as unchanged; None for one that runs."""
        return None if self.selection is None else self.selection.make_result(project)

    def tell_worker(self, workerinput: dict[str, Any]) -> None:
        """Hand on what a worker needs."""
        selection = None if self.selection is None else self.selection.to_dict()
        workerinput[_KEY] = json.dumps({"selection": selection, "slowdowns": self.slowdowns.to_dict()})

    @classmethod
    def of(cls, config: pytest.Config) -> EarlierRuns:
        """Give what the controller of this worker handed on; in any other process, one that knows nothing yet."""
        text = getattr(config, "workerinput", {}).get(_KEY)
        if text is None:
            return cls()
        told = json.loads(text)
        earlier = cls(None if told["selection"] is None else Selection.from_dict(told["selection"]))
        earlier._slowdowns = SlowdownJudge.from_dict(told["slowdowns"])
        return earlier
