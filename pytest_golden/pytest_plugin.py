"""The door: declares options and hooks. The rest comes in when `--golden` is given; until then it costs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_golden import hookspecs, settings

if TYPE_CHECKING:
    from typing import Literal


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare every option of `settings.py`, and the hooks, which a conftest may implement without `--golden` too."""
    pluginmanager.add_hookspecs(hookspecs)
    group = parser.getgroup("golden", "golden projects")
    for setting in settings.SETTINGS:
        group.addoption(setting.flag, **setting.arguments())
        if setting.has_ini:
            kind: Literal["bool", "string"] = "bool" if setting.kind == "switch" else "string"
            parser.addini(setting.key, setting.described(), type=kind, default=None)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Bring in the session when `--golden` is given."""
    if config.option.help:
        return
    if config.option.golden:
        from pytest_golden.session.start import start

        start(config)
        return
    typed = settings.find_typed_flag([str(argument) for argument in config.invocation_params.args])
    if typed is not None:
        message = f"{typed} has no effect without --golden: add --golden, or leave {typed} out."
        raise pytest.UsageError(message)
