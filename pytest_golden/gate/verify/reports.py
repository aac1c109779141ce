"""What a gate that has ended leaves for a verification: its report, or that it was none."""

from __future__ import annotations

import json
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_golden.gate.verify.breakdown import BrokenDownError, find_cause
from pytest_golden.regression.model import GoldenProjectResult, Reason, ReasonKind, ResultStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_golden.gate.verify.gates import StartedGate

_INTERRUPTED = 2
_LOOK_SECONDS = 0.2
# All passed, something failed, nothing was declared.
_GATE_CODES = frozenset({0, 1, 5})


@dataclass(frozen=True, slots=True)
class GateReport:
    """A gate's report. `run_id` is its journal entry; None where nothing was recorded.

    `fails_for_skips` tells that it was asked to fail for what is skipped (`--golden-require`), and something was.
    """

    results: Mapping[str, GoldenProjectResult]
    weakened_floor: tuple[Mapping[str, Any], ...]
    deselected: tuple[str, ...]
    run_id: str | None
    exit_code: int
    fails_for_skips: bool = False

    @property
    def fails_unexplained(self) -> bool:
        """Tell whether the gate failed although no project and no floor did, as when skipped projects are to fail it."""
        is_explained = bool(self.weakened_floor) or any(result.is_regression for result in self.results.values())
        return self.exit_code == 1 and not is_explained


def finish_gate(gate: StartedGate, named: str, show: Callable[[str], None] | None = None) -> GateReport:
    """Wait for a gate's end and read its report. `show` gets the last line that it printed, again and again.

    Whatever goes wrong, the gate is ended.

    Raises:
        BrokenDownError: it did not end as a gate does.
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
        raise BrokenDownError(f"the gate of the {named} {_describe_end(gate, code)}", gate.process.log)
    try:
        report = _read(gate, code)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        told = f"the gate of the {named} left a report that cannot be read: {type(error).__name__}: {error}"
        raise BrokenDownError(told, gate.process.log) from None
    kinds = {reason.kind for result in report.results.values() for reason in result.reasons}
    if ReasonKind.INTERRUPTED in kinds:
        raise KeyboardInterrupt
    return report


def _describe_end(gate: StartedGate, code: int | None) -> str:
    if code is None or code >= 0:
        return f"ended with exit code {code}: {find_cause(gate.process.log, gate.folder)}"
    # Its last words tell nothing of that, and may be of success.
    by = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    return f"was killed from outside ({by}), so that nothing that it found counts"


def _wait(gate: StartedGate, show: Callable[[str], None] | None) -> int | None:
    if show is None:
        return gate.process.wait()
    while (code := gate.process.wait(_LOOK_SECONDS)) is None:
        show(gate.process.read_end().rpartition("\n")[2])
    return code


def _read(gate: StartedGate, code: int) -> GateReport:
    plain: Mapping[str, Any] = json.loads(gate.report.read_text(encoding="utf-8"))
    facts = plain["gate"]
    if facts["not_run"]:
        told = ", ".join(facts["not_run"])
        raise BrokenDownError(f"a gate ended before the turn of {told}", gate.process.log)
    results = [GoldenProjectResult.from_dict(result) for result in plain["results"]]
    skipped = (one for one in results if one.status is ResultStatus.SKIPPED and not one.is_left_out_as_unchanged)
    return GateReport(
        results={result.name: result for result in results},
        weakened_floor=tuple(plain["weakened_floor"]),
        deselected=tuple(facts["deselected"]),
        run_id=facts["entry_id"],
        exit_code=code,
        fails_for_skips=facts.get("require") is True and any(skipped),
    )
