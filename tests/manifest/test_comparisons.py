from __future__ import annotations

import dataclasses

import pytest

from pytest_golden.manifest.comparisons import (
    COMPARISONS,
    COMPARISONS_OF_RULE,
    comparison_by_suffix,
    comparison_of_pattern,
)
from pytest_golden.manifest.model import DeclaredOutput


@pytest.mark.parametrize(
    ("path", "comparison"),
    [
        ("a.csv", "table"),
        ("a.tsv", "table"),
        ("out/a.PARQUET", "table"),
        ("a.jsonl", "table"),
        ("a.ndjson.gz", "table"),
        ("a.json", "json"),
        ("a.json.zst", "json"),
        ("a.txt.xz", "text"),
        ("a.html.bz2", "text"),
        ("a.b.yml", "text"),
        ("a.gz", "bytes"),
        ("a.png", "bytes"),
        ("a.tar.gz", "bytes"),
        ("folder.csv/data", "bytes"),
        (".csv", "bytes"),
        ("", "bytes"),
    ],
)
def test_the_suffix_below_a_compression_decides(path: str, comparison: str) -> None:
    assert comparison_by_suffix(path) == comparison


@pytest.mark.parametrize(
    ("pattern", "comparison"),
    [
        ("out/*.csv", "table"),
        ("**/*.json.gz", "json"),
        ("out/**/report.html", "text"),
        ("out/*.bin", "bytes"),
        ("part-*.csv", "table"),
        ("out/*", None),
        ("out/**", None),
        ("out", None),
        ("a.*", None),
        ("a.[ct]sv", None),
        ("*.gz", None),
        ("*.csv?", None),
    ],
)
def test_a_pattern_tells_only_by_a_plain_suffix(pattern: str, comparison: str | None) -> None:
    assert comparison_of_pattern(pattern) == comparison


def test_every_rule_of_an_output_has_comparisons() -> None:
    places = {"path", "database", "dbt", "table", "tables", "exclude"}
    rules = {field.name for field in dataclasses.fields(DeclaredOutput)} - {*places, "compare", "allow_secret"}
    assert set(COMPARISONS_OF_RULE) == rules
    assert {word for words in COMPARISONS_OF_RULE.values() for word in words} <= set(COMPARISONS)
