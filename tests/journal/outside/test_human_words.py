from __future__ import annotations

from pytest_golden.journal.outside.human import is_correction, is_opener, leads_on, plain_words, praises, takes_back


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


def test_words_around_a_correction_are_known() -> None:
    assert is_correction(words("this is just wrong"))
    assert not is_correction(words("this was wrong"))
    assert is_opener(words("no"))
    assert is_opener(words("hello team"))
    assert not is_opener(words("maybe"))
    assert leads_on("Because")
    assert not leads_on("but")
    assert takes_back("But")
    assert not takes_back("because")
