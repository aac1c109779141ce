"""The redactor: return text and nested values without their secrets. It reads no file and no environment.

Some fields of mappings are secret because of the fields around them, whatever their names: the data of a Kubernetes
secret, the private half of a JSON web key, `passwords: {bob: ...}`, session cookies.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import lru_cache
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_golden.redaction import command_secrets, document_secrets, escapes
from pytest_golden.redaction.assignments import ASSIGNMENT_KEYWORDS, find_secret_part, holds_secret, redact_assignments
from pytest_golden.redaction.known_values import KnownValues, known_values
from pytest_golden.redaction.literals import is_worth_hiding
from pytest_golden.redaction.passed_values import is_word
from pytest_golden.redaction.rule import MARK, compile_late, is_nothing, is_reference, lower_each
from pytest_golden.redaction.tokens import TOKEN_KEYWORDS, redact_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


PRIVATE_MEMBERS = frozenset({"d", "p", "q", "dp", "dq", "qi", "k"})
"""The private members of a JSON web key (RFC 7518, section 6)."""
_GROUPS = frozenset({"passwords", "secrets", "apikeys"})
_SECRET_DATA = frozenset({"data", "stringData"})
_WHOLE_AUTH = "_auth"
_AUTH = frozenset({"auth", _WHOLE_AUTH})
_TELLING_NAMES = PRIVATE_MEMBERS | _AUTH | _SECRET_DATA
_SHORTEST_MEMBER = 16


def is_secret_field(mapping: Mapping[Any, Any], name: str, value: str) -> bool:
    """Tell whether a text in a mapping is secret because of the mapping's other fields."""
    if name in PRIVATE_MEMBERS:
        return "kty" in mapping and len(value) >= _SHORTEST_MEMBER
    return name == _WHOLE_AUTH or (name in _AUTH and document_secrets.is_basic_credential(value))


def find_inner_test(mapping: Mapping[Any, Any], name: str) -> Callable[[str, str], bool] | None:
    """Return the test for texts in the inner mapping of this name, or None if it needs none."""
    if command_secrets.is_cookie_name(name):
        return command_secrets.is_signing_in
    if _is_group(name) or (name in _SECRET_DATA and mapping.get("kind") == "Secret"):
        return _is_something
    return None


def _is_group(name: str) -> bool:
    return name.lower().replace("_", "") in _GROUPS


def _is_something(_: str, value: str) -> bool:
    return not (is_reference(value) or is_nothing(value) or value.startswith(("/", "./", "~/")))


_Value = TypeVar("_Value")
_MOST_ROUNDS = 6
_DEEPEST = 200
_WITHOUT_TEXT = frozenset({NoneType, bool, int, float})
# One search for all keywords pays off while the text is short.
_SHORT, _VERY_SHORT = 400, 60
_KEYWORDS = TOKEN_KEYWORDS.union(
    ASSIGNMENT_KEYWORDS, command_secrets.COMMAND_KEYWORDS, document_secrets.DOCUMENT_KEYWORDS, escapes.ESCAPE_KEYWORDS
)


def _drop_longer(keywords: Iterable[str]) -> list[str]:
    """Return the keywords without those that contain another one, which need no search of their own."""
    least: list[str] = []
    for keyword in sorted(keywords, key=lambda one: (len(one), one)):
        if not any(shorter in keyword for shorter in least):
            least.append(keyword)
    return least


_LEAST_KEYWORDS = _drop_longer(_KEYWORDS)
_RULES: tuple[Callable[[str, str, set[int]], str], ...] = (
    document_secrets.redact_documents,
    lambda text, lowered, _: command_secrets.redact_cookies(text, lowered),
    lambda text, lowered, _: redact_assignments(text, lowered),
    redact_tokens,
)
_ANY_KEYWORD = compile_late("|".join(map(re.escape, _LEAST_KEYWORDS)))


@dataclass(frozen=True, slots=True)
class Redactor:
    """Takes secrets out of everything that is kept or shown.

    `literals` are known secret values; those too short or too common to differ from ordinary text are ignored
    (see `literals.is_worth_hiding`). `extra` are further rules, text to text, applied before the built-in ones. `passed` are
    known values whose names promise no secret: a plain word among them is hidden only where it is a word of its own.
    """

    literals: tuple[str, ...] = field(default=(), repr=False)
    extra: tuple[Callable[[str], str], ...] = ()
    passed: tuple[str, ...] = field(default=(), repr=False)
    _known: KnownValues = field(init=False, repr=False, compare=False)
    _numbers: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        worth = dict.fromkeys(filter(is_worth_hiding, (*self.literals, *self.passed)))
        words = {value for value in self.passed if is_word(value)}.difference(self.literals)
        known = known_values(tuple(value for value in worth if value not in words), tuple(sorted(words & worth.keys())))
        object.__setattr__(self, "_known", known)
        object.__setattr__(self, "_numbers", frozenset(filter(str.isdigit, worth)))

    def text(self, text: str) -> str:
        """Return the text without its secrets; JSON text stays valid JSON.

        Colours stay, except in lines where a secret is only visible without them.
        """
        if not self.extra and _is_known_clean(text) and self._known.hide(text) == text:
            return text
        return self._redact_coloured(text) if escapes.may_hold_escape(text) else self._redact_plain(text)

    def known(self, text: str) -> str:
        """Return the text without known values and without secrets that are recognizable by form; names are not read.

        Use it for binary content: among random bytes, a name followed by "=" means nothing.
        """
        text = command_secrets.redact_strict_urls(self._known.hide(text))
        for rule in self.extra:
            # It could remove half of a binary file as a terminal title.
            text = text if rule is escapes.strip_escapes else rule(text)
        return redact_tokens(text, lower_each(text), set())

    def _redact_coloured(self, text: str) -> str:
        """Redact the text as it is, and then without its colours: a colour inside a name hides the name."""
        for _ in range(_MOST_ROUNDS):
            before = text
            text = self._redact_plain(before)
            plain = escapes.strip_all_colours(text)
            redacted = self._redact_plain(plain)
            if redacted != plain:
                text = escapes.merge_redacted(text, plain, redacted)
            if text == before:
                break
        return text

    def _redact_plain(self, text: str) -> str:
        redacted = text
        for rule in self.extra:
            redacted = rule(redacted)
        redacted = self._redact_until_settled(redacted)
        if redacted == text:
            return text
        kept = _keep_json_valid(text, redacted, self)
        return kept if kept == redacted else _keep_json_valid(kept, self._redact_until_settled(kept), self)

    def value(self, value: _Value) -> _Value:
        """Return the value without its secrets, of the same type: text, bytes, mappings, sequences and sets, nested.

        Anything else comes back as it is, but for whole numbers that are known values. What is nested deeper than 200 levels, or in itself, becomes the mark.
        """
        return self._redact_value(value, 0)  # type: ignore[no-any-return]

    def _redact_until_settled(self, text: str) -> str:
        """Run the rules until nothing changes: what one rule leaves can complete what another looks for."""
        absent: set[int] = set()
        for _ in range(_MOST_ROUNDS):
            before = text
            text = self._known.hide(before)
            text = text if _is_known_clean(text) else _apply_all(text, absent)
            if text == before:
                break
        return text

    def _redact_value(self, value: Any, depth: int) -> Any:
        if type(value) in _WITHOUT_TEXT:
            return MARK if type(value) is int and str(value) in self._numbers else value
        if isinstance(value, str):
            return value if type(value) is not str and hasattr(value, "value") else self.text(value)
        if isinstance(value, bytes | bytearray):
            return self._redact_bytes(value)
        if not isinstance(value, dict | list | tuple | set | frozenset):
            return value
        if depth > _DEEPEST:
            return MARK
        if isinstance(value, dict):
            return _same_mapping(value, self._redact_mapping(value, depth + 1))
        return _same_sequence(value, self._redact_items(value, depth + 1))

    def _redact_bytes(self, value: bytes | bytearray) -> bytes | bytearray:
        text = value.decode("utf-8", "surrogateescape")
        redacted = self.text(text)
        return value if redacted == text else type(value)(redacted.encode("utf-8", "surrogateescape"))

    def _redact_mapping(self, mapping: Mapping[Any, Any], depth: int) -> dict[Any, Any]:
        redacted: dict[Any, Any] = {}
        named = mapping.get("name", mapping.get("key"))
        for key, value in mapping.items():
            name = named if key == "value" and isinstance(named, str) else key
            new_key = self._redact_value(key, depth) if isinstance(key, str | bytes) else key
            while new_key != key and (new_key in redacted or new_key in mapping):
                new_key += "_" if isinstance(new_key, str) else b"_"
            redacted[new_key] = self._redact_field(mapping, name, value, depth)
        return redacted

    def _redact_field(self, mapping: Mapping[Any, Any], name: Any, value: Any, depth: int) -> Any:
        """Redact the value of a mapping's key; the other keys can make it secret."""
        if isinstance(name, str) and escapes.may_hold_escape(name):
            name = escapes.strip_all_colours(name)
        if type(name) is str and _is_ordinary_name(name):
            return self._redact_value(value, depth)
        if isinstance(name, str) and isinstance(value, str):
            if is_secret_field(mapping, name, value):
                return MARK
            if command_secrets.is_cookie_name(name):
                return self.text(command_secrets.redact_cookie_pairs(value))
        if isinstance(name, str) and isinstance(value, dict) and (is_secret := find_inner_test(mapping, name)):
            hidden = {
                key: MARK if isinstance(inner, str) and is_secret(str(key), inner) else inner
                for key, inner in value.items()
            }
            return self._redact_value(_same_mapping(value, hidden), depth)
        return self._redact_named(name, value, depth)

    def _redact_named(self, name: Any, value: Any, depth: int) -> Any:
        if not isinstance(name, str) or not holds_secret(name):
            return self._redact_value(value, depth)
        if isinstance(value, list | tuple) and depth <= _DEEPEST:
            return _same_sequence(value, [self._redact_named(name, item, depth + 1) for item in value])
        if isinstance(value, str):
            return self._redact_secret(name, value)
        if isinstance(value, bytes):
            return self._redact_secret(name, value.decode("utf-8", "surrogateescape")).encode(
                "utf-8", "surrogateescape"
            )
        return self._redact_value(value, depth)

    def _redact_secret(self, name: str, value: str) -> str:
        part = find_secret_part(name, value)
        return self.text(value) if part is None else value[: part[0]] + MARK + value[part[1] :]

    def _redact_items(self, items: Any, depth: int) -> list[Any]:
        """Redact each item; one that follows an option with a secret name (`["--password", "x"]`) is its value."""
        redacted = []
        option: Any = None
        if len(items) > 1 and all(isinstance(item, str) for item in items):
            items = _redact_words(items)
        for item in items:
            is_value = isinstance(option, str) and option.startswith("-") and isinstance(item, str) and item[:1] != "-"
            name = option if is_value else None
            redacted.append(self._redact_named(name, item, depth))
            option = item
        return redacted


def _redact_words(items: Any) -> Any:
    """Redact texts beside each other: a command line, or a name with its value."""
    words = list(items)
    if len(words) == 2 and document_secrets.is_pair_of_secret(*words):
        part = find_secret_part(*words) or (len(words[1]), len(words[1]))
        return [words[0], words[1][: part[0]] + MARK + words[1][part[1] :]]
    return command_secrets.redact_arguments(words)


def redact(value: _Value) -> _Value:
    """Return the value without the secrets that are recognizable by form or name; for known values use a `Redactor`."""
    return _DEFAULT.value(value)


def redact_known(text: str) -> str:
    """Return the text without secrets that are recognizable by form; names are not read."""
    return _DEFAULT.known(text)


def _apply_all(text: str, absent: set[int]) -> str:
    """Apply every built-in rule once; `absent` is that of `apply_rules`."""
    redacted = command_secrets.redact_commands(command_secrets.redact_urls(text))
    lowered = lower_each(redacted)
    for rules in _RULES:
        before = redacted
        redacted = rules(before, lowered, absent)
        if redacted != before:
            lowered = lower_each(redacted)
    return redacted


def _is_known_clean(text: str) -> bool:
    """Tell whether no built-in rule changes a text. Only short texts are checked; for others the answer is False."""
    if len(text) < _VERY_SHORT:
        return _is_clean(text)
    if len(text) >= _SHORT:
        return False
    lowered = lower_each(text)
    return not any(keyword in lowered for keyword in _LEAST_KEYWORDS)


# The names of fields and steps recur, and some contain a keyword: `execution_path`.
@lru_cache(maxsize=4_096)
def _is_clean(text: str) -> bool:
    if _ANY_KEYWORD.search(lower_each(text)) is None:
        return True
    return not escapes.may_hold_escape(text) and _apply_all(text, set()) == text


@lru_cache(maxsize=4_096)
def _is_ordinary_name(name: str) -> bool:
    """Tell whether a name in a mapping makes no value secret, whatever the mapping's other keys."""
    is_telling = name in _TELLING_NAMES or _is_group(name) or command_secrets.is_cookie_name(name)
    return not (is_telling or holds_secret(name))


def _same_mapping(value: dict[Any, Any], redacted: dict[Any, Any]) -> Any:
    if type(value) is dict:
        return redacted
    copy = value.copy()
    if type(copy) is not type(value):
        return type(value)(redacted)
    # A defaultdict keeps its factory only when it is copied.
    copy.clear()
    copy.update(redacted)
    return copy


def _same_sequence(value: Any, redacted: list[Any]) -> Any:
    if hasattr(value, "_fields"):
        return type(value)(*redacted)
    return type(value)(redacted)


def _keep_json_valid(before: str, after: str, redactor: Redactor) -> str:
    """Return `after`, or if only `before` is valid JSON, `before` redacted value by value.

    JSON Lines are checked line by line.
    """
    if before.lstrip()[:1] not in {"{", "[", '"'}:
        return after
    if _is_json(before):
        if _is_json(after):
            return after
        return json.dumps(redactor.value(json.loads(before)), ensure_ascii=before.isascii())
    old_lines, new_lines = before.split("\n"), after.split("\n")
    if len(old_lines) < 2 or len(old_lines) != len(new_lines):
        return after
    return "\n".join(
        new if new == old else _keep_json_valid(old, new, redactor)
        for old, new in zip(old_lines, new_lines, strict=True)
    )


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


_DEFAULT = Redactor()
