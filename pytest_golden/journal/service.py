"""The journal as callers use it: say what is intended, how it ended and what is expected, and look back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

from pytest_golden.clock import new_id, utc_now
from pytest_golden.errors import JournalError
from pytest_golden.journal.asking import read_expectations
from pytest_golden.journal.default_store import find_default_store
from pytest_golden.journal.given import clean_json, clean_name, clean_notes, clean_text
from pytest_golden.journal.model import Assessment, ImmediateResult, JournalEntry
from pytest_golden.journal.rules import DEFAULT_RULES, Rules
from pytest_golden.journal.store import (
    Outcome,
    get_agent,
    get_entry,
    has_entry,
    insert_entry,
    list_entries,
    record_outcome,
)
from pytest_golden.storage.moments import from_ms, to_ms
from pytest_golden.storage.store import Store
from pytest_golden.trajectory.vocabulary import check_time, check_word

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime
    from pathlib import Path

_ALL = "all"
#: What `review_journal` can be asked for.
FILTERS = (_ALL, *(assessment.value for assessment in Assessment))
# SQLite's own integers end at 2^63 - 1.
_MOST = 1_000_000


class Journal:
    """Entries of pipelines and agents in one store. Threads may share it. It closes only a store that it opened itself.

    `clock` gives an aware UTC datetime. `rules` are by agent: `{"builder": {"all_expired": "success"}}`.
    """

    def __init__(
        self,
        store: Store,
        *,
        clock: Callable[[], datetime] | None = None,
        rules: Mapping[str, Mapping[str, Any]] | None = None,
        closes_store: bool = False,
    ) -> None:
        self._store = store
        self._clock = utc_now if clock is None else clock
        self._rules = {agent_id: Rules.parse(wishes) for agent_id, wishes in (rules or {}).items()}
        self._closes_store = closes_store

    @classmethod
    def open(
        cls,
        url: str | Path | None = None,
        clock: Callable[[], datetime] | None = None,
        rules: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> Self:
        """Open the journal in a store: a file or a URL.

        The default is the variable GOLDEN_STORE_URL, else `.golden/golden.db` in the workspace root of the nearest
        manifest, else in the current folder.

        Raises:
            SettingsError: no store can be at such a place, or there is to be none.
            ManifestError: the manifest, which tells the workspace root, cannot be used.
            StorageError: it cannot be opened.
            ValueError: there is no such rule.
        """
        store = Store.open(find_default_store() if url is None else url)
        try:
            return cls(store, clock=clock, rules=rules, closes_store=True)
        except BaseException:
            store.close()
            raise

    def log_intent(
        self,
        intent: str,
        intent_type: str | None = None,
        *,
        agent_id: str,
        session_key: str | None = None,
        job_id: str | None = None,
        parent_id: str | None = None,
    ) -> JournalEntry:
        """Begin an entry: say what is about to be done, before it is done. The entry is on the disk on return.

        Raises:
            ValueError: a text is blank or no text; the message names it.
            JournalError: there is no such parent.
            StorageError: it cannot be written.
        """
        moment = self._now()
        entry = JournalEntry(
            id=new_id("entry"),
            job_id=_clean_optional("job_id", job_id),
            agent_id=clean_name("agent_id", agent_id),
            session_key=_clean_optional("session_key", session_key),
            intent=clean_text("intent", intent),
            intent_type=_clean_optional("intent_type", intent_type),
            created_at=moment,
            updated_at=moment,
            parent_id=_clean_optional("parent_id", parent_id),
        )
        with self._store.write() as connection:
            if parent_id is not None and not has_entry(connection, parent_id):
                raise JournalError(f"parent_id: the journal has no entry {parent_id!r}")
            insert_entry(connection, entry)
        return entry

    def log_outcome(
        self,
        entry_id: str,
        result: ImmediateResult | str,
        notes: str | None = None,
        *,
        actions: Iterable[Any] | None = (),
        expectations: Iterable[Mapping[str, Any]] | None = (),
        agent_id: str | None = None,
    ) -> JournalEntry:
        """Say how an entry's action ended and what is expected of it now; give the entry with all that it has.

        All of it is kept, or nothing. An expectation is `{description, match_hint, expires_minutes, polarity, critical,
        check}`, of which only the description is required. Said again, the later result and notes stand, actions replace
        those said before unless there are none, and expectations are added.

        Raises:
            ValueError: a value that is not allowed; the message names it and what is.
            JournalError: there is no such entry, or it is not of this agent (where `agent_id` is given).
            StorageError: it cannot be written.
        """
        moment, entry_id = self._now(), clean_name("entry_id", entry_id)
        outcome = Outcome(
            check_word("result", result, ImmediateResult),
            clean_notes("notes", notes),
            _clean_actions(actions or ()),
            read_expectations(expectations or (), entry_id=entry_id, moment=moment),
        )
        with self._store.write() as connection:
            owner = get_agent(connection, entry_id)
            if agent_id is not None and agent_id != owner:
                raise JournalError(f"entry {entry_id!r} is another agent's, not of {agent_id!r}")
            rules = self._rules.get(owner, DEFAULT_RULES)
            record_outcome(connection, entry_id, outcome, moment, who=owner, rules=rules)
            return get_entry(connection, entry_id)

    def get(self, entry_id: str) -> JournalEntry:
        """Give an entry with its expectations, signals and history.

        Raises:
            JournalError: there is no such entry.
            StorageError: it cannot be read.
        """
        with self._store.read() as connection:
            return get_entry(connection, clean_name("entry_id", entry_id))

    def review_journal(
        self,
        filter: str = _ALL,  # noqa: A002 - the public name
        intent_type: str | None = None,
        limit: int = 10,
        *,
        agent_id: str | None = None,
    ) -> tuple[JournalEntry, ...]:
        """Give the newest entries with their expectations, newest first; without `agent_id` those of all agents.

        Raises:
            ValueError: an unknown filter or a limit below 1.
            StorageError: it cannot be read.
        """
        if filter not in FILTERS:
            raise ValueError(f"filter {filter!r} is unknown: give one of {', '.join(FILTERS)}")
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise ValueError(f"limit must be a whole number from 1 up, not {limit!r}")
        assessment = None if filter == _ALL else Assessment(filter)
        with self._store.read() as connection:
            return list_entries(
                connection,
                agent_id=_clean_optional("agent_id", agent_id),
                assessment=assessment,
                intent_type=_clean_optional("intent_type", intent_type),
                limit=min(limit, _MOST),
            )

    def close(self) -> None:
        """Close the store, if this journal has opened it."""
        if self._closes_store:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _now(self) -> datetime:
        # As it is kept: an entry just made equals the same one read back.
        return from_ms(to_ms(check_time("the clock's time", self._clock())))


def _clean_optional(field: str, name: str | None) -> str | None:
    return None if name is None else clean_name(field, name)


def _clean_actions(actions: Iterable[Any]) -> tuple[Any, ...]:
    if isinstance(actions, str | bytes | dict) or not isinstance(actions, Iterable):
        raise ValueError(f"actions must be a list, not {actions!r}; write it in brackets")  # noqa: TRY004 - one kind of refusal
    return tuple(clean_json("actions", list(actions)))
