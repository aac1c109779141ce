"""A floor that never breaks: golden projects are declared, executed sealed off, traced, judged, recorded and learned from.

The public names are resolved on first use (PEP 562), so that importing a submodule stays cheap. Inside the package
import submodules, never these names: PyPI's other `pytest-golden` may have put its own `__init__.py` here.
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"

# The public names of each module.
_HOMES = {
    "errors": (
        "BaselineError GatewayError GoldenError JournalError LanguageModelError ManifestError ManifestProblem "
        "PayloadError PermissionDeniedError SettingsError SignatureError"
    ),
    "manifest.model": "DeclaredOutput GoldenProjectConfig Manifest Mount Quarantine RetiredProject manifest_schema",
    "manifest.units": "ExpectedOutcome",
    "manifest.reader": "load_manifest parse_golden_projects_input",
    "gateway.model": (
        "AgentRole Ending GatewayAbilities OutputFinding Permissions PipelineOutcome RunnerCommand WriteSet WrittenFile"
    ),
    "gateway.service": "ExecutionGateway",
    "gateway.write_set": "WrittenFiles",
    "trajectory.building": "BatchStatistics TrajectoryBatch merge_trajectories",
    "trajectory.insight.figures": "ConfidenceInterval MetricStatistics flakiness",
    "trajectory.insight.metrics": "Measurement MetricComparison MetricsCollector TaskMeans compare_metrics",
    "trajectory.recorder": "Recording current_recorder recording TrajectoryRecorder",
    "trajectory.step": "StateSnapshot Step",
    "trajectory.difference": "StepChange TrajectoryDiff diff_trajectories",
    "trajectory.model": "StepNode TrajectoryStatistics Trajectory",
    "trajectory.query": "StepQuery where parse_query",
    "trajectory.readers.model": "StepReading",
    "trajectory.jsonlines": "iter_steps read_trajectory write_trajectory",
    "trajectory.readers.golden_steps": "read_golden_steps",
    "trajectory.insight.model": (
        "Detail FailureCategory FailurePoint Quality ReasoningIssue ReasoningIssueType Severity SuccessIndicator "
        "SuccessType TrajectoryAnalysis"
    ),
    "trajectory.insight.common_patterns": (
        "ErrorPattern SuccessPattern TrajectoryComparison TrajectoryDifference compare_trajectories error_patterns "
        "success_patterns"
    ),
    "trajectory.insight.analysis": "analyze_trajectory summarize_trajectory",
    "trajectory.otel.receiver": "OtlpReceiver",
    "trajectory.otel.processor": "TrajectorySpanProcessor",
    "trajectory.insight.reflection": (
        "AggregatedReflections AggregatedSuggestion Priority Reflection ReflectionPrompt ReflectionRequest "
        "Suggestion SuggestionCategory SuggestionType aggregate_reflections build_reflection_request "
        "reflection_prompt"
    ),
    "trajectory.insight.reflection_parsing": "parse_reflection",
    "regression.model": "AcceptedOutput GoldenProjectResult OutputChange Reason ReasonKind ResultStatus",
    "regression.verdict": "RegressionCheckResult",
    "regression.rules": "judge",
    "journal.model": (
        "Assessment Expectation ExpectationStatus HistoryRecord ImmediateResult JournalEntry Polarity RoutedBy "
        "Signal SignalType"
    ),
    "journal.service": "Journal",
    "journal.outside.signed": "callback_signal",
    "journal.outside.github_webhooks": "github_signal",
    "journal.outside.human": "human_signal",
    "journal.checks.heartbeat": "CheckRun Heartbeat HeartbeatReport",
    "learning.model": "ExtractedPlan HybridAnswer Memory MemoryHit ProductionOutcome",
    "learning.memory_store": "MemoryStore",
    "learning.signature": "error_signature",
    "learning.vectors.embedders": "EmbeddingEndpoint StaticEmbedder embedder_from_env",
    "learning.language_model.client": "LanguageModel",
    "learning.language_model.prompting": "reflect",
    "learning.lessons.model": "Attempt LessonPattern LessonStats LessonVerdict Recalled SkillMemory",
    "learning.lessons.service": "Lessons",
    "learning.lessons.quality": "check_lesson",
    "learning.lessons.patterns": "find_patterns",
    "learning.lessons.lesson_wording": "learn_from_attempts",
    "learning.outcome_logger": (
        "AgentRun OutcomeTrajectoryLogger agent_run current_run get_outcome_logger log_agent_outcome"
    ),
    "learning.agent_memory": "AgentMemory AgentTask",
    "learning.agent_hints": "Hint",
    "learning.training": "export_training_examples reflective_dataset trajectories_for",
    "gate.service": "RegressionGuard",
    "cycle.model": (
        "CYCLE_ORDER CycleConfig CycleEvent CycleEventType CycleState CycleStep CycleVerdict StepRecord StepStatus"
    ),
    "cycle.cycle_runner": "CycleRunner",
    "cycle.rules": "get_final_status",
    "compare.examination": "BaselineKeeper",
    "gate.gepa": "GoldenAdapter",
    "redaction.redactor": "redact",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = ["__version__", *sorted(_HOME_OF)]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
