"""The floor: what the base's manifest promised and this one does not any more. Pure comparison of two manifests.

A weakening is no failure of a project; a person has to accept it. Tightening is nothing, and so are words for people:
title, description, tags. Values of environment variables are never quoted, only their names.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from pytest_golden.redaction import redact
from pytest_golden.regression.output_floor import find_changed_baselines, find_weaker_outputs
from pytest_golden.regression.weakening import ChangedBaseline, Weakening, WeakeningKind
from pytest_golden.regression.wording import format_duration, format_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_golden.manifest.model import GoldenProjectConfig, Manifest


__all__ = ["ChangedBaseline", "Weakening", "WeakeningKind", "find_weakenings"]


_MOUNT_MODES = ("read", "copy", "write")
_STRICTNESS = ("allow", "warn", "fail")


def find_weakenings(
    base: Manifest, head: Manifest, *, not_run: Mapping[str, str], changed_baselines: Iterable[ChangedBaseline] = ()
) -> tuple[Weakening, ...]:
    """Compare this manifest with the base's.

    Args:
        base: the manifest as it was.
        head: the manifest as it is.
        not_run: names of projects that were deselected or skipped in this run, each with the reason.
        changed_baselines: baselines that are others than at the base, or gone.

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


def _compare_projects(
    base: Manifest, head: Manifest, not_run: Mapping[str, str], baselines: Mapping[str, Sequence[ChangedBaseline]]
) -> Iterator[Weakening]:
    present = {project.name: project for project in head.projects}
    retired = {project.name for project in head.retired}
    for old in base.projects:
        new = present.get(old.name)
        if new is not None:
            yield from _compare(old, new)
            yield from find_changed_baselines(old, baselines.get(old.name, ()))
            if old.name in not_run:
                message = f"was not run: {redact(not_run[old.name])}"
                yield Weakening(old.name, WeakeningKind.NOT_RUN, message, head=redact(not_run[old.name]))
        elif old.name not in retired:
            message = "is gone: bring it back, or name it under `retired:` with the reason"
            yield Weakening(old.name, WeakeningKind.PROJECT_GONE, message, old.path)


def _compare(old: GoldenProjectConfig, new: GoldenProjectConfig) -> Iterator[Weakening]:
    yield from _changed_texts(old, new)
    yield from _raised_limits(old, new)
    yield from _added_entries(old, new)
    yield from _changed_environment(old, new)
    if new.network and not old.network:
        yield Weakening(new.name, WeakeningKind.NETWORK, "network was switched on", "false", "true")
    if _STRICTNESS.index(new.unexpected_files) < _STRICTNESS.index(old.unexpected_files):
        message = f"unexpected_files was loosened from {old.unexpected_files} to {new.unexpected_files}"
        kind = WeakeningKind.UNEXPECTED_FILES
        yield Weakening(new.name, kind, message, old.unexpected_files, new.unexpected_files)
    yield from _longer_quarantine(old, new)
    yield from find_weaker_outputs(old, new)


def _texts(project: GoldenProjectConfig) -> tuple[tuple[str, WeakeningKind, object], ...]:
    """Give the keys of which any change is a weakening, since no one can tell whether it is a loosening."""
    return (
        ("expected_outcome", WeakeningKind.EXPECTATION, _outcome(project)),
        ("path", WeakeningKind.PATH, PurePosixPath(project.path)),
        ("project_dir", WeakeningKind.PROJECT_DIR, _folder(project)),
        ("runner", WeakeningKind.RUNNER, project.runner),
        ("command", WeakeningKind.COMMAND, _quote(project.command or ())),
        ("args", WeakeningKind.ARGS, _quote(project.args)),
        ("before", WeakeningKind.COMMAND, "; ".join(map(_quote, project.before))),
        ("after", WeakeningKind.COMMAND, "; ".join(map(_quote, project.after))),
        ("venv", WeakeningKind.ENVIRONMENT, project.venv or ""),
        ("pass_env", WeakeningKind.ENVIRONMENT, ", ".join(sorted(project.pass_env))),
        ("pass_files", WeakeningKind.ENVIRONMENT, ", ".join(sorted(project.pass_files))),
    )


def _changed_texts(old: GoldenProjectConfig, new: GoldenProjectConfig) -> Iterator[Weakening]:
    for (key, kind, was), (_, _, now) in zip(_texts(old), _texts(new), strict=True):
        if was != now:
            before, after = redact(str(was)), redact(str(now))
            message = f"{key} changed from {before or 'none'} to {after or 'none'}"
            yield Weakening(new.name, kind, message, before or None, after or None)


def _raised_limits(old: GoldenProjectConfig, new: GoldenProjectConfig) -> Iterator[Weakening]:
    limits = (
        ("timeout", old.timeout, new.timeout, format_duration),
        ("memory_limit", old.memory_limit, new.memory_limit, lambda size: format_size(int(size))),
        ("cpu_limit", old.cpu_limit, new.cpu_limit, format_duration),
        ("max_slowdown", old.max_slowdown, new.max_slowdown, lambda factor: f"{factor:g} times the median"),
    )
    for key, was, now, written in limits:
        if was is not None and (now is None or now > was):
            before, after = written(was), "none" if now is None else written(now)
            yield Weakening(new.name, WeakeningKind.LIMIT, f"{key} was raised from {before} to {after}", before, after)
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
    gone = [pattern for pattern in old.depends_on if pattern not in new.depends_on]
    if gone:
        message = f"depends_on lost {', '.join(gone)}: --golden-changed would not see a change there"
        yield Weakening(new.name, WeakeningKind.DEPENDS_ON, message, ", ".join(gone))
    patterns = [pattern for pattern in new.writes if pattern not in old.writes]
    if patterns and old.unexpected_files != "allow":
        message = f"writes gained {', '.join(patterns)}"
        yield Weakening(new.name, WeakeningKind.UNEXPECTED_FILES, message, head=", ".join(patterns))


def _changed_environment(old: GoldenProjectConfig, new: GoldenProjectConfig) -> Iterator[Weakening]:
    names = sorted({*old.set_env, *new.set_env})
    changed = [name for name in names if old.set_env.get(name) != new.set_env.get(name)]
    if changed:
        message = f"set_env changed: {', '.join(changed)}"
        yield Weakening(new.name, WeakeningKind.ENVIRONMENT, message, ", ".join(old.set_env), ", ".join(new.set_env))


def _longer_quarantine(old: GoldenProjectConfig, new: GoldenProjectConfig) -> Iterator[Weakening]:
    if new.quarantine is None or (old.quarantine is not None and new.quarantine.until <= old.quarantine.until):
        return
    until = new.quarantine.until.isoformat()
    if old.quarantine is None:
        message = f"quarantine was added until {until}: {new.quarantine.reason}"
        yield Weakening(new.name, WeakeningKind.QUARANTINE, message, None, until)
    else:
        was = old.quarantine.until.isoformat()
        message = f"quarantine was prolonged from {was} to {until}: {new.quarantine.reason}"
        yield Weakening(new.name, WeakeningKind.QUARANTINE, message, was, until)


def _outcome(project: GoldenProjectConfig) -> str:
    """Give the expected outcome in one form: `exit_code:0` is `success`."""
    text = str(project.expected)
    return "success" if text == "exit_code:0" else text


def _folder(project: GoldenProjectConfig) -> PurePosixPath:
    """Give project_dir, which is the folder of the path where none is declared."""
    return PurePosixPath(project.path).parent if project.project_dir is None else PurePosixPath(project.project_dir)


def _quote(words: tuple[str, ...]) -> str:
    return " ".join(repr(word) if " " in word or not word else word for word in words)
