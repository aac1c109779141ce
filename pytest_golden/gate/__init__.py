"""The trip: run and judge one golden project or all of them. No pytest here; faces call this room and decide nothing.

The name below is resolved on first use: `golden verify` starts a gate before it loads what it needs afterwards.
"""

from typing import TYPE_CHECKING

from pytest_golden.lazy_names import resolve_lazily

if TYPE_CHECKING:
    from pytest_golden.gate.service import RegressionGuard

__all__ = ["RegressionGuard"]

__getattr__ = resolve_lazily(__name__, {"RegressionGuard": "service"})
