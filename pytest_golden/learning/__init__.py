"""LEARNED: outcomes, plans and memories kept of what was recorded, found again when it breaks. No status depends on it.

The names below are resolved on first use, since a gate needs few of them before its end.
"""

from typing import TYPE_CHECKING

from pytest_golden.lazy_names import resolve_lazily

if TYPE_CHECKING:
    from pytest_golden.learning.gate_learning import LearningReport, learn_from_results
    from pytest_golden.learning.memory_store import MemoryStore
    from pytest_golden.learning.model import ExtractedPlan, Memory, MemoryHit, ProductionOutcome
    from pytest_golden.learning.recall import Recollection, recall_memories
    from pytest_golden.learning.rules import extract_plan_by_rules
    from pytest_golden.learning.seen_before import SeenBefore, find_seen_before
    from pytest_golden.learning.signature import error_signature
    from pytest_golden.learning.vectors.model import HybridAnswer

__all__ = [
    "ExtractedPlan",
    "HybridAnswer",
    "LearningReport",
    "Memory",
    "MemoryHit",
    "MemoryStore",
    "ProductionOutcome",
    "Recollection",
    "SeenBefore",
    "error_signature",
    "extract_plan_by_rules",
    "find_seen_before",
    "learn_from_results",
    "recall_memories",
]

__getattr__ = resolve_lazily(
    __name__,
    {
        "ExtractedPlan": "model",
        "HybridAnswer": "vectors.model",
        "LearningReport": "gate_learning",
        "Memory": "model",
        "MemoryHit": "model",
        "MemoryStore": "memory_store",
        "ProductionOutcome": "model",
        "Recollection": "recall",
        "SeenBefore": "seen_before",
        "error_signature": "signature",
        "extract_plan_by_rules": "rules",
        "find_seen_before": "seen_before",
        "learn_from_results": "gate_learning",
        "recall_memories": "recall",
    },
)
