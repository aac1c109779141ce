"""Asks a model what to change about the prompt that a run was under. Question and answer are the trajectory room's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_golden.learning.language_model.asking import ask
from pytest_golden.redaction import redact
from pytest_golden.trajectory.analysis import TrajectoryAnalysis, analyze_trajectory
from pytest_golden.trajectory.model import Trajectory
from pytest_golden.trajectory.reflection import build_reflection_request, parse_reflection, reflection_prompt

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_golden.learning.language_model.port import CompletesPrompts
    from pytest_golden.trajectory.analysis import Detail
    from pytest_golden.trajectory.reflection import Reflection


async def reflect(
    run: Trajectory | TrajectoryAnalysis,
    llm_client: CompletesPrompts,
    *,
    original_prompt: str,
    task_description: str | None = None,
    detail: Detail | str = "normal",
    focus_areas: Iterable[str] = (),
) -> Reflection | None:
    """Give what the model makes of a run, given as a trajectory or as what `analyze_trajectory` found in it.

    None when the model gives nothing that can be used. Secrets are taken out before anything is asked.

    Raises:
        ValueError: as `build_reflection_request`.
    """
    request = build_reflection_request(
        analyze_trajectory(Trajectory.from_dict(redact(run.to_dict()))) if isinstance(run, Trajectory) else run,
        original_prompt=redact(original_prompt),
        task_description=redact(task_description),
        detail=detail,
        focus_areas=focus_areas,
    )
    prompt = reflection_prompt(request)
    reply = await ask(llm_client, f"{prompt.system}\n\n{prompt.user}", dict[str, Any])
    return None if reply is None else parse_reflection(reply)
