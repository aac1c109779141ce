"""Describe why a run failed in a form in which base and head can be compared.

Times, process ids, temporary paths and the checkout's folders differ between runs of the same failure: they are masked. What
tells one cause from another stays: names, files, exit codes and the difference of an output.
"""

from __future__ import annotations

import json
import re
from hashlib import sha256
from typing import TYPE_CHECKING

from pytest_golden.learning.signature import error_signature
from pytest_golden.regression.comparison import Failure
from pytest_golden.regression.model import OUTPUT_KINDS, ReasonKind
from pytest_golden.regression.wording import says_it_failed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_golden.regression.comparison import About, Details
    from pytest_golden.regression.model import GoldenProjectResult, Reason

# Their message only says that the file exists or does not.
_TOLD_BY_PATH = frozenset({ReasonKind.UNEXPECTED_FILE, ReasonKind.OUTPUT_MISSING})
_ADVICE = re.compile(
    r"\n(?:if this is right,|look at it, then) accept it with `[^\n]*`\Z|: look at it, then accept it.*", re.DOTALL
)
# How comparisons mark a difference that they do not show completely.
_CUT = re.compile(r"\.\.\.|\[not shown")
_STEP = "failed_step"
_NO_DETAILS: Details = ("", "")
_MASKS = (
    (re.compile(r"\x1b\[[0-9;]*[A-Za-z]"), ""),
    (
        re.compile(r"\d{4}[-/]\d{2}[-/]\d{2}(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?"),
        "<time>",
    ),
    (re.compile(r"\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?"), "<time>"),
    (re.compile(r"(?<![\w.-])\d+(?:\.\d+)? ?(?:ms|s|secs?|seconds?|minutes?)\b"), "<time>"),
    (re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b|\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b"), "<id>"),
    (re.compile(r"\b0[xX][0-9a-fA-F]+\b|\b(?=[a-fA-F]*\d)(?=\d*[a-fA-F])[0-9a-fA-F]{7,64}\b"), "<id>"),
    # Only the last part of an absolute path is compared: the folders belong to a checkout, a view or a temporary folder.
    (re.compile(r"(?<![\w.~-])(?:/[\w.+@~%-]+)*/(?=[\w.+@~%-])"), ""),
    (re.compile(r"\btmp[a-z0-9_]{6,}\b"), "<temporary>"),
)
# A number is noise unless it is a code: an exit code, an HTTP status, a system error.
_NUMBER = re.compile(
    r"(\b(?:HTTP(?:/[\d.]+)?(?: Error)?|status|code|errno|signal)\b[ :=]*)?(?<![\w-])-?\d+(?:[.,]\d+)*", re.IGNORECASE
)


def identify_failure(result: GoldenProjectResult) -> Failure | None:
    """Return why a run failed; None unless it is FAILED or ERROR."""
    if not result.status.is_failure:
        return None
    reasons: dict[About, set[Details]] = {}
    for about, details in (*_read_reasons(result), *_read_steps(result)):
        reasons.setdefault(about, set()).add(details)
    return Failure({about: frozenset(details) for about, details in reasons.items()}, _digest(result))


def _read_reasons(result: GoldenProjectResult) -> Iterator[tuple[About, Details]]:
    for reason in result.reasons:
        told = reason.path or (str(result.exit_code) if reason.kind not in OUTPUT_KINDS else "")
        yield (str(reason.kind), told), _read_details(reason, result)


def _read_details(reason: Reason, result: GoldenProjectResult) -> Details:
    if reason.path is not None and reason.kind in _TOLD_BY_PATH:
        return _NO_DETAILS
    if reason.kind in OUTPUT_KINDS or reason.kind == ReasonKind.UNEXPECTED_FILE:
        shown = _ADVICE.sub("", reason.message)
        # The output's digest stands for the part of the difference that is not shown.
        is_whole = "\n" in shown and not _CUT.search(shown)
        file = None if reason.path is None else result.write_set.files.get(reason.path)
        digest = "" if file is None else file.sha256
        return (shown if is_whole else f"{shown}\n{digest}"), mask_noise(shown)
    return mask_noise(reason.message), error_signature(reason.message)


def _read_steps(result: GoldenProjectResult) -> Iterator[tuple[About, Details]]:
    """Yield the failed steps: a pipeline that ends the same way may have one more of them."""
    for step in result.steps:
        if says_it_failed(step):
            yield (_STEP, _mask_names(str(step.get("content") or ""))), _NO_DETAILS


def mask_noise(text: str) -> str:
    """Return a message with times, ids, folders, temporary names and counts masked, which differ from run to run."""
    return " ".join(_NUMBER.sub(lambda found: found[0] if found[1] else "<n>", _mask_names(text)).split())


def _mask_names(text: str) -> str:
    for noise, mask in _MASKS:
        text = noise.sub(mask, text)
    return text


def _digest(result: GoldenProjectResult) -> str:
    shown = {
        "status": str(result.status),
        "exit_code": result.exit_code,
        # Outputs that were written at about the same time come in one order or the other, and the first has the advice.
        "reasons": sorted(
            [str(reason.kind), str(reason.path), _mask_names(_ADVICE.sub("", reason.message))]
            for reason in result.reasons
        ),
        "steps": [_mask_names(str(step.get("content"))) for step in result.steps if says_it_failed(step)],
        "output": _mask_names(result.output_summary),
    }
    return sha256(json.dumps(shown, sort_keys=True).encode("utf-8", "backslashreplace")).hexdigest()
