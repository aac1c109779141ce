"""Runs pytest as a judge: `python -P -s -m pytest_golden.verify.judge_child CHECKOUT ARGUMENT...`. No plug-in that CHECKOUT brings is loaded.

What pytest would load by itself is named one by one instead, so that the workers of pytest-xdist do the same.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from contextlib import suppress
from importlib.metadata import Distribution, distributions
from pathlib import Path
from urllib.parse import unquote, urlsplit


def list_plugins(checkout: Path) -> list[str]:
    """List the entry points of pytest's plug-ins, except those of distributions that were installed from a checkout."""
    found: dict[str, Distribution] = {}
    for distribution in distributions():
        found.setdefault(distribution.metadata["Name"].lower().replace("_", "-"), distribution)
    trusted = [distribution for distribution in found.values() if not _is_from(distribution, checkout)]
    return [point.name for one in trusted for point in one.entry_points if point.group == "pytest11"]


def _is_from(distribution: Distribution, checkout: Path) -> bool:
    """Tell where a distribution was installed from. Source: PEP 610, `direct_url.json`."""
    places = [str(distribution.locate_file(""))]
    with suppress(ValueError, AttributeError):
        url = urlsplit(str(json.loads(distribution.read_text("direct_url.json") or "{}").get("url")))
        places += [unquote(url.path)] if url.scheme == "file" else []
    return any(Path(os.path.realpath(place)).is_relative_to(checkout) for place in places)


def main(checkout: str, *arguments: str) -> None:
    """Run pytest, which ends the process."""
    names = list_plugins(Path(os.path.realpath(checkout)))
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    sys.argv = ["pytest", *(word for name in names for word in ("-p", name)), *arguments]
    runpy.run_module("pytest", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
