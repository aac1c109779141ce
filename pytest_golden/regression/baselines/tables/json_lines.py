"""A JSON Lines file as a table: a column for each key, and one for each key of an object within, called `address.city`.

Values are JSON texts in one spelling. A key that is not there is the same as null, as in any table.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from pytest_golden.regression.baselines.model import UnreadableError
from pytest_golden.regression.baselines.tables.engine import quote_text
from pytest_golden.regression.baselines.tables.model import Column, Format, Table, Values
from pytest_golden.regression.baselines.tables.sampling import is_wide, part
from pytest_golden.regression.baselines.tables.wording import quote_name

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_golden.regression.baselines.model import Side
    from pytest_golden.regression.baselines.tables.engine import Engine

_DEEPEST = 8
# What DuckDB takes to plan a query grows faster than the columns that it computes.
_MOST_KEYS = 1000
# An object with more keys is a map from data to data.
_MOST_INNER_KEYS = 1000
# Beyond 64 bits.
_HUGE_NUMBER = (
    r"[:\[,]\s*(-(9[3-9][0-9]{17}|[1-9][0-9]{19,})|1(8[5-9]|9[0-9])[0-9]{17}|[2-9][0-9]{19}|[1-9][0-9]{20,})\s*[,\]}]"
)
_TOO_OLD = "this version of DuckDB does not read exactly: pip install --upgrade duckdb"


@dataclass(frozen=True, slots=True)
class _Key:
    names: tuple[str, ...]
    is_object: bool = False

    @property
    def pointer(self) -> str:
        return quote_text("".join("/" + name.replace("~", "~0").replace("/", "~1") for name in self.names))


def read_json_lines(engine: Engine, place: Path, side: Side) -> Table:
    """Find the keys of all lines.

    Raises:
        UnreadableError: a line is no object, or there are too many keys.
        QueryError: a line is no JSON.
    """
    lines = f"read_json_objects({quote_text(str(place))}, format = 'newline_delimited')"
    others = engine.query(f"SELECT json_type(json) FROM {lines} WHERE json_type(json) <> 'OBJECT' LIMIT 1")
    if others:
        raise UnreadableError(side, f"has a line that is no object but {_name(others[0][0])}, and so no row of a table")
    keys = _find_keys(engine, lines, side)
    _refuse_misread(engine, lines, keys, side)
    columns = tuple(Column(name, name, at, Values.JSON) for at, name in enumerate(".".join(key.names) for key in keys))
    if not columns:
        rows = int(engine.query(f"SELECT count(*) FROM {lines}")[0][0])
        return Table(side, Format.JSON_LINES, (), rows)
    return Table(side, Format.JSON_LINES, columns, 0, _lay_down(engine, _source(lines, keys), side, columns))


def _lay_down(engine: Engine, source: str, side: Side, columns: tuple[Column, ...]) -> str:
    """Read many keys once: to plan how they are read takes longer than to read them, and each query would do it anew."""
    if not is_wide(columns):
        return source
    name = f"lines_of_{side}"
    engine.keep_order(True)
    named = ", ".join(f"c{column.place}" for column in columns)
    engine.query(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT * FROM {source} AS t({named})")
    return name


def _find_keys(engine: Engine, lines: str, side: Side) -> list[_Key]:
    found: list[_Key] = []
    level = [_Key((), is_object=True)]
    for _ in range(_DEEPEST):
        below: list[_Key] = []
        for parent in level:
            below += _keys_below(engine, lines, parent) if parent.is_object else []
            if len(found) + len(below) > _MOST_KEYS:
                told = f"has more than {_MOST_KEYS:,} columns (keys), too many to be compared as JSON Lines"
                raise UnreadableError(side, f"{told}: write it as Parquet or CSV, or declare `compare: text`")
        if not below:
            break
        level = _look_at(engine, lines, below)
        found.extend(level)
    return sorted(found, key=lambda key: key.names)


def _refuse_misread(engine: Engine, lines: str, keys: list[_Key], side: Side) -> None:
    """Refuse what DuckDB would not see, and so call equal."""
    for parent in (_Key((), is_object=True), *(key for key in keys if key.is_object)):
        path = f", {parent.pointer}" if parent.names else ""
        keys_of = f"(SELECT json_keys(json{path}) AS k FROM {lines})"
        if engine.query(f"SELECT coalesce(bool_or(len(k) <> list_unique(k)), false) FROM {keys_of}")[0][0]:
            ((found,),) = engine.query(f"SELECT list_sort(k) FROM {keys_of} WHERE len(k) <> list_unique(k) LIMIT 1")
            name = next(one for one, other in pairwise(found) if one == other)
            told = quote_name(".".join((*parent.names, str(name))))
            raise UnreadableError(side, f"has a line in which the key {told} stands twice, and so no row of a table")
    if any(key.names == ("",) for key in keys) and engine.misreads_json_names:
        raise UnreadableError(side, f"has a key without a name, which {_TOO_OLD}")
    if engine.rounds_json_numbers and engine.query(
        f"SELECT 1 FROM {lines} WHERE regexp_matches(json::VARCHAR, '{_HUGE_NUMBER}') LIMIT 1"
    ):
        raise UnreadableError(side, f"has whole numbers of more than 64 bits, which {_TOO_OLD}")


def _keys_below(engine: Engine, lines: str, parent: _Key) -> list[_Key]:
    path = f", {parent.pointer}" if parent.names else ""
    most = _MOST_INNER_KEYS if parent.names else _MOST_KEYS
    rows = engine.query(f"SELECT DISTINCT unnest(json_keys(json{path})) FROM {lines} LIMIT {most + 1}")
    if parent.names and len(rows) > most:
        return []
    return [_Key((*parent.names, str(name))) for (name,) in rows]


def _look_at(engine: Engine, lines: str, keys: list[_Key]) -> list[_Key]:
    """Tell which keys have objects for values."""
    looked: list[_Key] = []
    for some in part(keys):
        # One call for all, since each call has a buffer of its own.
        types = f"json_type(json, [{', '.join(key.pointer for key in some)}])"
        asked = ", ".join(f"coalesce(bool_or(t[{at}] = 'OBJECT'), false)" for at in range(1, len(some) + 1))
        answers = engine.query(f"SELECT {asked} FROM (SELECT {types} AS t FROM {lines})")[0]
        looked += [_Key(key.names, bool(answer)) for key, answer in zip(some, answers, strict=True)]
    return looked


def _source(lines: str, keys: list[_Key]) -> str:
    parents = {key.names[:-1] for key in keys}
    pointers = ", ".join(key.pointer for key in keys)
    values = ", ".join(
        _value(f"e[{at}]::VARCHAR", is_told_by_keys=key.names in parents) for at, key in enumerate(keys, 1)
    )
    return f"(SELECT {values} FROM (SELECT json_extract(json, [{pointers}]) AS e FROM {lines}))"


def _value(text: str, *, is_told_by_keys: bool) -> str:
    value = f"nullif({text}, 'null')"
    return f"CASE WHEN starts_with({text}, '{{') THEN '{{}}' ELSE {value} END" if is_told_by_keys else value


def _name(kind: str) -> str:
    return {"ARRAY": "an array", "VARCHAR": "a text", "BOOLEAN": "a boolean", "NULL": "null"}.get(kind, "a number")
