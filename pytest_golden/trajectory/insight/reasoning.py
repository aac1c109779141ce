"""Find flaws in the reasoning of a trajectory, by words and order. Pure, for English text, and careful to avoid false alarms.

Contradictions: a statement has a form in which it and its negation differ by one flag. This is not a grammar: questions, suppositions, other times and
pronouns as subjects are left out, and in doubt two sentences are different statements. Actions may change what is true, so a statement is compared only
within one unbroken run of reasoning steps under one parent, and only with other steps: within one step, both sides of a question may be weighed.

Loops: stretches of steps in which nothing new happens. Two steps are the same when type, words and metadata are, except times, ids of a run and counts
of attempts; of a thought only the words count. Running the same tests after three different changes is not a loop, and actions that work may be
repeated, as batches are. A span of OpenTelemetry's GenAI conventions names the model, not the thought, so one that works is never part of a loop.

Wording: "I know" and "now" are not negations, "I will not give up" does not give up, and "I am not sure" claims no certainty.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.trajectory.difference import is_fleeting
from pytest_golden.trajectory.insight import model
from pytest_golden.trajectory.insight.model import ReasoningIssue, ReasoningIssueType, Severity
from pytest_golden.trajectory.vocabulary import ACTING, StepType, TrajectoryOutcome
from pytest_golden.values.checking import word_set
from pytest_golden.values.json_form import json_form

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_golden.trajectory.model import Trajectory
    from pytest_golden.trajectory.step import Step


_SENTENCE_ENDS = re.compile(r"(?<=[.!?;])\s+|\n+")
_CLAUSE_ENDS = re.compile(r",\s+(?:but|and|while|whereas|yet|so)\s+|,\s+")
_WORD = re.compile(r"\w+(?:[.'/-]\w+)*")
_CONTRACTIONS = {
    "can't": ("can", "not"),
    "cannot": ("can", "not"),
    "won't": ("will", "not"),
    "shan't": ("shall", "not"),
    "it's": ("it", "is"),
    "that's": ("that", "is"),
    "there's": ("there", "is"),
    "i'm": ("i", "am"),
    "i've": ("i", "have"),
    "i'll": ("i", "will"),
}
_NEGATORS = frozenset({"not", "no", "never"})
_OPPOSITES = {
    "false": "true",
    "invalid": "valid",
    "incorrect": "correct",
    "wrong": "correct",
    "impossible": "possible",
    "unavailable": "available",
    "unnecessary": "necessary",
    "unsafe": "safe",
    "absent": "present",
    "missing": "present",
    "disabled": "enabled",
    "failed": "passed",
    "fails": "passes",
    "fail": "pass",
}
_SAME_VERB = {
    "has": "have",
    "had": "haved",
    "goes": "go",
    "succeeded": "passed",
    "succeeds": "passes",
    "succeed": "pass",
}
_UNSETTLED = word_set("""
    if whether unless suppose supposing assume assuming maybe perhaps might may could would either or until when
    once now already yet still earlier previously before after then later longer anymore first initially again
    but possibly probably likely seems appears
""")
_PRONOUNS = word_set("it this that they these those he she which what who")
_LEFT_OUT = word_set("a an the any some do does so thus therefore hence and also indeed")
_CORRECTION = re.compile(
    r"\b(?:wait|actually|correction|on second thoughts?|scratch that|my mistake|i was wrong|that was wrong|oops|"
    r"turns out|no,)(?!\w)",
    re.IGNORECASE,
)


class Statement(NamedTuple):
    """What is said, whether it is denied, and the words in which it was said."""

    words: tuple[str, ...]
    is_denied: bool
    said: str


def list_statements(text: str) -> Iterator[Statement]:
    """Return the statements of a text that are long and firm enough to be contradicted."""
    for sentence in _SENTENCE_ENDS.split(text):
        if sentence.rstrip().endswith("?"):
            continue
        for clause in _CLAUSE_ENDS.split(sentence):
            statement = _parse_clause(clause)
            if statement is not None:
                yield statement


def takes_back(text: str) -> bool:
    """Tell whether a text says that what was said before was wrong."""
    return _CORRECTION.search(text) is not None


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text, with their marks."""
    return [sentence for sentence in _SENTENCE_ENDS.split(text) if sentence and not sentence.isspace()]


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, contractions written out."""
    words: list[str] = []
    for word in _WORD.findall(text.lower().replace("\u2019", "'")):
        if word in _CONTRACTIONS:
            words += _CONTRACTIONS[word]
        elif word.endswith("n't") and len(word) > len("n't"):
            words += (word[:-3], "not")
        else:
            words.append(word)
    return words


def _parse_clause(clause: str) -> Statement | None:
    words = words_of(clause)
    if not words or not _UNSETTLED.isdisjoint(words):
        return None
    kept: list[str] = []
    denials, in_past = 0, False
    for word in words:
        if word in _NEGATORS:
            denials += 1
        elif word == "did":
            in_past = True
        elif word not in _LEFT_OUT:
            denials += word in _OPPOSITES
            kept.append(_stem(_OPPOSITES.get(word, _SAME_VERB.get(word, word)), in_past=in_past))
            in_past = False
    if len(kept) < 2 or kept[0] in _PRONOUNS:
        return None
    return Statement(tuple(kept), denials % 2 == 1, clause.strip())


def _stem(word: str, *, in_past: bool) -> str:
    """Take off what a verb loses behind `does not` and `did not`; the past keeps a mark, so that it stays the past."""
    if word.endswith("ed") and len(word) > 4:
        return f"{word[:-2].rstrip('e')}~"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and len(word) > 3 and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    word = word.rstrip("e") if len(word) > 3 else word
    return f"{word}~" if in_past else word


def find_contradictions(steps: Iterable[Step]) -> Iterator[ReasoningIssue]:
    """Return one issue for each statement that is denied, or affirmed, by a later step of the same run of thoughts."""
    held: dict[tuple[str | None, tuple[str, ...]], tuple[Step, Statement]] = {}
    for step in steps:
        if step.type is not StepType.REASONING:
            held.clear()
            continue
        text = model.text_of(step.content)
        may_contradict = not takes_back(text)
        for statement in list_statements(text):
            place = (step.parent_step_id, statement.words)
            earlier = held.get(place)
            if earlier is None or earlier[1].is_denied == statement.is_denied:
                held.setdefault(place, (step, statement))
                continue
            if may_contradict and earlier[0] is not step:
                said, denied = (model.one_line(one.said, 140) for one in (earlier[1], statement))
                ids = (earlier[0].id, step.id)
                yield ReasoningIssue(
                    ReasoningIssueType.CONTRADICTION, Severity.HIGH, f"'{said}' against '{denied}'", ids
                )
            held[place] = (step, statement)


# Words that say no more than that something is done once more.
_FILLERS = word_set("again once more also just now then still let me us try another time so ok okay")
_ATTEMPT_WORDS = frozenset({"attempt", "attempts", "retry", "retries", "try", "iteration", "turn"})
# The first one, and two more with nothing new around them.
_FEWEST_REPEATS = 2


def find_loops(trajectory: Trajectory) -> Iterator[ReasoningIssue]:
    """Return one issue for each stretch in which a thought, a tool call or a failing action comes back twice or more."""
    steps = trajectory.steps
    first: dict[bytes, int] = {}
    stretch: list[tuple[int, bytes]] = []
    for index, step in enumerate(steps):
        key = _key(step)
        if key in first:
            stretch.append((index, key))
            continue
        yield from _close(trajectory, first, stretch)
        stretch = []
        first[key] = index
    yield from _close(trajectory, first, stretch)


def _close(
    trajectory: Trajectory, first: Mapping[bytes, int], stretch: Sequence[tuple[int, bytes]]
) -> Iterator[ReasoningIssue]:
    counts = Counter(key for index, key in stretch if _may_loop(trajectory.steps[index]))
    repeated = {key: count for key, count in counts.items() if count >= _FEWEST_REPEATS}
    if not repeated:
        return
    thoughts = {
        key: count for key, count in repeated.items() if trajectory.steps[first[key]].type is StepType.REASONING
    }
    shown, count = max((thoughts or repeated).items(), key=lambda item: (item[1], -first[item[0]]))
    involved = sorted({*(first[key] for key in repeated), *(index for index, _key in stretch)})
    yield ReasoningIssue(
        type=ReasoningIssueType.CIRCULAR_REASONING if thoughts else ReasoningIssueType.REPEATED_ACTION,
        severity=_severity(trajectory, stretch[-1][0], is_thought=bool(thoughts)),
        evidence=f"'{model.title_of(trajectory.steps[first[shown]], 140)}' {count + 1:,} times, with nothing new in between",
        step_ids=model.bounded_ids(trajectory.steps[index] for index in involved),
    )


def _may_loop(step: Step) -> bool:
    if step.has_error or _is_genai_span(step):
        return step.has_error
    if step.type is StepType.REASONING:
        # One word, such as "Thinking...", hides the thought itself.
        return len(words_of(model.text_of(step.content))) > 1
    return step.type is StepType.TOOL_CALL


def _is_genai_span(step: Step) -> bool:
    return any(str(key).startswith("gen_ai.") for key in step.metadata)


def _severity(trajectory: Trajectory, last_index: int, *, is_thought: bool) -> Severity:
    if trajectory.outcome is TrajectoryOutcome.SUCCESS:
        return Severity.MEDIUM if is_thought else Severity.LOW
    was_never_left = last_index == len(trajectory.steps) - 1
    return Severity.HIGH if was_never_left else Severity.MEDIUM


def _key(step: Step) -> bytes:
    text = model.text_of(step.content)
    if step.type is StepType.REASONING and not _is_genai_span(step):
        words = [word for word in words_of(text) if word not in _FILLERS]
        told: Any = words or text
    else:
        told = [text, json_form(step.context), _lasting(step.metadata)]
    form = json.dumps([step.type.value, told], sort_keys=True)
    return blake2b(form.encode(), digest_size=16).digest()


def _lasting(metadata: Mapping[Any, Any]) -> Any:
    return json_form(
        {key: value for key, value in metadata.items() if not is_fleeting(str(key)) and key not in _ATTEMPT_WORDS}
    )


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


def find_hasty_conclusions(trajectory: Trajectory) -> Iterator[ReasoningIssue]:
    """Return a first thought that concludes, and one that is certain before anything was done or seen."""
    for step in trajectory.steps:
        if step.type is not StepType.REASONING:
            return
        sentences = split_sentences(model.text_of(step.content))
        if step is trajectory.steps[0] and sentences and _concludes(sentences[0]):
            yield _issue_phrases(
                trajectory, ReasoningIssueType.UNSUPPORTED_CONCLUSION, Severity.MEDIUM, sentences[0], step
            )
        certain = next((sentence for sentence in sentences if _is_certain(sentence)), None)
        if certain is not None:
            yield _issue_phrases(trajectory, ReasoningIssueType.UNSUPPORTED_CERTAINTY, Severity.MEDIUM, certain, step)


def find_surrender(trajectory: Trajectory) -> Iterator[ReasoningIssue]:
    """Return the thought in which it was given up, when nothing was tried after it and no success came of it."""
    if trajectory.outcome is TrajectoryOutcome.SUCCESS:
        return
    for step in _last_thoughts(trajectory.steps):
        for sentence in split_sentences(model.text_of(step.content)):
            if _is_said(_GIVING_UP, sentence):
                yield _issue_phrases(trajectory, ReasoningIssueType.GAVE_UP, Severity.HIGH, sentence, step)
                return


def find_broken_thoughts(steps: Sequence[Step]) -> Iterator[ReasoningIssue]:
    """Return the thoughts that break off: at a word that wants more, or that are no more than such a word."""
    for step in steps:
        if step.type is StepType.REASONING and "truncated_bytes" not in step.metadata:
            text = model.text_of(step.content).strip()
            if _LONE_CONNECTIVE.fullmatch(text) or _DANGLING.search(text[-80:]):
                yield ReasoningIssue(
                    type=ReasoningIssueType.INCOMPLETE_LOGIC,
                    severity=Severity.LOW,
                    evidence=f"'{model.one_line(text[-140:])}' breaks off",
                    step_ids=(step.id,),
                )


def find_ignored_errors(steps: Sequence[Step]) -> Iterator[ReasoningIssue]:
    """Return the thoughts that call a success what has just failed; observations may come in between."""
    failed: Step | None = None
    for step in steps:
        if step.type in ACTING:
            failed = step if step.has_error else None
        elif step.type is StepType.REASONING and failed is not None:
            text = model.text_of(step.content)
            if _CLAIMED.search(text) and not _TROUBLE.search(_CLAIMED.sub(" ", text)):
                yield ReasoningIssue(
                    type=ReasoningIssueType.IGNORED_ERROR,
                    severity=Severity.HIGH,
                    evidence=f"'{model.one_line(text, 140)}' after '{model.title_of(failed)}' failed",
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
    """Return the reasoning steps after the last thing that was done, in order."""
    thoughts: list[Step] = []
    for step in reversed(steps):
        if step.type in ACTING or step.type is StepType.STATE_CHANGE:
            break
        if step.type is StepType.REASONING:
            thoughts.append(step)
    return thoughts[::-1]


def _issue_phrases(
    trajectory: Trajectory, kind: ReasoningIssueType, severity: Severity, sentence: str, step: Step
) -> ReasoningIssue:
    is_harmless = trajectory.outcome is TrajectoryOutcome.SUCCESS
    return ReasoningIssue(
        kind, Severity.LOW if is_harmless else severity, f"'{model.one_line(sentence, 200)}'", (step.id,)
    )


def find_reasoning_issues(trajectory: Trajectory) -> tuple[ReasoningIssue, ...]:
    """Find what is wrong with the reasoning.

    A filtered trajectory is judged by what single steps say: what stood between two of them may be gone.
    """
    found = [*find_surrender(trajectory), *find_broken_thoughts(trajectory.steps)]
    if not trajectory.filtered:
        found += find_contradictions(trajectory.steps)
        found += find_loops(trajectory)
        found += find_hasty_conclusions(trajectory)
        found += find_ignored_errors(trajectory.steps)
    if not found:
        return ()
    places = {step.id: index for index, step in enumerate(trajectory.steps)}
    return tuple(sorted(found, key=lambda issue: (places[issue.step_ids[0]], places[issue.step_ids[-1]])))
