"""Make files of the tables that `outputs:` names in databases, so that they are compared and accepted as files.

A table's path is `<the database's path>/<schema>.<table>.parquet`, that of a Delta table `<the folder above it>/main.<name>.parquet`,
that of a dbt model `dbt/<name>.parquet`, and that of a table of PostgreSQL `<variable>/<schema>.<table>.parquet`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from urllib.parse import quote

from pytest_golden.compare.opening import Mismatch
from pytest_golden.compare.tables.database_files import (
    LOG_SUFFIXES,
    DatabaseError,
    export_tables,
    find_kind,
    list_names,
)
from pytest_golden.compare.tables.dbt_models import find_left_out, read_models
from pytest_golden.compare.tables.delta_tables import export_delta, list_delta_tables
from pytest_golden.manifest.model import DeclaredOutput
from pytest_golden.regression.model import ReasonKind
from pytest_golden.regression.unexpected import is_named, is_table_named
from pytest_golden.regression.wording import show_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_golden.compare.baselines import ExpectedFile
    from pytest_golden.compare.tables.database_files import ExportedTable, Wanted
    from pytest_golden.compare.tables.dbt_models import DbtModel
    from pytest_golden.gateway.write_set import WrittenFiles

# All that a file's name may hold: the rest is written as %2F.
_KEPT = " !#$&'()+,-.;=@[]^_`{}~"


@dataclass(slots=True)
class Exports:
    """What was read: files by their paths, the keys that dbt or SQLMesh knows, and the faults of the entries at these positions.

    `upstream` are the paths that a model is made of. `left_out` are those that a narrowed run left out. `unwatched` are tables and
    models that no entry names, such as `wh.duckdb/main.orders`.
    """

    files: dict[str, Path] = field(default_factory=dict)
    keys: dict[str, tuple[str, ...]] = field(default_factory=dict)
    mismatches: list[tuple[int, Mismatch]] = field(default_factory=list)
    upstream: dict[str, tuple[str, ...]] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    unwatched: list[str] = field(default_factory=list)

    def add_to(self, written: WrittenFiles) -> WrittenFiles:
        """Return the written files with the tables as files."""
        return replace(
            written, paths=tuple(sorted({*written.paths, *self.files})), exported={**written.exported, **self.files}
        )

    def is_explained(self, position: int) -> bool:
        """Tell whether the fault of an entry is reported already."""
        return any(place == position for place, _ in self.mismatches)

    def complete(self, file: ExpectedFile) -> ExpectedFile:
        """Return a file with the key that is known of it."""
        return replace(file, known_key=self.keys.get(file.path, ()))


def export_outputs(
    outputs: Sequence[DeclaredOutput],
    written: WrittenFiles,
    folder: Path,
    environ: Mapping[str, str] = os.environ,
    changed: Sequence[str] = (),
    left_out: Sequence[str] = (),
) -> Exports:
    """Read all tables that the entries name into files of a folder.

    Args:
        outputs: the entries of `outputs:`; those of files are passed over.
        written: what the run wrote; a database that it did not write is not an output of it.
        folder: an empty folder for the files.
        environ: where the URLs of databases are.
        changed: the changed files to which the run was narrowed; if there are any, what dbt left out is not a mismatch.
        left_out: the tables that the run says it left out.

    Raises:
        GoldenError: DuckDB cannot be used.
    """
    exports = Exports()
    placed = [(position, entry) for position, entry in enumerate(outputs) if entry.is_of_tables]
    of_delta = _export_delta(exports, [one for one in placed if one[1].path], written, folder)
    for database in _list_databases(written, [entry for _, entry in placed]):
        some = [(position, entry) for position, entry in placed if entry.path and is_named(database, entry.path)]
        if of_delta.issuperset(position for position, _ in some) and not is_database(database, written):
            # It is below a folder of Delta tables.
            continue
        _export_file(exports, database, some, written, folder, left_out)
    of_dbt = [(position, entry) for position, entry in placed if entry.dbt]
    if of_dbt:
        _export_dbt(exports, of_dbt, written, folder, changed)
    for url in dict.fromkeys(entry.database for _, entry in placed if entry.database):
        some = [(position, entry) for position, entry in placed if entry.database == url]
        _export_postgresql(exports, url, some, folder, environ)
    return exports


def _list_databases(written: WrittenFiles, entries: Iterable[DeclaredOutput]) -> list[str]:
    patterns = [entry.path for entry in entries if entry.path]
    return [
        path
        for path in written.paths
        if not path.endswith(LOG_SUFFIXES) and any(is_named(path, pattern) for pattern in patterns)
    ]


def is_database(path: str, written: WrittenFiles) -> bool:
    """Tell whether a written file is a DuckDB or SQLite database."""
    try:
        return find_kind(written.locate(path)) is not None
    except OSError:
        return False


def _export_file(
    exports: Exports,
    database: str,
    placed: Sequence[tuple[int, DeclaredOutput]],
    written: WrittenFiles,
    folder: Path,
    left_out: Sequence[str] = (),
) -> None:
    shown = show_path(database)
    try:
        tables, names = export_tables(written.locate(database), _make_wanted(placed), folder)
    except (DatabaseError, OSError) as error:
        told = f"{shown} {error if isinstance(error, DatabaseError) else f'cannot be read: {error.strerror}'}"
        exports.mismatches += [(position, Mismatch(ReasonKind.OUTPUT_UNREADABLE, told)) for position, _ in placed]
        return
    _take(exports, database, tables, placed)
    # What exists is judged, whatever the run says.
    there = {name.lower() for name in names}
    absent = [
        name
        for name in left_out
        if name.lower() not in there and any(is_table_named(name, entry) for _, entry in placed)
    ]
    exports.left_out += tuple(f"{database}/{name_file(name)}" for name in absent)
    exports.unwatched += _list_unwatched(database, names, placed)
    explain_absent(exports, shown, placed, [*names, *absent])


def _export_delta(
    exports: Exports, placed: Sequence[tuple[int, DeclaredOutput]], written: WrittenFiles, folder: Path
) -> frozenset[int]:
    """Read the Delta tables below the folders that entries name; return the positions of those that name any."""
    folders = list_delta_tables(written.paths) if placed else {}
    known: dict[int, list[str]] = {}
    for place, names in folders.items():
        some = [(position, entry) for position, entry in placed if is_named(place, str(entry.path))]
        if some:
            _take(exports, place, export_delta(written, place, names, _make_wanted(some), folder), some)
            exports.unwatched += _list_unwatched(place, [f"main.{name}" for name in names], some)
        for position, _ in some:
            known.setdefault(position, []).extend(f"main.{name}" for name in names)
        exports.mismatches += _explain_own_folders(place, names, placed)
    for position, entry in placed:
        if position in known:
            explain_absent(exports, show_path(str(entry.path)), [(position, entry)], known[position])
    return frozenset((*known, *(position for position, _ in exports.mismatches)))


def _explain_own_folders(
    place: str, names: Sequence[str], placed: Sequence[tuple[int, DeclaredOutput]]
) -> Iterator[tuple[int, Mismatch]]:
    """Say how to name a Delta table, for entries that name its own folder."""
    for position, entry in placed:
        path = str(entry.path).removeprefix("./").rstrip("/")
        for name in names:
            if path == f"{place}/{name}":
                told = f"{show_path(path)} is a Delta table: name the folder that holds it, `path: {place}`, and `table: {name}`"
                yield position, Mismatch(ReasonKind.OUTPUT_MISSING, told)


def _take(
    exports: Exports, place: str, tables: Iterable[ExportedTable], placed: Sequence[tuple[int, DeclaredOutput]]
) -> None:
    """Add the tables that were read, and report those that could not be."""
    for table in tables:
        if not table.trouble:
            path = f"{place}/{name_file(table.name)}"
            exports.files[path], exports.keys[path] = table.file, table.key
            exports.upstream[path] = tuple(f"{place}/{name_file(name)}" for name in table.upstream)
            continue
        mismatch = Mismatch(
            ReasonKind.OUTPUT_UNREADABLE, f"{show_path(place)}: {table.name} cannot be read: {table.trouble}"
        )
        named = [position for position, entry in placed if is_table_named(table.name, entry)]
        exports.mismatches += [(position, mismatch) for position in named[:1]]


def _make_wanted(placed: Sequence[tuple[int, DeclaredOutput]]) -> Wanted:
    def wanted(name: str) -> Sequence[str] | None:
        return next((entry.key for _, entry in placed if is_table_named(name, entry)), None)

    return wanted


def _list_unwatched(place: str, names: Iterable[str], placed: Sequence[tuple[int, DeclaredOutput]]) -> list[str]:
    """List the tables that no entry names or leaves out by `exclude:`."""
    entries = [entry for _, entry in placed]
    entries += [DeclaredOutput(place, tables=entry.exclude) for entry in entries if entry.exclude]
    return [f"{place}/{name}" for name in names if not any(is_table_named(name, entry) for entry in entries)]


def explain_absent(
    exports: Exports, shown: str, placed: Sequence[tuple[int, DeclaredOutput]], names: Sequence[str]
) -> None:
    """Say which entries name no existing table, and which tables exist instead."""
    for position, entry in placed:
        if any(is_table_named(name, entry) for name in names):
            continue
        asked = (
            f"the table `{entry.table}`"
            if entry.table
            else f"a table that matches {', '.join(map(repr, entry.tables))}"
        )
        has = f"it has {', '.join(list_names(names))}" if names else "it has no table at all"
        told = f"{shown} has not {asked}; {has}"
        exports.mismatches.append((position, Mismatch(ReasonKind.OUTPUT_MISSING, told)))


def name_file(table: str) -> str:
    """Return the file's name for `schema.table`."""
    return f"{quote(table, safe=_KEPT)}.parquet"


def _export_dbt(
    exports: Exports,
    placed: Sequence[tuple[int, DeclaredOutput]],
    written: WrittenFiles,
    folder: Path,
    changed: Sequence[str],
) -> None:
    try:
        chosen = _choose_models(exports, placed, written, changed)
        files = _find_files({model.database for model in chosen}, written)
        for database, place in files.items():
            some = {f"{model.schema}.{model.relation}".lower(): model for model in chosen if model.database == database}

            def wanted(name: str, some: Mapping[str, DbtModel] = some) -> Sequence[str] | None:
                return some[name.lower()].key if name.lower() in some else None

            tables, _ = export_tables(written.locate(place), wanted, folder)
            _take_models(exports, some, tables)
    except (DatabaseError, OSError) as error:
        told = f"the models of dbt cannot be read: {error if isinstance(error, DatabaseError) else error.strerror}"
        exports.mismatches += [(position, Mismatch(ReasonKind.OUTPUT_UNREADABLE, told)) for position, _ in placed]


def _take_models(exports: Exports, models: Mapping[str, DbtModel], tables: Iterable[ExportedTable]) -> None:
    for table in tables:
        model = models[table.name.lower()]
        if table.trouble:
            raise DatabaseError(f"{model.name}: {table.trouble}")
        path = f"dbt/{name_file(model.name)}"
        exports.files[path], exports.keys[path] = table.file, model.key
        exports.upstream[path] = tuple(f"dbt/{name_file(name)}" for name in model.upstream)


def _choose_models(
    exports: Exports, placed: Sequence[tuple[int, DeclaredOutput]], written: WrittenFiles, changed: Sequence[str]
) -> list[DbtModel]:
    manifests = [
        path for path in written.paths if path == "target/manifest.json" or path.endswith("/target/manifest.json")
    ]
    if len(manifests) != 1:
        told = "this run wrote no target/manifest.json" if not manifests else f"this run wrote {', '.join(manifests)}"
        raise DatabaseError(told)
    manifest = written.locate(manifests[0])
    adapter, models = read_models(manifest)
    if adapter != "duckdb":
        raise DatabaseError(
            f"they are in {adapter}, and only DuckDB is read this way; name its tables with `database:`"
        )
    for position, entry in placed:
        if not any(model.is_named(entry) for model in models):
            asked = ", ".join(map(repr, entry.dbt))
            told = (
                f"no model of dbt matches {asked}; there are {', '.join(list_names([model.name for model in models]))}"
            )
            exports.mismatches.append((position, Mismatch(ReasonKind.OUTPUT_MISSING, told)))
    chosen = [model for model in models if any(model.is_named(entry) for _, entry in placed)]
    passed_over = [DeclaredOutput(dbt=entry.exclude) for _, entry in placed if entry.exclude]
    exports.unwatched += [
        f"dbt/{model.name}"
        for model in models
        if model not in chosen and not any(model.is_named(entry) for entry in passed_over)
    ]
    if not changed:
        return chosen
    results = manifests[0].removesuffix("manifest.json") + "run_results.json"
    left_out = find_left_out(manifest, written.locate(results), changed)
    exports.left_out += tuple(f"dbt/{name_file(model.name)}" for model in chosen if model.name in left_out)
    return [model for model in chosen if model.name not in left_out]


def _find_files(databases: Iterable[str], written: WrittenFiles) -> dict[str, str]:
    """Find the DuckDB file of each database of dbt: the written file of that name."""
    found = {}
    for database in sorted(databases):
        paths = [path for path in written.paths if _is_database_called(path, database)]
        if len(paths) != 1:
            which = (
                f"{len(paths)} files are called so: {', '.join(paths)}"
                if paths
                else "this run wrote no such DuckDB file"
            )
            raise DatabaseError(f"their database is {database!r}, and {which}")
        found[database] = paths[0]
    return found


def _is_database_called(path: str, name: str) -> bool:
    file = path.rpartition("/")[2]
    stem, _, suffix = file.rpartition(".")
    return (stem or file).lower() == name.lower() and suffix.lower() in {"duckdb", "ddb", "db", file.lower()}


def _export_postgresql(
    exports: Exports,
    url: str,
    placed: Sequence[tuple[int, DeclaredOutput]],
    folder: Path,
    environ: Mapping[str, str],
) -> None:
    from pytest_golden.compare.tables.postgresql_tables import export_postgresql

    name = url[2:-1]
    try:
        tables, names = export_postgresql(environ.get(name, ""), _make_wanted(placed), folder)
    except DatabaseError as error:
        mismatch = Mismatch(ReasonKind.OUTPUT_UNREADABLE, f"the database of {name} {error}")
        exports.mismatches += [(position, mismatch) for position, _ in placed]
        return
    _take(exports, name, tables, placed)
    explain_absent(exports, f"the database of {name}", placed, names)
