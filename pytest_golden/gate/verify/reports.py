"""What a gate that has ended leaves for a verification: its report, or that it was none."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_golden.errors import GoldenError
from pytest_golden.regression.model import GoldenProjectResult, Reason, ReasonKind, ResultStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_golden.gate.verify.gates import StartedGate

_INTERRUPTED = 2
_LOOK_SECONDS = 0.2
# All passed, something failed, nothing was declared.
_GATE_CODES = frozenset({0, 1, 5})


class GateBrokenError(GoldenError):
    """A gate could not be run to its end."""


@dataclass(frozen=True, slots=True)
class GateReport:
    """A gate's report. `run_id` is its journal entry; None where nothing was recorded."""

    results: Mapping[str, GoldenProjectResult]
    weakened_floor: tuple[Mapping[str, Any], ...]
    deselected: tuple[str, ...]
    run_id: str | None
    exit_code: int

    @property
    def fails_unexplained(self) -> bool:
        """Tell whether the gate failed although no project and no floor did, as when skipped projects are to fail it."""
        is_explained = bool(self.weakened_floor) or any(result.is_regression for result in self.results.values())
        return self.exit_code == 1 and not is_explained


def finish_gate(gate: StartedGate, named: str, show: Callable[[str], None] | None = None) -> GateReport:
    """Wait for a gate's end and read its report. `show` gets the last line that it printed, again and again.

    Whatever goes wrong, the gate is ended.

    Raises:
        GateBrokenError: it did not end as a gate does; the message tells the end of its output.
        KeyboardInterrupt: somebody interrupted it, or us.
    """
    try:
        return _await_report(gate, named, show)
    except BaseException:
        gate.process.end()
        raise


def result_of(report: GateReport, name: str) -> GoldenProjectResult:
    """Give a declared project's result; one that the configuration deselects is skipped."""
    found = report.results.get(name)
    if found is not None:
        return found
    reason = Reason(ReasonKind.SKIPPED_BY_PYTEST, "deselected")
    return GoldenProjectResult(
        name, "", ResultStatus.SKIPPED, error_message=reason.message, reasons=(reason,), attempts=0
    )


def _await_report(gate: StartedGate, named: str, show: Callable[[str], None] | None) -> GateReport:
    code = _wait(gate, show)
    if code == _INTERRUPTED:
        raise KeyboardInterrupt
    if code not in _GATE_CODES or not gate.report.is_file():
        raise GateBrokenError(f"the gate of the {named} ended with exit code {code}: {gate.process.read_end()}")
    report = _read(json.loads(gate.report.read_text(encoding="utf-8")), code)
    kinds = {reason.kind for result in report.results.values() for reason in result.reasons}
    if ReasonKind.INTERRUPTED in kinds:
        raise KeyboardInterrupt
    return report


def _wait(gate: StartedGate, show: Callable[[str], None] | None) -> int | None:
    if show is None:
        return gate.process.wait()
    while (code := gate.process.wait(_LOOK_SECONDS)) is None:
        show(gate.process.read_end().rpartition("\n")[2])
    return code


def _read(plain: Mapping[str, Any], code: int) -> GateReport:
    facts = plain["gate"]
    if facts["not_run"]:
        told = ", ".join(facts["not_run"])
        raise GateBrokenError(f"a gate ended before the turn of {told}")
    results = map(GoldenProjectResult.from_dict, plain["results"])
    return GateReport(
        results={result.name: result for result in results},
        weakened_floor=tuple(plain["weakened_floor"]),
        deselected=tuple(facts["deselected"]),
        run_id=facts["entry_id"],
        exit_code=code,
    )
