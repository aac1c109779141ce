"""Small wrong changes of a pipeline's own files: Python, SQL, YAML, and data in CSV, JSON and Parquet.

A mutant is one edit at one place that a careless hand could make: another comparison, a constant off by one, another kind of join,
a filter that is left out, a row that is lost, two columns that are swapped.

Source: the operators are those of mutation testing (R. A. DeMillo, R. J. Lipton, F. G. Sayward: Hints on Test Data
Selection, 1978), chosen for data pipelines.
"""

from __future__ import annotations

import ast
import csv
import hashlib
import io
import json
import re
import warnings
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from pytest_golden.redaction.redactor import redact
from pytest_golden.values.shape import Shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from random import Random

#: Larger files are not changed; for code, the limit is a quarter of this.
MOST_BYTES = 1 << 20
_MOST_OF_CODE, _MOST_EDITS = MOST_BYTES // 4, 1_000
_COMPARISONS = {"<=": "<", ">=": ">", "<>": "=", "!=": "==", "==": "!=", "<": "<=", ">": ">="}
_ARITHMETIC = {"+": "-", "-": "+", "*": "/", "//": "*", "/": "*", "%": "*"}
_WORDS = {
    "inner": "left", "left": "inner", "right": "inner", "outer": "inner", "full": "inner",
    "first": "last", "last": "first", "sum": "mean", "mean": "sum", "max": "min", "min": "max", "avg": "sum",
    "asc": "desc", "desc": "asc", "append": "overwrite", "overwrite": "append", "any": "all", "all": "any",
}  # fmt: skip
_SQL_WORDS = {
    "AND": "OR", "OR": "AND", "LEFT": "INNER", "INNER": "LEFT", "RIGHT": "INNER", "FULL": "INNER", "ASC": "DESC", "DESC": "ASC",
    "SUM": "AVG", "AVG": "SUM", "MIN": "MAX", "MAX": "MIN", "DISTINCT": "", "COALESCE": "NULLIF", "FIRST_VALUE": "LAST_VALUE",
    "INTERSECT": "EXCEPT", "EXCEPT": "INTERSECT",
}  # fmt: skip
_OF_SQL = {"=": "<>", "!=": "=", "<>": "=", "<": "<=", "<=": "<", ">": ">=", ">=": ">"}
# After these, a star stands for all columns.
_BEFORE_ALL = frozenset({"SELECT", "(", ",", ".", "DISTINCT"})
# Its quotes, or the sign of a block in YAML.
_BEFORE_QUERY = re.compile(r"\s*(?:[|>][+-]?[^\n]*\n|[\"']{1,3})?")
_JOINS = frozenset({"LEFT", "INNER", "RIGHT", "FULL"})
_DROPPED_CALLS = frozenset(
    {"dropna", "drop_duplicates", "fillna", "query", "filter", "where", "distinct", "unique", "astype"}
)
_JINJA = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,15})?")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_SQL_LIKE = re.compile(r"(?is)\bselect\b.*\bfrom\b")
# Text for people.
_PROSE = frozenset({"description", "title", "name", "doc", "docs", "comment", "label", "owner"})
_MOST_COLUMNS, _MOST_SHOWN = 6, 60
_SUFFIXES = {".py": "python", ".sql": "sql", ".yaml": "yaml", ".yml": "yaml", ".csv": "csv", ".tsv": "csv",
    ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl"}  # fmt: skip
_DATA, _PARQUET = frozenset({"csv", "json", "jsonl"}), ".parquet"


@dataclass(frozen=True, slots=True)
class Mutant(Shape):
    """One edit of one file.

    `kind` names the mistake. `line` is its line, or the number of the record in JSON and Parquet. `before` and `after` describe the place in
    a few words. `id` is the same for the same edit of the same content.
    """

    id: str
    path: str
    line: int
    kind: str
    before: str
    after: str


#: A mutant, and what makes the file's content; that is None if the file could not be read with it.
Change: TypeAlias = "tuple[Mutant, Callable[[], bytes | None]]"


class Edit(NamedTuple):
    """What makes a mutant: the characters from `start` to `end` become `text`."""

    start: int
    end: int
    text: str
    kind: str


def is_mutable(path: str) -> bool:
    """Tell whether mutants can be made of this kind of file."""
    return path.endswith((*_SUFFIXES, _PARQUET))


def make_mutants(path: str, content: bytes, random: Random) -> list[Change]:
    """Return at most 1,000 mutants of a file, in the order of their places; none if the file cannot be read."""
    digest = hashlib.sha256(content).hexdigest()
    if path.endswith(_PARQUET) and len(content) <= MOST_BYTES:
        from pytest_golden.verify.parquet_mutants import mutate_parquet

        found_rows = mutate_parquet(content, random)
        return [
            (_name(path, digest, 1 + row, kind, *map(_shorten, told)), make) for row, (kind, *told), make in found_rows
        ]
    kind = next((kind for suffix, kind in _SUFFIXES.items() if path.endswith(suffix)), "")
    if not kind or len(content) > (MOST_BYTES if kind in _DATA else _MOST_OF_CODE):
        return []
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return []
    if kind in _DATA:
        delimiter = "\t" if path.endswith(".tsv") else ","
        found = _mutate_rows(text, delimiter, random) if kind == "csv" else _mutate_records(text, kind, random)
        return [(_name(path, digest, 1 + row, *told), new.encode) for row, told, new in found]
    edits = sorted(one for one in set(_EDITORS[kind](text)) if text[one.start : one.end] != one.text)
    edits = sorted(random.sample(edits, min(len(edits), _MOST_EDITS)))
    return [
        (
            _name(path, digest, text.count("\n", 0, edit.start) + 1, *_describe(text, edit)),
            partial(_apply, kind, text, edit),
        )
        for edit in edits
    ]


def order_by_telling(mutants: Iterable[Change], random: Random) -> list[Change]:
    """Put one mutant of each kind in each file first, then a second one, and so on, so that a short run covers everything."""
    groups: dict[tuple[str, str], list[Change]] = {}
    for one in mutants:
        groups.setdefault((one[0].kind, one[0].path), []).append(one)
    for group in groups.values():
        random.shuffle(group)
    return [one for turn in zip_longest(*groups.values()) for one in turn if one is not None]


def _apply(kind: str, text: str, edit: Edit) -> bytes | None:
    new = text[: edit.start] + edit.text + text[edit.end :]
    return new.encode() if _is_readable(kind, new) else None


def _name(path: str, digest: str, line: int, kind: str, before: str, after: str) -> Mutant:
    told = "\0".join((path, str(line), kind, before, after, digest))
    return Mutant(hashlib.sha256(told.encode()).hexdigest()[:16], path, line, kind, before, after)


def _describe(text: str, edit: Edit) -> tuple[str, str, str]:
    if edit.kind == "dropped step":
        return edit.kind, _shorten(text[edit.start : edit.end].strip().partition("\n")[0]), "(nothing)"
    begin, end = text.rfind("\n", 0, edit.start) + 1, text.find("\n", edit.end)
    end = len(text) if end < 0 else end
    offset = max(0, edit.start - begin - _MOST_SHOWN // 2)
    before = _shorten(text[begin:end], offset)
    return (
        edit.kind,
        before,
        _shorten(text[begin : edit.start] + edit.text + text[edit.end : end], offset) or "(nothing)",
    )


def _shorten(text: str, offset: int = 0) -> str:
    """Return a part of a line. Secrets are redacted before it is cut, because half a secret would not be recognized."""
    return " ".join(redact(text)[offset:].split())[: 2 * _MOST_SHOWN]


def _is_readable(kind: str, text: str) -> bool:
    if kind == "yaml":
        import yaml

        try:
            return bool(list(yaml.compose_all(text, Loader=yaml.SafeLoader)))
        except (yaml.YAMLError, RecursionError):
            return False
    return kind != "python" or _parse(text) is not None


def _parse(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _edit_python(text: str) -> Iterator[Edit]:
    tree = _parse(text)
    if tree is None:
        return
    # Where Python ends a line: other signs that end one for `splitlines` may stand in texts.
    lines = _LINE.findall(text)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def place(line: int, column: int) -> int:
        # Columns are counted in bytes of UTF-8.
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode("utf-8", "ignore"))

    def begin(node: Any) -> int:
        return place(node.lineno, node.col_offset)

    def end(node: Any) -> int:
        return place(node.end_lineno, node.end_col_offset)

    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if id(node) not in docs:
            yield from _edit_node(text, node, begin, end)


def _edit_node(text: str, node: ast.AST, begin: Callable[[Any], int], end: Callable[[Any], int]) -> Iterator[Edit]:
    match node:
        case ast.Compare(left=left, comparators=[right, *_]):
            yield from _swap(text, end(left), begin(right), _COMPARISONS, "comparison")
        case ast.BinOp(left=left, right=right) if not (_is_text(left) or _is_text(right)):
            yield from _swap(text, end(left), begin(right), _ARITHMETIC, "operator")
        case ast.BoolOp(values=[first, second, *_]):
            yield from _swap(text, end(first), begin(second), {"and": "or", "or": "and"}, "condition")
        case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=operand):
            yield Edit(begin(node), begin(operand), "", "condition")
        case ast.Constant(value=value):
            yield from _edit_constant(text, value, begin(node), end(node))
        case ast.Call(func=ast.Attribute(value=target, attr=name)) if name in _DROPPED_CALLS:
            yield Edit(end(target), end(node), "", f"dropped {name}")


def _edit_constant(text: str, value: object, start: int, end: int) -> Iterator[Edit]:
    if isinstance(value, bool):
        yield Edit(start, end, str(not value), "constant")
    elif isinstance(value, int | float):
        yield from _move_number(text, start, end)
    elif isinstance(value, str) and value in _WORDS and text[start] in "'\"":
        yield Edit(start + 1, end - 1, _WORDS[value], "choice")
    elif isinstance(value, str) and _SQL_LIKE.search(value):
        yield from _edit_sql(text, start, end)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _swap(text: str, start: int, end: int, table: Mapping[str, str], kind: str) -> Iterator[Edit]:
    """Yield the edit that exchanges the operator between two operands."""
    between = re.sub(r"#[^\n]*", lambda found: " " * len(found[0]), text[start:end])
    for old in sorted(table, key=len, reverse=True):
        at = between.find(old)
        if at >= 0:
            yield Edit(start + at, start + at + len(old), table[old], kind)
            return


def _move_number(text: str, start: int, end: int) -> Iterator[Edit]:
    if _NUMBER.fullmatch(text[start:end]):
        number = text[start:end]
        moved = str(int(number) + 1) if "." not in number else repr(float(number) + 1)
        yield Edit(start, end, moved, "constant")


def _edit_sql(text: str, start: int = 0, end: int | None = None) -> Iterator[Edit]:
    """Yield the edits of a query, or of a query inside another text, if sqlglot is installed. Parts made by a template stay unchanged."""
    try:
        from sqlglot import Tokenizer, TokenType
        from sqlglot.errors import SqlglotError
    except ImportError:
        return
    whole = text[start:end]
    opening = _BEFORE_QUERY.match(whole)
    offset = opening.end() if opening else 0
    query = whole[offset:].rstrip("\"' \n\t")
    start += offset
    masked = _JINJA.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), query)
    try:
        tokens = Tokenizer().tokenize(masked)
    except (SqlglotError, ValueError, RecursionError):
        return
    before = ""
    for token in tokens:
        begin, after = start + token.start, start + token.end + 1
        if token.token_type is TokenType.NUMBER:
            yield from _move_number(text, begin, after)
        elif token.token_type not in {TokenType.STRING, TokenType.IDENTIFIER}:
            word = " ".join(token.text.upper().split())
            yield from _edit_operator(word, before, begin, after)
            yield from _edit_word(word, before, begin, after)
        before = token.text.upper()


def _edit_operator(word: str, before: str, begin: int, after: int) -> Iterator[Edit]:
    if word in _OF_SQL:
        yield Edit(begin, after, _OF_SQL[word], "comparison")
    elif word in {"+", "-", "/", "%"} or (word == "*" and before not in _BEFORE_ALL):
        yield Edit(begin, after, _ARITHMETIC[word], "operator")


def _edit_word(word: str, before: str, begin: int, after: int) -> Iterator[Edit]:
    if word in _SQL_WORDS:
        yield Edit(begin, after, _SQL_WORDS[word], "join" if word in _JOINS else "choice")
    elif word == "JOIN" and before not in {*_JOINS, "OUTER", "CROSS"}:
        yield Edit(begin, begin, "LEFT ", "join")
    elif word in {"WHERE", "HAVING"}:
        yield Edit(after, after, " 1 = 1 OR", "dropped filter")
    elif (word, before) in {("NOT", "IS"), ("ALL", "UNION")}:
        yield Edit(begin, after, "", "null" if word == "NOT" else "choice")
    elif (word, before) == ("NULL", "IS"):
        yield Edit(begin, begin, "NOT ", "null")


def _edit_yaml(text: str) -> Iterator[Edit]:
    import yaml

    try:
        for document in yaml.compose_all(text, Loader=yaml.SafeLoader):
            yield from _edit_yaml_node(text, document)
    except (yaml.YAMLError, RecursionError):
        return


def _edit_yaml_node(text: str, node: Any) -> Iterator[Edit]:
    import yaml

    start, end = node.start_mark.index, node.end_mark.index
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if not (isinstance(key, yaml.ScalarNode) and key.value in _PROSE):
                yield from _edit_yaml_node(text, value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _edit_yaml_node(text, item)
        if not node.flow_style and len(node.value) > 1 and all(isinstance(one, yaml.MappingNode) for one in node.value):
            places = [text.rfind("\n", 0, one.start_mark.index) + 1 for one in node.value]
            ends = [*places[1:], text.rfind("\n", 0, end) + 1 if text[end - 1 : end] != "\n" else end]
            yield from (Edit(a, b, "", "dropped step") for a, b in zip(places, ends, strict=True) if b > a)
    else:
        yield from _edit_yaml_scalar(text, node, start, end)


def _edit_yaml_scalar(text: str, node: Any, start: int, end: int) -> Iterator[Edit]:
    kind = node.tag.rpartition(":")[2]
    if kind in {"int", "float"}:
        yield from _move_number(text, start, end)
    elif kind == "bool" and node.value.lower() in {"true", "false"}:
        yield Edit(start, end, "false" if node.value.lower() == "true" else "true", "constant")
    elif node.value in _WORDS and node.style is None:
        yield Edit(start, end, _WORDS[node.value], "choice")
    elif _SQL_LIKE.search(node.value) or re.search(r"[<>=]", node.value):
        yield from _edit_sql(text, start, end)


def _mutate_rows(text: str, delimiter: str, random: Random) -> Iterator[tuple[int, tuple[str, str, str], str]]:
    """Yield the wrong variants of a table: the row, the change, and the new text."""
    rows = _read_table(text, delimiter)
    if len(rows) < 2:
        return
    header, body = rows[0], rows[1:]

    def write(changed: list[list[str]]) -> str:
        out = io.StringIO()
        csv.writer(out, delimiter=delimiter, lineterminator="\r\n" if "\r\n" in text else "\n").writerows(
            [header, *changed]
        )
        return out.getvalue()

    def shown(row: list[str]) -> str:
        return _shorten(delimiter.join(row))

    at = random.randrange(len(body))
    yield at + 1, ("dropped row", shown(body[at]), "(nothing)"), write([*body[:at], *body[at + 1 :]])
    yield at + 1, ("row twice", shown(body[at]), "the same row twice"), write([*body[: at + 1], *body[at:]])
    for column, name in enumerate(header[:_MOST_COLUMNS]):
        at = random.randrange(len(body))
        old = body[at][column]
        if old:
            yield (
                at + 1,
                ("null", _shorten(f"{name}: {old}"), _shorten(f"{name}: empty")),
                write(_put(body, at, column, "")),
            )
        moved = _move_cell(old)
        if moved is not None:
            kind = "date" if _DATE.fullmatch(old) else "constant"
            yield (
                at + 1,
                (kind, _shorten(f"{name}: {old}"), _shorten(f"{name}: {moved}")),
                write(_put(body, at, column, moved)),
            )
        if column + 1 < len(header):
            other = header[column + 1]
            swapped = [[*row[:column], row[column + 1], row[column], *row[column + 2 :]] for row in body]
            yield 1, ("swapped columns", _shorten(f"{name}, {other}"), _shorten(f"{other}, {name}")), write(swapped)


def _mutate_records(text: str, kind: str, random: Random) -> Iterator[tuple[int, tuple[str, str, str], str]]:
    """Yield the wrong variants of a list of objects: a whole file, one object a line, or a member of one object. As `_mutate_rows`."""
    records, write = _read_records(text, kind)
    if not records:
        return

    def put(at: int, key: str, value: Any, told: str) -> tuple[int, tuple[str, str, str], str]:
        new = write([*records[:at], {**records[at], key: value}, *records[at + 1 :]])
        return at, (told, _show_value({key: records[at][key]}), _show_value({key: value})), new

    at = random.randrange(len(records))
    shown = _show_value(records[at])
    yield at, ("dropped row", shown, "(nothing)"), write([*records[:at], *records[at + 1 :]])
    yield at, ("row twice", shown, "the same row twice"), write([*records[: at + 1], *records[at:]])
    keys = list(records[0])[:_MOST_COLUMNS]
    for key in keys:
        at = random.randrange(len(records))
        old = records[at].get(key)
        if old is not None:
            yield put(at, key, None, "null")
        if (moved := _move_value(old)) not in (None, old):
            yield put(at, key, moved, "date" if isinstance(old, str) else "constant")
    for key, other in pairwise(keys):
        swapped = [{**one, key: one.get(other), other: one.get(key)} for one in records]
        if swapped != records:
            yield 0, ("swapped columns", _shorten(f"{key}, {other}"), _shorten(f"{other}, {key}")), write(swapped)


def _read_records(text: str, kind: str) -> tuple[list[dict[str, Any]], Callable[[list[dict[str, Any]]], str]]:
    """Return the objects in a text, and a function that writes the text with other objects; none if there is no list of objects."""
    try:
        document = [json.loads(line) for line in text.splitlines() if line] if kind == "jsonl" else json.loads(text)
    except (ValueError, RecursionError):
        return [], str
    members = document if isinstance(document, dict) else {"": document}
    name, records = next(((key, value) for key, value in members.items() if _is_table(value)), ("", []))

    def write(changed: list[dict[str, Any]]) -> str:
        if kind == "jsonl":
            return "".join(f"{json.dumps(record)}\n" for record in changed)
        whole = {**document, name: changed} if isinstance(document, dict) else changed
        return json.dumps(whole, indent=2 if "\n" in text.strip() else None)

    return records, write


def _show_value(value: Any) -> str:
    return _shorten(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode())


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 0 and all(isinstance(one, dict) and one for one in value)


def _move_value(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return _move_cell(value) if isinstance(value, str) and _DATE.fullmatch(value) else None


def _read_table(text: str, delimiter: str) -> list[list[str]]:
    """Read rows of equal length; none if the text is anything else."""
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except csv.Error:
        return []
    return rows if all(len(row) == len(rows[0]) for row in rows) else []


def _put(body: list[list[str]], at: int, column: int, value: str) -> list[list[str]]:
    return [*body[:at], [*body[at][:column], value, *body[at][column + 1 :]], *body[at + 1 :]]


def _move_cell(cell: str) -> str | None:
    if _DATE.fullmatch(cell):
        try:
            return (date.fromisoformat(cell) + timedelta(days=1)).isoformat()
        except (ValueError, OverflowError):
            return None
    if _NUMBER.fullmatch(cell):
        return str(int(cell) + 1) if "." not in cell else repr(float(cell) + 1)
    return None


_EDITORS: Mapping[str, Callable[[str], Iterator[Edit]]] = {
    "python": _edit_python,
    "sql": _edit_sql,
    "yaml": _edit_yaml,
}
