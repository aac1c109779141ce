"""The journal for people who read it: pages of entries, expectations, signals and agents, and how often work succeeded.

Nothing is changed, and no due expectation is resolved.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.clock import utc_now
from pytest_golden.journal import review_store
from pytest_golden.journal.assessment_store import describe_unknown, read_expectation, read_signal
from pytest_golden.journal.caller_input import clean_name, clean_optional
from pytest_golden.journal.model import Assessment, Expectation, JournalEntry, RoutedBy, Signal
from pytest_golden.journal.routing import RoutingExplanation, read_explanation
from pytest_golden.manifest.units import show
from pytest_golden.storage.columns import from_ms, to_ms
from pytest_golden.storage.paging import DEFAULT_ITEMS, Listing, Page, check_page_limit
from pytest_golden.values.checking import check_word
from pytest_golden.values.json_form import FrozenDict
from pytest_golden.values.shape import Shape, form, in_form, write_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Self

    from pytest_golden.storage.store import Store

ALL = "all"
#: The filters of entries: one assessment, or all.
FILTERS = (ALL, *(assessment.value for assessment in Assessment))
# The expiry in the cursor of an expectation that does not expire.
_NEVER = -1
_MOST_PARTS = 200
# Of these a search reads the intents, which takes milliseconds.
_MOST_SEARCHED = 5_000
# A gate run has an expectation for each of its projects.
_MOST_LISTED = 20
_UNIT_MINUTES = {"d": 24 * 60, "h": 60, "m": 1}
_MOST_MINUTES = 10**9
_EPOCH = date(1970, 1, 1)
_MERGED = form(merged=True)


@dataclass(frozen=True, slots=True)
class ListedEntry(Shape):
    """An entry with the first twenty of its expectations, and how many it has in all."""

    entry: JournalEntry = field(metadata=_MERGED)
    expectation_count: int


@dataclass(frozen=True, slots=True)
class OpenExpectation(Shape):
    """An open expectation, and the agent that waits for it."""

    expectation: Expectation = field(metadata=_MERGED)
    agent_id: str | None


@dataclass(frozen=True, slots=True)
class ListedSignal(Shape):
    """A signal, and the agent that it concerns, if that is known."""

    signal: Signal = field(metadata=_MERGED)
    agent_id: str | None


@dataclass(frozen=True, slots=True)
class SignalDetails(Shape):
    """A signal with how it was routed. `expectations` are the candidates that are still there, by their ids."""

    signal: Signal = field(metadata=_MERGED)
    agent_id: str | None
    session_key: str | None
    is_late: bool
    routing: RoutingExplanation
    expectations: Mapping[str, Expectation] = field(default_factory=FrozenDict, metadata=form(hidden=True))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form; a candidate also has `description`, `entry_id` and `status` of its expectation."""
        written = write_shape(self)
        for candidate in written["routing"]["candidates"]:
            candidate |= self._describe(candidate["expectation_id"])
        return written

    def _describe(self, expectation_id: str) -> dict[str, Any]:
        known = self.expectations.get(expectation_id)
        written = {} if known is None else known.to_dict()
        return {name: written.get(name) for name in ("description", "entry_id", "status")}


@dataclass(frozen=True, slots=True)
class ListedAgent(Shape):
    """An agent that has an entry, and its newest entry."""

    agent_id: str
    last_entry_id: str
    last_entry_at: datetime


@dataclass(frozen=True, slots=True)
class EntryDetails(Shape):
    """An entry with the newest of its expectations, signals and history, and of its `children`, newest first.

    `counts` tells how many `expectations`, `signals` and records of `history` there are in all.
    """

    entry: JournalEntry = field(metadata=_MERGED)
    counts: Mapping[str, int]
    children: tuple[JournalEntry, ...] = field(default=(), metadata=form(hidden=True))

    @property
    @in_form(key="children")
    def child_ids(self) -> tuple[str, ...]:
        """The ids of its children."""
        return tuple(child.id for child in self.children)


class FoundEntry(NamedTuple):
    """An entry that a search has found."""

    id: str
    intent: str
    agent_id: str
    assessment: Assessment
    created_at: datetime


class JournalPages:
    """Lists entries, expectations, signals and agents. Safe between threads; the caller closes the store.

    Each takes `limit` (1 to 200) and the `cursor` of the page before. Every method raises `StorageError` when the store
    cannot be read, and `ValueError` for an argument that is not allowed, or a cursor of another list or other filters.
    """

    def __init__(self, store: Store, clock: Callable[[], datetime] = utc_now) -> None:
        self._store = store
        self._clock = clock

    def list_entries(
        self,
        agent: str | None = None,
        filter: str = ALL,  # noqa: A002 - the public name
        intent_type: str | None = None,
        limit: int = DEFAULT_ITEMS,
        cursor: str | None = None,
        session: str | None = None,
    ) -> Page[ListedEntry]:
        """Return entries with their first expectations, the newest first. `filter` is one of `FILTERS`."""
        limit, assessment = check_page_limit(limit), read_filter(filter)
        agent, intent_type = clean_optional("agent", agent), clean_optional("type", intent_type)
        session = clean_optional("session", session)
        listing = Listing("entries", agent, filter, intent_type, session, kinds=(int,))
        (before,) = listing.read_cursor(cursor) or (None,)
        with self._store.read() as connection:
            rows = review_store.list_numbered_entries(
                connection,
                limit + 1,
                before=before,
                most_expectations=_MOST_LISTED,
                agent_id=agent,
                assessment=assessment,
                intent_type=intent_type,
                session_key=session,
            )
        return listing.cut(rows, limit, lambda row: row[:1], lambda row: ListedEntry(*row[1:]))

    def search_entries(self, words: str, limit: int = DEFAULT_ITEMS) -> tuple[FoundEntry, ...]:
        """Return the entries whose intent has these words, whatever their case, the newest first. The newest 5,000 are searched."""
        words, limit = clean_name("words", words), check_page_limit(limit)
        with self._store.read() as connection:
            rows = review_store.list_intents(connection, words, limit, most=_MOST_SEARCHED)
        return tuple(
            FoundEntry(row.id, row.intent, row.agent_id, Assessment(row.assessment), from_ms(row.created_at))
            for row in rows
        )

    def get_entry(self, entry_id: str, most: int = _MOST_PARTS) -> EntryDetails:
        """Return an entry with the newest `most` of each kind of what belongs to it.

        Raises:
            JournalError: there is no such entry.
        """
        entry_id, most = clean_name("entry_id", entry_id), check_page_limit(most)
        with self._store.read() as connection:
            found = review_store.find_bounded_entry(connection, entry_id, most)
        if found is None:
            raise describe_unknown(entry_id)
        return EntryDetails(*found)

    def list_expectations(
        self, agent: str | None = None, limit: int = DEFAULT_ITEMS, cursor: str | None = None
    ) -> Page[OpenExpectation]:
        """Return the open expectations, the soonest expiry first, those without an expiry last."""
        limit, agent = check_page_limit(limit), clean_optional("agent", agent)
        listing = Listing("expectations", agent, kinds=(int, int))
        expiry, number = listing.read_cursor(cursor) or (None, None)
        after = None if number is None else (None if expiry == _NEVER else expiry, number)
        with self._store.read() as connection:
            rows = review_store.list_open_rows(
                connection, to_ms(self._clock()), agent_id=agent, after=after, limit=limit + 1
            )
        return listing.cut(
            rows,
            limit,
            lambda row: (_NEVER if row.expires_at is None else row.expires_at, row.number),
            lambda row: OpenExpectation(read_expectation(row), row.agent_id),
        )

    def list_signals(
        self,
        routed_by: RoutedBy | str | None = None,
        agent: str | None = None,
        limit: int = DEFAULT_ITEMS,
        cursor: str | None = None,
    ) -> Page[ListedSignal]:
        """Return signals, the newest first; `routed_by` is the rule that routed them, `orphan` for those without a place."""
        limit, agent = check_page_limit(limit), clean_optional("agent", agent)
        rule = None if routed_by is None else check_word("routed_by", routed_by, RoutedBy)
        listing = Listing("signals", rule, agent, kinds=(int,))
        (before,) = listing.read_cursor(cursor) or (None,)
        with self._store.read() as connection:
            rows = review_store.list_signal_rows(
                connection, routed_by=rule, agent_id=agent, before=before, limit=limit + 1
            )
        return listing.cut(
            rows, limit, lambda row: (row.number,), lambda row: ListedSignal(read_signal(row), row.agent_id)
        )

    def get_signal(self, signal_id: str) -> SignalDetails:
        """Return a signal with the rule that routed it, its candidates, and why they took it or not.

        Raises:
            JournalError: there is no such signal.
        """
        signal_id = clean_name("signal_id", signal_id)
        with self._store.read() as connection:
            row = review_store.get_signal_row(connection, signal_id)
            signal = read_signal(row)
            routing = read_explanation(signal.id, signal.routed_by, signal.expectation_id, row.routing)
            known = review_store.find_expectations(connection, {one.expectation_id for one in routing.candidates})
        return SignalDetails(signal, row.agent_id, row.session_key, row.is_late, routing, FrozenDict(known))

    def list_agents(self, limit: int = DEFAULT_ITEMS, cursor: str | None = None) -> Page[ListedAgent]:
        """Return the agents that have an entry, by their names."""
        limit = check_page_limit(limit)
        listing = Listing("agents", kinds=(str,))
        (after,) = listing.read_cursor(cursor) or (None,)
        with self._store.read() as connection:
            rows = review_store.list_agent_rows(connection, after=after, limit=limit + 1)
        return listing.cut(
            rows,
            limit,
            lambda row: (row.agent_id,),
            lambda row: ListedAgent(row.agent_id, row.id, from_ms(row.created_at)),
        )


def read_filter(word: str) -> Assessment | None:
    """Return the assessment that a filter selects; None for all.

    Raises:
        ValueError: the word is unknown.
    """
    if word not in FILTERS:
        raise ValueError(f"filter {show(word)} is unknown: give one of {', '.join(FILTERS)}")
    return None if word == ALL else Assessment(word)


def parse_timestamp(text: str, now: datetime) -> datetime:
    """Return the time that a text means: `90d`, `12h` or `30m` before `now`, or a time; one without a zone is local.

    Raises:
        ValueError: it is no such text.
    """
    number, unit = text[:-1], text[-1:]
    if (
        unit in _UNIT_MINUTES
        and number.isascii()
        and number.isdigit()
        and int(number[:12]) * _UNIT_MINUTES[unit] < _MOST_MINUTES
    ):
        return now - timedelta(minutes=int(number) * _UNIT_MINUTES[unit])
    try:
        # A time without a zone is local, as it is shown.
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        shown = text if text.isprintable() else show(text)
        raise ValueError(f"{shown} is not a time; give 90d, 12h, 30m or a time such as 2026-03-01T12:00Z") from None


@dataclass(frozen=True, slots=True)
class SuccessRate(Shape):
    """How many of `n` entries succeeded: those that are a success, a failure or partial. No rate without any.

    What is still open, and what expired without news, is counted apart.
    """

    n: int = 0
    success_rate: float | None = None
    open: int = 0
    expired: int = 0

    @classmethod
    def of(cls, counts: Iterable[review_store.Count]) -> Self:
        """Add counts up, whatever they are of."""
        sums: Counter[str] = Counter()
        for _, word, amount in counts:
            sums[word] += int(amount)
        n = sums[Assessment.SUCCESS] + sums[Assessment.FAILURE] + sums[Assessment.PARTIAL]
        rate = sums[Assessment.SUCCESS] / n if n else None
        return cls(n, rate, sums[Assessment.OPEN], sums[Assessment.EXPIRED])


@dataclass(frozen=True, slots=True)
class DayRate(Shape):
    """The success rate of one day (UTC)."""

    day: str
    rate: SuccessRate = field(metadata=_MERGED)


@dataclass(frozen=True, slots=True)
class RateByDay(SuccessRate):
    """The success rate of all, and of each day. The days are ISO dates in UTC, the oldest first."""

    by_time: Mapping[str, SuccessRate] = field(default_factory=FrozenDict, hash=False, metadata=form(hidden=True))

    @property
    @in_form(key="by_time")
    def days(self) -> tuple[DayRate, ...]:
        """The success rate of each day as a list."""
        return tuple(DayRate(day, rate) for day, rate in self.by_time.items())


@dataclass(frozen=True, slots=True)
class JournalSummary(RateByDay):
    """The success rate of all entries, of each day on which entries began, and of each intent type (`""` for none)."""

    by_intent_type: Mapping[str, SuccessRate] = field(default_factory=FrozenDict, hash=False)


def summarize(by_day: Sequence[review_store.Count], by_kind: Sequence[review_store.Count]) -> JournalSummary:
    """Add up counts of the same entries, once by their days and once by their intent types."""
    days = {(_EPOCH + timedelta(days=day)).isoformat(): rate for day, rate in _rate_each(by_day).items()}
    kinds = FrozenDict(_rate_each(by_kind))
    return replace(JournalSummary.of(by_day), by_intent_type=kinds, by_time=FrozenDict(days))


def _rate_each(counts: Sequence[review_store.Count]) -> dict[Any, SuccessRate]:
    groups: defaultdict[Any, list[review_store.Count]] = defaultdict(list)
    for count in counts:
        groups[count[0]].append(count)
    return {key: SuccessRate.of(groups[key]) for key in sorted(groups)}
