"""The keys of one entry of `outputs:`, and what two of them may have against each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_golden.manifest.comparisons import COMPARISONS, COMPARISONS_OF_RULE, comparison_of_pattern
from pytest_golden.manifest.findings import Finding
from pytest_golden.manifest.kinds import FLAG, TEXT, list_of, one_of
from pytest_golden.manifest.output_kinds import BYTES, GLOB, JSON_PATH, PATTERN, ROWS, TOLERANCE
from pytest_golden.manifest.records import Key, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def find_output_conflicts(fields: Mapping[str, Any]) -> list[Finding]:
    """Find rules of another kind than the comparison, and ranges that nothing can meet."""
    return [*_rules_of_another_kind(fields), *_empty_ranges(fields)]


def _rules_of_another_kind(fields: Mapping[str, Any]) -> Iterator[Finding]:
    path, declared = fields.get("path"), fields.get("compare")
    if declared is None and not isinstance(path, str):
        return
    comparison = declared or comparison_of_pattern(str(path))
    found = f"{path} does not say by its suffix what it is" if comparison is None else f"this output is {comparison}"
    for rule, comparisons in COMPARISONS_OF_RULE.items():
        if _is_said(fields.get(rule)) and comparison not in comparisons:
            wanted = " or ".join(f"compare: {word}" for word in comparisons)
            yield Finding((rule,), f"{rule} is for {wanted}, and {found}; write that, or remove {rule}")


def _is_said(value: Any) -> bool:
    # What equals the default asks for nothing; 0 rows or bytes are a bound, and no other number is an int here.
    return value is not None and (value not in (False, (), 0.0) or (isinstance(value, int) and value is not False))


def _empty_ranges(fields: Mapping[str, Any]) -> Iterator[Finding]:
    for low, high in (("min_rows", "max_rows"), ("min_bytes", "max_bytes")):
        least, most = fields.get(low), fields.get(high)
        if least is not None and most is not None and least > most:
            yield Finding((low,), f"{least} is more than {high}, {most}; nothing could meet both")


OUTPUT_KEYS = Table.of(
    (
        Key(
            "path",
            GLOB,
            "Pattern (a glob) of the files, below project_dir.",
            required=True,
        ),
        Key(
            "compare",
            one_of(*COMPARISONS),
            "How a file is compared with its baseline. Default: by the suffix of each file.",
            nullable=True,
        ),
        Key(
            "ignore_lines", list_of(PATTERN, one_alone=True), "text: lines in which one of these is found do not count."
        ),
        Key("masks", list_of(PATTERN, one_alone=True), "text, json: what these match in texts counts as equal."),
        Key(
            "ignore_paths",
            list_of(JSON_PATH, one_alone=True),
            "json: parts that do not count, such as $.run.id, $.rows[0], $.rows[*].at or $..updated_at.",
        ),
        Key("unordered", FLAG, "text, json, table: lines, arrays or rows may stand in any order."),
        Key("absolute_tolerance", TOLERANCE, "json, table: numbers are equal that differ by no more than this."),
        Key(
            "relative_tolerance",
            TOLERANCE,
            "json, table: numbers are equal that differ by no more than this part of the larger.",
        ),
        Key("key", list_of(TEXT, one_alone=True), "table: the columns that tell rows apart; they must be unique."),
        Key("ignore_columns", list_of(TEXT, one_alone=True), "table: columns that do not count."),
        Key("schema_only", FLAG, "table: true compares the columns and their types, and no rows."),
        Key("min_rows", ROWS, "table: the least number of rows.", nullable=True),
        Key("max_rows", ROWS, "table: the greatest number of rows.", nullable=True),
        Key("min_bytes", BYTES, "exists: the least size; bytes, or 10kB, 2MiB.", nullable=True),
        Key("max_bytes", BYTES, "exists: the greatest size.", nullable=True),
    ),
    find_conflicts=find_output_conflicts,
)
