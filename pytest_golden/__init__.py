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
    "pytest_golden.manifest.model": (
        "DeclaredOutput",
        "GoldenProjectConfig",
        "Manifest",
        "Mount",
        "Quarantine",
        "RetiredProject",
    ),
    "pytest_golden.manifest.units": ("ExpectedOutcome",),
    "pytest_golden.manifest.reader": ("load_manifest",),
    "pytest_golden.manifest.keys": ("manifest_schema",),
    "pytest_golden.manifest.inline": ("parse_golden_projects_input",),
    "pytest_golden.gateway.model": (
        "AgentRole",
        "Ending",
        "GatewayAbilities",
        "OutputFinding",
        "Permissions",
        "PipelineOutcome",
        "RunnerCommand",
        "WriteSet",
        "WrittenFile",
    ),
    "pytest_golden.gateway.service": ("ExecutionGateway",),
    "pytest_golden.gateway.written_files": ("WrittenFiles",),
    "pytest_golden.trajectory.building": (
        "BatchStatistics",
        "TrajectoryBatch",
        "merge_trajectories",
    ),
    "pytest_golden.trajectory.insight.figures": (
        "ConfidenceInterval",
        "MetricStatistics",
        "flakiness",
    ),
    "pytest_golden.trajectory.insight.metrics": (
        "Measurement",
        "MetricComparison",
        "MetricsCollector",
        "TaskMeans",
        "compare_metrics",
    ),
    "pytest_golden.trajectory.recorder": (
        "Recording",
        "current_recorder",
        "recording",
        "TrajectoryRecorder",
    ),
    "pytest_golden.trajectory.step": (
        "StateSnapshot",
        "Step",
    ),
    "pytest_golden.trajectory.difference": (
        "StepChange",
        "TrajectoryDiff",
        "diff_trajectories",
    ),
    "pytest_golden.trajectory.model": (
        "StepNode",
        "TrajectoryStatistics",
        "Trajectory",
    ),
    "pytest_golden.trajectory.query": (
        "StepQuery",
        "where",
        "parse_query",
    ),
    "pytest_golden.trajectory.readers.model": ("StepReading",),
    "pytest_golden.trajectory.jsonlines": (
        "iter_steps",
        "read_trajectory",
        "write_trajectory",
    ),
    "pytest_golden.trajectory.readers.golden_steps": ("read_golden_steps",),
    "pytest_golden.trajectory.insight.model": (
        "Detail",
        "FailureCategory",
        "FailurePoint",
        "Quality",
        "ReasoningIssue",
        "ReasoningIssueType",
        "Severity",
        "SuccessIndicator",
        "SuccessType",
        "TrajectoryAnalysis",
    ),
    "pytest_golden.trajectory.insight.common_patterns": (
        "ErrorPattern",
        "SuccessPattern",
        "TrajectoryComparison",
        "TrajectoryDifference",
        "compare_trajectories",
        "error_patterns",
        "success_patterns",
    ),
    "pytest_golden.trajectory.insight.analysis": (
        "analyze_trajectory",
        "summarize_trajectory",
    ),
    "pytest_golden.trajectory.otel.receiver": ("OtlpReceiver",),
    "pytest_golden.trajectory.otel.processor": ("TrajectorySpanProcessor",),
    "pytest_golden.trajectory.insight.reflection": (
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
        "reflection_prompt",
    ),
    "pytest_golden.trajectory.insight.reflection_parsing": ("parse_reflection",),
    "pytest_golden.regression.model": (
        "AcceptedOutput",
        "GoldenProjectResult",
        "OutputChange",
        "Reason",
        "ReasonKind",
        "ResultStatus",
    ),
    "pytest_golden.regression.verdict": ("RegressionCheckResult",),
    "pytest_golden.regression.rules": ("judge",),
    "pytest_golden.journal.model": (
        "Assessment",
        "Expectation",
        "ExpectationStatus",
        "HistoryRecord",
        "ImmediateResult",
        "JournalEntry",
        "Polarity",
        "RoutedBy",
        "Signal",
        "SignalType",
    ),
    "pytest_golden.journal.service": ("Journal",),
    "pytest_golden.journal.outside.signed": ("callback_signal",),
    "pytest_golden.journal.outside.github_webhooks": ("github_signal",),
    "pytest_golden.journal.outside.human": ("human_signal",),
    "pytest_golden.journal.checks.heartbeat": (
        "CheckRun",
        "Heartbeat",
        "HeartbeatReport",
    ),
    "pytest_golden.learning.model": (
        "ExtractedPlan",
        "HybridAnswer",
        "Memory",
        "MemoryHit",
        "ProductionOutcome",
    ),
    "pytest_golden.learning.memory_store": ("MemoryStore",),
    "pytest_golden.learning.signature": ("error_signature",),
    "pytest_golden.learning.vectors.embedders": (
        "EmbeddingEndpoint",
        "StaticEmbedder",
        "embedder_from_env",
    ),
    "pytest_golden.learning.language_model.client": ("LanguageModel",),
    "pytest_golden.learning.language_model.prompting": ("reflect",),
    "pytest_golden.learning.lessons.model": (
        "Attempt",
        "LessonPattern",
        "LessonStats",
        "LessonVerdict",
        "Recalled",
        "SkillMemory",
    ),
    "pytest_golden.learning.lessons.service": ("Lessons",),
    "pytest_golden.learning.lessons.quality": ("check_lesson",),
    "pytest_golden.learning.lessons.patterns": ("find_patterns",),
    "pytest_golden.learning.lessons.lesson_wording": ("learn_from_attempts",),
    "pytest_golden.learning.outcome_logger": (
        "AgentRun",
        "OutcomeTrajectoryLogger",
        "agent_run",
        "current_run",
        "get_outcome_logger",
        "log_agent_outcome",
    ),
    "pytest_golden.learning.training": (
        "export_training_examples",
        "reflective_dataset",
        "trajectories_for",
    ),
    "pytest_golden.gate.service": ("RegressionGuard",),
    "pytest_golden.cycle.model": (
        "CYCLE_ORDER",
        "CycleEvent",
        "CycleEventType",
        "CycleState",
        "CycleStep",
        "CycleVerdict",
        "StepRecord",
        "StepStatus",
    ),
    "pytest_golden.cycle.config": ("CycleConfig",),
    "pytest_golden.cycle.runner": ("CycleRunner",),
    "pytest_golden.cycle.rules": ("get_final_status",),
    "pytest_golden.compare.examination": ("BaselineKeeper",),
    "pytest_golden.gate.gepa": ("GoldenAdapter",),
    "pytest_golden.redaction.redactor": ("redact",),
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
