"""Find seven patterns in the attempts of an agent, each with its redacted evidence. Pure.

A failure gives one pattern: a lack of the environment, or else an edit after which the same call worked, or else a wrong argument,
or else the tool that worked instead. Plans are judged separately. Two tools that both worked, and a call that failed and then
worked with nothing changed in between, teach nothing.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.learning.lessons.edits import Edit, find_edits, strip_call
from pytest_golden.learning.lessons.model import Attempt, LessonKind, LessonPattern
from pytest_golden.learning.lessons.quality import LASTING, Constraint, find_limit
from pytest_golden.learning.signature import cause_of, error_signature
from pytest_golden.redaction.literals import literals_in_file
from pytest_golden.redaction.redactor import Redactor, redact
from pytest_golden.values.shape import plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_golden.learning.lessons.quality import Limit

_MOST_OF_ERROR, _MOST_OF_ARGUMENT = 20_000, 500
_SEVERAL, _GIVEN_UP, _MOST_EDITS = 2, 3, 5
# A later success did not replace the failed call.
_MOST_LATER = 200


def find_patterns(attempts: Iterable[Attempt]) -> tuple[LessonPattern, ...]:
    """Return the patterns in attempts, given in the order in which they were made.

    `edit_fix`: a call failed, files were edited, and the same call never failed so again and worked in the end; `edits` is a list of
    `{file, diff}`, `check` the arguments of the call. `tool_substitution`: a tool failed, and the next one that worked is another. `parameter_correction`: the same tool worked
    with other arguments; `changed_arguments` is `{name: {"from": ..., "to": ...}}`, without `from` for an added and without
    `to` for a removed argument. `environmental_constraint`: the error names what is missing (`constraint`, `subject`); it wins
    over a substitution. `given_up`: a call failed three times with the same error, whatever was edited between, and never worked; `tried`
    is a list of `{file, diff}`. `replan_success`: two or more failures, and then a new plan that succeeded; `failed_after_replan`: the
    new plan failed, too.

    Raises:
        ValueError: an item is not an `Attempt`.
    """
    made = [
        _Made(one, _write(one.arguments), _write(strip_call(one.arguments)), find_edits(one) if one.success else ())
        for one in _check_attempts(attempts)
    ]
    plans = _judge_plans([one.attempt for one in made])
    is_replanned = any(kind is LessonKind.REPLAN_SUCCESS for kind, _ in plans)
    explained = [
        _explain(one, made[position : position + _MOST_LATER], is_replanned=is_replanned)
        for position, one in enumerate(made, 1)
        if not one.attempt.success
    ]
    found = [pattern for pattern in explained if pattern is not None]
    found += _find_given_up(made)
    found += [LessonPattern(kind, evidence) for kind, evidence in plans]
    each = tuple({_identify(pattern): pattern for pattern in reversed(found)}.values())[::-1]
    if not each:
        return ()
    redactor = make_redactor(one.attempt for one in made)
    return tuple(LessonPattern(one.kind, redactor.value(plain(one.evidence))) for one in each)


def make_redactor(attempts: Iterable[Attempt]) -> Redactor:
    """Return a redactor that knows the values of all secret-named arguments, at any depth."""
    found = (literals_in_file(json.dumps(plain(one.arguments))) for one in attempts if one.arguments)
    return Redactor(tuple(dict.fromkeys(literal for literals in found for literal in literals)))


def _check_attempts(attempts: Any) -> list[Attempt]:
    given = list(attempts) if isinstance(attempts, Iterable) else [attempts]
    foreign = [one for one in given if not isinstance(one, Attempt)]
    if foreign:
        raise ValueError(f"attempts must be a sequence of Attempt, not {foreign[0]!r:.100}")
    return given


class _Made(NamedTuple):
    """An attempt, its arguments as text, whole and without what makes no other check of it, and what it edited if it worked."""

    attempt: Attempt
    written: str
    stripped: str
    edits: tuple[Edit, ...]

    def is_same_call(self, other: _Made) -> bool:
        return self.attempt.tool == other.attempt.tool and self.written == other.written

    def is_same_check(self, other: _Made) -> bool:
        return self.attempt.tool == other.attempt.tool and self.stripped == other.stripped


def _find_fixing_edits(one: _Made, later: Sequence[_Made]) -> list[dict[str, str]]:
    """Return the edits between a failed call and the next same one, if the error never came again and the call worked in the end.

    Otherwise they did not help, or only put another error in the place of this one.
    """
    edits: dict[Edit, None] = {}
    is_next = True
    for other in later:
        if one.is_same_check(other):
            if other.attempt.success:
                return [edit._asdict() for edit in edits][:_MOST_EDITS]
            if _sign(other.attempt) == _sign(one.attempt):
                return []
            is_next = False
        elif is_next:
            edits |= dict.fromkeys(other.edits)
    return []


def _find_given_up(made: Sequence[_Made]) -> Iterator[LessonPattern]:
    """Yield the calls that kept failing with one error in spite of edits, up to the end."""
    calls: dict[tuple[str, str], list[int]] = {}
    for number, one in enumerate(made):
        calls.setdefault((one.attempt.tool, one.stripped), []).append(number)
    for numbers in calls.values():
        last = made[numbers[-1]].attempt
        if last.success or len(numbers) < _GIVEN_UP:
            continue
        sign = _sign(last)
        failed: list[int] = []
        for number in reversed(numbers):
            if made[number].attempt.success or _sign(made[number].attempt) != sign:
                break
            failed.append(number)
        edits = dict.fromkeys(edit for one in made[failed[-1] : failed[0]] for edit in one.edits)
        if len(failed) >= _GIVEN_UP and edits and (last.error_message or "").strip():
            tried = [edit._asdict() for edit in edits][:_MOST_EDITS]
            yield LessonPattern(LessonKind.GIVEN_UP, {**_evidence(last, None), "failures": len(failed), "tried": tried})


def _sign(attempt: Attempt) -> str:
    return error_signature(cause_of((attempt.error_message or "")[:_MOST_OF_ERROR]))


def _explain(one: _Made, later: Sequence[_Made], *, is_replanned: bool) -> LessonPattern | None:
    failed = one.attempt
    limit = find_limit(failed.error_message)
    is_lacking = limit is not None and limit.kind is not Constraint.PERMISSION
    if not is_lacking and (edits := _find_fixing_edits(one, later)):
        check = {name: _shorten(plain(value)) for name, value in failed.arguments.items()}
        return LessonPattern(LessonKind.EDIT_FIX, {**_evidence(failed, failed), "edits": edits, "check": check})
    again = next(
        (number for number, other in enumerate(later) if other.attempt.success and other.is_same_call(one)), None
    )
    if again is not None:
        # This teaches nothing, unless a call between the two supplied what was missing.
        between = (other.attempt for other in reversed(later[:again]))
        remedy = next((other for other in between if other.success and other.tool != failed.tool), None)
        return _constraint(failed, limit, remedy) if remedy and limit and limit.kind in LASTING else None
    corrected = _find_correction(one, later)
    # What edits something was not called in the place of another.
    worked = corrected or next((other.attempt for other in later if other.attempt.success and not other.edits), None)
    if limit is not None and (corrected is None or limit.kind in LASTING):
        return _constraint(failed, limit, worked)
    if worked is None or (is_replanned and worked.plan > failed.plan):
        return None
    if corrected is not None:
        return _correction(failed, corrected)
    # Whoever comes back to a call has not replaced it.
    is_replaced = worked.tool != failed.tool and not any(one.is_same_check(other) for other in later)
    return _substitution(failed, worked) if is_replaced else None


def _find_correction(one: _Made, later: Sequence[_Made]) -> Attempt | None:
    """Return the call that corrects a failed one: of the same tool, with other arguments, and about the same thing.

    A later failure of the tool is nearer to the correction, and gets the pattern.
    """
    is_at_once = True
    for other in later:
        if other.attempt.tool != one.attempt.tool:
            is_at_once = is_at_once and not other.attempt.success
        elif not other.attempt.success:
            return None
        elif is_at_once or _share_argument(other.attempt, one.attempt):
            return other.attempt
    return None


def _share_argument(one: Attempt, other: Attempt) -> bool:
    return any(
        name in other.arguments and _write(value) == _write(other.arguments[name])
        for name, value in one.arguments.items()
    )


def _constraint(failed: Attempt, limit: Limit, worked: Attempt | None) -> LessonPattern:
    evidence = {**_evidence(failed, worked), "constraint": limit.kind.value, "subject": limit.subject}
    if worked is not None and worked.tool == failed.tool:
        evidence["changed_arguments"] = _find_changes(failed.arguments, worked.arguments)
    return LessonPattern(LessonKind.ENVIRONMENTAL_CONSTRAINT, evidence)


def _correction(failed: Attempt, worked: Attempt) -> LessonPattern:
    changes = _find_changes(failed.arguments, worked.arguments)
    evidence = {**_evidence(failed, worked), "changed_arguments": changes}
    return LessonPattern(LessonKind.PARAMETER_CORRECTION, evidence)


def _substitution(failed: Attempt, worked: Attempt) -> LessonPattern:
    values = {_write(value) for value in failed.arguments.values()}
    shared = [name for name, value in worked.arguments.items() if _write(value) in values]
    return LessonPattern(LessonKind.TOOL_SUBSTITUTION, {**_evidence(failed, worked), "shared_arguments": shared})


def _evidence(failed: Attempt, worked: Attempt | None) -> dict[str, Any]:
    evidence: dict[str, Any] = {"failed_tool": failed.tool}
    if worked is not None:
        evidence["worked_tool"] = worked.tool
    if failed.error_message and failed.error_message.strip():
        evidence["error"] = failed.error_message[:_MOST_OF_ERROR]
    return evidence


def _find_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    changes: dict[str, dict[str, Any]] = {}
    # The redactor knows a secret by its argument's name.
    hidden = {"from": redact(plain(before)), "to": redact(plain(after))}
    for name in dict.fromkeys((*before, *after)):
        sides = {side: held[name] for side, held in (("from", before), ("to", after)) if name in held}
        if len(sides) == 1 or _write(sides["from"]) != _write(sides["to"]):
            changes[name] = {side: _shorten(hidden[side].get(name)) for side in sides}
    return changes


def _shorten(value: Any) -> Any:
    written = value if isinstance(value, str) else _write(value)
    return value if len(written) <= _MOST_OF_ARGUMENT else f"{written[:_MOST_OF_ARGUMENT]} ..."


def _judge_plans(made: Sequence[Attempt]) -> list[tuple[LessonKind, dict[str, Any]]]:
    """Return the patterns of plans that followed failed ones; the last attempt of a plan decides its result."""
    plans: dict[int, list[Attempt]] = defaultdict(list)
    for one in made:
        plans[one.plan].append(one)
    judged = []
    failed: list[Attempt] = []
    lost = 0
    for number in sorted(plans):
        attempts = plans[number]
        if not attempts[-1].success:
            failed += [one for one in attempts if not one.success]
            lost += 1
            continue
        if lost and len(failed) >= _SEVERAL:
            judged.append((LessonKind.REPLAN_SUCCESS, _plan_evidence(failed, lost, attempts)))
        failed, lost = [], 0
    if lost >= _SEVERAL:
        judged.append((LessonKind.FAILED_AFTER_REPLAN, _plan_evidence(failed, lost, ())))
    return judged


def _plan_evidence(failed: Sequence[Attempt], lost: int, plan: Sequence[Attempt]) -> dict[str, Any]:
    evidence = _evidence(failed[-1], plan[-1] if plan else None)
    evidence |= {
        "failures": len(failed),
        "failed_plans": lost,
        "failed_tools": list(dict.fromkeys(one.tool for one in failed)),
    }
    if plan:
        evidence["worked_tools"] = list(dict.fromkeys(one.tool for one in plan if one.success))
        if plan[-1].tool == failed[-1].tool:
            evidence["changed_arguments"] = _find_changes(failed[-1].arguments, plan[-1].arguments)
    return evidence


def _identify(pattern: LessonPattern) -> str:
    """Return a text that is the same for patterns that teach the same."""
    evidence = pattern.evidence
    if pattern.kind is LessonKind.ENVIRONMENTAL_CONSTRAINT:
        # The lack is the same, whichever call it stopped and whichever worked instead.
        return _write([pattern.kind, evidence["constraint"], evidence["subject"] or evidence["failed_tool"]])
    tools = [evidence.get(name) for name in ("failed_tool", "worked_tool", "constraint", "subject")]
    changed = sorted(evidence.get("changed_arguments", ()))
    changed += [edit["file"] for edit in (*evidence.get("edits", ()), *evidence.get("tried", ()))]
    return _write([pattern.kind, tools, error_signature(evidence.get("error", "")), changed])


def _write(value: Any) -> str:
    return json.dumps(plain(value), sort_keys=True)
