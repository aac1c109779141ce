from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest_golden

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(pytest_golden.__file__).parent
DATABASES = {"sqlalchemy", "alembic", "sqlite3", "psycopg"}
# It reads the databases that a project wrote, and none of ours.
OF_PROJECTS = Path("compare/tables/database_files.py")


def imported_when_running(tree: ast.AST) -> Iterator[str]:
    """Return the top-level names that a module imports, but for those that only its types need."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield str(node.module).partition(".")[0]
        elif not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            yield from imported_when_running(node)


def test_only_storage_and_the_stores_of_the_stations_know_sql() -> None:
    knowing = {
        path.relative_to(PACKAGE)
        for path in PACKAGE.rglob("*.py")
        if DATABASES & set(imported_when_running(ast.parse(path.read_text(encoding="utf-8"))))
    }
    elsewhere = {path for path in knowing if path.parts[0] != "storage" and not path.stem.endswith("store")}
    assert knowing
    assert elsewhere == {OF_PROJECTS}
