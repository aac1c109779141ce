"""Tell a channel when the gate turns red, recovers or becomes flaky: a message that Slack and what is compatible with it takes.

The address is a secret: whoever knows it may post. So no message of ours has more of it than its host.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import StrEnum
from http.client import HTTPException
from itertools import takewhile
from typing import TYPE_CHECKING
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from pytest_golden.errors import GoldenError, SettingsError
from pytest_golden.gate.recorded import RecordedGates
from pytest_golden.regression.wording import count_of, name_some
from pytest_golden.report.result_text import make_visible
from pytest_golden.values.shape import Shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_golden.history.recorded_model import ListedRun
    from pytest_golden.storage.store import Store

VARIABLE = "GOLDEN_NOTIFY_URL"
_MOST_RUNS, _MOST_NAMED, _SHORT = 200, 5, 10
_SECONDS = 15.0


class ChangeKind(StrEnum):
    """What is told: the first red after green, the first green after red, a green run in which a project was flaky."""

    RED = "red"
    RECOVERED = "recovered"
    FLAKY = "flaky"


@dataclass(frozen=True, slots=True)
class GateChange(Shape):
    """A change of the gate in the run `run_id`, as a text for people."""

    kind: ChangeKind
    run_id: str
    text: str


def find_change(store: Store, *, link: str | None = None) -> GateChange | None:
    """Compare the last run that people ran with the one before on its branch; None if there is nothing to tell.

    `link` is where a person reads more.

    Raises:
        StorageError: the store cannot be read.
    """
    gates = RecordedGates(store)
    runs = [one for one in gates.list_runs(_MOST_RUNS, own_only=True).items if _is_whole(one)]
    if not runs:
        return None
    last = runs[0]
    earlier = [one for one in runs[1:] if one.branch == last.branch]
    kind = _judge(last, earlier)
    if kind is None:
        return None
    results = gates.list_results(last.entry_id, _MOST_RUNS).items
    named = [one.name for one in results if (one.is_flaky if kind is ChangeKind.FLAKY else one.is_regression)]
    return GateChange(kind, last.entry_id, _describe(kind, last, earlier, named, link))


def _is_whole(run: ListedRun) -> bool:
    return run.verdict.status is not None and not run.is_interrupted


def _judge(last: ListedRun, earlier: Sequence[ListedRun]) -> ChangeKind | None:
    was_good = earlier[0].verdict.is_good if earlier else True
    if not last.verdict.is_good:
        return ChangeKind.RED if was_good else None
    if not was_good:
        return ChangeKind.RECOVERED
    return ChangeKind.FLAKY if last.verdict.flaky else None


def _describe(
    kind: ChangeKind, last: ListedRun, earlier: Sequence[ListedRun], named: Sequence[str], link: str | None
) -> str:
    place = f" on {last.branch}" if last.branch else ""
    commit = f" at {last.commit[:_SHORT]}" if last.commit else ""
    # How many runs before it were of the other kind.
    streak = sum(1 for _ in takewhile(lambda one: one.verdict.is_good is not last.verdict.is_good, earlier))
    after = f", after {count_of(streak, '{} run')}" if streak else ""
    told = {
        ChangeKind.RED: f"Golden projects are RED{place}{commit}{after.format('green')}",
        ChangeKind.RECOVERED: f"Golden projects are green again{place}{commit}{after.format('red')}",
        ChangeKind.FLAKY: f"Golden projects passed{place}{commit}, but not on the first attempt",
    }[kind]
    names = f": {name_some(named, _MOST_NAMED)}" if named else ""
    return make_visible(" ".join(f"{told}{names}. {last.verdict.sentence}. {link or ''}".split()))


class Channel:
    """A webhook that is told each change of the gate in a store once. What was there before the first look is known."""

    def __init__(self, store: Store, url: str, link: str) -> None:
        self._store = store
        self._url = url
        self._link = link
        self._known: str | None = None
        self._has_looked = False

    def look(self) -> None:
        """Post what has changed with the last run. A message that cannot be posted is not tried again.

        Raises:
            GoldenError: the store cannot be read, or the webhook not be reached.
        """
        change = find_change(self._store)
        is_news = self._has_looked and change is not None and change.run_id != self._known
        self._has_looked = True
        if change is not None:
            self._known = change.run_id
            if is_news:
                text = f"{change.text} {self._link}{change.run_id}" if self._link else change.text
                post_change(self._url, replace(change, text=text))


def post_change(url: str, change: GateChange) -> None:
    """Post the text of a change to a webhook.

    Raises:
        SettingsError: it is not an address of a webhook.
        GoldenError: the webhook cannot be reached, or refuses.
    """
    parts = urlsplit(url)
    is_local = parts.scheme == "http" and parts.hostname in {"127.0.0.1", "localhost", "::1"}
    if not parts.hostname or not (parts.scheme == "https" or is_local):
        raise SettingsError(f"{VARIABLE} is not an https address of a webhook; give one such as Slack makes")
    body = json.dumps({"text": change.text}).encode()
    request = Request(url, body, {"Content-Type": "application/json", "User-Agent": "pytest-golden-projects"})
    try:
        with urlopen(request, timeout=_SECONDS):
            pass
    except HTTPError as error:
        raise GoldenError(f"the webhook at {parts.hostname} refuses the message: status {error.code}") from None
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or type(error).__name__
        raise GoldenError(f"the webhook at {parts.hostname} cannot be reached: {reason}") from None
