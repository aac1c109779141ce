"""The services that pages, JSON API, webhooks and tools of agents call, on one store that threads share; the options of serving."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from pytest_golden.clock import utc_now
from pytest_golden.gate.live_store import LiveGates
from pytest_golden.gate.recorded import RecordedGates
from pytest_golden.journal.agent_rules import find_rules
from pytest_golden.journal.review import JournalPages
from pytest_golden.journal.service import Journal
from pytest_golden.learning.learned_pages import LearnedPages
from pytest_golden.learning.lessons.service import Lessons
from pytest_golden.manifest.reader import load_manifest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pytest_golden.manifest.model import Manifest
    from pytest_golden.storage.store import Store
    from pytest_golden.web.access import PublicPlace

# Two writes within one tick of the file system's clock may look the same.
_SECONDS_UNTIL_KEPT = 2.0


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """The options of `golden serve`.

    All requests need `token` with `demands_token`, else only those that come through a proxy. `manifest` need not exist.
    Without `webhook_secret`, webhooks are refused. `heartbeat_seconds` is None without a heartbeat, which also
    posts changes of the gate to `notify_url`. `cookie_suffix` keeps the
    cookies of several servers on one machine apart.
    """

    manifest: Path
    place: PublicPlace
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    demands_token: bool = False
    webhook_secret: str | None = field(default=None, repr=False)
    is_read_only: bool = False
    heartbeat_seconds: float | None = None
    notify_url: str | None = field(default=None, repr=False)
    sandbox: str = "auto"
    cookie_suffix: str = ""


@dataclass(frozen=True, slots=True)
class Services:
    """The services on one store, which stays the caller's."""

    store: Store
    manifest: ManifestReader
    journal: Journal
    journal_pages: JournalPages
    gates: RecordedGates
    live_gates: LiveGates
    lessons: Lessons
    learned: LearnedPages

    @classmethod
    def on(cls, store: Store, manifest: Path, rules: Mapping[str, Mapping[str, Any]] | None = None) -> Self:
        """Return the services on a store; the manifest need not exist. `rules` are the journal's, by default those configured.

        Raises:
            SettingsError: the file of the journal's rules cannot be used.
        """
        return cls(
            store,
            ManifestReader(manifest),
            Journal(store, rules=find_rules() if rules is None else rules),
            JournalPages(store),
            RecordedGates(store),
            LiveGates(store),
            Lessons(store),
            LearnedPages(store),
        )


class ManifestReader:
    """Reads one manifest, again only when its file has changed: a large one takes longer than a page. Threads may share it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept: tuple[tuple[int, int, int], Manifest] | None = None

    @property
    def folder(self) -> Path:
        """The folder of the manifest, which git is asked about."""
        return self._path.parent

    def read(self) -> Manifest | None:
        """Return the manifest as it is now; None if there is none.

        Raises:
            ManifestError: it cannot be used.
        """
        try:
            found = self._path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            return load_manifest(self._path)
        # Taken before the file is read: a change meanwhile is noticed the next time.
        mark = (found.st_mtime_ns, found.st_size, found.st_ino)
        kept = self._kept
        if kept is not None and kept[0] == mark:
            return kept[1]
        manifest = load_manifest(self._path)
        if utc_now().timestamp() - found.st_mtime > _SECONDS_UNTIL_KEPT:
            self._kept = (mark, manifest)
        return manifest
