"""The door: declares options and hooks. The rest comes in when `--golden` is given; until then it costs nothing."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_golden import hookspecs, settings

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Literal

# The arguments, and the words of PYTEST_ADDOPTS, with which the session is started again.
_AGAIN = pytest.StashKey[tuple[list[str], list[str]]]()
# With these options pytest only shows something and runs nothing.
_SHOWS_ONLY = ("help", "showfixtures", "show_fixtures_per_test", "cacheshow", "setuponly", "setupplan")
_OWN_MARKERS = pytest.StashKey[tuple[str, ...]]()


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare every option of `settings.py`, and the hooks, which a conftest may implement without `--golden` too."""
    pluginmanager.add_hookspecs(hookspecs)
    group = parser.getgroup("golden", "golden projects")
    for setting in settings.SETTINGS:
        group.addoption(setting.flag, **setting.arguments())
        if setting.has_ini:
            kind: Literal["bool", "string"] = "bool" if setting.kind == "switch" else "string"
            parser.addini(setting.key, setting.described(), type=kind, default=None)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, parser: pytest.Parser, args: list[str]) -> None:
    """Note the configured markers. If an option of ours has moved pytest's rootdir, have the session started again.

    pytest looks for the rootdir and the ini file before it knows the options of plug-ins. So it takes an existing PATH
    in `--golden-json PATH` for something to test (pytest issue 8846). No hook runs earlier, and none can change it
    later. Written as one word, `--golden-json=PATH`, it is not taken for a path. So these arguments are dropped, and
    the session is started again by `pytest_cmdline_main` below.
    """
    # The markers of the configuration file, before plug-ins add theirs: tags may share only these.
    early_config.stash[_OWN_MARKERS] = tuple(early_config.getini("markers"))
    typed, values = settings.join_values([str(word) for word in early_config.invocation_params.args])
    added, more = settings.join_values(shlex.split(os.environ.get("PYTEST_ADDOPTS", "")))
    values += more
    if not values or _has_own_rootdir(early_config, parser, [*added, *typed], values):
        return
    early_config.stash[_AGAIN] = typed, added
    # Other plug-ins act on these, and a conftest of the wrong rootdir must not run.
    args[:] = [str(early_config.invocation_params.dir)]
    early_config.known_args_namespace = parser.parse_known_args([*args, "--noconftest", f"--confcutdir={args[0]}"])


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Refuse a gate that the configuration keeps from running anything.

    Start the session again if needed, with each of our options and its value as one word.
    """
    # A `--help` in addopts ends the parsing before a typed `--golden` is reached.
    if config.option.golden or "--golden" in config.invocation_params.args:
        try:
            settings.refuse_configured_silence(config.getini("addopts"))
        except ValueError as error:
            raise pytest.UsageError(str(error)) from None
    if _AGAIN not in config.stash:
        return None
    typed, added = config.stash[_AGAIN]
    with pytest.MonkeyPatch.context() as patch:
        if added:
            patch.setenv("PYTEST_ADDOPTS", shlex.join(added))
        return pytest.main(typed, config.invocation_params.plugins)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Bring in the session when `--golden` is given and something may run."""
    if any(getattr(config.option, name, None) for name in _SHOWS_ONLY):
        return
    if config.option.golden:
        from pytest_golden.values.loading import loading

        own_markers: tuple[str, ...] = config.stash.get(_OWN_MARKERS, ())
        with loading():
            from pytest_golden.session.start import start

            start(config, own_markers)
        return
    typed = settings.find_typed_flag([str(argument) for argument in config.invocation_params.args])
    if typed is not None:
        message = f"{typed} has no effect without --golden: add --golden, or leave {typed} out."
        raise pytest.UsageError(message)


def _has_own_rootdir(config: pytest.Config, parser: pytest.Parser, words: list[str], values: Iterable[str]) -> bool:
    """Tell whether rootdir and ini file would be the same without these values. When in doubt, return False.

    If the ini file is in or above the common folder of all tested paths, values below that folder change nothing.
    https://docs.pytest.org/en/stable/reference/customize.html#finding-the-rootdir
    """
    here = config.invocation_params.dir
    misled = _existing_folders(here, values)
    if not misled:
        return True
    given = parser.parse_known_args(words)
    if given.inifilename and (here / given.inifilename).is_file():
        return True
    tested = _existing_folders(here, given.file_or_dir) or [str(here)]
    try:
        top = Path(os.path.commonpath(tested))
    except ValueError:  # On several drives.
        return False
    known = config.inipath is not None and top.is_relative_to(config.inipath.parent)
    return known and all(Path(folder).is_relative_to(top) for folder in misled)


def _existing_folders(here: Path, words: Iterable[str]) -> list[str]:
    """Return the folders of the words that name existing paths. No word is an error."""
    paths = (os.path.abspath(here / word.partition("::")[0]) for word in words)  # noqa: PTH100 - links stay
    found = [path for path in paths if os.path.exists(path)]  # noqa: PTH110 - pathlib's can raise
    return [path if os.path.isdir(path) else os.path.dirname(path) for path in found]  # noqa: PTH112, PTH120
