"""Keep a profile in place of a large table: what each column holds, and digests of its values and of groups of its rows.

A profile is a Parquet file with a row for each column, so any tool opens it. Facts about the whole table are in the metadata
of the file. Digests are sums over all rows, so the order of the rows does not matter. They are made of MD5 of texts, which
every version of DuckDB computes in the same way.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, Any

from pytest_golden.compare.baselines import EXISTS
from pytest_golden.compare.opening import Content, Side, UnreadableError
from pytest_golden.compare.showing import quote_name
from pytest_golden.compare.tables.cells import Cells
from pytest_golden.compare.tables.duckdb_engine import QueryError, describe_trouble, open_engine, quote_text
from pytest_golden.compare.tables.equality import part
from pytest_golden.compare.tables.formats import read_parquet, read_table
from pytest_golden.compare.tables.matching import Match, match_columns
from pytest_golden.compare.tables.model import Column, Format, Table, Values
from pytest_golden.regression.wording import format_size
from pytest_golden.storage.folder import open_regular

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from pytest_golden.compare.baselines import ExpectedFile
    from pytest_golden.compare.showing import Redact
    from pytest_golden.compare.tables.duckdb_engine import Engine
    from pytest_golden.manifest.model import DeclaredOutput

_METADATA = "golden_profile"
# The end of a Parquet file, where its metadata is.
_FOOTER_BYTES = 256 << 10
_GROUPS = 1024
_DIGEST_DIGITS = 16
_MODULUS = 1 << 64
_COLUMNS_AT_ONCE = 250
_MOST_TOLD = 8
_LONGEST_VALUE = 100
# Types as DuckDB writes them.
_NUMBER = re.compile(r"U?(?:TINY|SMALL|BIG)?INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL\(\d+,\d+\)")
_NESTED = re.compile(r"[\[(]")


@dataclass(frozen=True, slots=True)
class ProfiledColumn:
    """What a column holds: `least` and `greatest` are texts, None for nested values or if there are none; `mean` is of numbers."""

    name: str
    type: str
    nulls: int
    least: str | None
    greatest: str | None
    mean: float | None
    digest: str


@dataclass(frozen=True, slots=True)
class Profile:
    """A table without its rows. `groups` are digests of the rows, which are grouped by their values; `ignored` columns are left out."""

    side: Side
    rows: int
    ignored: tuple[str, ...]
    columns: tuple[ProfiledColumn, ...]
    groups: tuple[str, ...]

    @property
    def table(self) -> Table:
        """Return its columns and its number of rows as a table whose rows cannot be read."""
        columns = (
            Column(column.name, column.name, at, Values.TYPED, column.type) for at, column in enumerate(self.columns)
        )
        return Table(self.side, Format.PARQUET, tuple(columns), self.rows)


def find_ignored(declared: DeclaredOutput) -> tuple[str, ...]:
    """Return the columns that an entry does not compare, sorted."""
    return tuple(sorted(set(declared.ignore_columns) - set(declared.key)))


def is_profiled(file: ExpectedFile, size_bytes: int) -> bool:
    """Tell whether a table of this size is kept as a profile.

    All its entries must leave out the same columns, and none may have a tolerance, since a comparison with a tolerance needs the rows.
    """
    compared = [entry for entry in file.entries if entry.compare != EXISTS]
    if not compared or not all(entry.is_of_tables and not entry.is_tolerant for entry in compared):
        return False
    is_large = size_bytes > max(entry.largest_whole_bytes for entry in compared)
    return is_large and len({find_ignored(entry) for entry in compared}) == 1


def put_profile(file: ExpectedFile, copy: Path, redact: Redact) -> str | None:
    """Replace the copy of a table that is too large to be kept whole by a profile, and say so; otherwise return None.

    A value of it that `redact` finds secret is left out.

    Raises:
        OSError: it cannot be read or written.
    """
    status = copy.stat()
    if not is_profiled(file, status.st_size):
        return None
    ignored = next(find_ignored(entry) for entry in file.entries if entry.compare != EXISTS)
    try:
        with open_engine() as engine:
            profile = make_profile(engine, read_table(engine, Content(copy, Side.OUTPUT)), ignored)
            copy.unlink()
            _write(engine, profile, copy, Cells(redact))
        copy.chmod(status.st_mode)
    except (QueryError, UnreadableError) as error:
        raise OSError(f"no profile of it can be made: {error}") from None
    return f"{format_size(status.st_size)}, kept as a profile"


def is_profile(path: Path) -> bool:
    """Tell whether a file looks like a profile."""
    with open_regular(path) as file:
        file.seek(max(0, path.stat().st_size - _FOOTER_BYTES))
        return _METADATA.encode() in file.read(_FOOTER_BYTES)


def make_profile(engine: Engine, table: Table, ignored: Collection[str]) -> Profile:
    """Read a table into a profile.

    Raises:
        UnreadableError: not every value of it can be read.
    """
    columns = [column for column in table.columns if column.name not in ignored]
    try:
        found, groups = _read_columns(engine, table, columns)
    except QueryError as error:
        raise UnreadableError(table.side, describe_trouble(error, table.format, None)) from None
    return Profile(table.side, table.rows, tuple(sorted(ignored)), tuple(found), tuple(map(_hex, groups)))


def _read_columns(
    engine: Engine, table: Table, columns: Sequence[Column]
) -> tuple[list[ProfiledColumn], Sequence[int]]:
    groups = [0] * _GROUPS
    found: list[ProfiledColumn] = []
    engine.query("SET TimeZone = 'UTC'")
    for some in part(columns, _COLUMNS_AT_ONCE) if columns else ():
        digests = _add_up(engine, table, some, groups)
        figures = engine.query(f"SELECT {', '.join(map(_ask_figures, some))} FROM {table.scan('t')}")[0]
        for at, column in enumerate(some):
            count, least, greatest, mean = figures[4 * at : 4 * at + 4]
            # The order in which numbers are added moves the last digits.
            rounded = None if mean is None else float(f"{mean:.12g}")
            nulls = table.rows - count
            found.append(
                ProfiledColumn(column.label, str(column.type), nulls, least, greatest, rounded, _hex(digests[at]))
            )
    return found, groups


def _add_up(engine: Engine, table: Table, columns: Sequence[Column], groups: list[int]) -> list[int]:
    """Add the digests of these columns of all rows to those of the groups; return the sum of each column's values."""
    hashes = [f"md5_number_lower({_as_stable_text(column)}) AS h{at}" for at, column in enumerate(columns)]
    names = [f"h{at}" for at in range(len(columns))]
    row = f"md5_number_lower(concat_ws(',', {', '.join(f'''coalesce({name}::VARCHAR, '-')''' for name in names)}))"
    sums = ", ".join(f"sum({name})" for name in names)
    inner = f"SELECT {', '.join(hashes)} FROM {table.scan('t')}"
    asked = f"SELECT (r % {_GROUPS})::INTEGER, sum(r), {sums} FROM (SELECT {row} AS r, * FROM ({inner})) GROUP BY 1"
    totals = [0] * len(columns)
    for group, total, *each in engine.query(asked):
        groups[group] += total
        totals = [one + (other or 0) for one, other in zip(totals, each, strict=True)]
    return totals


def _as_stable_text(column: Column) -> str:
    value, kind = f"t.c{column.place}", str(column.type)
    if kind in {"FLOAT", "DOUBLE"}:
        # -0.0 equals 0.0.
        return f"({value} + 0)::VARCHAR"
    if kind == "TIMESTAMP WITH TIME ZONE":
        return f"epoch_us({value})::VARCHAR"
    if _NESTED.search(kind) and not _NUMBER.fullmatch(kind):
        return f"to_json({value})::VARCHAR"
    return f"{value}::VARCHAR"


def _ask_figures(column: Column) -> str:
    value, kind = f"t.c{column.place}", str(column.type)
    is_number = _NUMBER.fullmatch(kind) is not None
    is_flat = is_number or not _NESTED.search(kind)
    least, greatest = (f"left({each}({value})::VARCHAR, {_LONGEST_VALUE})" for each in ("min", "max"))
    bounds = f"{least}, {greatest}" if is_flat and kind != "BLOB" else "NULL, NULL"
    return f"count({value}), {bounds}, {f'avg({value}::DOUBLE)' if is_number else 'NULL'}"


def _hex(number: int) -> str:
    return f"{number % _MODULUS:0{_DIGEST_DIGITS}x}"


def _write(engine: Engine, profile: Profile, place: Path, cells: Cells) -> None:
    columns = "name, type, nulls, least, greatest, mean, digest"
    rows = ", ".join(_write_row(column, cells) for column in profile.columns)
    whole = {"rows": profile.rows, "ignored": profile.ignored, "groups": "".join(profile.groups)}
    source = f"SELECT * FROM (VALUES {rows}) AS t({columns})" if rows else _select_nothing(columns)
    engine.query(
        f"COPY ({source}) TO {quote_text(str(place))}"
        f" (FORMAT parquet, COMPRESSION snappy, KV_METADATA {{{_METADATA}: {quote_text(json.dumps(whole))}}})"
    )


def _write_row(column: ProfiledColumn, cells: Cells) -> str:
    least, greatest = (_sql(cells.hide(column.name, bound)) for bound in (column.least, column.greatest))
    mean = "NULL" if column.mean is None or cells.hides(column.name) else quote_text(repr(column.mean))
    told = f"{_sql(column.name)}, {_sql(column.type)}, {column.nulls}::BIGINT, {least}::VARCHAR, {greatest}::VARCHAR"
    return f"({told}, {mean}::DOUBLE, {_sql(column.digest)})"


def _select_nothing(columns: str) -> str:
    return f"SELECT {', '.join(f'NULL::VARCHAR AS {name}' for name in columns.split(', '))} WHERE false"


def _sql(text: str | None) -> str:
    return "NULL" if text is None else quote_text(text)


def read_profile(engine: Engine, content: Content) -> Profile | None:
    """Read a profile; return None if the file is not a profile, or not a Parquet file at all.

    Raises:
        UnreadableError: it is gone, or a damaged profile.
    """
    place = engine.lay_out(content)
    try:
        known = dict(engine.query(f"SELECT key, value FROM parquet_kv_metadata({quote_text(str(place))})"))
    except QueryError:
        return None
    told = known.get(_METADATA.encode())
    if told is None:
        return None
    try:
        whole = json.loads(told)
        source = read_parquet(engine, place, content.side).source
        columns = [_read_column(row) for row in engine.query(f"SELECT * FROM {source}")]
        groups = str(whole["groups"])
        digests = tuple(groups[at * _DIGEST_DIGITS : (at + 1) * _DIGEST_DIGITS] for at in range(_GROUPS))
        return Profile(content.side, int(whole["rows"]), tuple(map(str, whole["ignored"])), tuple(columns), digests)
    except (QueryError, ValueError, TypeError, KeyError) as error:
        raise UnreadableError(content.side, f"is not a valid profile of a table: {error}") from None


def _read_column(row: Sequence[Any]) -> ProfiledColumn:
    name, kind, nulls, least, greatest, mean, digest = row
    return ProfiledColumn(
        str(name),
        str(kind),
        int(nulls),
        None if least is None else str(least),
        None if greatest is None else str(greatest),
        None if mean is None else float(mean),
        str(digest),
    )


@dataclass(frozen=True, slots=True)
class ProfileDifference:
    """What differs between two profiles: the columns themselves, those with other values, and the least number of different rows."""

    match: Match
    changed: tuple[str, ...] = ()
    rows_changed: int = 0
    notes: tuple[str, ...] = ()


def compare_profiles(declared: DeclaredOutput, here: Profile, baseline: Profile, cells: Cells) -> ProfileDifference:
    """Compare two profiles of a table.

    Raises:
        UnreadableError: the baseline was made by other rules: other columns were ignored, or there was no tolerance.
    """
    if here.ignored != baseline.ignored:
        was = f"`ignore_columns: [{', '.join(baseline.ignored)}]`"
        raise UnreadableError(Side.BASELINE, f"is a profile that was made with {was}: accept the table again")
    if declared.is_tolerant and not declared.schema_only:
        raise UnreadableError(
            Side.BASELINE, "is a profile, and a tolerance needs all rows of the table: accept the table again"
        )
    match = _pair_renamed(match_columns(here.table, baseline.table, ()), here, baseline)
    if declared.schema_only:
        return ProfileDifference(match)
    renamed = {one.name: other.name for one, other in match.renamed}
    added = {column.name for column in match.added}
    theirs = {column.name: column for column in baseline.columns}
    pairs = [(one, theirs[renamed.get(one.name, one.name)]) for one in here.columns if one.name not in added]
    differing = [(one, other) for one, other in pairs if _differs(one, other)]
    has_same_rows = not (match.added or match.removed or match.retyped or match.moved[0])
    apart = sum(one != other for one, other in zip(here.groups, baseline.groups, strict=True)) if has_same_rows else 0
    # A changed row leaves one group and enters another, a new one enters one.
    grown = abs(here.rows - baseline.rows)
    changed = max(ceil((apart - grown) / 2), bool(differing) and not grown)
    if grown:
        # New rows alone change the values of every column: only what they cannot explain is reported.
        differing = [(one, other) for one, other in differing if changed and _has_moved(one, other)]
    notes = tuple(_tell(one, other, cells) for one, other in differing[:_MOST_TOLD])
    return ProfileDifference(match, () if grown else tuple(one.name for one, _ in differing), changed, notes)


def _has_moved(one: ProfiledColumn, other: ProfiledColumn) -> bool:
    return (one.nulls, one.least, one.greatest) != (other.nulls, other.least, other.greatest)


def _pair_renamed(match: Match, here: Profile, baseline: Profile) -> Match:
    """Pair columns that only one side has and that hold the same values."""
    mine, theirs = ({column.name: column for column in profile.columns} for profile in (here, baseline))
    renamed: list[tuple[Column, Column]] = []
    for one in match.added:
        now = mine[one.name]
        same = (
            other
            for other in match.removed
            if (theirs[other.name].type, theirs[other.name].nulls, theirs[other.name].digest)
            == (now.type, now.nulls, now.digest)
            and not any(other is its for _, its in renamed)
        )
        other = next(same, None)
        if other is not None and now.nulls < here.rows:
            renamed.append((one, other))
    return replace(
        match,
        renamed=tuple(renamed),
        added=tuple(column for column in match.added if not any(column is one for one, _ in renamed)),
        removed=tuple(column for column in match.removed if not any(column is other for _, other in renamed)),
    )


def _differs(one: ProfiledColumn, other: ProfiledColumn) -> bool:
    # A different type is reported as such.
    return one.nulls != other.nulls or (one.digest != other.digest and one.type == other.type)


def _tell(one: ProfiledColumn, other: ProfiledColumn, cells: Cells) -> str:
    told = [f"nulls {other.nulls:,} -> {one.nulls:,}"] if one.nulls != other.nulls else []
    if not cells.hides(one.name):
        for name in ("least", "greatest"):
            now, was = (cells.show(one.name, getattr(each, name)) for each in (one, other))
            told += [f"{name} {was} -> {now}"] if now != was else []
        if one.mean != other.mean and one.mean is not None and other.mean is not None:
            told.append(f"mean {other.mean:.12g} -> {one.mean:.12g}")
    return f"{quote_name(cells.name(one.name))}: {', '.join(told) or 'other values within the same bounds'}"
