"""What shows, writes and records results shares, in the one process that owns the session. It does nothing itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_golden.session.board import RunBoard
    from pytest_golden.session.declared import Declared
    from pytest_golden.session.earlier import EarlierRuns
    from pytest_golden.session.floor_check import FloorCheck
    from pytest_golden.session.gateway import SessionGateway
    from pytest_golden.session.results import GoldenRecorder
    from pytest_golden.session.sharding import SessionShard
    from pytest_golden.settings import GoldenSettings


@dataclass(frozen=True, slots=True)
class SessionParts:
    """The parts of a session that the others ask. `warnings` are the session's own, and grow while it runs.

    `notes` are lines of the header about what pytest or its options mean for golden projects.
    """

    settings: GoldenSettings
    declared: Declared
    gateway: SessionGateway
    board: RunBoard
    earlier: EarlierRuns
    recorder: GoldenRecorder
    floor: FloorCheck
    warnings: list[str]
    notes: tuple[str, ...]
    shard: SessionShard | None
