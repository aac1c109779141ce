"""Where a language model is and how it is spoken to: read from words, refused when they make no sense. Nothing is sent here."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pytest_golden.errors import SettingsError
from pytest_golden.redaction.redactor import Redactor
from pytest_golden.settings import MODEL_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from urllib.parse import SplitResult

BASE_URL_VARIABLE, KEY_VARIABLE = "GOLDEN_LLM_BASE_URL", "GOLDEN_LLM_API_KEY"
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class Provider(StrEnum):
    """Whose protocol a model speaks."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"


_DEFAULT_URLS = {Provider.OPENAI: "https://api.openai.com/v1", Provider.ANTHROPIC: "https://api.anthropic.com"}
_PATHS = {Provider.OPENAI: "/chat/completions", Provider.ANTHROPIC: "/v1/messages"}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model at an address, and the key for it, which no representation shows."""

    provider: Provider
    name: str
    base_url: str
    api_key: str | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """The address that prompts are posted to."""
        return self.base_url + _PATHS[self.provider]

    @property
    def is_default(self) -> bool:
        """Whether it is the provider's own service, which wants a key."""
        return self.base_url == _DEFAULT_URLS[self.provider]

    @property
    def bares_its_key(self) -> bool:
        """Whether the key goes over a network unencrypted."""
        return self.api_key is not None and self.base_url.startswith("http:") and find_loopback(self.base_url) is None

    def make_redactor(self, given: Redactor | None) -> Redactor:
        """Return a redactor that hides the key, too."""
        known = given or Redactor()
        return known if self.api_key is None else Redactor((self.api_key, *known.literals), known.extra)

    def __str__(self) -> str:
        """Return `provider:name at address`, safe to show."""
        return f"{self.provider}:{self.name} at {self.base_url}"


def find_loopback(url: str) -> str | None:
    """Return the host of an address when it is this machine."""
    host = urlsplit(url).hostname
    return host if host in _LOOPBACK else None


def make_endpoint(model: str, base_url: str | None = None, api_key: str | None = None) -> Endpoint:
    """Read the words of `LanguageModel(...)`.

    Raises:
        SettingsError: the model is not `openai:NAME` or `anthropic:NAME`, or address or key cannot be used; the key is not
            shown.
    """
    word, _, name = model.strip().partition(":")
    if word.lower() not in list(Provider) or not name.strip() or not name.isprintable():
        raise SettingsError(
            f"{MODEL_VARIABLE} {model!r:.100} names no language model: write openai:NAME or anthropic:NAME."
        )
    provider = Provider(word.lower())
    url = _read_base_url(base_url, provider) if base_url and base_url.strip() else _DEFAULT_URLS[provider]
    return Endpoint(provider, name.strip(), url, _read_key(api_key))


def find_endpoint(environ: Mapping[str, str]) -> Endpoint | None:
    """Read the three variables; None when GOLDEN_LLM_MODEL is not set or empty.

    Raises:
        SettingsError: as `make_endpoint`; or the provider's own service is meant and there is no key.
    """
    model = environ.get(MODEL_VARIABLE, "").strip()
    if not model:
        return None
    endpoint = make_endpoint(model, environ.get(BASE_URL_VARIABLE), environ.get(KEY_VARIABLE))
    if endpoint.is_default and endpoint.api_key is None:
        message = (
            f"{MODEL_VARIABLE} is {model!r}, and {endpoint.base_url} wants a key: set {KEY_VARIABLE}, "
            f"or {BASE_URL_VARIABLE} for a model elsewhere."
        )
        raise SettingsError(message)
    return endpoint


def _read_base_url(given: str, provider: Provider) -> str:
    url = given.strip().rstrip("/")
    address = _split(url)
    if address is None or address.scheme not in {"http", "https"} or not address.hostname:
        raise SettingsError(f"{BASE_URL_VARIABLE} must be an address like https://HOST/v1.")
    if address.username is not None or address.query or address.fragment:
        # Not shown: whatever stands there may be a secret.
        raise SettingsError(
            f"{BASE_URL_VARIABLE} must have no user, query or fragment: a key goes into {KEY_VARIABLE}."
        )
    path = _PATHS[provider]
    if url.endswith(path):
        url = url.removesuffix(path)
    return url.removesuffix("/v1") if provider is Provider.ANTHROPIC else url


def _split(url: str) -> SplitResult | None:
    try:
        address = urlsplit(url)
        _ = address.port
    except ValueError:
        return None
    return address if url.isascii() and url.isprintable() and " " not in url else None


def _read_key(given: str | None) -> str | None:
    key = (given or "").strip()
    if not key:
        return None
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise SettingsError(f"{KEY_VARIABLE} holds a character that no key has: copy it again.")
    return key
