"""The floor: what the base's manifest promised and this one no longer does. Pure comparison of two manifests.

A weakening is not a failure of a project; a person has to accept it. What asks for as much or more is not a weakening, and
neither is a change of title, description or tags. Values of environment variables are never quoted, only their names.
"""

from __future__ import annotations

from itertools import zip_longest
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from pytest_golden.manifest.comparisons import comparison_of_pattern
from pytest_golden.redaction.redactor import redact
from pytest_golden.regression.unexpected import is_table_named, names_output
from pytest_golden.regression.verdict import ChangedBaseline, Weakening, WeakeningKind
from pytest_golden.regression.wording import format_duration, format_size, name_some, show_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_golden.manifest.model import DeclaredOutput, GoldenProjectConfig, Manifest

_MOST_NAMED = 10
_WHOLE_SUBMODULE = "all of them (a submodule)"
_BY_SUFFIX = "by suffix"
# How strict each comparison is. If the suffix of each file decides, it is somewhere in between.
_STRENGTH = {"exists": 0, "image_size": 1, "table": 2, "json": 2, _BY_SUFFIX: 2, "text": 3, "bytes": 4}
_LISTS = ("exclude", "ignore_lines", "masks", "ignore_paths", "ignore_columns")
_SWITCHES = ("unordered", "schema_only")
_TOLERANCES = ("absolute_tolerance", "relative_tolerance")
# The sign of a change that asks less.
_BOUNDS = {"min_rows": -1, "min_bytes": -1, "max_rows": 1, "max_bytes": 1}
_MOUNT_MODES = ("read", "copy", "write")
_NETWORKS = (False, True, "host")
_STRICTNESS = ("allow", "warn", "fail")


def find_weakenings(
    base: Manifest, head: Manifest, *, not_run: Mapping[str, str], changed_baselines: Iterable[ChangedBaseline] = ()
) -> tuple[Weakening, ...]:
    """Return in which ways this manifest asks less than the base's.

    Args:
        base: the manifest as it was.
        head: the manifest as it is.
        not_run: names of projects that were deselected or skipped in this run, each with the reason.
        changed_baselines: baselines that differ from the base, or are gone.

    Returns:
        The weakenings of the whole manifest first, then by project in the base's order.
    """
    baselines: dict[str, list[ChangedBaseline]] = {}
    for baseline in changed_baselines:
        baselines.setdefault(baseline.project, []).append(baseline)
    return (*_compare_manifests(base, head), *_compare_projects(base, head, not_run, baselines))


def _compare_manifests(base: Manifest, head: Manifest) -> Iterator[Weakening]:
    if base.require_golden_projects and not head.require_golden_projects:
        message = "require_golden_projects was turned off"
        yield Weakening(None, WeakeningKind.REQUIREMENT, message, "true", "false")
    if base.workspace_root != head.workspace_root:
        old, new = str(base.workspace_root), str(head.workspace_root)
        yield Weakening(None, WeakeningKind.PATH, f"workspace_root changed from {old} to {new}", old, new)
    if head.setup is not None and head.setup != base.setup:
        was, now = (None if setup is None else redact(_quote(setup)) for setup in (base.setup, head.setup))
        message = f"setup was added: {now}" if was is None else f"setup changed from {was} to {now}"
        yield Weakening(None, WeakeningKind.SETUP, message, was, now)


def _compare_projects(
    base: Manifest, head: Manifest, not_run: Mapping[str, str], baselines: Mapping[str, Sequence[ChangedBaseline]]
) -> Iterator[Weakening]:
    present = {project.name: project for project in head.projects}
    known = {project.name for project in base.projects}
    added = {_find_file(project): project.name for project in head.projects if project.name not in known}
    retired = {project.name: project.reason for project in head.retired}
    for old in base.projects:
        new = present.get(old.name)
        if new is not None:
            yield from _compare_floor(old, new)
            yield from find_changed_baselines(old, baselines.get(old.name, ()))
            if old.name in not_run:
                message = f"was not run: {redact(not_run[old.name])}"
                yield Weakening(old.name, WeakeningKind.NOT_RUN, message, head=redact(not_run[old.name]))
        elif old.name in retired:
            reason = redact(retired[old.name])
            yield Weakening(old.name, WeakeningKind.RETIRED, f"was retired: {reason}", old.path, reason)
        else:
            new_name = added.get(_find_file(old))
            told = "is gone" if new_name is None else f"was renamed to {new_name}"
            message = f"{told}: bring it back, or name it under `retired:` with the reason"
            yield Weakening(old.name, WeakeningKind.PROJECT_GONE, message, old.path, new_name)


def _compare_floor(old: GoldenProjectConfig, new: GoldenProjectConfig) -> Iterator[Weakening]:
    yield from _changed_texts(old, new)
    yield from _raised_limits(old, new)
    yield from _added_entries(old, new)
    names = sorted({*old.set_env, *new.set_env})
    changed = [name for name in names if old.set_env.get(name) != new.set_env.get(name)]
    if changed:
        message = f"set_env changed: {', '.join(changed)}"
        yield Weakening(new.name, WeakeningKind.ENVIRONMENT, message, ", ".join(old.set_env), ", ".join(new.set_env))
    if _NETWORKS.index(new.network) > _NETWORKS.index(old.network):
        was, now = (str(network).lower() for network in (old.network, new.network))
        message = "network was switched on" if now == "true" else f"network was widened from {was} to {now}"
        yield Weakening(new.name, WeakeningKind.NETWORK, message, was, now)
    if _STRICTNESS.index(new.unexpected_files) < _STRICTNESS.index(old.unexpected_files):
        message = f"unexpected_files was loosened from {old.unexpected_files} to {new.unexpected_files}"
        kind = WeakeningKind.UNEXPECTED_FILES
        yield Weakening(new.name, kind, message, old.unexpected_files, new.unexpected_files)
    if new.view not in {old.view, "tracked"}:
        message = f"view was widened from {old.view} to {new.view}"
        yield Weakening(new.name, WeakeningKind.PROJECT_DIR, message, old.view, new.view)
    yield from _longer_quarantine(old, new)
    yield from find_weaker_outputs(old, new)
    yield from find_weaker_texts(old, new)


def _list_texts(project: GoldenProjectConfig) -> tuple[tuple[str, WeakeningKind, object], ...]:
    """Return the keys whose every change counts as a weakening, since no rule can tell whether it asks less."""
    return (
        ("expected_outcome", WeakeningKind.EXPECTATION, _write_outcome(project)),
        ("path", WeakeningKind.PATH, PurePosixPath(project.path)),
        ("project_dir", WeakeningKind.PROJECT_DIR, _find_folder(project)),
        ("runner", WeakeningKind.RUNNER, project.runner),
        ("command", WeakeningKind.COMMAND, _quote(project.command or ())),
        ("args", WeakeningKind.ARGS, _quote(project.args)),
        ("before", WeakeningKind.COMMAND, "; ".join(map(_quote, project.before))),
        ("after", WeakeningKind.COMMAND, "; ".join(map(_quote, project.after))),
        ("venv", WeakeningKind.ENVIRONMENT, project.venv or ""),
        ("clock", WeakeningKind.ENVIRONMENT, project.clock or ""),
        ("pass_env", WeakeningKind.ENVIRONMENT, ", ".join(sorted(project.pass_env))),
        ("pass_files", WeakeningKind.ENVIRONMENT, ", ".join(sorted(project.pass_files))),
    )


def _changed_texts(old: GoldenProjectConfig, new: GoldenProjectConfig) -> Iterator[Weakening]:
    for (key, kind, was), (_, _, now) in zip(_list_texts(old), _list_texts(new), strict=True):
        if was != now:
            before, after = redact(str(was)), redact(str(now))
            message = f"{key} changed from {before or 'none'} to {after or 'none'}"
            yield Weakening(new.name, kind, message, before or None, after or None)


def _write_outcome(project: GoldenProjectConfig) -> str:
    """Return the expected outcome in one form: `exit_code:0` is `success`."""
    text = str(project.expected)
    return "success" if text == "exit_code:0" else text


def _find_file(project: GoldenProjectConfig) -> tuple[PurePosixPath, PurePosixPath]:
    return PurePosixPath(project.path), _find_folder(project)


def _find_folder(project: GoldenProjectConfig) -> PurePosixPath:
    """Return project_dir, or the folder of `path` if none is declared."""
    return PurePosixPath(project.path).parent if project.project_dir is None else PurePosixPath(project.project_dir)


def _quote(words: tuple[str, ...]) -> str:
    return " ".join(repr(word) if " " in word or not word else word for word in words)


def _raised_limits(old: GoldenProjectConfig, new: GoldenProjectConfig) -> Iterator[Weakening]:
    limits = (
        ("timeout", old.timeout, new.timeout, format_duration),
        ("memory_limit", old.memory_limit, new.memory_limit, lambda size: format_size(int(size))),
        ("disk_limit", old.disk_limit, new.disk_limit, lambda size: format_size(int(size))),
        ("process_limit", old.process_limit, new.process_limit, str),
        ("cpu_limit", old.cpu_limit, new.cpu_limit, format_duration),
        ("max_slowdown", old.max_slowdown, new.max_slowdown, lambda factor: f"{factor:g} times the median"),
    )
    for key, was, now, written in limits:
        if was is not None and (now is None or now > was):
            before, after = written(was), "none" if now is None else written(now)
            yield Weakening(new.name, WeakeningKind.LIMIT, f"{key} was raised from {before} to {after}", before, after)
    if old.min_strength is not None and (new.min_strength is None or new.min_strength < old.min_strength):
        before, after = str(old.min_strength), str(new.min_strength or "none")
        yield Weakening(
            new.name, WeakeningKind.LIMIT, f"min_strength was lowered from {before} to {after}", before, after
        )
    if new.retries > old.retries:
        message = f"retries was raised from {old.retries} to {new.retries}"
        yield Weakening(new.name, WeakeningKind.RETRIES, message, str(old.retries), str(new.retries))


def _added_entries(old: GoldenProjectConfig, new: GoldenProjectConfig) -> Iterator[Weakening]:
    modes = {mount.path: mount.mode for mount in old.mounts}
    for mount in new.mounts:
        was = modes.get(mount.path)
        if was is None or _MOUNT_MODES.index(mount.mode) > _MOUNT_MODES.index(was):
            message = f"mounts gained {mount.path} ({mount.mode}{f', was {was}' if was else ''})"
            yield Weakening(new.name, WeakeningKind.MOUNTS, message, was, mount.mode)
    added = [program for program in new.skip_if_missing if program not in old.skip_if_missing]
    if added:
        message = f"skip_if_missing gained {', '.join(added)}"
        yield Weakening(new.name, WeakeningKind.SKIP_IF_MISSING, message, head=", ".join(added))
    shown = [name for name in new.not_secret if name not in old.not_secret]
    if shown:
        message = f"not_secret gained {', '.join(shown)}: ordinary values there are no longer hidden"
        yield Weakening(new.name, WeakeningKind.ENVIRONMENT, message, head=", ".join(shown))
    gone = [pattern for pattern in old.depends_on if pattern not in new.depends_on]
    if gone:
        message = f"depends_on lost {', '.join(gone)}: --golden-changed would not see a change there"
        yield Weakening(new.name, WeakeningKind.DEPENDS_ON, message, ", ".join(gone))
    patterns = [pattern for pattern in new.writes if pattern not in old.writes]
    if patterns and old.unexpected_files != "allow":
        message = f"writes gained {', '.join(patterns)}"
        yield Weakening(new.name, WeakeningKind.UNEXPECTED_FILES, message, head=", ".join(patterns))


def _longer_quarantine(old: GoldenProjectConfig, new: GoldenProjectConfig) -> Iterator[Weakening]:
    if new.quarantine is None or (old.quarantine is not None and new.quarantine.until <= old.quarantine.until):
        return
    until = new.quarantine.until.isoformat()
    was = None if old.quarantine is None else old.quarantine.until.isoformat()
    told = f"added until {until}" if was is None else f"prolonged from {was} to {until}"
    message = f"quarantine was {told}: {new.quarantine.reason}"
    yield Weakening(new.name, WeakeningKind.QUARANTINE, message, was, until)


def find_weaker_texts(old: GoldenProjectConfig, new: GoldenProjectConfig) -> Iterator[Weakening]:
    """Yield what `stdout:` and `stderr:` ask no more."""
    for stream in ("stdout", "stderr"):
        was, now = getattr(old, stream), getattr(new, stream)
        if was is not None:
            for told in _lost_items(was, now, ("contains", "not_contains")):
                yield Weakening(new.name, WeakeningKind.OUTPUT, f"{stream}: {told}")


def find_weaker_outputs(old: GoldenProjectConfig, new: GoldenProjectConfig) -> Iterator[Weakening]:
    """Yield the weakenings of one project's outputs, in the order of the base. Outputs with the same `path` are compared."""
    then, now = _by_place(old.outputs), _by_place(new.outputs)
    for place, outputs in then.items():
        for was, same in zip_longest(outputs, now.get(place, ())):
            if was is None:
                continue
            becomes = same or _find_pattern(was, new.outputs)
            if becomes is None:
                yield _weaker(new.name, was.shown, "is no longer an output: bring it back", was.shown, None)
            else:
                yield from _compare_output(new.name, was, becomes)
    yield from _find_allowed_files(old, new)


def _by_place(outputs: Sequence[DeclaredOutput]) -> dict[tuple[str | None, ...], list[DeclaredOutput]]:
    """Group entries by where they look; a table that is named alone has a place of its own."""
    groups: dict[tuple[str | None, ...], list[DeclaredOutput]] = {}
    for output in outputs:
        place = (output.path, output.database, output.table, str(bool(output.tables)), str(bool(output.dbt)))
        groups.setdefault(place, []).append(output)
    return groups


def _find_pattern(was: DeclaredOutput, outputs: Sequence[DeclaredOutput]) -> DeclaredOutput | None:
    """Find the entry whose patterns name a table that had an entry of its own."""
    for output in outputs:
        is_there = (output.path, output.database) == (was.path, was.database) and output.tables
        if was.table and is_there and is_table_named(was.table, output):
            return output
    return None


def _find_allowed_files(old: GoldenProjectConfig, new: GoldenProjectConfig) -> Iterator[Weakening]:
    """Find new outputs that only allow files that were unexpected before."""
    if old.unexpected_files == "allow":
        return
    known = {output.path for output in old.outputs}
    added = [output.path for output in new.outputs if output.compare == "exists" and output.path not in known]
    if added:
        message = f"outputs gained {', '.join(added)} (compare: exists)"
        yield Weakening(new.name, WeakeningKind.UNEXPECTED_FILES, message, head=", ".join(added))


def _compare_output(name: str, old: DeclaredOutput, new: DeclaredOutput) -> Iterator[Weakening]:
    yield from _loosened_rules(name, old, new)
    was, now = _comparison(old), _comparison(new)
    for rule in ("tables", "dbt"):
        lost = [] if old.table else [pattern for pattern in getattr(old, rule) if pattern not in getattr(new, rule)]
        if lost:
            yield _weaker(name, old.shown, f"{rule} lost {', '.join(lost)}: bring it back", ", ".join(lost), None)
    if was == now:
        yield from _loosened_ranges(name, old, new)
        if set(old.key) != set(new.key):
            before, after = ", ".join(old.key) or "none", ", ".join(new.key) or "none"
            yield _weaker(name, old.shown, f"key changed from {before} to {after}", before, after)
    # If the suffix decided, the file may have been compared byte by byte.
    elif _STRENGTH[now] <= _STRENGTH["bytes" if was == _BY_SUFFIX and now != "bytes" else was]:
        yield _weaker(name, old.shown, f"compare was weakened from {was} to {now}", was, now)
    elif was == "exists" or now == "bytes":
        return
    yield from _gained_exceptions(name, old, new)
    yield from _raised_tolerances(name, old, new)


def _loosened_rules(name: str, old: DeclaredOutput, new: DeclaredOutput) -> Iterator[Weakening]:
    """Yield the rules on values and texts that ask less, or are gone."""
    for told in _lost_items(old, new, ("not_null", "unique", "contains", "not_contains")):
        yield _weaker(name, old.shown, told, None, None)
    for column, (low, high) in old.between.items():
        now = new.between.get(column)
        if now is None:
            yield _weaker(name, old.shown, f"between lost {redact(column)}: bring it back", redact(column), None)
        elif now != (low, high) and (_is_wider(low, now[0], -1) or _is_wider(high, now[1], 1)):
            was, becomes = _show_bounds((low, high)), _show_bounds(now)
            yield _weaker(
                name, old.shown, f"between was widened for {redact(column)} from {was} to {becomes}", was, becomes
            )
    for column, values in old.accepted.items():
        now_accepted = new.accepted.get(column)
        gained = [redact(value) for value in now_accepted or () if value not in values]
        if now_accepted is None:
            yield _weaker(name, old.shown, f"accepted lost {redact(column)}: bring it back", redact(column), None)
        elif gained:
            yield _weaker(
                name, old.shown, f"accepted gained {', '.join(gained)} for {redact(column)}", None, ", ".join(gained)
            )
    yield from _raised_allowances(name, old, new)


def _raised_allowances(name: str, old: DeclaredOutput, new: DeclaredOutput) -> Iterator[Weakening]:
    was, now = old.row_count_change, new.row_count_change
    if was is not None and new.schema_only and (now is None or now > was):
        after = "none" if now is None else f"{now:.6g}"
        yield _weaker(name, old.shown, f"row_count_change was raised from {was:.6g} to {after}", f"{was:.6g}", after)
    if new.largest_whole_bytes < old.largest_whole_bytes:
        before, after = map(format_size, (old.largest_whole_bytes, new.largest_whole_bytes))
        yield _weaker(name, old.shown, f"profile_above was lowered from {before} to {after}", before, after)
    if old.newest is None:
        return
    before = f"{redact(old.newest.column)} in {old.newest.max_age:g} seconds"
    if new.newest is None or new.newest.column != old.newest.column or new.newest.max_age > old.newest.max_age:
        after = "none" if new.newest is None else f"{redact(new.newest.column)} in {new.newest.max_age:g} seconds"
        yield _weaker(name, old.shown, f"newest was loosened from {before} to {after}", before, after)


def _lost_items(old: Any, new: Any, rules: Iterable[str]) -> Iterator[str]:
    for rule in rules:
        lost = [redact(item) for item in getattr(old, rule) if item not in getattr(new, rule, ())]
        if lost:
            yield f"{rule} lost {', '.join(lost)}: bring it back"


def _is_wider(was: float | str | None, now: float | str | None, sign: int) -> bool:
    """Tell whether a bound lets more through; `sign` is 1 for the upper one. A bound of another type may do so."""
    if was is None or was == now:
        return False
    if isinstance(was, float) and isinstance(now, float):
        return sign * now > sign * was
    if isinstance(was, str) and isinstance(now, str):
        return (now > was) if sign > 0 else (now < was)
    return True


def _show_bounds(bounds: Sequence[float | str | None]) -> str:
    return f"[{', '.join('null' if one is None else f'{one:g}' if isinstance(one, float) else one for one in bounds)}]"


def _comparison(output: DeclaredOutput) -> str:
    if output.is_of_tables:
        return "table"
    return output.compare or comparison_of_pattern(output.path) or _BY_SUFFIX


def _gained_exceptions(name: str, old: DeclaredOutput, new: DeclaredOutput) -> Iterator[Weakening]:
    for rule in _LISTS:
        gained = [redact(item) for item in getattr(new, rule) if item not in getattr(old, rule)]
        if gained:
            yield _weaker(name, old.shown, f"{rule} gained {', '.join(gained)}", None, ", ".join(gained))
    for rule in _SWITCHES:
        if getattr(new, rule) and not getattr(old, rule):
            yield _weaker(name, old.shown, f"{rule} was switched on", "false", "true")
    if new.allow_secret is not None and old.allow_secret is None:
        reason = redact(new.allow_secret)
        yield _weaker(name, old.shown, f"allow_secret was added ({reason})", None, reason)


def _raised_tolerances(name: str, old: DeclaredOutput, new: DeclaredOutput) -> Iterator[Weakening]:
    for rule in _TOLERANCES:
        was, now = getattr(old, rule), getattr(new, rule)
        if now > was:
            message = f"{rule} was raised from {was:g} to {now:g}"
            yield _weaker(name, old.shown, message, f"{was:g}", f"{now:g}", WeakeningKind.TOLERANCE)


def _loosened_ranges(name: str, old: DeclaredOutput, new: DeclaredOutput) -> Iterator[Weakening]:
    for rule, sign in _BOUNDS.items():
        was, now = getattr(old, rule), getattr(new, rule)
        if was is not None and (now is None or sign * now > sign * was):
            after = "none" if now is None else str(now)
            yield _weaker(name, old.shown, f"{rule} was widened from {was} to {after}", str(was), after)


def _weaker(
    name: str, path: str, what: str, base: str | None, head: str | None, kind: WeakeningKind = WeakeningKind.OUTPUT
) -> Weakening:
    return Weakening(name, kind, f"the output {redact(path)}: {what}", base, head)


def find_changed_baselines(old: GoldenProjectConfig, changed: Iterable[ChangedBaseline]) -> Iterator[Weakening]:
    """Yield a weakening for those changed baselines that an output of the base was compared with."""
    compared = [output for output in old.outputs if output.compare != "exists"]
    for is_gone in (False, True):
        paths = [
            (show_path(redact(baseline.path)) or _WHOLE_SUBMODULE) + (f" ({baseline.cause})" if baseline.cause else "")
            for baseline in changed
            if baseline.is_gone == is_gone
            and any(not baseline.path or names_output(output, baseline.path) for output in compared)
        ]
        if not paths:
            continue
        count = "baseline was" if len(paths) == 1 else f"{len(paths)} baselines were"
        message = f"{count} {'removed' if is_gone else 'changed'}: {name_some(paths, _MOST_NAMED)}"
        yield Weakening(old.name, WeakeningKind.BASELINE, message)
