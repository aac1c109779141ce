from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.journal.model import Assessment, ExpectationStatus, ImmediateResult, Polarity, SignalType
from pytest_golden.journal.rules import RESERVED_SOURCES, Counts, Rules, assess, check_free_name, lapse, settle

OPEN, MET, UNMET, EXPIRED = ExpectationStatus
DECIDING = [SignalType.POSITIVE, SignalType.NEGATIVE, SignalType.CORRECTION]


class Question(NamedTuple):
    polarity: Polarity
    critical: bool


class News(NamedTuple):
    """A signal for the expectation with this number (None: for the entry alone), or the end of its time."""

    signal_type: SignalType | None
    number: int | None
    is_late: bool = False


QUESTIONS = st.lists(st.builds(Question, st.sampled_from(Polarity), st.booleans()), max_size=5)


def count(questions: list[Question], news: list[News], *, counts: Counts | None = None) -> Counts:
    """Take news in one after another, by counters alone."""
    counts = Counts() if counts is None else counts
    statuses = dict.fromkeys(range(len(questions)), OPEN)
    counts = counts.moved(None, OPEN, len(questions), critical=False)
    for signal_type, number, is_late in news:
        if number is None:
            counts = counts.received(signal_type or SignalType.NEUTRAL)
            continue
        polarity, critical = questions[number]
        before = statuses[number]
        if signal_type is None:
            statuses[number] = lapse(polarity) if before is OPEN else before
        else:
            settlement = settle(signal_type, before, polarity, is_late=is_late)
            statuses[number] = settlement.status
            counts = counts.received(settlement.counts_as)
        counts = counts.moved(before, statuses[number], critical=critical)
    return counts


def recount(questions: list[Question], news: list[News]) -> Counts:
    """Say at once what all the news come to, from the first answer of each question and the signals that decide."""
    answers: dict[int, ExpectationStatus] = {}
    deciding: Counter[str] = Counter()
    for signal_type, number, is_late in news:
        question = None if number is None else questions[number]
        says_nothing = is_late or (
            question is not None and question.polarity is Polarity.NEGATIVE and signal_type is SignalType.POSITIVE
        )
        if signal_type is None:
            assert number is not None
            answers.setdefault(number, MET if questions[number].polarity is Polarity.NEGATIVE else EXPIRED)
        elif signal_type is not SignalType.NEUTRAL and not says_nothing:
            deciding[signal_type.value] += 1
            if number is not None:
                answers.setdefault(number, MET if signal_type is SignalType.POSITIVE else UNMET)
    statuses = [answers.get(number, OPEN) for number in range(len(questions))]
    return Counts(
        open=statuses.count(OPEN),
        met=statuses.count(MET),
        unmet=statuses.count(UNMET),
        expired=statuses.count(EXPIRED),
        critical_lost=sum(
            question.critical and status in {UNMET, EXPIRED}
            for question, status in zip(questions, statuses, strict=True)
        ),
        positive=deciding["positive"],
        negative=deciding["negative"],
        correction=deciding["correction"],
    )


@st.composite
def stories(draw: st.DrawFn) -> tuple[list[Question], list[News]]:
    questions = draw(QUESTIONS)
    any_number = st.sampled_from([None, *range(len(questions))])
    signals = st.builds(News, st.sampled_from(SignalType), any_number, st.booleans()).map(
        lambda one: one._replace(is_late=one.is_late and one.number is not None)
    )
    ends = st.builds(News, st.none(), st.sampled_from(range(len(questions)))) if questions else st.nothing()
    return questions, draw(st.lists(signals | ends, max_size=12))


@given(stories())
def test_counters_come_to_the_same_as_a_count_over_all_there_is(story: tuple[list[Question], list[News]]) -> None:
    assert count(*story) == recount(*story)


@given(QUESTIONS.filter(bool), st.data())
def test_signals_that_fit_one_expectation_each_give_one_assessment_in_any_order(
    questions: list[Question], data: st.DataObject
) -> None:
    kinds = st.sampled_from([*SignalType, None])
    news = [News(data.draw(kinds), number) for number in range(len(questions))]
    reordered = data.draw(st.permutations(news))
    assert assess(count(questions, news)) is assess(count(questions, reordered))


@given(stories(), st.integers(0, 12), st.sampled_from([SignalType.NEGATIVE, SignalType.CORRECTION]), st.data())
def test_timely_news_against_it_makes_a_failure_wherever_it_comes(
    story: tuple[list[Question], list[News]], place: int, signal_type: SignalType, data: st.DataObject
) -> None:
    questions, news = story
    number = data.draw(st.sampled_from([None, *range(len(questions))]))
    assert assess(count(questions, [*news[:place], News(signal_type, number), *news[place:]])) is Assessment.FAILURE


@given(st.builds(Counts, *[st.integers(0, 3)] * 8), st.sampled_from([word for word in Assessment if word != "open"]))
def test_what_is_closed_never_opens_again(counts: Counts, before: Assessment) -> None:
    after = assess(counts, before=before)
    assert after is not Assessment.OPEN
    assert after is (before if assess(counts) is Assessment.OPEN else assess(counts))


@given(st.builds(Counts, *[st.integers(0, 3)] * 8), st.sampled_from(Assessment))
def test_a_human_word_overrides_every_rule(counts: Counts, word: Assessment) -> None:
    assert assess(replace(counts, human_word=word)) is word


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        (Counts(), "open"),
        (Counts(immediate_result=ImmediateResult.SUCCESS), "success"),
        (Counts(immediate_result=ImmediateResult.FAILURE), "failure"),
        (Counts(immediate_result=ImmediateResult.PARTIAL), "open"),
        (Counts(immediate_result=ImmediateResult.PARTIAL, positive=1), "success"),
        (Counts(immediate_result=ImmediateResult.UNKNOWN, negative=1), "failure"),
        (Counts(immediate_result=ImmediateResult.FAILURE, positive=1), "failure"),
        (Counts(open=1), "open"),
        (Counts(open=1, positive=1), "open"),
        (Counts(open=1, immediate_result=ImmediateResult.SUCCESS), "open"),
        (Counts(met=2), "success"),
        (Counts(met=2, immediate_result=ImmediateResult.FAILURE), "success"),
        (Counts(met=1, open=1), "open"),
        (Counts(met=1, expired=1), "partial"),
        (Counts(expired=2), "expired"),
        (Counts(met=1, expired=1, critical_lost=1), "failure"),
        (Counts(open=1, expired=1, critical_lost=1), "failure"),
        (Counts(met=3, negative=1), "failure"),
        (Counts(open=1, correction=1), "failure"),
    ],
)
def test_assessment_follows_from_the_counts(counts: Counts, expected: str) -> None:
    assert assess(counts) == expected


def test_an_agent_may_have_silence_count_as_success() -> None:
    rules = Rules(all_expired=Assessment.SUCCESS)
    assert assess(Counts(expired=2), rules) is Assessment.SUCCESS
    assert assess(Counts(expired=2, met=1), rules) is Assessment.PARTIAL
    assert assess(Counts(expired=2, critical_lost=1), rules) is Assessment.FAILURE


@pytest.mark.parametrize("signal_type", SignalType)
@pytest.mark.parametrize("polarity", Polarity)
@pytest.mark.parametrize("status", ExpectationStatus)
def test_a_late_signal_decides_nothing(signal_type: SignalType, polarity: Polarity, status: ExpectationStatus) -> None:
    settlement = settle(signal_type, status, polarity, is_late=True)
    assert (settlement.status, settlement.counts_as) == (status, "neutral")


@pytest.mark.parametrize("signal_type", DECIDING)
@pytest.mark.parametrize("status", [MET, UNMET, EXPIRED])
def test_a_resolved_expectation_stays_as_it_is_and_the_news_still_counts(
    signal_type: SignalType, status: ExpectationStatus
) -> None:
    settlement = settle(signal_type, status, Polarity.POSITIVE)
    assert (settlement.status, settlement.counts_as) == (status, signal_type)


def test_an_open_expectation_is_answered_by_its_polarity() -> None:
    def answer(signal_type: SignalType, polarity: Polarity) -> tuple[str, str]:
        settlement = settle(signal_type, OPEN, polarity)
        return settlement.status, settlement.counts_as

    assert answer(SignalType.POSITIVE, Polarity.POSITIVE) == ("met", "positive")
    assert answer(SignalType.NEGATIVE, Polarity.POSITIVE) == ("unmet", "negative")
    assert answer(SignalType.CORRECTION, Polarity.POSITIVE) == ("unmet", "correction")
    assert answer(SignalType.NEUTRAL, Polarity.POSITIVE) == ("open", "neutral")
    assert answer(SignalType.POSITIVE, Polarity.NEGATIVE) == ("open", "neutral")
    assert answer(SignalType.NEGATIVE, Polarity.NEGATIVE) == ("unmet", "negative")
    assert lapse(Polarity.POSITIVE) is EXPIRED
    assert lapse(Polarity.NEGATIVE) is MET


@pytest.mark.parametrize("source", ["crm", "github-mirror", "humane", "pager duty", "системa", "система", "golden_eye"])
def test_any_name_of_ones_own_is_free(source: str) -> None:
    assert check_free_name(source) == source


@pytest.mark.parametrize("name", sorted(RESERVED_SOURCES))
def test_reserved_names_are_refused_in_any_dress(name: str) -> None:
    fullwidth = "".join(chr(ord(letter) + 0xFEE0) for letter in name)
    hidden = f"{name[:2]}\u200b{name[2:]}"
    accented = name.replace("e", "\u00e9").replace("u", "u\u0308")
    misread = name.replace("l", "I").replace("o", "0").replace("m", "rn").replace("i", "|")
    foreign = "\u0430\u0435\u043a\u0397\u212e\ua4e7"
    mixed = [name.replace(letter, other, 1) for letter in name for other in foreign]
    signed = (f"_{name}", f"{name}!", f"{name[:2]}-{name[2:]}", f"{name}\ufe0f", f"{name}\u3164")
    dresses = (name, name.upper(), f" {name}\n", fullwidth, hidden, f"\u202e{name}", f"{name}\0", " ".join(name))
    for dress in (*dresses, *signed, *mixed, accented, misread):
        with pytest.raises(
            ValueError, match="is reserved: bitbucket, check, github, gitlab, golden, human, person, system"
        ):
            check_free_name(dress)


@pytest.mark.parametrize(
    "dress",
    [
        "\u0405\u0423\u0405\u0422\u0415\u041c",
        "\u0421\u041d\u0415\u0421\u041a",
        "\u04bb\u03c5\u043c\u03b1\u0578",
        "\ua4e7\ua4f4\ua4df\ua4ee\ua4e0",
        "\u13df\u13bb\u13ac\u13df\u13e6",
    ],
)
def test_reserved_names_are_refused_in_letters_of_other_scripts_alone(dress: str) -> None:
    with pytest.raises(ValueError, match="is reserved"):
        check_free_name(dress)


@pytest.mark.parametrize(
    "dress",
    [
        "\u029c\u1d1c\u1d0d\u1d00\u0274",
        "\U0001f177\U0001f184\U0001f17c\U0001f170\U0001f17d",
        "\U0001f1ed\U0001f1fa\U0001f1f2\U0001f1e6\U0001f1f3",
    ],
)
def test_reserved_names_are_refused_in_small_capitals_and_in_boxes(dress: str) -> None:
    with pytest.raises(ValueError, match="is reserved"):
        check_free_name(dress)


@pytest.mark.parametrize("source", ["", "  ", None, 3, ["human"]])
def test_source_must_be_text(source: object) -> None:
    with pytest.raises(ValueError, match="source must be text that is not blank"):
        check_free_name(source)
