"""What a gate runs in: interpreter, platform and installed versions of the gate and of each `venv:`, and the machine.

Versions are what an upgrade changes, so changes of them explain failures. Durations are compared only between runs with the
same interpreter, platform, processor, view, seal and number of workers.
"""

from __future__ import annotations

import hmac
import os
import platform
import re
import secrets
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_golden.gateway.resolution import UV_PREFIX
from pytest_golden.storage.folder import keep_secret
from pytest_golden.values.checking import as_mapping

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pytest_golden.gateway.model import GatewayAbilities
    from pytest_golden.manifest.model import GoldenProjectConfig

#: Members of a recorded run's facts: where it ran, whether it accepted what it saw, and which files git ignored when it began.
ENVIRONMENT, ACCEPTS, IGNORED = "environment", "accepts", "ignored"
#: Others: its verdict, its shard, and the digest of its manifest.
VERDICT, SHARD, MANIFEST_DIGEST = "verdict", "shard", "manifest_digest"
_OURS = "pytest-golden-projects"
_VENVS = "venvs"
_ENDINGS = (".dist-info", ".egg-info")
_PYTHON_TAG = re.compile(r"-py\d+(\.\d+)?$")
_VERSION_LINE = re.compile(r"^Version: *(\S+)", re.MULTILINE)
_MOST_OF_HEADER = 4096


def describe_surroundings(
    projects: Iterable[GoldenProjectConfig], workspace_root: Path, *, search_path: Iterable[str] | None = None
) -> dict[str, Any]:
    """Return JSON-safe facts: `python, implementation, platform, golden, distributions {name: version}`, `venvs`, `passed`.

    `venvs` has the `python` and `distributions` of each `venv:`, by its name in the manifest. `passed` has the variables of
    `pass_env` that are set and the files of `pass_files` that are there, each with a digest of its value that only this
    user's key on this machine can make. `search_path` is this process's own by default.
    """
    projects = tuple(projects)
    distributions = read_distributions(sys.path if search_path is None else search_path)
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
        "golden": distributions.pop(_OURS, None),
        "distributions": distributions,
        _VENVS: {venv: _describe_venv(venv, workspace_root) for venv in _list_venvs(projects)},
        "passed": dict(_digest_passed(projects, workspace_root)),
    }


def compare_surroundings(
    before: Mapping[str, Any], now: Mapping[str, Any], *, venv: str | None = None
) -> tuple[str, ...]:
    """Return lines such as `python 3.11.2 -> 3.12.1` and `pandas 2.2.3 -> 2.3.0`.

    The versions in the project's own `venv` come first, then those of the gate. Other projects' are not compared.
    """
    lines: list[str] = []
    if venv is not None:
        inside = (as_mapping(as_mapping(facts.get(_VENVS)).get(venv)) for facts in (before, now))
        lines += [f"{line} (in {venv})" for line in _compare(*inside)]
    return (*lines, *_compare(before, now))


def describe_run_environment(
    projects: Iterable[GoldenProjectConfig],
    workspace_root: Path,
    abilities: GatewayAbilities | None,
    *,
    workers: int = 1,
) -> dict[str, Any]:
    """Return JSON-safe facts about this process and machine, and the Python of each `venv:`.

    Installed packages are not included: `max_slowdown` must notice an upgrade that makes a pipeline slower. `abilities`
    is what the gateway says about itself; without it, view and seal are unknown. `workers` is the number of processes
    that run at the same time and slow each other down.
    """
    return {
        "python": _shorten(platform.python_version()),
        "implementation": platform.python_implementation(),
        "system": platform.system(),
        "machine": platform.machine(),
        "cpu_count": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "cpu_model": _find_processor(),
        "view": None if abilities is None else abilities.view,
        "seal": None if abilities is None else abilities.seal,
        _VENVS: {venv: _shorten(find_venv_python(venv, workspace_root)) for venv in _list_venvs(projects)},
        **({"workers": workers} if workers > 1 else {}),
    }


def describe_environment(facts: Mapping[str, Any], venv: str | None) -> dict[str, Any]:
    """Return the part of a run's facts that concerns one project; durations are comparable if it is equal."""
    own = {key: fact for key, fact in facts.items() if key != _VENVS}
    if venv is None:
        return own
    return {**own, "python": as_mapping(facts.get(_VENVS)).get(venv), "venv": True}


def find_venv_python(venv: str, workspace_root: Path) -> str | None:
    """Return the version of a `venv:`'s Python; None if it is not known."""
    if venv.startswith(UV_PREFIX):
        return platform.python_version()
    folder = locate_venv(venv, workspace_root)
    return _find_python(folder, _list_sites(folder))


def locate_venv(venv: str, workspace_root: Path) -> Path:
    """Return the folder that a `venv:` names."""
    return workspace_root / os.path.expanduser(venv)  # noqa: PTH111 - an unknown user is not an error


def read_distributions(folders: Iterable[str]) -> dict[str, str]:
    """Return name and version of each distribution in these folders, sorted; the first of a name counts.

    They are read from the names of the `*.dist-info` folders, which costs a hundredth of reading the files in them. An
    editable install has such a folder too.
    """
    found: dict[str, str] = {}
    for folder in dict.fromkeys(folders):
        for name in _list_metadata(folder):
            project, version = _split(name)
            key = project.lower().replace("_", "-").replace(".", "-")
            if key not in found:
                found[key] = version or _read_version(Path(folder, name))
    return dict(sorted(found.items()))


def _list_metadata(folder: str) -> list[str]:
    try:
        names = os.listdir(folder or os.curdir)  # noqa: PTH208 - text is many times faster than a Path for each name
    except OSError:  # an archive, or gone
        return []
    # While pip uninstalls something, its folder begins with a tilde.
    return [name for name in names if name.endswith(_ENDINGS) and not name.startswith("~")]


def _split(name: str) -> tuple[str, str]:
    """Return project and version from a metadata folder's name. Source: PEP 376 and the wheel format (`-` is written as `_`)."""
    stem, _, ending = name.rpartition(".")
    if ending == "egg-info":
        stem = _PYTHON_TAG.sub("", stem)
    project, _, version = stem.rpartition("-")
    return (project, version) if project else (version, "")


def _read_version(metadata: Path) -> str:
    """Read the version from the metadata if the folder's name lacks it, as for a source folder installed in place."""
    for file in (metadata / "PKG-INFO", metadata):
        with suppress(OSError), file.open(encoding="utf-8", errors="replace") as opened:
            header = _VERSION_LINE.search(opened.read(_MOST_OF_HEADER))
            if header:
                return header[1]
    return "unknown"


def _list_venvs(projects: Iterable[GoldenProjectConfig]) -> list[str]:
    return sorted({project.venv for project in projects if project.venv is not None})


def _digest_passed(projects: Iterable[GoldenProjectConfig], workspace_root: Path) -> Iterator[tuple[str, str]]:
    """Yield each passed variable and file with the digest of its value. A value itself must not be recorded, nor be guessed."""
    variables = {name for project in projects for name in project.pass_env if name in os.environ}
    files = {name for project in projects for name in project.pass_files}
    if not variables and not files:
        return
    key = _read_key()
    for name in sorted(variables):
        yield name, hmac.digest(key, os.fsencode(f"{name}={os.environ[name]}"), "sha256").hex()
    for name in sorted(files):
        with suppress(OSError):
            content = locate_venv(name, workspace_root).read_bytes()
            yield f"file {name}", hmac.digest(key, os.fsencode(name) + b"=" + content, "sha256").hex()


@cache
def _read_key() -> bytes:
    """Return this user's key, which is made where there is none. Where none can be kept, each process has its own."""
    with suppress(OSError, RuntimeError):
        return keep_secret("key")[0].encode()
    return secrets.token_bytes()


def _list_sites(folder: Path) -> list[Path]:
    return sorted([*folder.glob("lib/python*/site-packages"), *folder.glob("Lib/site-packages")])


def _describe_venv(venv: str, workspace_root: Path) -> dict[str, Any]:
    if venv.startswith(UV_PREFIX):
        # Its environment need not be made yet.
        from pytest_golden.gateway.uv_environment import read_locked

        locked = read_locked(locate_venv(venv.removeprefix(UV_PREFIX) or ".", workspace_root))
        return {"python": platform.python_version(), "distributions": dict(locked)}
    folder = locate_venv(venv, workspace_root)
    sites = _list_sites(folder)
    return {"python": _find_python(folder, sites), "distributions": read_distributions(map(str, sites))}


def _find_python(venv: Path, sites: list[Path]) -> str | None:
    with suppress(OSError, ValueError):
        for line in (venv / "pyvenv.cfg").read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition("=")
            if key.strip() in {"version", "version_info"}:
                return ".".join(value.strip().split(".")[:3])
    return sites[0].parent.name.removeprefix("python") if sites else None


def _compare(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    yield from _list_changes(_plain(before), _plain(now))
    yield from _list_changes(as_mapping(before.get("distributions")), as_mapping(now.get("distributions")))


def _plain(facts: Mapping[str, Any]) -> dict[str, str]:
    told = {key: fact for key, fact in facts.items() if isinstance(fact, str)}
    return {_OURS if key == "golden" else key: fact for key, fact in told.items()}


def _list_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name in dict.fromkeys([*now, *before]):
        if name not in before:
            yield f"{name} {now[name]} added"
        elif name not in now:
            yield f"{name} {before[name]} removed"
        elif before[name] != now[name]:
            yield f"{name} {before[name]} -> {now[name]}"


def _shorten(version: str | None) -> str | None:
    """Leave out the patch level, which changes no durations."""
    return None if version is None else ".".join(version.split(".")[:2])


@cache
def _find_processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    named = (line.partition(":")[2] for line in text.splitlines() if line.startswith("model name"))
    return " ".join(next(named, platform.processor()).split())
