"""`CycleRunner`: begins cycles, and takes up those that were cut off. The walk itself is in `walking.py`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_golden.cycle.config import Moments
from pytest_golden.cycle.cycle_record import CycleRecord
from pytest_golden.cycle.model import CycleState, CycleStep
from pytest_golden.cycle.state_file import CycleFile, Walk
from pytest_golden.cycle.walking import CycleWalk, Surroundings
from pytest_golden.errors import GoldenError
from pytest_golden.gate.lock import prepare_state_folder
from pytest_golden.gate.spool import find_store_place

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_golden.cycle.config import CycleConfig
    from pytest_golden.cycle.model import CycleEvent
    from pytest_golden.cycle.walking import StepCallable
    from pytest_golden.gateway.model import Gateway


class CycleRunner:
    """Walks cycles of one configuration.

    `steps` are callables that get the `CycleState` and give a mapping or None. Each may give `reason`, how it went, and
    `warnings`. The improvement gives `proposal`, which is then `state.proposal`, the review `approved`, and
    regression_checks, where ours is not wanted, `regression_check` or just that `RegressionCheckResult`. A step that
    raises is an error of the step, and the cycle a FAILURE. One that is given as None is missing.

    Args:
        config: what to do.
        steps: the callables.
        on_event: gets every `CycleEvent`; what it raises is logged and changes nothing.
        gateway: what runs the golden projects; by default an `ExecutionGateway` of the project root.
        clock: gives seconds, or aware datetimes, that never go back.
        store: the store's file or URL, or "none"; by default the one in the project root.
        notes: kept with the state, for whoever takes the cycle up again (`read_notes`); secrets in them are not.

    Raises:
        ValueError: a step that there is not, or one that cannot be called.
    """

    def __init__(
        self,
        config: CycleConfig,
        *,
        steps: Mapping[CycleStep | str, StepCallable | None] | None = None,
        on_event: Callable[[CycleEvent], object] | None = None,
        gateway: Gateway | None = None,
        clock: Callable[[], Any] | None = None,
        store: str | None = None,
        notes: Mapping[str, Any] | None = None,
    ) -> None:
        self._config = config
        self._steps = _read_steps(steps or {})
        self._on_event = on_event
        self._gateway = gateway
        self._moments = Moments(clock)
        self._store = store
        self._notes = dict(notes or {})
        self._walk: CycleWalk | None = None

    @property
    def seconds_left(self) -> float:
        """What is left of the time limit for the cycle that is being walked; 0 when it has passed."""
        left = self._config.max_runtime_seconds if self._walk is None else self._walk.seconds_left
        return max(0.0, left)

    def run(self) -> CycleState:
        """Walk a new cycle to its end.

        A Ctrl-C gives the interrupted state back; `resume` then goes on with the step that was running.

        Raises:
            GoldenError: the cycle's state cannot be kept.
        """
        state = CycleState()
        file = CycleFile(self._config.project_root, state.cycle_id, makes=True)
        with file.hold():
            return self._go(file, Walk(state, notes=self._notes))

    def resume(self, cycle_id: str) -> CycleState:
        """Go on with a cycle that was interrupted or killed, with the step that was running then.

        Raises:
            GoldenError: there is no such cycle, it has ended, it is being walked, or its state cannot be used.
        """
        file = CycleFile(self._config.project_root, cycle_id)
        file.read()
        with file.hold():
            walk = file.read()
            if walk.position is None:
                raise GoldenError(f"{cycle_id} has ended: there is nothing to take up again")
            return self._go(file, replace(walk, state=replace(walk.state, interrupted=False)))

    def _go(self, file: CycleFile, walk: Walk) -> CycleState:
        surroundings = Surroundings(
            config=self._config,
            steps=self._steps,
            on_event=self._on_event,
            gateway=self._gateway,
            moments=self._moments,
            record=CycleRecord(self._find_location()),
        )
        self._walk = CycleWalk(surroundings, file, walk)
        return self._walk.go()

    def _find_location(self) -> str | None:
        try:
            place = find_store_place(self._store, prepare_state_folder(self._config.project_root))
        except OSError:
            return None
        return None if place is None else str(place.location)


def read_notes(project_root: Any, cycle_id: str) -> Mapping[str, Any]:
    """Return the notes that were kept with a cycle. Raises as `CycleRunner.resume`."""
    return CycleFile(project_root, cycle_id).read().notes


def _read_steps(given: Mapping[CycleStep | str, StepCallable | None]) -> dict[CycleStep, StepCallable | None]:
    steps: dict[CycleStep, StepCallable | None] = {}
    for name, step in given.items():
        try:
            known = CycleStep(name)
        except ValueError:
            raise ValueError(f"there is no step {name!r}; the steps are {', '.join(CycleStep)}") from None
        if step is not None and not callable(step):
            raise ValueError(f"the step {known} must be a callable, not {step!r:.100}")
        steps[known] = step
    return steps
