"""Rules between the keys of a project and between projects. Pure: it knows neither the file nor its lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.manifest.comparisons import COMPARISONS_OF_RULE, comparison_of_pattern
from pytest_golden.manifest.kinds import Finding, suggest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

# Guessing is slow among thousands of names, and after a few guesses the mistake is understood.
_MOST_GUESSES = 20


class Declared(NamedTuple):
    """A project as the rules between projects see it. `name_key` is the key that its name comes from."""

    name: str | None
    name_key: str
    line: int
    fields: Mapping[str, Any]


def find_conflicts(fields: Mapping[str, Any]) -> list[Finding]:
    """Find keys of one project that contradict each other."""
    needs = fields.get("needs", ())
    findings = []
    if fields.get("independent") and needs:
        message = "an independent project may run on another worker and can have no needs; remove one of the two"
        findings.append(Finding(("needs",), message))
    findings += [
        Finding(("needs", index), "a project cannot need itself; remove it")
        for index, need in enumerate(needs)
        if need == fields.get("name")
    ]
    if fields.get("runner") == "command" and fields.get("command") is None:
        findings.append(
            Finding(("runner",), "the runner command runs what the key command says; write that key, or another runner")
        )
    if fields.get("clock") is not None:
        findings += [
            Finding(("set_env", name), f"{name} would put another time in the place of `clock`; remove one of the two")
            for name in ("LD_PRELOAD", "FAKETIME")
            if name in fields.get("set_env", {})
        ]
    passed = {*fields.get("pass_env", ()), *fields.get("pass_files", ())}
    findings += [
        Finding(
            ("not_secret", index), f"{name!r} is not in pass_env or pass_files; write it as it is there, or remove it"
        )
        for index, name in enumerate(fields.get("not_secret", ()))
        if name not in passed
    ]
    findings += _find_unreachable_databases(fields)
    return findings


def _find_unreachable_databases(fields: Mapping[str, Any]) -> Iterator[Finding]:
    """Find outputs in a database that the project cannot reach."""
    for index, output in enumerate(fields.get("outputs", ())):
        database = vars(output).get("database") if hasattr(output, "__dict__") else output.get("database")
        if not database:
            continue
        if database[2:-1] not in fields.get("pass_env", ()):
            told = f"{database[2:-1]} is not in pass_env; add it there, so that the pipeline and the gate use the same database"
            yield Finding(("outputs", index, "database"), told)
        if fields.get("network") is False:
            yield Finding(
                ("outputs", index, "database"), "a project with network: false reaches no database; remove one of them"
            )


def find_doubled_names(projects: Sequence[Declared]) -> list[Finding]:
    """Find names that an earlier project has already."""
    lines: dict[str, int] = {}
    findings = []
    for index, project in enumerate(projects):
        if project.name is None:
            continue
        if project.name in lines:
            line = lines[project.name]
            message = f"the name {project.name!r} is already taken in line {line}; give each project a name of its own"
            findings.append(Finding((index, project.name_key), message))
        lines.setdefault(project.name, project.line)
    return findings


def find_wrong_needs(projects: Sequence[Declared]) -> list[Finding]:
    """Find needs that name no project, a later one, or one that may run elsewhere at the same time."""
    positions: dict[str, int] = {}
    for index, project in enumerate(projects):
        if project.name is not None:
            positions.setdefault(project.name, index)
    findings = []
    unknown = 0
    for index, project in enumerate(projects):
        for place, need in enumerate(project.fields.get("needs", ())):
            unknown += need not in positions
            names = positions if unknown <= _MOST_GUESSES else ()
            message = _explain_need(need, index, projects, positions.get(need), names)
            findings += [] if message is None else [Finding((index, "needs", place), message)]
    return findings


def _explain_need(
    need: str, index: int, projects: Sequence[Declared], position: int | None, names: Iterable[str]
) -> str | None:
    """Say what is wrong with a need; the nearest of `names` is suggested for one that is unknown."""
    if position is None:
        near = suggest(need, names)
        advice = f"did you mean {near!r}?" if near else "declare it earlier in this file"
        return f"no golden project is called {need!r}; {advice}"
    if position > index:
        return f"{need!r} is declared later, in line {projects[position].line}; declare this one after it, since projects run in order"
    if position < index and projects[position].fields.get("independent"):
        return f"{need!r} is independent and may run on another worker; remove independent there, or this need"
    return None


def find_retired_and_declared(retired: Sequence[str | None], projects: Sequence[Declared]) -> list[Finding]:
    """Find retired names that are doubled or still declared."""
    lines = {project.name: project.line for project in projects}
    seen: set[str] = set()
    findings = []
    for index, name in enumerate(retired):
        if name is None:
            continue
        if name in lines:
            message = f"{name!r} is still declared in line {lines[name]}; retire it or keep it, not both"
            findings.append(Finding((index, "name"), message))
        if name in seen:
            findings.append(Finding((index, "name"), f"{name!r} is already retired above; remove one of the two"))
        seen.add(name)
    return findings


def find_output_conflicts(fields: Mapping[str, Any]) -> list[Finding]:
    """Find rules of an output that its comparison does not know, and ranges that nothing can meet."""
    return [
        *_wrong_origins(fields),
        *_needless_profile(fields),
        *_rules_of_another_kind(fields),
        *_secret_without_baseline(fields),
        *_empty_ranges(fields),
        *_needless_change(fields),
    ]


def _wrong_origins(fields: Mapping[str, Any]) -> Iterator[Finding]:
    """Find entries that name nothing, or the same thing twice."""
    origins = [name for name in ("path", "database", "dbt") if fields.get(name)]
    named = [name for name in ("table", "tables") if fields.get(name)]
    if len(origins) > 1:
        yield Finding((origins[1],), f"{origins[1]} and {origins[0]} both say where the output is; write two entries")
    if len(named) > 1:
        yield Finding(("tables",), "table and tables both name tables; write tables: [one, another]")
    if origins == ["database"] and not named:
        yield Finding(("database",), "database needs table or tables: what of it is an output")
    if fields.get("dbt") and named:
        yield Finding((named[0],), f"dbt names models; remove {named[0]}")
    if fields.get("exclude") and not (fields.get("tables") or fields.get("dbt")):
        yield Finding(("exclude",), "exclude leaves tables out of the patterns of tables or dbt; write one of them")
    if (named or fields.get("dbt")) and fields.get("compare") not in (None, "table"):
        yield Finding(("compare",), "a table in a database is compared as a table; remove compare")


def _needless_profile(fields: Mapping[str, Any]) -> Iterator[Finding]:
    if fields.get("profile_above") is not None and not any(map(fields.get, ("table", "tables", "dbt"))):
        told = "profile_above is for tables in databases; a file is kept whole, so remove it"
        yield Finding(("profile_above",), told)


def _rules_of_another_kind(fields: Mapping[str, Any]) -> Iterator[Finding]:
    path, declared = fields.get("path"), fields.get("compare")
    is_of_tables = bool(fields.get("table") or fields.get("tables") or fields.get("dbt"))
    if declared is None and not isinstance(path, str) and not is_of_tables:
        return
    comparison = "table" if is_of_tables else declared or comparison_of_pattern(str(path))
    found = f"{path} does not say by its suffix what it is" if comparison is None else f"this output is {comparison}"
    for rule, comparisons in COMPARISONS_OF_RULE.items():
        value = fields.get(rule)
        # Of all rules, a header alone is there by default.
        is_said = value is False if rule == "header" else _is_said(value)
        if is_said and comparison not in comparisons:
            wanted = " or ".join(f"compare: {word}" for word in comparisons)
            yield Finding((rule,), f"{rule} is for {wanted}, and {found}; write that, or remove {rule}")


def _secret_without_baseline(fields: Mapping[str, Any]) -> Iterator[Finding]:
    if fields.get("allow_secret") is not None and fields.get("compare") == "exists":
        told = "allow_secret is only for outputs that become baselines, and compare: exists keeps none; remove it"
        yield Finding(("allow_secret",), told)


def _empty_ranges(fields: Mapping[str, Any]) -> Iterator[Finding]:
    for low, high in (("min_rows", "max_rows"), ("min_bytes", "max_bytes")):
        least, most = fields.get(low), fields.get(high)
        if least is not None and most is not None and least > most:
            yield Finding((low,), f"{least} is more than {high}, {most}; nothing could meet both")


def _needless_change(fields: Mapping[str, Any]) -> Iterator[Finding]:
    if fields.get("row_count_change") is not None and not fields.get("schema_only"):
        told = "row_count_change is for schema_only: true, since otherwise every row is compared; write that too"
        yield Finding(("row_count_change",), told)


def _is_said(value: Any) -> bool:
    # A value that equals the default asks for nothing. 0 rows or bytes are a bound, and only those numbers are ints here.
    return value is not None and (value not in (False, (), {}, 0.0) or (isinstance(value, int) and value is not False))
