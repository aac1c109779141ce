"""LEARNED: outcomes, plans and memories kept of what was recorded, found again when it breaks. No status depends on it."""

from pytest_golden.learning.gate_learning import LearningReport, learn_from_results
from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.learning.model import ExtractedPlan, Memory, MemoryHit, ProductionOutcome
from pytest_golden.learning.recall import Recollection, SeenBefore, find_seen_before, recall_memories
from pytest_golden.learning.rules import extract_plan_by_rules
from pytest_golden.learning.signature import error_signature

__all__ = [
    "ExtractedPlan",
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
