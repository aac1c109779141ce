"""Gates while they run, for whoever watches: what each tells of itself, looks at all of them, and news between two looks.

What is kept of a gate for good is `gate/recording.py`'s, and is read back whole by `gate/recorded/`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.lazy_names import resolve_lazily

if TYPE_CHECKING:
    from pytest_golden.gate.live.events import LiveEvent, find_events
    from pytest_golden.gate.live.looking import LiveGates
    from pytest_golden.gate.live.model import RunningProject
    from pytest_golden.gate.live.seen import FinishedProject, LiveGate, LiveLook

__all__ = [
    "FinishedProject",
    "LiveEvent",
    "LiveGate",
    "LiveGates",
    "LiveLook",
    "RunningProject",
    "find_events",
]

# A gate itself only writes, and needs none of them.
__getattr__ = resolve_lazily(
    __name__,
    {
        "FinishedProject": "seen",
        "LiveEvent": "events",
        "LiveGate": "seen",
        "LiveGates": "looking",
        "LiveLook": "seen",
        "RunningProject": "model",
        "find_events": "events",
    },
)
