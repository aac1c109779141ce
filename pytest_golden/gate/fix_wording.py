"""The wording of fixes: the lesson that rules make, and the lines shown to people. Pure text.

If it is not clear what fixed a failure, no lesson is made: a wrong one would do harm.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pytest_golden.gate import fixes
from pytest_golden.journal.rules import PEOPLE
from pytest_golden.learning.lessons.model import LessonKind, LessonSource, SkillMemory
from pytest_golden.learning.lessons.quality import Constraint, check_lesson, find_limit
from pytest_golden.learning.signature import cause_of, error_signature
from pytest_golden.storage.columns import from_ms

if TYPE_CHECKING:
    from pytest_golden.gate.fixes import BrokeBefore, Correction, Difference, Point
    from pytest_golden.history.checkout import Commit

_MOST_COMMITS, _MOST_FILES = 20, 100
_CLEAR, _LIKELY, _POSSIBLE = 0.9, 0.8, 0.7
_MOST_OF_SUBJECT, _MOST_OF_CAUSE, _MOST_OF_ERROR = 100, 120, 2_000
_MOST_NAMED = 20
_MOST_OF_CORRECTION, _MOST_OF_INTENT = 500, 300
_SUBJECT_PREFIX = re.compile(r"^(?:\w+(?:\([^)]*\))?!?: |\[[^\]]*\] ?|[A-Z][A-Z0-9]+-\d+:? )+")
_SUBJECT_NUMBER = re.compile(r" ?\(#\d+\)$")
# A subject that has only such words says nothing.
_EMPTY_WORDS = re.compile(
    r"a|again|also|an|and|another|bug(?:s|fix)?|changes?|ci|clean|cleanup|code|commit|etl|fix(?:e[ds]|ing)?|for|golden|hotfix|in|it"
    r"|lint|merged?|minor|misc|now|of|oops|pipeline|pr|project|pushed|refactor|reverts?|some|stuff|temp|tests?|the|this|tmp|try"
    r"|typo|up|updated?|updates|wip|work(?:s|ing)?"
)
_PASSING = frozenset({Constraint.NETWORK, Constraint.DISK})
# Whole words: "report" is not "port".
_REMEDY = re.compile(
    r"(?<![^\W\d_])(?:retr(?:y|ies|ied|ying)|time-?outs?|timed|back-?off|rate.?limit\w*|throttl\w+|urls?|hosts?|hostnames?"
    r"|prox(?:y|ies)|certif\w+|tls|ssl|(?:re)?connect\w*|networks?|https?|dns|ports?|cach\w+|downloads?|downloading|disks?|space"
    r"|temp|temporary|tmp|chunk\w*|stream\w*|clean(?:s|ed|ing|up)?|offline|servers?|services?|apis?|endpoints?)(?![^\W\d_])",
    re.IGNORECASE,
)
_SHORT = 7
_LONGEST_SUBJECT, _MOST_OF_LESSON = 72, 300
_MOST_SUBJECTS = 3


def word_fix(failed: Point, passed: Point, difference: Difference, manifest: str) -> SkillMemory | None:
    """Return the lesson of what changed between the last failure and the first pass after it.

    Return None if it is not clear what fixed the failure. `manifest` is its path relative to the checkout's root: by itself it
    changes nothing.
    """
    error = cause_of(failed.message or "")
    failure = _shorten(error_signature(error), _MOST_OF_CAUSE, " ...")
    files = fixes.choose_files(difference.files, manifest)
    if not failure or fixes.has_baselines_of(failed.project, difference.files) or _is_unclear(difference, files):
        return None
    files = _choose_own(difference, files)
    told = [*fixes.tell_versions(difference.surroundings, error), *fixes.tell_keys(difference.declaration)]
    kinds = [kind for kind in fixes.name_kinds(files) if not (told and kind == "the declared dependencies")]
    subject = _find_subject(difference)
    if not told and _comes_and_goes(error, subject):
        return None
    fix = _word_change(told, kinds, subject, failure) if told or kinds else _word_inputs(difference, failure)
    if not fix:
        return None
    skill = SkillMemory(
        id=f"lesson_{passed.entry_id.partition('_')[2]}",
        lesson=fix,
        context=f"a golden project that failed with: {failure}",
        what_failed=failure,
        what_worked=fix,
        why="it failed until this changed, and passed at once with it",
        kind=LessonKind.PROJECT_FIX,
        source=LessonSource.RULES,
        confidence=_rate_confidence(difference, files),
        evidence=_list_evidence(failed, passed, difference, files),
        created_at=datetime.fromtimestamp(passed.created_at / 1000, UTC),
    )
    if not check_lesson(skill) or subject is None:
        return skill
    # A subject may name what belongs to a single task; the evidence keeps it.
    plain = _word_change(told, kinds, None, failure)
    return skill.replace(lesson=plain, what_worked=plain)


def word_correction(correction: Correction) -> SkillMemory:
    """Return the lesson candidate of a correction, which is shown only after a person has approved it.

    Its id follows from the signal's, so that one correction is learned once. One that no person sent names its sender.
    """
    source, agent = correction.source, correction.agent
    is_persons = source in PEOPLE
    sender = source if source == agent else f"{source} for {agent}"
    intent = " ".join(correction.intent.split())[:_MOST_OF_INTENT]
    text = " ".join(correction.text.split())[:_MOST_OF_CORRECTION]
    return SkillMemory(
        id=f"lesson_{correction.signal_id.partition('_')[2]}",
        lesson=text,
        context=intent,
        what_failed=intent,
        why="a person corrected it" if is_persons else f"corrected by {sender}",
        kind=LessonKind.CORRECTION,
        source=LessonSource.PERSON if is_persons else LessonSource.AGENT,
        proposed_by=None if is_persons else sender,
        confidence=0.8,
        approved=False,
        evidence={"signal": correction.signal_id, "entry": correction.entry_id, "source": source},
        created_at=datetime.fromtimestamp(correction.at / 1000, UTC),
    )


def _is_unclear(difference: Difference, files: tuple[str, ...]) -> bool:
    is_too_much = difference.commit_count > _MOST_COMMITS or len(files) > _MOST_FILES
    has_come = difference.commit_count > 0 or not difference.lost_count
    return is_too_much or not has_come or fixes.is_judged_otherwise(difference.declaration)


def _choose_own(difference: Difference, files: tuple[str, ...]) -> tuple[str, ...]:
    """Choose the files of the project's own folder if only the commits that touch it are named."""
    if len(difference.commits) == difference.commit_count:
        return files
    own = {*difference.inside, *difference.edited}
    return tuple(file for file in files if file in own) or files


def _comes_and_goes(error: str, subject: str | None) -> bool:
    """Tell whether such a failure can end by itself, and the commit's subject names no remedy."""
    limit = find_limit(error)
    return limit is not None and limit.kind in _PASSING and not (subject and _REMEDY.search(subject))


def _word_change(told: list[str], kinds: list[str], subject: str | None, failure: str) -> str:
    parts = [fixes.join(told)] if told else []
    if kinds:
        changed = f"the fix changed {fixes.join(kinds)}"
        parts.append(f'{changed}: "{subject}"' if subject else changed)
    if kinds and not told and subject is None:
        # Otherwise all fixes of such files would be one lesson.
        return f"{parts[0]}, after: {failure}"
    return "; ".join(parts)


def _word_inputs(difference: Difference, failure: str) -> str:
    """Describe changed inputs outside git, unless a commit or an edit explains more."""
    told = () if difference.commit_count or difference.edited else fixes.tell_inputs(difference.inputs)
    return f"{fixes.join(told)}, after: {failure}" if told else ""


def _find_subject(difference: Difference) -> str | None:
    """Return the subject of the one new commit, without its prefixes; None if it says nothing."""
    if len(difference.commits) != 1 or difference.edited:
        return None
    subject = (
        _SUBJECT_NUMBER.sub("", _SUBJECT_PREFIX.sub("", difference.commits[0].subject)).strip().strip('"').rstrip(".")
    )
    words = re.findall(r"[^\W\d_]+", subject.lower())
    return None if all(map(_EMPTY_WORDS.fullmatch, words)) else subject[:_MOST_OF_SUBJECT]


def _rate_confidence(difference: Difference, files: tuple[str, ...]) -> float:
    """Return how certain it is that this was the fix: a single change is clear, several are less so."""
    kinds = bool(files) + bool(difference.declaration) + bool(difference.surroundings)
    is_elsewhere = bool(files) and not difference.inside and not (difference.declaration or difference.surroundings)
    is_edit = bool(difference.edited) and not difference.commits
    if is_elsewhere or is_edit or len(difference.commits) > 5 or len(files) > 20:
        return _POSSIBLE
    is_clear = kinds == 1 and difference.commit_count <= 1 and not difference.inputs
    return _CLEAR if is_clear else _LIKELY


def _list_evidence(failed: Point, passed: Point, difference: Difference, files: tuple[str, ...]) -> dict[str, Any]:
    edited = [file for file in difference.edited if file in files][:_MOST_NAMED]
    return {
        "error": cause_of(failed.message or "")[:_MOST_OF_ERROR],
        "project": passed.project,
        "failed_entry": failed.entry_id,
        "failed_run": failed.run_id,
        "passed_entry": passed.entry_id,
        "passed_run": passed.run_id,
        "failed_commit": failed.commit,
        "passed_commit": passed.commit,
        "commit_range": difference.commit_range,
        "commit_count": difference.commit_count,
        "commits": [{"commit": one.id, "subject": one.subject} for one in difference.commits[:_MOST_NAMED]],
        "files": list(files[:_MOST_NAMED]),
        "file_count": len(files),
        "edited": edited,
        "blobs": {file: difference.blobs.get(file) for file in edited},
        "declaration": list(difference.declaration),
        "versions": list(difference.surroundings[:_MOST_NAMED]),
        "inputs": [str(one) for one in difference.inputs[:_MOST_NAMED]],
    }


def tell_lesson(skill: SkillMemory, project: str | None = None, committed: Commit | None = None) -> tuple[str, ...]:
    """Describe a lesson in one line, and what fixed the failure in another if that is known.

    `project` is the one at hand, `committed` the commit that an edit was put into later.
    """
    fix = tell_fix(skill, project, committed)
    told = _shorten(_without_the_known(skill) if fix else skill.lesson, _MOST_OF_LESSON)
    return (f"lesson: {skill.say(told)}", *([f"  {fix}"] if fix else []))


def tell_fix(skill: SkillMemory, project: str | None = None, committed: Commit | None = None) -> str | None:
    """Name the commit or edit that ended the failure behind a lesson; None if that is not known."""
    if skill.kind != LessonKind.PROJECT_FIX:
        return None
    evidence = skill.evidence
    other = evidence.get("project")
    where = f" in {other}" if project is not None and isinstance(other, str) and other != project else ""
    files = _name_files(_get_list(evidence, "files"))
    edited = _get_list(evidence, "edited")
    commits = [one for one in _get_list(evidence, "commits") if isinstance(one, Mapping)]
    if committed is not None and not commits:
        commits = [{"commit": committed.id, "subject": committed.subject}]
    elif commits and edited:
        files = f", or by an edit{files}"
    inputs = [str(one) for one in _get_list(evidence, "inputs")]
    besides = f"; besides, {fixes.join(inputs)}" if inputs else ""
    if commits:
        return f"fixed by {_tell_commits(commits, evidence)}{files}{where}{besides}"
    at = str(evidence.get("passed_commit") or "")[:_SHORT]
    if edited:
        return f"fixed by an edit on {at} that was not committed{files}{where}{besides}"
    return f"fixed at {at}, by no commit{_name_files(inputs)}{where}" if at else None


def tell_broken(broke: BrokeBefore) -> str:
    """Say in one line that a project broke before when these files changed, and how often."""
    times = "once" if broke.count == 1 else f"{broke.count} times"
    of_all = f" (of {broke.break_count} breaks)" if broke.break_count > broke.count else ""
    last = broke.last
    by = _tell_commits(last.commits, {"commit_range": last.commit_range}) if last.commits else "an edit"
    return (
        f"{broke.project}: broke {times}{of_all} when {fixes.join(broke.files)} changed,"
        f" last on {from_ms(last.at):%Y-%m-%d} by {by}"
    )


def _tell_commits(commits: Sequence[Mapping[str, Any]], evidence: Mapping[str, Any]) -> str:
    subjects = [f"'{_shorten(str(one.get('subject', '')), _LONGEST_SUBJECT)}'" for one in commits[:_MOST_SUBJECTS]]
    if len(commits) == 1:
        count = evidence.get("commit_count")
        of_all = f", the one of {count} commits in its folder" if isinstance(count, int) and count > 1 else ""
        return f"{str(commits[0].get('commit'))[:_SHORT]}{of_all}: {subjects[0]}"
    more = f", +{len(commits) - len(subjects)} more" if len(commits) > len(subjects) else ""
    return f"one of {len(commits)} commits {evidence.get('commit_range')}: {', '.join(subjects)}{more}"


def _without_the_known(skill: SkillMemory) -> str:
    """Leave out the commit's subject, which is in another line, and the failure, which the reader already sees."""
    told = skill.lesson.removesuffix(f", after: {skill.what_failed}")
    return told.partition(': "')[0] if told.endswith('"') else told


def _name_files(files: Sequence[Any]) -> str:
    return f" ({fixes.join([str(file) for file in files])})" if files else ""


def _get_list(evidence: Mapping[str, Any], key: str) -> Sequence[Any]:
    value = evidence.get(key)
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def _shorten(text: str, most: int, dots: str = "...") -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - len(dots)]}{dots}"
