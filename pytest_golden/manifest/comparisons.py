"""How a declared output is compared: the declared words, what a file's suffix says, and the rules of each comparison.

Pure text over paths; no file is looked at.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from posixpath import splitext
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

COMPARISONS: Final = ("bytes", "text", "json", "table", "image_size", "exists")
#: Suffixes that are seen through: `sales.csv.gz` is compared as a table.
COMPRESSED_SUFFIXES: Final = frozenset({".gz", ".bz2", ".xz", ".zst"})

_BY_SUFFIX: Mapping[str, str] = {
    **dict.fromkeys((".csv", ".tsv", ".parquet", ".jsonl", ".ndjson"), "table"),
    ".json": "json",
    **dict.fromkeys((".txt", ".log", ".md", ".sql", ".yaml", ".yml", ".html", ".xml"), "text"),
    **dict.fromkeys((".vcf", ".bed", ".gff", ".gff3", ".gtf"), "text"),
}

_NO_RESULTS = frozenset({".log", ".sql"})
_PICTURES_AND_MAPS = frozenset({".png", ".svg", ".geojson"})
_DATABASE_SUFFIXES = frozenset({".duckdb", ".ddb", ".sqlite", ".sqlite3", ".db"})

#: The comparisons that know each rule.
COMPARISONS_OF_RULE: Mapping[str, tuple[str, ...]] = {
    "ignore_lines": ("text",),
    "masks": ("text", "json"),
    "ignore_paths": ("json",),
    "unordered": ("text", "json", "table"),
    "absolute_tolerance": ("json", "table"),
    "relative_tolerance": ("json", "table"),
    "key": ("table",),
    "ignore_columns": ("table",),
    "header": ("table",),
    "schema_only": ("table",),
    "min_rows": ("table",),
    "max_rows": ("table",),
    "not_null": ("table", "exists"),
    "unique": ("table", "exists"),
    "between": ("table", "exists"),
    "accepted": ("table", "exists"),
    "newest": ("table", "exists"),
    "row_count_change": ("table",),
    "profile_above": ("table",),
    "contains": ("text", "exists"),
    "not_contains": ("text", "exists"),
    "min_bytes": ("exists",),
    "max_bytes": ("exists",),
}


def comparison_by_suffix(path: str) -> str:
    """Tell how a file is compared when nothing else is said."""
    return _BY_SUFFIX.get(plain_suffix(path), "bytes")


def holds_data(path: str) -> bool:
    """Tell by its suffix whether a written file is worth a baseline: a table, JSON, a text, a picture, genome data; no log, code or model."""
    suffix = plain_suffix(path)
    return suffix in _PICTURES_AND_MAPS or (suffix in _BY_SUFFIX and suffix not in _NO_RESULTS)


def is_database_name(path: str) -> bool:
    """Tell by its suffix whether a file may be a database: its first bytes tell."""
    return PurePosixPath(path).suffix.lower() in _DATABASE_SUFFIXES


def comparison_of_pattern(pattern: str) -> str | None:
    """Tell how all files that a pattern names are compared when nothing else is said; None when only each file tells."""
    suffix = plain_suffix(pattern)
    return _BY_SUFFIX.get(suffix, "bytes") if suffix and not set(suffix) & set("*?[") else None


def plain_suffix(path: str) -> str:
    """Return the suffix below that of a compression, in small letters."""
    stem, suffix = splitext(path)
    suffix = suffix.lower()
    suffix = splitext(stem)[1].lower() if suffix in COMPRESSED_SUFFIXES else suffix
    return "" if suffix == "." else suffix
