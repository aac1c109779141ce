"""Run SQLMesh's command line in SQLMesh's interpreter.

`GOLDEN_CHANGED_FILES` is a JSON list of paths below the project's folder. A path that ends in `/SCHEMA.NAME.parquet` stands for the baseline
of a model. With it, `sqlmesh plan` evaluates only the models that depend on these files, and the models that those need. If a file does
not belong to a model, everything is evaluated.

A standalone script: this package may be missing where it runs. It needs only the standard library and SQLMesh.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

import narrowing_child as narrowing  # type: ignore[import-not-found]  # these stand beside this script
import steps_child as steps  # type: ignore[import-not-found]

steps.forget_own_folder()

_BASELINE = ".parquet"


def narrow(changed: list[str]) -> tuple[list[str], list[str]]:
    """Return the models that must be evaluated because of the changed files, and the views of the other models.

    Raises:
        WholeError: all models must be evaluated.
    """
    folder = os.path.realpath(os.curdir)
    context = import_module("sqlmesh").Context(paths=folder)
    try:
        models, dag = dict(context.models), context.dag
        origins: set[str] = set()
        for path in changed:
            name = os.path.basename(path).removesuffix(_BASELINE)
            place = os.path.realpath(os.path.join(folder, path))
            found = [
                fqn
                for fqn, model in models.items()
                if (_name_view(model) == name if path.endswith(_BASELINE) else place in _list_files(model))
            ]
            if not found:
                raise narrowing.WholeError(f"{path} is that of no model")
            origins.update(found)
        after = origins.union(*(dag.downstream(fqn) for fqn in origins))
        needed = after.union(*(dag.upstream(fqn) for fqn in after)).intersection(models)
        left_out = [_name_view(model) for fqn, model in models.items() if fqn not in needed]
        return sorted(models[fqn].name for fqn in needed), sorted(left_out)
    finally:
        context.close()


def _name_view(model: object) -> str:
    return f"{model.schema_name}.{model.view_name}"  # type: ignore[attr-defined]  # a model of SQLMesh


def _list_files(model: object) -> set[str]:
    paths = [getattr(model, "_path", None), getattr(model, "seed_path", None)]
    return {os.path.realpath(path) for path in paths if path is not None}


def main() -> None:
    """Run SQLMesh with this script's arguments."""
    sys.argv[0] = "sqlmesh"
    changed = narrowing.take_changed()
    left_out: list[str] = []
    told = Path(narrowing.LEFT_OUT).absolute()
    if changed:
        try:
            names, left_out = narrow(changed)
        except Exception as error:
            narrowing.explain_whole(error)
            names = []
        for name in names:
            sys.argv += ["--select-model", name]
    try:
        import_module("sqlmesh.cli.main").cli()
    finally:
        if changed:
            narrowing.tell_left_out(told, left_out)


if __name__ == "__main__":
    main()
