"""Steps as a tree of parents and children. Pure; how it is drawn is for the faces to say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_golden.trajectory.step import Step


@dataclass(frozen=True, slots=True)
class StepNode:
    """A step and the steps whose parent it is, in order."""

    step: Step
    children: tuple[StepNode, ...] = ()

    def walk(self) -> Iterator[tuple[int, StepNode]]:
        """Give this node and all below it, parents first, each with how far below it stands; however deep, by no recursion."""
        waiting = [(0, self)]
        while waiting:
            depth, node = waiting.pop()
            yield depth, node
            waiting.extend((depth + 1, child) for child in reversed(node.children))


def grow_tree(steps: Sequence[Step]) -> tuple[StepNode, ...]:
    """Give the roots; parents come before their children. A parent that is not there makes its children roots."""
    known = {step.id for step in steps}
    children: dict[str | None, list[StepNode]] = {}
    # From the end: a step's children are whole before it is made.
    for step in reversed(steps):
        own = children.pop(step.id, [])
        parent = step.parent_step_id if step.parent_step_id in known else None
        children.setdefault(parent, []).append(StepNode(step, tuple(reversed(own))))
    return tuple(reversed(children.get(None, [])))
