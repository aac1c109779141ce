"""What `golden doctor` finds of the language model: nothing where none is named. It is not asked, since that may cost money."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.cli.findings import Finding, State
from pytest_golden.errors import SettingsError
from pytest_golden.learning.language_model.client import LanguageModel

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def examine_model(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Look at the settings of the model that words lessons; the key is told of, never shown."""
    try:
        model = LanguageModel.from_env(environ)
    except SettingsError as error:
        yield Finding("model", State.LIMITED, f"not used: {error}", "the gate runs without it")
        return
    if model is None:
        return
    endpoint = model.endpoint
    told = f"{endpoint}, {'no key' if endpoint.api_key is None else 'with a key'}; not asked now"
    if endpoint.bares_its_key:
        yield Finding("model", State.LIMITED, f"{told}; the key goes there unencrypted", "give an https address")
    else:
        yield Finding("model", State.GOOD, told)
