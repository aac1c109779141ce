from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.journal.outside.human import (
    CORRECTIONS,
    OPEN_CORRECTIONS,
    PRAISE,
    REPLACEMENTS,
    blank_quotations,
    human_signal,
    plain_words,
    praises,
)
from tests.patience import without_hanging


def read(text: str) -> str | None:
    signal = human_signal(text)
    return None if signal is None else signal["signal_type"]


@pytest.mark.parametrize(
    "text",
    [
        "good job",
        "Good job!",
        "GREAT WORK.",
        "well done",
        "perfect, thanks",
        "Perfect thanks",
        "Perfect! Thanks a lot 🎉",
        "Thank you so much, really great work everyone!",
        "hey, good job",
        "@golden good job :)",
        "Nice work @golden, @builder[0]".replace("[0]", ""),
        "good job on the sales report",
        "Great job with those charts, thanks for the quick fix!",
        "that's right",
        "That’s perfect.",
        "thats correct",
        "this is absolutely perfect",
        "it looks good",
        "LGTM 👍",
        "good work and thanks",
        "> totals: 5\n\nExactly right.",
        "Well done!\n\n```\n5 passed\n```",
        "- good job",
        "👍",
        "👍🏽👍",
        "👍\ufe0f",
        "+1",
        " :+1: ",
        "Looks good to me, thanks!",
        "LGTM 🚀",
        "Works for me",
        "This works great",
        "It works!",
        "works as expected now",
        "ship it",
        "Love it",
        "I love this",
        "Exactly what I needed",
        "That's exactly what I asked for",
        "That fixed it",
        "This fixes the problem, thank you",
        "that did the trick",
        "You nailed it",
        "nailed it",
        "All good now",
        "Great, thanks!",
        "Awesome!",
        "Beautiful",
        "much better",
        "Much better, thanks",
        "The numbers look right",
        "The totals are correct now",
        "the report looks great",
        "Nice catch",
        "Great fix",
        "Happy with this",
        "I'm happy with the result",
        "Good to go",
        "Approved",
        "no complaints",
        "Yes that's right",
        "thanks, this works",
        "Yep, works like a charm",
        "perfect 👌",
        "that was great",
        "Brilliant, thank you so much!",
    ],
)
def test_praise_is_positive(text: str) -> None:
    assert read(text) == "positive"


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("that's wrong, the totals count refunds", "the totals count refunds"),
        ("That’s WRONG: 5, not 7", "5, not 7"),
        ("thats wrong. Why do you count refunds?", "Why do you count refunds?"),
        ("this is completely wrong because it counts 1.5 twice", "it counts 1.5 twice"),
        ("its wrong and needs a fix", "needs a fix"),
        ("no, that's incorrect - version 1.2 is out", "version 1.2 is out"),
        ("Sorry, @golden, you got it wrong!\nRefunds are negative.", "Refunds are negative."),
        ("Hi team,\n\nthese are wrong; see `totals`", "see `totals`"),
        ("Thanks for the quick reply. That is a mistake: use ```net```", "use ```net```"),
        ("> totals: 5\nwrong, should be:\n```\ntotals: 7\n```", "should be: ``` totals: 7 ```"),
        ("that's wrong", "that's wrong"),
        ("That's wrong...", "That's wrong..."),
        ("that's wrong :(", "that's wrong :("),
        ("@builder Wrong.", "@builder Wrong."),
        ("bad job", "bad job"),
        ("you're wrong", "you're wrong"),
        ("👎", "👎"),
        ("-1", "-1"),
        (":thumbsdown:", ":thumbsdown:"),
        ("this isn't right, the join drops rows", "the join drops rows"),
        ("Thanks, but that's not what I asked for", "Thanks, but that's not what I asked for"),
    ],
)
def test_correction_tells_what_is_wrong(text: str, summary: str) -> None:
    assert human_signal(text) == {"source": "human", "signal_type": "correction", "summary": summary}


@pytest.mark.parametrize(
    "text",
    [
        "That's not right",
        "that isn't correct",
        "This is broken",
        "It's broken on Windows",
        "you broke the build",
        "This doesn't work",
        "it does not work",
        "still doesn't work",
        "That's not what I asked for",
        "Please revert this",
        "revert this",
        "I had to revert this",
        "You forgot the refunds",
        "you missed a case: null keys",
        "The totals are wrong",
        "The amounts look wrong for March",
        "It should be 5, not 7",
        "this should have been a left join",
        "I asked for a CSV, not JSON",
        "No that's wrong",
        "This makes no sense",
        "That does not make sense",
        "this fails when the table is empty",
        "this crashes with null keys",
        "you misunderstood",
        "you misunderstood the request",
        "that was wrong",
        "I disagree",
        "Please try again",
        "this is a regression",
        "Actually, that's wrong",
        "I meant the net amount",
        "Nope, still broken",
        "You should use orders_v2 instead",
        "please revert the rename",
        "the numbers look off",
        "no good",
    ],
)
def test_natural_corrections_are_understood(text: str) -> None:
    assert human_signal(text) == {"source": "human", "signal_type": "correction", "summary": text}


@pytest.mark.parametrize(
    "text",
    [
        # negations
        "not good",
        "not a good job",
        "good job, not!",
        "that's not wrong",
        "that isn't wrong",
        "no wrong answers here, well",
        "nothing is wrong",
        "not perfect",
        # questions
        "is this wrong?",
        "that's wrong?",
        "this is wrong, isn't it?",
        "this is wrong because of the refunds?",
        "wrong?!",
        "that's wrong...?",
        "wrong，is it？".replace("，", ", "),
        "good job?",
        "perfect, right?",
        # doubts and conditions
        "that's wrong, maybe",
        "this is wrong, or the table is",
        "if this is wrong, tell me",
        "I think that's wrong",
        "he says that's wrong",
        # irony and words taken back
        "good job /s",
        "good job 🙃",
        "that's wrong, just kidding",
        "that's wrong. jk",
        "this is wrong, never mind",
        "good job, you broke it",
        "Good job! Now nothing works.",
        "great job breaking production",
        "good job on the report but not the totals",
        "good job on the report that nobody can ever read",
        "perfect, another outage",
        "thanks for nothing",
        "yeah, perfect storm",
        # quotations and code
        "> good job",
        ">that's wrong, really",
        "```\ngood job\n```",
        "~~~text\nthat's wrong\n~~~",
        "    good job",
        "'good job'",
        '"that\'s wrong", he said',
        "“good job”",
        "`wrong`",
        "<!-- good job -->",
        # beyond the grammar
        "",
        " \n\t",
        "thanks",
        "ok",
        "right",
        "wrong window",
        "that's wrong-headed",
        "the good job",
        "good jobs",
        "goodjob",
        "wrongly, this counts",
        "+1 but",
        "- 1",
        "👍 👎",
        "@golden",
        "...",
        "das ist falsch",
        "are you sure?",
        "I'm not sure about this",
        "hmm, is that right?",
        "this looks odd",
        "not convinced",
        "Great, another outage",
        "great job breaking prod",
        "Oh great",
        "yeah right",
        "Great...",
        "could you use X instead?",
        "wow, thanks for nothing",
        "I wanted to say thanks",
        "you missed nothing",
        "the old version was wrong",
        "is the total correct?",
        "it works, but the totals are wrong",
        "good catch, but fix the docs",
        "can you revert this?",
        "will look tomorrow",
        "merging tomorrow",
        "rebase please",
        "what about nulls?",
        "this should be fine",
        "looks good but please rename it",
        "no problem",
        "you broke the record, great work!",
        "The previous join was wrong",
        "I think this is wrong",
        "it is wrong, maybe",
        "Sure, because that worked so well last time",
        "what a great idea to drop the table",
        "I asked for it",
        "everything is fine?",
        "I'm afraid not",
        "This fails on main too, it is unrelated",
        "It breaks the tests on 3.8, as expected",
        "it fails when run locally, which is a known flaky test",
        "We wanted this for years, thanks!",
        "I meant this as a joke",
        "please fix the typo in the docs",
        "Do not merge yet",
        "use an f-string instead",
        "it's off for now",
        "good job " + "really " * 50 + "bad",
        "wrong " * 50,
    ],
)
def test_anything_else_is_no_word(text: str) -> None:
    assert human_signal(text) is None


def _phrases(patterns: tuple[str, ...]) -> list[str]:
    phrases = []
    for pattern in patterns:
        written = [""]
        for place in pattern.split():
            written = [f"{begun} {word}".strip() for begun in written for word in place.split("/")]
        phrases += written
    return phrases


@pytest.mark.parametrize(
    ("patterns", "rest"),
    [(OPEN_CORRECTIONS, "amount of May"), (REPLACEMENTS, "net instead"), (REPLACEMENTS, "5, not 7")],
)
def test_what_is_wrong_may_follow_at_once(patterns: tuple[str, ...], rest: str) -> None:
    for phrase in _phrases(patterns):
        assert read(f"{phrase} {rest}") == "correction", phrase
        for text in (f"not {phrase} {rest}", f"{phrase} {rest}?", f"{phrase} nothing", f"{phrase} maybe {rest}"):
            assert read(text) is None, text


@pytest.mark.parametrize(("patterns", "says"), [(PRAISE, "positive"), (CORRECTIONS, "correction")])
def test_every_phrase_says_what_its_table_says_and_its_denial_nothing(patterns: tuple[str, ...], says: str) -> None:
    for phrase in _phrases(patterns):
        for text in (phrase, phrase.upper(), phrase.replace("'", "’"), phrase.replace("'", ""), f"{phrase}!"):
            assert read(text) == says, text
        for text in (f"not {phrase}", f"{phrase}?", f"> {phrase}", f"never {phrase}", f"{phrase} not"):
            assert read(text) is None, text


PIECES = [
    "good",
    "job",
    "perfect",
    "thanks",
    "that's",
    "wrong",
    "not",
    "because",
    "and",
    *",.?!>-:'",
    "👍",
    "-1",
    "@x",
    "/s",
]
grammar_words = st.sampled_from([*PIECES, "```", "~~~", "\n"])
texts = st.text() | st.lists(grammar_words).map(" ".join) | st.lists(grammar_words).map("".join)


@given(texts)
def test_no_text_is_too_odd(text: str) -> None:
    signal: Any = human_signal(text)
    assert signal is None or (
        signal.keys() == {"source", "signal_type", "summary"}
        and signal["source"] == "human"
        and signal["signal_type"] in {"positive", "correction"}
        and signal["summary"].strip()
        and signal["summary"].encode()
        and "\0" not in signal["summary"]
    )


@given(texts)
def test_denied_asked_and_quoted_texts_are_no_word(text: str) -> None:
    line = " ".join(text.split())
    assert human_signal(f"> {line}") is None
    assert human_signal(f"not {line}") is None
    assert human_signal(f"```\n{line.replace('`', '')}\n```") is None


@pytest.mark.parametrize(
    "piece",
    ["a", "'", "a'", "-", "a-", ".", "?", ". ", ".a", "\n", " ", "!?", "```\n", "> ", "and ", "good job ", "good job, ",
     "wrong ", "wrong, ", "no, ", "thanks\n", "@", "@a ", "👍", "👍 ", "/s", "ß", "\0", "~~~a\n", ";", "that's wrong. "],
)  # fmt: skip
def test_time_grows_with_the_length_alone(piece: str) -> None:
    for begin in ("", "that's wrong ", "that's wrong, ", "good job"):
        text = begin + piece * (100_000 // len(piece))
        with without_hanging():
            human_signal(text)


@pytest.mark.parametrize("text", [None, b"good job", 7])
def test_what_is_no_text_is_refused(text: Any) -> None:
    with pytest.raises(ValueError, match="text must be a text, not "):
        human_signal(text)


def words(text: str) -> tuple[str, ...]:
    return plain_words(text.split())


def test_words_are_compared_without_case_apostrophes_mentions_and_intensifiers() -> None:
    assert words("@golden That's REALLY wrong") == ("thats", "wrong")


def test_praise_courtesy_and_the_rest_are_told_apart() -> None:
    assert praises(words("great work on the quarterly sales report")) is True
    assert praises(words("perfect thanks for your help")) is True
    assert praises(words("thank you everyone")) is False
    assert praises(()) is False
    assert praises(words("great work on it")) is None
    assert praises(words("great work on the very long and winding road to hell")) is None
    assert praises(words("work")) is None


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("a\n> b\nc", "a c"),
        ("a\n>b", "a"),
        ("   > b\na", "a"),
        ("a > b", "a > b"),
        ("```\na\n```\nb", "b"),
        ("```python\na\n``` \nb", "b"),
        ("```\na\n~~~\nb", ""),
        ("````\na\n```\nb\n`````\nc", "c"),
        ("~~~\na\n~~~ b\nc", ""),
        ("```a``` b", "```a``` b"),
        ("~~~a`\nb", ""),
        ("    a\n\tb\n  c", "c"),
        ("> ```\na", "a"),
        ("a\r\n> b\r\nc\rd", "a c d"),
        ("a\u2028> b", "a"),
    ],
)
def test_quotations_and_code_are_not_ones_own(text: str, own: str) -> None:
    assert " ".join(blank_quotations(text).split()) == own


@given(
    st.text() | st.lists(st.sampled_from(["a", " ", "\n", "\r\n", "\r", ">", "```", "~~~", "\t", "\x85"])).map("".join)
)
def test_all_stays_in_its_place(text: str) -> None:
    blanked = blank_quotations(text)
    assert len(blanked) == len(text)
    assert all(new == old or new in " \n" for new, old in zip(blanked, text, strict=True))
