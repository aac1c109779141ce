"""Fields of mappings that are secret by what stands around them, whatever their own names say.

They are the data of a Kubernetes secret, the private half of a JSON web key, `passwords: {bob: ...}`, cookies that sign
somebody in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_golden.redaction.cookies import is_cookie_name, is_signing_in
from pytest_golden.redaction.documents import is_basic_credential
from pytest_golden.redaction.references import is_nothing, is_reference

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PRIVATE_MEMBERS = frozenset({"d", "p", "q", "dp", "dq", "qi", "k"})
"""The private members of a JSON web key (RFC 7518, section 6)."""
_GROUPS = frozenset({"passwords", "secrets", "apikeys"})
_SECRET_DATA = frozenset({"data", "stringData"})
_WHOLE_AUTH = "_auth"
_AUTH = frozenset({"auth", _WHOLE_AUTH})
_SHORTEST_MEMBER = 16


def is_telling_name(name: str) -> bool:
    """Tell whether `is_secret_field` or `find_inner_test` asks for more than this name, cookies aside."""
    return name in PRIVATE_MEMBERS or name in _AUTH or name in _SECRET_DATA or _is_group(name)


def is_secret_field(mapping: Mapping[Any, Any], name: str, value: str) -> bool:
    """Tell whether a text in a mapping is secret, whatever its name says by itself."""
    if name in PRIVATE_MEMBERS:
        return "kty" in mapping and len(value) >= _SHORTEST_MEMBER
    return name == _WHOLE_AUTH or (name in _AUTH and is_basic_credential(value))


def find_inner_test(mapping: Mapping[Any, Any], name: str) -> Callable[[str, str], bool] | None:
    """Give what tells whether a text in the mapping of this name is secret, or None when nothing is to be asked."""
    if is_cookie_name(name):
        return is_signing_in
    if _is_group(name) or (name in _SECRET_DATA and mapping.get("kind") == "Secret"):
        return _is_something
    return None


def _is_group(name: str) -> bool:
    return name.lower().replace("_", "") in _GROUPS


def _is_something(_: str, value: str) -> bool:
    return not (is_reference(value) or is_nothing(value) or value.startswith(("/", "./", "~/")))
