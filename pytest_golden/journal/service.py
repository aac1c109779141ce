"""The journal as callers use it: log intents and outcomes, receive signals, and review what was recorded."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any, Self

from pytest_golden.clock import new_id, utc_now
from pytest_golden.errors import JournalError
from pytest_golden.journal import caller_input, model, receiving_store, review_store
from pytest_golden.journal import store as stored
from pytest_golden.journal.agent_rules import find_rules, parse_rules
from pytest_golden.journal.assessment_store import Change, ask_for_standing, override, read_expectation, read_standing
from pytest_golden.journal.checks.rules import refuse_forbidden
from pytest_golden.journal.expectation_input import read_expectations
from pytest_golden.journal.review import ALL, JournalSummary, read_filter, summarize
from pytest_golden.journal.routing import RoutingExplanation, read_explanation
from pytest_golden.journal.rules import rules_of
from pytest_golden.journal.transfer.service import export_journal, import_journal
from pytest_golden.storage.columns import to_ms
from pytest_golden.storage.store import Store
from pytest_golden.values.checking import check_time, check_word

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import datetime
    from pathlib import Path

    from sqlalchemy import Connection

    from pytest_golden.journal.transfer.service import ExportReport, ImportReport


class Journal:
    """Entries of pipelines and agents in one store. Threads may share it. It closes only a store that it opened itself.

    `clock` gives an aware UTC datetime. `rules` are by agent: `{"builder": {"all_expired": "success", "intent_types":
    ["deploy"], "retention": {"days": 90, "entries": 10000}}}`.
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
        self._rules = parse_rules(rules)
        self.swept_store = stored.SweptStore(store, utc_now if clock is None else clock, self._rules)
        self._closes_store = closes_store

    @classmethod
    def open(
        cls,
        url: str | Path | None = None,
        clock: Callable[[], datetime] | None = None,
        rules: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> Self:
        """Open the journal in a store: a file or a URL.

        The default store is the one that GOLDEN_STORE_URL names, else `.golden/golden.db` in the workspace root of the nearest
        manifest, else in the current folder. The default rules are in the file that GOLDEN_JOURNAL_RULES names.

        Raises:
            SettingsError: the store's location or the file of rules is not usable, or recording is off.
            ManifestError: the manifest, which defines the workspace root, is not valid.
            StorageError: the store cannot be opened.
            ValueError: the rules are not valid.
        """
        store = Store.open(stored.find_default_store() if url is None else url)
        try:
            return cls(store, clock=clock, rules=find_rules() if rules is None else rules, closes_store=True)
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
    ) -> model.JournalEntry:
        """Begin an entry, before the work begins. The entry is on disk when this returns.

        Raises:
            ValueError: a text is blank or is not a string, or the agent may not log this type; the message names it.
            JournalError: the parent does not exist.
            StorageError: the store cannot be written.
        """
        timestamp, agent_id = self._now(), caller_input.clean_name("agent_id", agent_id)
        intent_type = caller_input.clean_optional("intent_type", intent_type)
        rules_of(agent_id, self._rules).check_intent_type(agent_id, intent_type)
        entry = model.JournalEntry(
            id=new_id("entry"),
            job_id=caller_input.clean_optional("job_id", job_id),
            agent_id=agent_id,
            session_key=caller_input.clean_optional("session_key", session_key),
            intent=caller_input.clean_text("intent", intent),
            intent_type=intent_type,
            created_at=timestamp,
            updated_at=timestamp,
            parent_id=caller_input.clean_optional("parent_id", parent_id),
        )
        with self._store.write() as connection:
            if parent_id is not None and not stored.has_entry(connection, parent_id):
                raise JournalError(f"parent_id: the journal has no entry {parent_id!r}")
            stored.insert_entry(connection, entry)
        return entry

    def log_outcome(
        self,
        entry_id: str,
        result: model.ImmediateResult | str,
        notes: str | None = None,
        *,
        actions: Iterable[Any] | None = (),
        expectations: Iterable[Mapping[str, Any]] | None = (),
        agent_id: str | None = None,
    ) -> model.JournalEntry:
        """Record how an entry's work ended and what is expected now; return the whole entry.

        Everything is stored, or nothing. An expectation is `{description, match_hint, expires_minutes, polarity, critical,
        check}`; only the description is required. A second call replaces the result and the notes. It also replaces the actions if
        it has any, and it adds its expectations.

        Raises:
            ValueError: a value is not allowed; the message names it and what is allowed.
            JournalError: the entry does not exist, or belongs to another agent than `agent_id`.
            StorageError: the store cannot be written.
        """
        timestamp, entry_id = self._now(), caller_input.clean_name("entry_id", entry_id)
        agent_id = caller_input.clean_optional("agent_id", agent_id)
        outcome = stored.Outcome(
            check_word("result", result, model.ImmediateResult),
            caller_input.clean_notes("notes", notes),
            caller_input.clean_actions(actions or ()),
            read_expectations(expectations or (), entry_id=entry_id, timestamp=timestamp),
        )
        with self._store.write_asking(ask_for_standing(entry_id)) as (connection, (found,)):
            standing = read_standing(found, entry_id)
            owner = _refuse_other(entry_id, standing.agent_id, agent_id)
            rules = rules_of(owner, self._rules)
            refuse_forbidden(outcome.expectations, rules, owner)
            stored.record_outcome(connection, entry_id, outcome, timestamp, who=owner, rules=rules, standing=standing)
            belongs = receiving_store.Owner(owner, standing.session_key)
            receiving_store.route_to_new(connection, entry_id, belongs, outcome.expectations, self._rules)
            return stored.get_entry(connection, entry_id)

    def add_signal(
        self,
        source: str,
        signal_type: model.SignalType | str,
        summary: str,
        *,
        data: Mapping[str, Any] | None = None,
        external_id: str | None = None,
        agent_id: str | None = None,
        session_key: str | None = None,
        entry_id: str | None = None,
    ) -> model.Signal:
        """Receive a signal, let it answer the expectation that it fits, and return the signal as it is stored.

        Due expectations are resolved first. A second signal with the same `external_id` from the same source has no effect. Without an
        `external_id`, a signal with the same content has no effect until a younger expectation fits it. If only one agent has entries in
        the session, the signal is for that agent. The source `human` overrides all rules, for the named entry or the latest of the session.

        Raises:
            ValueError: a value is not allowed; the message names it and what is allowed.
            JournalError: the entry does not exist, or belongs to another agent than `agent_id`.
            StorageError: the store cannot be written.
        """
        signal = model.Signal(
            id=new_id("signal"),
            entry_id=caller_input.clean_optional("entry_id", entry_id),
            source=caller_input.clean_name("source", source),
            signal_type=check_word("signal_type", signal_type, model.SignalType),
            summary=caller_input.clean_text("summary", summary),
            data=caller_input.clean_data("data", data),
            external_id=caller_input.clean_external_id("external_id", external_id),
            created_at=self._now(),
        )
        asked = caller_input.clean_optional("agent_id", agent_id)
        session = caller_input.clean_optional("session_key", session_key)
        if signal.entry_id is not None:
            return self._receive_of_entry(signal, signal.entry_id, asked, session)
        if asked is None and session is not None:
            return self._receive_of_session(signal, session)
        incoming = receiving_store.read_incoming(signal, asked, session)
        return self.swept_store.answered_after_sweep(
            signal.created_at,
            receiving_store.ask_about(incoming, near=not self._store.is_on_server),
            lambda connection, answers: receiving_store.receive(connection, incoming, self._rules, answers),
        )

    def assess(
        self, entry_id: str, assessment: model.Assessment | str, notes: str | None = None, *, by: str
    ) -> model.JournalEntry:
        """Record a person's assessment, which overrides all rules; the last one counts. Return the whole entry.

        Raises:
            ValueError: a value is not allowed, for example one that would open the entry again; the message names it and what is allowed.
            JournalError: the entry does not exist.
            StorageError: the store cannot be written.
        """
        word = check_word("assessment", assessment, model.Assessment)
        if word is model.Assessment.OPEN:
            raise ValueError("assessment 'open' is refused, since no entry is opened again: give another one")
        change = Change(caller_input.clean_name("by", by), to_ms(self._now()), caller_input.clean_notes("notes", notes))
        entry_id = caller_input.clean_name("entry_id", entry_id)
        with self._store.write() as connection:
            override(connection, entry_id, word, change)
            return stored.get_entry(connection, entry_id)

    def attach(self, signal_id: str, entry_id: str) -> model.Signal:
        """Attach a waiting signal to this entry, and return it. It counts for the entry, not for an expectation.

        Raises:
            JournalError: the entry or the waiting signal does not exist, or they belong to different agents.
            ValueError: an id is blank or is not a string.
            StorageError: the store cannot be written.
        """
        signal_id, entry_id = (
            caller_input.clean_name(name, one) for name, one in (("signal_id", signal_id), ("entry_id", entry_id))
        )
        return self.swept_store.after_sweep(
            self._now(), lambda connection: receiving_store.attach(connection, signal_id, entry_id, self._rules)
        )

    def sweep(self) -> int:
        """Resolve every expectation that has expired, and return their number. A second call immediately afterwards returns 0.

        Raises:
            StorageError: the store cannot be written.
        """
        return self.swept_store.sweep()

    def reroute_orphans(self) -> int:
        """Assign waiting signals to open expectations whose hints they fit, and return the number of assigned signals.

        `log_outcome` does this for the expectations that it adds. Call this after an import.

        Raises:
            StorageError: the store cannot be written.
        """
        return receiving_store.reroute_orphans(self.swept_store, self._now())

    def get(self, entry_id: str) -> model.JournalEntry:
        """Return an entry with its expectations, signals and history.

        Raises:
            JournalError: the entry does not exist.
            StorageError: the store cannot be read.
        """
        with self._store.read() as connection:
            return stored.get_entry(connection, caller_input.clean_name("entry_id", entry_id))

    def review_journal(
        self,
        filter: str = ALL,  # noqa: A002 - the public name
        intent_type: str | None = None,
        limit: int = 10,
        *,
        agent_id: str | None = None,
        without_type: str | None = None,
    ) -> tuple[model.JournalEntry, ...]:
        """Return entries with their expectations, newest first; without `agent_id`, those of all agents.

        Entries of the intent type `without_type` are left out.

        Raises:
            ValueError: a filter is unknown, or the limit is below 1.
            StorageError: the store cannot be read.
        """
        assessment, limit = read_filter(filter), caller_input.check_limit(limit)
        agent_id = caller_input.clean_optional("agent_id", agent_id)
        intent_type = caller_input.clean_optional("intent_type", intent_type)
        with self._store.read() as connection:
            found = review_store.list_numbered_entries(
                connection,
                limit,
                without_type=without_type,
                agent_id=agent_id,
                assessment=assessment,
                intent_type=intent_type,
            )
            return tuple(entry for _, entry, _ in found)

    def open_expectations(self, agent_id: str | None = None, *, limit: int = 500) -> tuple[model.Expectation, ...]:
        """Return up to `limit` open expectations by their expiry, soonest first. Those that never expire are last.

        Raises:
            ValueError: the limit is below 1, or the agent is not a string.
            StorageError: the store cannot be read.
        """
        agent_id, limit = caller_input.clean_optional("agent_id", agent_id), caller_input.check_limit(limit)
        with self._store.read() as connection:
            rows = review_store.list_open_rows(connection, to_ms(self._now()), agent_id=agent_id, limit=limit)
            return tuple(map(read_expectation, rows))

    def orphans(self, *, limit: int = 500) -> tuple[model.Signal, ...]:
        """Return up to `limit` signals that fit no entry yet, newest first.

        Raises:
            ValueError: the limit is below 1.
            StorageError: the store cannot be read.
        """
        limit = caller_input.check_limit(limit)
        with self._store.read() as connection:
            return review_store.list_orphans(connection, limit=limit)

    def explain_routing(self, signal_id: str) -> RoutingExplanation:
        """Explain which rule routed a signal, which expectations were candidates, and why each one took the signal or not.

        Raises:
            JournalError: the signal does not exist.
            StorageError: the store cannot be read.
        """
        signal_id = caller_input.clean_name("signal_id", signal_id)
        with self._store.read() as connection:
            row = review_store.get_signal_row(connection, signal_id)
        return read_explanation(signal_id, model.RoutedBy(row.routed_by), row.expectation_id, row.routing)

    def summary(self, agent_id: str | None = None, since: datetime | None = None) -> JournalSummary:
        """Count the entries begun since a timestamp and how many of them succeeded: in total, by intent type, and by day.

        Raises:
            ValueError: the timestamp is not an aware datetime, or the agent is not a string.
            StorageError: the store cannot be read.
        """
        agent_id = caller_input.clean_optional("agent_id", agent_id)
        began = None if since is None else to_ms(check_time("since", since))
        with self._store.read() as connection:
            return summarize(*review_store.count_entries(connection, agent_id=agent_id, since=began))

    def export(self, file: str | Path | IO[Any], *, progress: Callable[[int], None] = lambda _: None) -> ExportReport:
        """Write a consistent copy of everything as JSON Lines. Equal journals give equal files. `progress` receives line numbers.

        Raises:
            JournalError: the path exists and is not an earlier export.
            OSError: the file cannot be written.
            StorageError: the store cannot be read.
        """
        return export_journal(self._store, file, progress=progress)

    def import_(
        self, file: str | Path | IO[Any], *, with_checks: bool = False, progress: Callable[[int], None] = lambda _: None
    ) -> ImportReport:
        """Import everything that an export holds, or nothing. Differing entries are merged, with the same result in any order.

        Nothing in the file is executed. With `with_checks`, for a file that you trust, a heartbeat here will run its checks. Otherwise only
        the journal that recorded the checks runs them.

        Raises:
            JournalError: the file is not valid; the message names the line.
            OSError: the file cannot be read.
            StorageError: the store cannot be written.
        """
        return import_journal(self._store, file, self._rules, with_checks=with_checks, progress=progress)

    def close(self) -> None:
        """Close the store, if this journal opened it."""
        if self._closes_store:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _receive_of_entry(
        self, signal: model.Signal, entry_id: str, asked: str | None, session: str | None
    ) -> model.Signal:
        def take_in(connection: Connection, answers: list[Iterator[Any]]) -> model.Signal:
            owner = _refuse_other(entry_id, read_standing(answers[0], entry_id).agent_id, asked)
            return receiving_store.receive(
                connection, receiving_store.read_incoming(signal, owner, session), self._rules
            )

        # The agent must be known before more can be asked.
        return self.swept_store.answered_after_sweep(signal.created_at, (ask_for_standing(entry_id),), take_in)

    def _receive_of_session(self, signal: model.Signal, session: str) -> model.Signal:
        def take_in(connection: Connection, answers: list[Iterator[Any]]) -> model.Signal:
            owner = receiving_store.read_only_agent(answers[0])
            return receiving_store.receive(
                connection, receiving_store.read_incoming(signal, owner, session), self._rules
            )

        asked = receiving_store.ask_for_agents(session)
        return self.swept_store.answered_after_sweep(signal.created_at, (asked,), take_in)

    def _now(self) -> datetime:
        return self.swept_store.now()


def _refuse_other(entry_id: str, owner: str, agent_id: str | None) -> str:
    if agent_id is not None and agent_id != owner:
        raise JournalError(f"entry {entry_id!r} is another agent's, not of {agent_id!r}")
    return owner
