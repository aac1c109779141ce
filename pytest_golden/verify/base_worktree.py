"""Find the base's commit, check it out in a private folder, make its environment, and find the files that are missing there.

The head's gate writes its report into the private folder, and is started before anything heavy is loaded. So this module
must load little.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import site
import sys
import tempfile
import venv
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit

from pytest_golden.errors import GoldenError, ManifestError
from pytest_golden.gateway import git
from pytest_golden.gateway.git import run_git
from pytest_golden.gateway.scratch import LivingFolder
from pytest_golden.gateway.view import find_linked_sources
from pytest_golden.history.base_files import find_manifest_at, read_base_manifest
from pytest_golden.history.checkout import read_checkout
from pytest_golden.history.inputs import InputReader, RunInputs, compare_inputs
from pytest_golden.regression.gate_configuration import find_configuration, list_gate_files
from pytest_golden.regression.unexpected import is_named
from pytest_golden.regression.wording import name_some
from pytest_golden.settings import BASELINES_FOLDER
from pytest_golden.storage.folder import PRIVATE_PREFIX
from pytest_golden.verify import gates
from pytest_golden.verify.gates import BaseCommit, BrokenDownError, ChildProcess, GatePlace, HeadCommit

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from pytest_golden.manifest.model import GoldenProjectConfig, Manifest
    from pytest_golden.regression.model import GoldenProjectResult

_FOLDER_PREFIX = f"{PRIVATE_PREFIX}{os.getuid()}-"
_WORKTREE_NAME = "base"
_CHECKOUT_SECONDS = 3600
_SUBMODULE_MODE = "160000"
_LFS_MARK = b"version https://git-lfs.github.com/spec/"
_MOST_NAMED = 3
#: Tells the setup where the head's checkout is, so that it can copy files that git does not have.
HEAD_VARIABLE = "GOLDEN_HEAD"
#: An hour: a setup may compile or download a lot.
SETUP_SECONDS = 3600.0
# Variables that change what Python and pytest do: a change must not set them for its judge.
_OF_PYTHON = ("PYTHON", "PYTEST_")
# Sorts after the `.pth` files that the setup installs, so that its packages come first.
_HEAD_LINK = "zzz-of-the-head.pth"
_PROGRAMS = ("pip", "pip3")
_PROGRAM_MODE = 0o755


def read_head(folder: Path) -> HeadCommit:
    """Read what is checked out."""
    told = git.describe_commit(folder)
    return HeadCommit(told["commit"], told["dirty"])


def find_base(manifest: Path, ref: str, head: HeadCommit) -> BaseCommit:
    """Find the commit at which the head branched off `ref`, so that a change is not blamed for the changes of others.

    It is the commit of `ref` itself if this clone knows no common commit, or if the head is an ancestor of `ref` without
    edits: otherwise the head would be compared with itself.

    Raises:
        GoldenError: there is no git, no repository or no such ref (the message says what to fetch), or it is not clear
            which of that commit's manifests became this one.
    """
    meant = git.find_commit(manifest.parent, ref)
    left = git.find_fork(manifest.parent, meant)
    commit = meant if left == head.commit and not head.dirty else left
    return BaseCommit(ref, meant, commit, find_manifest_at(manifest, commit))


def read_manifest_of(base: BaseCommit) -> Manifest:
    """Read the base's manifest.

    Raises:
        GoldenError: the base has none, it cannot be used, or git cannot tell.
    """
    from pytest_golden.manifest.reader import parse_manifest

    place = base.manifest
    text = None if place is None else read_base_manifest(place, base.commit).text
    if place is None or text is None:
        raise GoldenError("the base has no manifest")
    try:
        return parse_manifest(text, f"{base.commit[:12]}:{place.name}", place.parent)
    except ManifestError as error:
        raise GoldenError(f"the base's manifest cannot be used: {error}") from None


class PrivateFolder(LivingFolder):
    """A folder of one verification, outside the checkout."""

    def __init__(self, *, outside: Path) -> None:
        super().__init__(find_temporary_folder(outside), _FOLDER_PREFIX)


def is_private_folder(path: Path) -> bool:
    """Tell by its name whether a path is a private folder, whether or not it still exists."""
    return path.name.startswith(_FOLDER_PREFIX)


def is_in_private_folder(path: str) -> bool:
    """Tell whether a path lies in a private folder of any user, on any machine."""
    return any(part.startswith(PRIVATE_PREFIX) for part in Path(path).parts)


def find_temporary_folder(outside: Path) -> Path:
    """Return a folder for temporary files outside the checkout, where they would count as the checkout's edits."""
    place = Path(os.path.realpath(tempfile.gettempdir()))
    return Path(os.path.realpath("/var/tmp")) if place.is_relative_to(outside) else place


class JudgedHead(NamedTuple):
    """What is judged: the root of the head's checkout, its manifest, and the workspace root of its pipelines.

    The pipelines run in `environment`, with `python` if they declare no `venv`. `passed` are the names of the variables that
    they get. `base_setup` installs the base.
    """

    checkout: Path
    manifest: Path
    workspace_root: Path
    environment: Mapping[str, str]
    passed: frozenset[str]
    base_setup: Sequence[str] | None
    python: str = sys.executable


class BaseWorktree:
    """A worktree of one commit below a private folder. Call `close` to remove it."""

    def __init__(self, checkout: Path, private: Path, commit: str, name: str = _WORKTREE_NAME) -> None:
        self.root = private / name
        self._checkout = checkout
        _forget_abandoned(checkout)
        # The repository's hooks are meant for the person's own checkouts.
        added = run_git(
            *(checkout, "-c", "core.hooksPath=/dev/null", "worktree", "add", "--quiet", "--detach"),
            *(str(self.root), commit),
            longest_seconds=_CHECKOUT_SECONDS,
        )
        if added.returncode:
            self.close()
            raise GoldenError(f"git cannot check {commit[:12]} out in a worktree: {git.last_line(added.stderr)}")

    def close(self) -> None:
        """Remove it and git's record of it; what cannot be removed goes with the private folder."""
        with suppress(GoldenError):
            _forget(self._checkout, self.root)

    def find_gaps(self) -> tuple[str, ...]:
        """Name the files that the head's checkout has and this worktree lacks, and how to get them: a project may fail only because of them."""
        return (*_find_submodules(self._checkout, self.root), *_find_pointers(self._checkout, self.root))


def open_judge(
    base: BaseCommit, manifest: Path, declared: Manifest, checkout: Path, private: Path, environment: Mapping[str, str]
) -> tuple[GatePlace, ExitStack]:
    """Return where gates judge a checkout from outside of it, and what to close afterwards. `declared` is its manifest.

    A base without a manifest cannot judge. Then the checkout judges itself.

    Raises:
        GoldenError: the base cannot be checked out, or its environment cannot be made.
    """
    held = ExitStack()
    if base.manifest is None:
        return GatePlace(manifest, environment), held
    setup = read_manifest_of(base).setup
    with held:
        tree = BaseWorktree(checkout, private, base.commit, "judge")
        held.callback(tree.close)
        head = JudgedHead(checkout, manifest, declared.workspace_root, environment, declared.list_passed(), setup)
        lay_declarations(tree, head, base.manifest)
        return make_judge(tree, private / "judging", head), held.pop_all()


def lay_declarations(tree: BaseWorktree, head: JudgedHead, base_manifest: Path, *, links: bool = True) -> None:
    """Copy the head's manifest and baselines, which are data, over those of a worktree of the base.

    With `links`, baselines are linked where possible. No pipeline may run in the worktree then.

    Raises:
        GoldenError: they cannot be copied.
    """
    manifest = tree.root / _from_root(head.manifest, head.checkout)
    try:
        _replace(tree.root / _from_root(base_manifest, head.checkout), None)
        _replace(manifest, head.manifest)
        _replace(manifest.parent / BASELINES_FOLDER, head.manifest.parent / BASELINES_FOLDER, links=links)
    except OSError as error:
        raise GoldenError(f"the manifest and the baselines cannot be copied for the judge: {error}") from None


def _from_root(path: Path, checkout: Path) -> str:
    """Return a path from the root of its checkout, also if it was given through a symbolic link."""
    return os.path.relpath(Path(os.path.realpath(path.parent), path.name), os.path.realpath(checkout))


def make_judge(tree: BaseWorktree, private: Path, head: JudgedHead) -> GatePlace:
    """Make a worktree of the base the judge of pipelines elsewhere, and return where its gates run.

    Configuration, conftests and the modules that they import come from the worktree, the files of the pipelines from the head.

    Raises:
        GoldenError: the base's environment cannot be made.
    """
    relative = _from_root(head.manifest, head.checkout)
    manifest, folder = tree.root / relative, os.path.dirname(relative)  # noqa: PTH120 - text
    files = list_gate_files(folder, None, ())
    texts = {path: (tree.root / path).read_bytes() for path in files if (tree.root / path).is_file()}
    if not find_configuration(folder, texts).file:
        # Otherwise pytest would look for a configuration above the worktree, in folders that others may write to.
        (tree.root / "pytest.ini").touch()
    options: tuple[str, ...] = (f"--golden-workspace={head.workspace_root}",)
    python, environment = sys.executable, head.environment
    if find_sources_below(head.checkout):
        # The head is installed here: the judge runs where the base is installed instead, the pipelines run here.
        made = BaseEnvironment(head.checkout, tree.root, private, environment, head.passed)
        python = made.prepare(manifest, head.base_setup).python
    if head.python != python:
        options = (*options, f"--golden-python={head.python}")
    kept = {
        name: value for name, value in environment.items() if name in head.passed or not name.startswith(_OF_PYTHON)
    }
    # The base's conftests import their modules from the base. A path that pipelines need stays as it is.
    if "PYTHONPATH" in environment and "PYTHONPATH" not in head.passed:
        kept["PYTHONPATH"] = gates.move_below(environment["PYTHONPATH"], head.checkout, tree.root)
    return GatePlace(manifest, kept, python, options, judged=head.checkout, flags=_choose_flags(head.passed))


def _choose_flags(passed: Collection[str]) -> tuple[str, ...]:
    """Return the flags with which Python ignores the current folder, user site-packages, and variables that a change could set."""
    is_users = site.ENABLE_USER_SITE and __file__.startswith(site.getusersitepackages())
    heeds_nothing = any(name.startswith("PYTHON") for name in passed)
    return ("-P", *(() if is_users else ("-s",)), *(("-E",) if heeds_nothing else ()))


def _replace(place: Path, content: Path | None, *, links: bool = True) -> None:
    """Copy a file or folder of the head over the same path of the worktree; remove it there if the head has none."""
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
    if content is None or not content.exists():
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    if content.is_dir():
        shutil.copytree(content, place, symlinks=True, copy_function=_link_or_copy if links else shutil.copyfile)
    else:
        shutil.copyfile(content, place)


def _link_or_copy(source: str, target: str) -> None:
    """Hard-link a baseline, which may be large; copy it if that is not possible."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copyfile(source, target, follow_symlinks=False)


def _forget_abandoned(checkout: Path) -> None:
    """Let git forget the worktrees of killed verifications, and no others: those may be on a disk that is not mounted."""
    for path in git.list_worktrees(checkout):
        if is_private_folder(path.parent) and not path.exists():
            _forget(checkout, path)


def _forget(checkout: Path, worktree: Path) -> None:
    run_git(checkout, "worktree", "remove", "--force", "--force", str(worktree), longest_seconds=_CHECKOUT_SECONDS)


def _find_submodules(head: Path, base: Path) -> Iterator[str]:
    if not (base / ".gitmodules").is_file():
        return
    entries = (entry.partition("\t") for entry in run_git(base, "ls-files", "--stage", "-z").stdout.split("\0"))
    paths = [path for told, _, path in entries if told.startswith(_SUBMODULE_MODE)]
    empty = [path for path in paths if _is_filled(head / path) and not _is_filled(base / path)]
    if empty:
        yield f"submodules are empty there ({name_some(empty, _MOST_NAMED)}): let `setup:` run `git submodule update --init`"


def _find_pointers(head: Path, base: Path) -> Iterator[str]:
    listed = run_git(base, "ls-files", "-z", "--", ":(attr:filter=lfs)").stdout.split("\0")
    paths = [path for path in listed if path and _is_pointer(base / path) and not _is_pointer(head / path)]
    if paths:
        yield f"files of git-lfs are not fetched there ({name_some(paths, _MOST_NAMED)}): let `setup:` run `git lfs pull`"


def _is_filled(folder: Path) -> bool:
    try:
        return any(folder.iterdir())
    except OSError:
        return False


def _is_pointer(file: Path) -> bool:
    try:
        with file.open("rb") as stream:
            return stream.read(len(_LFS_MARK)) == _LFS_MARK
    except OSError:
        return False


class BaseEnvironment:
    """The environment that the base's gates run in, so that they never run the head's code.

    `checkout` is the head's, `worktree` the base's root. Without a `setup:` it is the head's environment. With one it is a
    virtual environment that also sees the head's packages: the setup installs over them, and the head's stays unchanged.
    The values of the variables in `passed` are hidden in the output of the setup. Errors call the setup `setup_name`.
    """

    def __init__(
        self,
        checkout: Path,
        worktree: Path,
        private: Path,
        environment: Mapping[str, str],
        passed: Collection[str] = (),
        *,
        setup_name: str = "`setup:`",
    ) -> None:
        self._setup_name = setup_name
        self._checkout = checkout
        self._passed = {name: value for name, value in environment.items() if name in passed}
        self._private = private
        self._environment = dict(environment)
        if "PYTHONPATH" in environment:
            self._environment["PYTHONPATH"] = gates.move_below(environment["PYTHONPATH"], checkout, worktree)

    def prepare(self, manifest: Path, setup: Sequence[str] | None, longest_seconds: float = SETUP_SECONDS) -> GatePlace:
        """Make the environment and run the setup in the folder of the base's manifest; return where the gates run.

        Raises:
            GoldenError: the setup fails or takes too long, or there is none and the environment has the head's code installed.
        """
        if setup is None:
            self._refuse_installed_head()
            return GatePlace(manifest, self._environment)
        self._private.mkdir(exist_ok=True)
        prefix = self._private / "environment"
        python = _make_environment(prefix)
        told = {
            "PATH": os.pathsep.join([str(python.parent), self._environment.get("PATH", os.defpath)]),
            "VIRTUAL_ENV": str(prefix),
            HEAD_VARIABLE: str(self._checkout),
        }
        environment = {name: value for name, value in self._environment.items() if name != "PYTHONHOME"} | told
        self._run_setup(setup, manifest.parent, environment, longest_seconds)
        return GatePlace(manifest, environment, str(python))

    def _run_setup(
        self, setup: Sequence[str], folder: Path, environment: Mapping[str, str], longest_seconds: float
    ) -> None:
        try:
            process = ChildProcess([*setup], cwd=folder, environment=environment, log=self._private / "setup.log")
        except OSError as error:
            raise GoldenError(f"{self._setup_name} cannot be started: {setup[0]}: {error.strerror or error}") from None
        code = None
        try:
            code = process.wait(longest_seconds)
        finally:
            if code is None:
                process.end()
        if code != 0:
            gates.hide_in_log(process.log, self._passed)
            is_late = code is None
            told = (
                f"did not end within {longest_seconds:.0f} s, and was ended"
                if is_late
                else f"ended with exit code {code}"
            )
            raise BrokenDownError(f"{self._setup_name} {told}: {gates.find_cause(process.log, folder)}", process.log)

    def _refuse_installed_head(self) -> None:
        """Refuse an environment in which this very checkout is installed: the base would import the head's code."""
        found = find_sources_below(self._checkout)
        if found:
            raise GoldenError(
                f"the head's code is installed in this environment ({found[0]}), and the base would run it. "
                "Declare how the base is installed, such as `setup: python -m pip install --no-deps -e .`"
            )


def find_setup_seconds(projects: Iterable[GoldenProjectConfig]) -> float:
    """Return how long the setup may take: an hour, or the longest timeout of the projects if that is longer."""
    return max([SETUP_SECONDS, *(project.timeout for project in projects)])


def find_sources_below(checkout: Path) -> tuple[str, ...]:
    """Return the folders below a checkout from which something is installed in this interpreter's environment."""
    packages = [Path(folder) for folder in _list_packages()]
    found = (source for folder in packages for source in (*find_linked_sources(folder), *_find_installed(folder)))
    sources = map(os.path.realpath, found)
    return tuple(dict.fromkeys(source for source in sources if Path(source).is_relative_to(checkout)))


def _find_installed(packages: Path) -> Iterator[str]:
    """Yield the folders that distributions were installed from. Source: PEP 610, `direct_url.json`."""
    for file in packages.glob("*.dist-info/direct_url.json"):
        with suppress(OSError, ValueError, AttributeError):
            url = urlsplit(str(json.loads(file.read_bytes()).get("url")))
            if url.scheme == "file":
                yield unquote(url.path)


def _make_environment(prefix: Path) -> Path:
    """Make a virtual environment that sees this interpreter's packages after its own; return its Python."""
    builder = venv.EnvBuilder(symlinks=True)
    context = builder.ensure_directories(prefix)
    builder.create(prefix)
    python = Path(context.env_exe)
    packages = Path(site_packages_of(prefix))
    links = "".join(f"import site; site.addsitedir({folder!r})\n" for folder in _list_packages())
    (packages / _HEAD_LINK).write_text(links, encoding="utf-8")
    if importlib.util.find_spec("pip") is not None:
        for name in _PROGRAMS:
            # Without it the head's `pip` would be next on PATH, and change the head's environment.
            program = python.with_name(name)
            program.write_text(f'#!/bin/sh\nexec "{python}" -m pip "$@"\n', encoding="utf-8")
            program.chmod(_PROGRAM_MODE)
    return python


def site_packages_of(prefix: Path) -> str:
    """Return the folder in which a virtual environment of this interpreter keeps its packages."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return str(prefix / "lib" / version / "site-packages")


def _list_packages() -> list[str]:
    folders = [*site.getsitepackages(), *([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])]
    return [folder for folder in folders if Path(folder).is_dir()]


def find_missing_inputs(
    head_root: Path, base_manifest: Manifest, results: Iterable[GoldenProjectResult]
) -> dict[str, str]:
    """Return a sentence for each failed project that names the files ignored by git that the head has and the base lacks.

    Files that the project writes itself are not inputs. `head_root` is the head's workspace root; that of `base_manifest`
    is in the worktree.
    """
    failed = [result for result in results if result.is_regression]
    if not failed:
        return {}
    declared = {project.name: project for project in base_manifest.projects}
    roots = (head_root, base_manifest.workspace_root)
    head, base = (InputReader(root, read_checkout(root), declared.values()) for root in roots)
    missing: dict[str, str] = {}
    for result in failed:
        project = declared.get(result.name)
        if project is not None:
            there = base.read(project)
            paths = list(_list_missing(project, result, there, head.read(project)))
            if paths:
                missing[result.name] = (
                    f"what git ignores is not there ({name_some(paths, _MOST_NAMED)}): let `setup:` copy it from $GOLDEN_HEAD"
                )
    return missing


def _list_missing(
    project: GoldenProjectConfig, result: GoldenProjectResult, base: Mapping[str, object], head: Mapping[str, object]
) -> Iterator[str]:
    # Even if not all of the head's inputs were read, those that were read count as missing here.
    here = RunInputs.read({**head, "is_all": True}, None)
    folder = str(head["folder"])
    products = [*project.writes, *(output.path for output in project.outputs)]
    for change in compare_inputs(RunInputs.read(base, result.write_set.to_dict()), here):
        inside = change.name.removeprefix(folder)
        is_lacked = change.kind == "file" and change.how == "added"
        if is_lacked and not any(is_named(inside.rstrip("/"), pattern) for pattern in products):
            yield change.name
