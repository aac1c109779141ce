from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.journal.hints import fits, read_words
from pytest_golden.journal.model import ExpectationStatus, RoutedBy, SignalType
from pytest_golden.journal.routing import Candidate, News, route

OPEN, MET, UNMET, EXPIRED = ExpectationStatus
NOW = 1_000


def news(data: dict[str, Any] | None = None, **fields: Any) -> News:
    told = {
        "words": read_words("ci", data or {}),
        "signal_type": SignalType.POSITIVE,
        "timestamp": NOW,
        "agent_id": "a",
    }
    return News(**{**told, **fields})


def candidate(name: str, number: int = 1, **fields: Any) -> Candidate:
    plain: dict[str, Any] = {"entry_id": f"entry of {name}", "agent_id": "a", "session_key": None, "status": OPEN}
    return Candidate(
        **{"id": name, "number": number, **plain, "hint": None, "created_at": 0, "expires_at": None, **fields}
    )


def taken(one: News, *candidates: Candidate) -> tuple[str, str | None]:
    found = route(one, candidates)
    return found.rule, None if found.taken is None else found.taken.id


HINTED = candidate("hinted", hint={"pr": 1})
IN_SESSION = candidate("in session", session_key="s")
IN_WINDOW = candidate("in window", expires_at=NOW + 1)


def test_the_first_rule_that_fits_takes_the_signal() -> None:
    everything = news({"pr": 1}, session_key="s")
    assert taken(everything, IN_WINDOW, IN_SESSION, HINTED) == ("match_hint", "hinted")
    assert taken(everything, IN_WINDOW, IN_SESSION) == ("session_key", "in session")
    assert taken(everything, IN_WINDOW) == ("time_window", "in window")
    assert taken(everything) == ("orphan", None)
    assert taken(news(entry_id="entry of nothing")) == ("entry", None)


def test_among_hints_most_keys_win_then_the_nearest_expiry_then_the_oldest() -> None:
    two = candidate("two keys", 9, hint={"pr": 1, "sha": "x"})
    near = candidate("near", 8, hint={"pr": 1}, expires_at=NOW + 5)
    far = candidate("far", 7, hint={"pr": 1}, expires_at=NOW + 9)
    old, new = candidate("old", 1, hint={"pr": 1}), candidate("new", 2, hint={"pr": 1})
    one = news({"pr": 1, "sha": "x"})
    assert taken(one, new, old, far, near, two)[1] == "two keys"
    assert taken(one, new, old, far, near)[1] == "near"
    assert taken(one, new, old, far)[1] == "far"
    assert taken(one, new, old)[1] == "old"


def test_a_guess_takes_a_hinted_one_only_when_a_key_is_equal_and_none_differs() -> None:
    other = candidate("other", hint={"pr": 2, "sha": "x"}, session_key="s", expires_at=NOW + 1)
    assert taken(news({"pr": 1}, session_key="s"), other) == ("orphan", None)
    assert taken(news({}, session_key="s"), other) == ("orphan", None)
    assert taken(news({"pr": 2, "sha": "y"}, session_key="s"), other) == ("orphan", None)
    assert taken(news({"pr": 2}, session_key="s"), other) == ("session_key", "other")
    assert taken(news({"pr": 2}), other) == ("time_window", "other")
    assert taken(news({"pr": 2}), candidate("endless", hint={"pr": 2, "sha": "x"})) == ("orphan", None)
    assert taken(news({}), candidate("of another source", hint={"source": "x"}, expires_at=NOW + 1)) == ("orphan", None)


def test_a_guess_never_answers_for_a_check() -> None:
    for one in (IN_SESSION, IN_WINDOW, HINTED._replace(hint={"pr": 1, "sha": "x"}, session_key="s")):
        checked = one._replace(has_check=True)
        assert taken(news({"pr": 1}, session_key="s"), one)[1] == one.id
        assert taken(news({"pr": 1}, session_key="s"), checked) == ("orphan", None)
        named = news({"pr": 1}, session_key="s", entry_id=one.entry_id)
        assert taken(named, checked) == ("entry", None)
    assert taken(news({"pr": 1}), HINTED._replace(has_check=True)) == ("match_hint", "hinted")


def test_a_window_has_a_beginning_and_an_end() -> None:
    assert taken(news(), candidate("later", created_at=NOW + 1, expires_at=NOW + 9)) == ("orphan", None)
    assert taken(news(), candidate("now", created_at=NOW, expires_at=NOW + 1)) == ("time_window", "now")
    assert taken(news(), candidate("over", expires_at=NOW)) == ("orphan", None)


def test_nobody_takes_what_is_another_agents() -> None:
    assert taken(news({"pr": 1}, agent_id="b", session_key="s"), HINTED, IN_SESSION, IN_WINDOW) == ("orphan", None)


def test_without_an_agent_hints_alone_are_asked() -> None:
    of_b = candidate("of b", 0, agent_id="b", hint={"pr": 1})
    one = news({"pr": 1}, agent_id=None, session_key="s")
    assert taken(one, HINTED, of_b, IN_SESSION, IN_WINDOW) == ("match_hint", "of b")
    assert taken(one, IN_SESSION, IN_WINDOW) == ("orphan", None)


def test_a_named_entrys_own_expectations_come_first() -> None:
    named = news({"pr": 1}, entry_id="entry of in window", session_key="s")
    assert taken(named, HINTED, IN_SESSION, IN_WINDOW) == ("time_window", "in window")
    assert taken(named._replace(entry_id="entry of nothing"), HINTED, IN_SESSION, IN_WINDOW) == ("match_hint", "hinted")
    assert taken(named._replace(entry_id="entry of nothing"), IN_SESSION, IN_WINDOW) == ("entry", None)


def test_by_hint_only_neither_session_nor_time_says_anything_and_a_name_is_binding() -> None:
    word = news({"pr": 1}, session_key="s", by_hint_only=True)
    assert taken(word, IN_SESSION, IN_WINDOW) == ("orphan", None)
    assert taken(word, HINTED) == ("match_hint", "hinted")
    assert taken(word._replace(entry_id="entry of nothing"), HINTED) == ("entry", None)


@pytest.mark.parametrize("status", [MET, UNMET, EXPIRED])
@pytest.mark.parametrize("signal_type", SignalType)
def test_what_is_resolved_is_concerned_only_by_news_against_what_was_met(
    status: ExpectationStatus, signal_type: SignalType
) -> None:
    is_against = status is MET and signal_type in {"negative", "correction"}
    for one in (HINTED, IN_SESSION, IN_WINDOW):
        resolved = one._replace(status=status)
        told = news({"pr": 1}, signal_type=signal_type, session_key="s")
        assert (taken(told, resolved)[1] == one.id) == is_against


@pytest.mark.parametrize("status", ExpectationStatus)
@pytest.mark.parametrize("signal_type", SignalType)
def test_late_news_goes_where_it_fits_swept_or_not(status: ExpectationStatus, signal_type: SignalType) -> None:
    told = news({"pr": 1}, signal_type=signal_type, session_key="s")
    assert taken(told, HINTED._replace(status=status, expires_at=NOW)) == ("match_hint", "hinted")
    assert taken(told, IN_SESSION._replace(status=status, expires_at=NOW)) == ("session_key", "in session")
    assert taken(told, IN_WINDOW._replace(status=status, expires_at=NOW)) == ("orphan", None)


def test_an_open_one_comes_before_one_that_is_resolved() -> None:
    old = HINTED._replace(id="met", number=0, status=MET)
    assert taken(news({"pr": 1}, signal_type=SignalType.NEGATIVE), old, HINTED) == ("match_hint", "hinted")
    assert taken(news({"pr": 1}, session_key="s"), old._replace(expires_at=NOW), IN_SESSION) == ("match_hint", "met")


def test_each_candidate_is_told_which_rule_took_or_refused_it_and_why() -> None:
    beaten = candidate("beaten", 5, hint={"pr": 1})
    later = candidate("later", 2, hint={"pr": 1})
    others = [
        candidate("z other", hint={"pr": 2}),
        candidate("y foreign", agent_id="b", hint={"pr": 1}),
        candidate("x met", hint={"pr": 1}, status=MET),
        candidate("w plain"),
        candidate("v over", expires_at=NOW),
        IN_SESSION,
        candidate("more", 9, hint={"pr": 1, "source": "ci"}),
    ]
    found = route(news({"pr": 1}, session_key="s"), [beaten, later, *others])
    told = {one.expectation_id: (one.rule.value, one.taken, one.reason) for one in found.verdicts}
    assert found.verdicts[0].expectation_id == "more"
    assert told == {
        "more": ("match_hint", True, "every key of its hint fits (pr, source)"),
        "later": ("match_hint", False, "every key of its hint fits (pr), but more has more hint keys"),
        "beaten": ("match_hint", False, "every key of its hint fits (pr), but more has more hint keys"),
        "in session": ("session_key", False, "it is in the same session, but more fits by an earlier rule"),
        "z other": ("match_hint", False, "pr is '1' in the signal, not '2'"),
        "y foreign": ("match_hint", False, "it is another agent's"),
        "x met": ("match_hint", False, "it fits, but is met already"),
        "w plain": ("time_window", False, "it has no hint; another session; it has no time window"),
        "v over": ("time_window", False, "it has no hint; another session; outside its time window"),
    }


@pytest.mark.parametrize(
    ("winner", "loser", "why"),
    [
        ({"number": 1}, {"number": 2}, "is older"),
        ({"number": 2, "expires_at": NOW + 1}, {"number": 1}, "has a nearer expiry"),
        ({"number": 2}, {"number": 1, "status": MET}, "is open"),
        ({"number": 2, "hint": {"pr": 1, "source": "ci"}}, {"number": 1, "expires_at": NOW + 1}, "has more hint keys"),
        ({"number": 2, "status": MET}, {"number": 1, "status": EXPIRED, "expires_at": NOW}, "is not over"),
        (
            {"number": 2, "status": EXPIRED, "expires_at": NOW},
            {"number": 1, "status": EXPIRED, "expires_at": NOW - 1},
            "has a nearer expiry",
        ),
        ({"number": 2, "entry_id": "named"}, {"number": 1}, "is of the entry that the signal names"),
    ],
)
def test_the_beaten_is_told_what_decided(winner: dict[str, Any], loser: dict[str, Any], why: str) -> None:
    told = news({"pr": 1}, signal_type=SignalType.NEGATIVE, entry_id="named")
    found = route(
        told, [candidate("l", **{"hint": {"pr": 1}, **loser}), candidate("w", **{"hint": {"pr": 1}, **winner})]
    )
    assert found.verdicts[1].reason.endswith(f"but w {why}")


WORDS = st.sampled_from([{}, {"pr": 0}, {"pr": 1}, {"sha": 0}, {"pr": 0, "sha": 0}, {"pr": 1, "sha": 0}])
CANDIDATES = st.lists(
    st.builds(
        Candidate,
        st.just(""),
        st.just(0),
        st.sampled_from(["e", "f"]),
        st.sampled_from("ab"),
        st.sampled_from([None, "s"]),
        st.sampled_from(ExpectationStatus),
        WORDS.map(lambda words: words or None),
        st.integers(NOW - 2, NOW + 2),
        st.none() | st.integers(NOW - 2, NOW + 2),
    ),
    max_size=6,
).map(lambda drawn: [one._replace(id=f"x{9 - number}", number=number) for number, one in enumerate(drawn)])
NEWS = st.builds(
    News,
    WORDS.map(lambda data: read_words("ci", data)),
    st.sampled_from(SignalType),
    st.just(NOW),
    st.sampled_from([None, "a", "b"]),
    st.sampled_from([None, "s", "t"]),
    st.sampled_from([None, "e"]),
    st.booleans(),
)


@given(NEWS, CANDIDATES, st.randoms(use_true_random=False))
def test_a_route_does_not_depend_on_the_order_of_the_candidates(
    one: News, candidates: list[Candidate], random: Any
) -> None:
    shuffled = random.sample(candidates, len(candidates))
    assert route(one, candidates) == route(one, shuffled)


@given(NEWS, CANDIDATES)
def test_a_route_keeps_what_every_route_must_keep(one: News, candidates: list[Candidate]) -> None:
    found = route(one, candidates)
    assert {verdict.expectation_id for verdict in found.verdicts} == {each.id for each in candidates}
    assert [verdict.taken for verdict in found.verdicts].count(True) == (found.taken is not None)
    if found.taken is None:
        assert found.rule is (RoutedBy.ORPHAN if one.entry_id is None else RoutedBy.ENTRY)
        return
    assert one.agent_id in {None, found.taken.agent_id}
    if found.rule is RoutedBy.MATCH_HINT:
        assert found.taken.hint is not None
        assert fits(found.taken.hint, one.words)
    else:
        assert one.agent_id is not None
        assert not one.by_hint_only
