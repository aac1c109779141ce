"""Gate runs as they were recorded, read back whole. What happens to a run while it lasts is `gate/recording.py`'s."""

from pytest_golden.gate.recorded.store import RecordedRun, read_run

__all__ = ["RecordedRun", "read_run"]
