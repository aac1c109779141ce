"""Runs Kedro's command line in Kedro's interpreter, and leaves each node as a step, by hooks of Kedro's own. It can run a part of the nodes.

Kedro takes hooks from installed packages: this one is installed in a temporary folder, where the processes of Kedro's
parallel runner find it too.

A script of its own: it runs where this package may be missing, and needs the standard library and Kedro only.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import steps_child as steps  # type: ignore[import-not-found]  # it stands beside this script

METADATA = "Metadata-Version: 2.1\nName: golden-kedro-steps\nVersion: 1\n"
ENTRY_POINTS = "[kedro.hooks]\ngolden = golden_kedro_steps:hooks\n"


class Hooks:
    """What Kedro calls before and after each node."""

    def __init__(self) -> None:
        self._began: dict[str, float] = {}

    def before_node_run(self, node: Any) -> None:
        """Note that a node began."""
        self._began[node.name] = time.monotonic()
        steps.begin(node.name, node.name)

    def after_node_run(self, node: Any, outputs: dict[str, Any]) -> None:
        """Note that a node ended, and how many rows its tables have."""
        rows = {name: value.shape[0] for name, value in outputs.items() if _is_table(value)}
        steps.end(node.name, node.name, self._took(node), **({"rows": rows} if rows else {}))

    def on_node_error(self, error: Exception, node: Any) -> None:
        """Note why a node failed."""
        steps.end(node.name, node.name, self._took(node), error)

    def _took(self, node: Any) -> float | None:
        began = self._began.get(node.name)
        return None if began is None else time.monotonic() - began


def _is_table(value: Any) -> bool:
    shape = getattr(value, "shape", None)
    return isinstance(shape, tuple) and bool(shape) and isinstance(shape[0], int)


def install(folder: Path) -> None:
    """Put the hooks into a folder as a package that is installed there."""
    here = Path(__file__).resolve().parent
    shutil.copy(__file__, folder / "golden_kedro_steps.py")
    shutil.copy(here / "steps_child.py", folder)
    told = folder / "golden_kedro_steps-1.dist-info"
    told.mkdir()
    (told / "METADATA").write_text(METADATA)
    (told / "entry_points.txt").write_text(ENTRY_POINTS)


def mark_hooks() -> Hooks:
    """Return the hooks, each of them marked as Kedro wants it."""
    mark = import_module("kedro.framework.hooks").hook_impl
    for name in ("before_node_run", "after_node_run", "on_node_error"):
        setattr(Hooks, name, mark(getattr(Hooks, name)))
    return Hooks()


def main() -> None:
    """Run Kedro with this script's arguments."""
    narrowing, kedro_narrowing = import_module("narrowing_child"), import_module("kedro_narrowing_child")
    folder = tempfile.mkdtemp(prefix="golden-kedro-")
    install(Path(folder))
    steps.forget_own_folder()
    sys.path.append(folder)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), folder)))
    sys.argv[0] = "kedro"
    changed, told = narrowing.take_changed(), Path(narrowing.LEFT_OUT).absolute()
    if not changed:
        import_module("kedro.framework.cli").main()
        return
    narrowed = kedro_narrowing.Narrowing(changed)
    narrowed.install()
    try:
        import_module("kedro.framework.cli").main()
    finally:
        narrowing.tell_left_out(told, narrowed.left_out)


if __name__ == "__main__":
    main()
elif __name__ == "golden_kedro_steps":
    hooks = mark_hooks()
