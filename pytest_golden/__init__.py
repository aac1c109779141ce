"""A floor that never breaks: golden projects are declared, executed sealed off, traced, judged, recorded and learned from.

The public names are resolved on first use (PEP 562), so that importing a submodule stays cheap. Inside the package
import submodules, never these names: PyPI's other `pytest-golden` may have put its own `__init__.py` here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__version__ = "0.1.0"

_HOMES: Mapping[str, tuple[str, ...]] = {
    "pytest_golden.errors": (
        "BaselineError",
        "GatewayError",
        "GoldenError",
        "JournalError",
        "LanguageModelError",
        "ManifestError",
        "ManifestProblem",
        "PayloadError",
        "PermissionDeniedError",
        "SettingsError",
        "SignatureError",
    ),
    "pytest_golden.manifest": (
        "DeclaredOutput",
        "ExpectedOutcome",
        "GoldenProjectConfig",
        "Manifest",
        "Mount",
        "Quarantine",
        "RetiredProject",
        "load_manifest",
        "manifest_schema",
        "parse_golden_projects_input",
    ),
    "pytest_golden.gateway": (
        "AgentRole",
        "Ending",
        "ExecutionGateway",
        "GatewayAbilities",
        "OutputFinding",
        "Permissions",
        "PipelineOutcome",
        "RunnerCommand",
        "WriteSet",
        "WrittenFile",
        "WrittenFiles",
    ),
    "pytest_golden.trajectory": (
        "BatchStatistics",
        "ConfidenceInterval",
        "Measurement",
        "MetricComparison",
        "MetricStatistics",
        "MetricsCollector",
        "Recording",
        "StateSnapshot",
        "Step",
        "StepChange",
        "StepNode",
        "StepQuery",
        "StepReading",
        "TaskMeans",
        "Trajectory",
        "TrajectoryBatch",
        "TrajectoryDiff",
        "TrajectoryRecorder",
        "TrajectoryStatistics",
        "compare_metrics",
        "current_recorder",
        "diff_trajectories",
        "flakiness",
        "iter_steps",
        "merge_trajectories",
        "parse_query",
        "read_golden_steps",
        "read_trajectory",
        "recording",
        "where",
        "write_trajectory",
    ),
    "pytest_golden.trajectory.analysis": (
        "Detail",
        "ErrorPattern",
        "FailureCategory",
        "FailurePoint",
        "Quality",
        "ReasoningIssue",
        "ReasoningIssueType",
        "Severity",
        "SuccessIndicator",
        "SuccessPattern",
        "SuccessType",
        "TrajectoryAnalysis",
        "TrajectoryComparison",
        "TrajectoryDifference",
        "analyze_trajectory",
        "compare_trajectories",
        "error_patterns",
        "success_patterns",
        "summarize_trajectory",
    ),
    "pytest_golden.trajectory.otel": ("OtlpReceiver", "TrajectorySpanProcessor"),
    "pytest_golden.trajectory.reflection": (
        "AggregatedReflections",
        "AggregatedSuggestion",
        "Priority",
        "Reflection",
        "ReflectionPrompt",
        "ReflectionRequest",
        "Suggestion",
        "SuggestionCategory",
        "SuggestionType",
        "aggregate_reflections",
        "build_reflection_request",
        "parse_reflection",
        "reflection_prompt",
    ),
    "pytest_golden.regression": (
        "AcceptedOutput",
        "GoldenProjectResult",
        "OutputChange",
        "Reason",
        "ReasonKind",
        "RegressionCheckResult",
        "ResultStatus",
        "judge",
    ),
    "pytest_golden.journal": (
        "Assessment",
        "Expectation",
        "ExpectationStatus",
        "HistoryRecord",
        "ImmediateResult",
        "Journal",
        "JournalEntry",
        "Polarity",
        "RoutedBy",
        "Signal",
        "SignalType",
        "callback_signal",
        "github_signal",
        "human_signal",
    ),
    "pytest_golden.journal.checks.heartbeat": ("CheckRun", "Heartbeat", "HeartbeatReport"),
    "pytest_golden.learning": (
        "ExtractedPlan",
        "HybridAnswer",
        "Memory",
        "MemoryHit",
        "MemoryStore",
        "ProductionOutcome",
        "error_signature",
    ),
    "pytest_golden.learning.embedding": ("EmbeddingEndpoint", "StaticEmbedder", "embedder_from_env"),
    "pytest_golden.learning.language_model": ("LanguageModel", "reflect"),
    "pytest_golden.learning.lessons": (
        "Attempt",
        "LessonPattern",
        "LessonStats",
        "LessonVerdict",
        "Lessons",
        "Recalled",
        "SkillMemory",
        "check_lesson",
        "find_patterns",
        "learn_from_attempts",
    ),
    "pytest_golden.learning.logger": (
        "AgentRun",
        "OutcomeTrajectoryLogger",
        "agent_run",
        "current_run",
        "get_outcome_logger",
        "log_agent_outcome",
    ),
    "pytest_golden.learning.consumers": ("export_training_examples", "trajectories_for"),
    "pytest_golden.learning.reflective": ("reflective_dataset",),
    "pytest_golden.gate": ("RegressionGuard",),
    "pytest_golden.cycle": (
        "CYCLE_ORDER",
        "CycleConfig",
        "CycleEvent",
        "CycleEventType",
        "CycleRunner",
        "CycleState",
        "CycleStep",
        "CycleVerdict",
        "StepRecord",
        "StepStatus",
        "get_final_status",
    ),
    "pytest_golden.gate.baselines": ("BaselineKeeper",),
    "pytest_golden.gate.gepa": ("GoldenAdapter",),
    "pytest_golden.redaction": ("redact",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_HOME_OF)]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    from importlib import import_module

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
