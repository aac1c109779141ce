"""What single thoughts show to be wrong by their wording, read by whole words. Pure, English, and shy of false alarms.

"I know" and "now" are no negations, "I will not give up" gives nothing up, and "I am not sure" claims no certainty.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_golden.trajectory.analysis.model import ReasoningIssue, ReasoningIssueType, Severity
from pytest_golden.trajectory.analysis.statements import split_sentences
from pytest_golden.trajectory.analysis.telling import one_line, text_of, title_of
from pytest_golden.trajectory.vocabulary import StepType, TrajectoryOutcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_golden.trajectory.model import Trajectory
    from pytest_golden.trajectory.step import Step


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w'])(?:{pattern})(?![\w'])", re.IGNORECASE)


_CONCLUSION = re.compile(
    r"(?:and\s+)?(?:therefore|thus|hence|consequently|it follows that|in conclusion)\b", re.IGNORECASE
)
_REASONED = _words(
    r"because|since|given|as|due to|based on|according to|shows?|showed|says?|said|told|reports?|assuming|if"
)
_CERTAIN = _words(
    r"definitely|certainly|undoubtedly|obviously|without (?:a|any) doubt|beyond (?:a|any) doubt|there is no doubt|"
    r"(?:absolutely|completely|totally|100 ?%) (?:sure|certain)|i(?: am|'m) (?:sure|certain) that"
)
_DENIED = _words(
    r"not|never|isn't|aren't|don't|doesn't|no longer|nothing|hardly|without|\w+n't|cannot|avoid|before|instead of"
)
_GIVING_UP = _words(
    r"i(?: am|'m) giving up|i(?:'ll| will| must| have to| need to)? give up|"
    r"i (?:cannot|can not|can't) (?:solve|complete|finish|fix|resolve|continue with) (?:this|it|the (?:task|problem|issue))|"
    r"i(?: am|'m) (?:unable|not able) to (?:solve|complete|finish|fix|resolve|continue)|"
    r"(?:there is|there's) nothing (?:more|else) (?:that )?i can (?:do|try)|i have no more ideas|i(?: am|'m) out of ideas"
)
_DANGLING = re.compile(
    r"(?<![\w'])(?:because|therefore|thus|hence|and|or|but|whereas|although|unless|if|which means)\s*,?\s*$",
    re.IGNORECASE,
)
_LONE_CONNECTIVE = re.compile(
    r"(?:so|then|and|but|or|because|therefore|thus|hence|if|next|also|however)[,.:\u2026]*", re.IGNORECASE
)
_CLAIMED = _words(
    r"succeeded|was (?:a success|successful)|worked|(?:has |have )?passed|completed successfully|finished successfully|"
    r"ran successfully|all good|everything is fine|no errors?|without (?:any )?errors?"
)
_TROUBLE = _words(
    r"fail\w*|errors? (?:in|from|with|says?|was|is|at)|an error|the error|exception|traceback|issues?|problems?|wrong|broken|missing|"
    r"retry|retrying|again|fix\w*|instead|however|but|unfortunately|although|though|except|should|would|could|must|if|"
    r"until|unless|before|make sure|check|whether|not|\w+n't|cannot|timed? ?out|crash\w*|earlier|previous\w*|first"
)
_ACTING = frozenset({StepType.ACTION, StepType.TOOL_CALL})


def find_hasty_conclusions(trajectory: Trajectory) -> Iterator[ReasoningIssue]:
    """Give a first thought that concludes, and one that is certain before anything was done or seen."""
    for step in trajectory.steps:
        if step.type is not StepType.REASONING:
            return
        sentences = split_sentences(text_of(step.content))
        if step is trajectory.steps[0] and sentences and _concludes(sentences[0]):
            yield _issue(trajectory, ReasoningIssueType.UNSUPPORTED_CONCLUSION, Severity.MEDIUM, sentences[0], step)
        certain = next((sentence for sentence in sentences if _is_certain(sentence)), None)
        if certain is not None:
            yield _issue(trajectory, ReasoningIssueType.UNSUPPORTED_CERTAINTY, Severity.MEDIUM, certain, step)


def find_surrender(trajectory: Trajectory) -> Iterator[ReasoningIssue]:
    """Give the thought in which it was given up, when nothing was tried after it and no success came of it."""
    if trajectory.outcome is TrajectoryOutcome.SUCCESS:
        return
    for step in _last_thoughts(trajectory.steps):
        for sentence in split_sentences(text_of(step.content)):
            if _is_said(_GIVING_UP, sentence):
                yield _issue(trajectory, ReasoningIssueType.GAVE_UP, Severity.HIGH, sentence, step)
                return


def find_broken_thoughts(steps: Sequence[Step]) -> Iterator[ReasoningIssue]:
    """Give the thoughts that break off: at a word that wants more, or that are no more than such a word."""
    for step in steps:
        if step.type is StepType.REASONING and "truncated_bytes" not in step.metadata:
            text = text_of(step.content).strip()
            if _LONE_CONNECTIVE.fullmatch(text) or _DANGLING.search(text[-80:]):
                yield ReasoningIssue(
                    type=ReasoningIssueType.INCOMPLETE_LOGIC,
                    severity=Severity.LOW,
                    evidence=f"'{one_line(text[-140:])}' breaks off",
                    step_ids=(step.id,),
                )


def find_ignored_errors(steps: Sequence[Step]) -> Iterator[ReasoningIssue]:
    """Give the thoughts that call a success what has just failed; observations may come in between."""
    failed: Step | None = None
    for step in steps:
        if step.type in _ACTING:
            failed = step if step.has_error else None
        elif step.type is StepType.REASONING and failed is not None:
            text = text_of(step.content)
            if _CLAIMED.search(text) and not _TROUBLE.search(_CLAIMED.sub(" ", text)):
                yield ReasoningIssue(
                    type=ReasoningIssueType.IGNORED_ERROR,
                    severity=Severity.HIGH,
                    evidence=f"'{one_line(text, 140)}' after '{title_of(failed)}' failed",
                    step_ids=(failed.id, step.id),
                )
            failed = None


def _concludes(sentence: str) -> bool:
    return _CONCLUSION.match(sentence.lstrip()) is not None and not _REASONED.search(sentence)


def _is_certain(sentence: str) -> bool:
    return not sentence.rstrip().endswith("?") and _is_said(_CERTAIN, sentence) and not _REASONED.search(sentence)


def _is_said(pattern: re.Pattern[str], sentence: str) -> bool:
    """Tell whether a sentence says it without a negation before it."""
    found = pattern.search(sentence)
    return found is not None and not _DENIED.search(sentence[: found.start()])


def _last_thoughts(steps: Sequence[Step]) -> list[Step]:
    """Give the reasoning steps after the last thing that was done, in order."""
    thoughts: list[Step] = []
    for step in reversed(steps):
        if step.type in _ACTING or step.type is StepType.STATE_CHANGE:
            break
        if step.type is StepType.REASONING:
            thoughts.append(step)
    return thoughts[::-1]


def _issue(
    trajectory: Trajectory, kind: ReasoningIssueType, severity: Severity, sentence: str, step: Step
) -> ReasoningIssue:
    is_harmless = trajectory.outcome is TrajectoryOutcome.SUCCESS
    return ReasoningIssue(kind, Severity.LOW if is_harmless else severity, f"'{one_line(sentence, 200)}'", (step.id,))
