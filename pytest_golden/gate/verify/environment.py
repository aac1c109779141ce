"""The environment that the base runs in, so that it never runs the head's code.

Without a `setup:` it is the head's. With one it is a virtual environment of the base's own, which sees all that the
head's has: the setup installs over it, and the head's environment stays as it is.
"""

from __future__ import annotations

import importlib.util
import json
import os
import site
import sys
import venv
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from pytest_golden.errors import GoldenError
from pytest_golden.gate.verify.breakdown import BrokenDownError, find_cause
from pytest_golden.gate.verify.gates import GatePlace, move_below
from pytest_golden.gate.verify.process import ChildProcess
from pytest_golden.gateway.visibility import find_linked_sources

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_golden.manifest.model import GoldenProjectConfig

#: Tells the setup where the head's checkout is, for what git does not hold.
HEAD_VARIABLE = "GOLDEN_HEAD"
#: An hour: it may compile, or fetch much.
SETUP_SECONDS = 3600.0
# Read after all `.pth` files of the setup's own, so that what it installs comes first.
_PARENT_LINK = "zzz-of-the-head.pth"
_PROGRAMS = ("pip", "pip3")
_PROGRAM_MODE = 0o755


class BaseEnvironment:
    """Makes the place where the base's gates run. `checkout` is the head's, `worktree` the base's root."""

    def __init__(self, checkout: Path, worktree: Path, private: Path, environment: Mapping[str, str]) -> None:
        self._checkout = checkout
        self._private = private
        self._environment = dict(environment)
        if "PYTHONPATH" in environment:
            self._environment["PYTHONPATH"] = move_below(environment["PYTHONPATH"], checkout, worktree)

    def prepare(self, manifest: Path, setup: Sequence[str] | None, longest_seconds: float = SETUP_SECONDS) -> GatePlace:
        """Make the environment and run the setup in it, in the folder of the base's manifest.

        Raises:
            GoldenError: the setup fails or takes longer than it may, or there is none and the environment would bring the head's code.
        """
        if setup is None:
            self._refuse_installed_head()
            return GatePlace(manifest, self._environment)
        prefix = self._private / "environment"
        python = _make_environment(prefix)
        told = {
            "PATH": os.pathsep.join([str(python.parent), self._environment.get("PATH", os.defpath)]),
            "VIRTUAL_ENV": str(prefix),
            HEAD_VARIABLE: str(self._checkout),
        }
        environment = {name: value for name, value in self._environment.items() if name != "PYTHONHOME"} | told
        self._run_setup(setup, manifest.parent, environment, longest_seconds)
        return GatePlace(manifest, environment, str(python))

    def _run_setup(
        self, setup: Sequence[str], folder: Path, environment: Mapping[str, str], longest_seconds: float
    ) -> None:
        try:
            process = ChildProcess([*setup], cwd=folder, environment=environment, log=self._private / "setup.log")
        except OSError as error:
            message = f"`setup:` cannot be started: {setup[0]}: {error.strerror or error}"
            raise GoldenError(message) from None
        try:
            code = process.wait(longest_seconds)
        except BaseException:
            process.end()
            raise
        if code is None:
            process.end()
            told = f"`setup:` did not end within {longest_seconds:.0f} s, and was ended"
            raise BrokenDownError(f"{told}: {find_cause(process.log, folder)}", process.log)
        if code:
            raise BrokenDownError(
                f"`setup:` ended with exit code {code}: {find_cause(process.log, folder)}", process.log
            )

    def _refuse_installed_head(self) -> None:
        """Refuse an environment in which this very checkout is installed: the base would import the head's code."""
        found = find_sources_below(self._checkout)
        if found:
            message = (
                f"the head's code is installed in this environment ({found[0]}), and the base would run it. "
                "Declare how the base is installed, such as `setup: python -m pip install --no-deps -e .`"
            )
            raise GoldenError(message)


def find_setup_seconds(projects: Iterable[GoldenProjectConfig]) -> float:
    """Give how long the setup may take: an hour, or as long as one of the projects may."""
    return max([SETUP_SECONDS, *(project.timeout for project in projects)])


def find_sources_below(checkout: Path) -> tuple[str, ...]:
    """Give the folders below a checkout that are installed in this interpreter's environment, as a copy or in place."""
    packages = [Path(folder) for folder in _list_packages()]
    found = (source for folder in packages for source in (*find_linked_sources(folder), *_find_installed(folder)))
    sources = map(os.path.realpath, found)
    return tuple(dict.fromkeys(source for source in sources if Path(source).is_relative_to(checkout)))


def _find_installed(packages: Path) -> Iterator[str]:
    """Give the folders that distributions were installed from. Source: PEP 610, `direct_url.json`."""
    for file in packages.glob("*.dist-info/direct_url.json"):
        with suppress(OSError, ValueError, AttributeError):
            url = urlsplit(str(json.loads(file.read_bytes()).get("url")))
            if url.scheme == "file":
                yield unquote(url.path)


def _make_environment(prefix: Path) -> Path:
    """Make a virtual environment that sees this interpreter's packages behind its own, and give its Python."""
    builder = venv.EnvBuilder(symlinks=True)
    context = builder.ensure_directories(prefix)
    builder.create(prefix)
    python = Path(context.env_exe)
    packages = Path(site_packages_of(prefix))
    links = "".join(f"import site; site.addsitedir({folder!r})\n" for folder in _list_packages())
    (packages / _PARENT_LINK).write_text(links, encoding="utf-8")
    if importlib.util.find_spec("pip") is not None:
        for name in _PROGRAMS:
            # The head's own `pip` would be next on PATH, and change the head's environment.
            program = python.with_name(name)
            program.write_text(f'#!/bin/sh\nexec "{python}" -m pip "$@"\n', encoding="utf-8")
            program.chmod(_PROGRAM_MODE)
    return python


def site_packages_of(prefix: Path) -> str:
    """Give the folder in which a virtual environment of this interpreter keeps its packages."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return str(prefix / "lib" / version / "site-packages")


def _list_packages() -> list[str]:
    folders = [*site.getsitepackages(), *([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])]
    return [folder for folder in folders if Path(folder).is_dir()]
