"""The base: its results from earlier runs, or from gates in a worktree of its own, which is made when it is needed."""

from __future__ import annotations

import os
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pytest_golden.errors import GoldenError, ManifestError
from pytest_golden.gate.base_manifest import read_base_manifest
from pytest_golden.gate.verify.breakdown import BrokenDownError
from pytest_golden.gate.verify.gates import start_gate
from pytest_golden.gate.verify.recording import BaseKey, digest_environment
from pytest_golden.gate.verify.reports import finish_gate, result_of
from pytest_golden.manifest import parse_manifest
from pytest_golden.regression.comparison import SideRuns, tells_nothing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pytest_golden.gate.verify.base_place import BasePlace
    from pytest_golden.gate.verify.model import VerificationRequest
    from pytest_golden.gate.verify.recording import VerificationRecord
    from pytest_golden.gate.verify.reports import GateReport
    from pytest_golden.manifest.model import Manifest
    from pytest_golden.regression.model import GoldenProjectResult, ResultStatus

_LOG_NAME = "verify-base.log"
_ADVICE = "Mend that, or give a --base that can be run"


class BaseUnavailableError(GoldenError):
    """The base could not be run, so nothing can be said about the change."""


class BaseSide:
    """Gives the base's results. To be used in a with-block, which removes the worktree.

    `run_ids` are the gate runs that were made here, `gaps` what the worktree lacked, `missing` what it lacked of
    a project that failed in it, by name. `location` is the store, None for none. `say` gets news, `show` what runs.
    """

    def __init__(
        self,
        request: VerificationRequest,
        head: Manifest,
        *,
        location: str | Path | None,
        say: Callable[[str], None],
        show: Callable[[str], None] | None,
    ) -> None:
        self._request = request
        self._workspace_root = head.workspace_root
        self._location = location
        self._say = say
        self._show = show
        self._held = ExitStack()
        self._place: BasePlace | None = None
        self._count = 0
        self.run_ids: list[str] = []
        self.gaps: tuple[str, ...] = ()
        self.missing: dict[str, str] = {}
        self.reused = False
        self.manifest = self._read_manifest()
        self._setup = self.manifest.setup if self.manifest.setup is not None else head.setup
        folder = request.manifest.parent
        self.key = BaseKey(
            commit=request.base.commit,
            manifest=os.path.relpath(Path(os.path.realpath(folder), request.manifest.name), request.checkout),
            environment=digest_environment(self.manifest, head.workspace_root, folder),
            setup=self._setup,
        )

    def find_runs(self, record: VerificationRecord) -> dict[str, SideRuns]:
        """Give the runs of every project that the base declares.

        Raises:
            BaseUnavailableError: it could not be run.
        """
        names = [project.name for project in self.manifest.projects]
        found = record.find_base(self.key, names) if self._request.reuses and names else None
        if found is not None:
            self.reused = True
            return found
        if not names:
            return {}
        return self._run_first(names, ())

    def run_anew(self, names: Sequence[str]) -> dict[str, SideRuns]:
        """Run some projects of which the earlier runs tell nothing, and give their runs. Raises as `find_runs`."""
        return self._run_first(names, names)

    def repeat(self, names: Sequence[str]) -> dict[str, ResultStatus]:
        """Run some projects once more, and give how each ended.

        Raises:
            BaseUnavailableError: one of them could not be run any more.
        """
        results = self._run(names).results
        if self.reused:
            # Where the worktree's first run passed, nothing that it needs is missing.
            self._note_missing(results.values())
        for result in results.values():
            if tells_nothing(result):
                raise BaseUnavailableError(f"{result.name} could not be run again on the base: {result.error_message}")
        return {name: result.status for name, result in results.items()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def _run_first(self, names: Sequence[str], chosen: Sequence[str]) -> dict[str, SideRuns]:
        report = self._run(chosen)
        self._note_missing(report.results.values())
        return {name: SideRuns.begin(result_of(report, name)) for name in names}

    def _note_missing(self, results: Iterable[GoldenProjectResult]) -> None:
        failed = [result for result in results if result.is_regression]
        if failed:
            self.missing |= self._get_place().find_missing(self.manifest.workspace_root, failed)

    def _run(self, names: Sequence[str]) -> GateReport:
        try:
            place = self._get_place()
            self._count += 1
            name = f"base-{self._count}"
            private = self._request.private
            gate = start_gate(place.gate, private, name, projects=names)
            report = finish_gate(gate, "base", self._show)
        except BaseUnavailableError:
            raise
        except BrokenDownError as error:
            raise BaseUnavailableError(error.keep(self._workspace_root, _LOG_NAME, _ADVICE)) from None
        except (GoldenError, OSError) as error:
            raise BaseUnavailableError(str(error)) from None
        finally:
            self._keep_spooled()
        if report.run_id is not None:
            self.run_ids.append(report.run_id)
        elif self._location is not None:
            self._say("WARNING: the base's results are not recorded: neither the store nor the spool took them")
        return report

    def _keep_spooled(self) -> None:
        if self._place is not None:
            lost = self._place.keep_spooled(self._workspace_root)
            if lost is not None:
                self._say(f"WARNING: {lost}")

    def _get_place(self) -> BasePlace:
        if self._place is None:
            # Loaded only now: where earlier runs tell how the base ends, the head's gate would wait for it in vain.
            make: type[BasePlace] = import_module("pytest_golden.gate.verify.base_place").BasePlace
            request, manifest, setup = self._request, self.key.manifest, self._setup
            self._place = make(request, manifest, setup, location=self._location, say=self._say, held=self._held)
            self.gaps = self._place.gaps
        return self._place

    def _read_manifest(self) -> Manifest:
        manifest, commit = self._request.manifest, self._request.base.commit
        try:
            text = read_base_manifest(manifest, commit).text
            return parse_manifest(text or "", f"{commit[:12]}:{manifest.name}", manifest.parent)
        except ManifestError as error:
            raise BaseUnavailableError(f"the base's manifest cannot be used: {error}") from None
        except GoldenError as error:
            raise BaseUnavailableError(str(error)) from None
