"""GitHub's expressions, as far as our action uses them: contexts, literals, `==`, `!=`, `!`, `&&`, `||`, brackets and `contains`."""

from __future__ import annotations

import re
from typing import Any

_TOKEN = re.compile(r"\s*('(?:[^']|'')*'|&&|\|\||==|!=|[!(),]|[\w.*-]+)")


def fill(text: str, contexts: dict[str, Any]) -> str:
    """Replace each `${{ ... }}` by its value as text."""
    return re.sub(r"\$\{\{(.*?)\}\}", lambda found: as_text(evaluate(found[1], contexts)), text)


def evaluate(expression: str, contexts: dict[str, Any]) -> Any:
    tokens = _TOKEN.findall(expression)
    assert "".join(tokens) == "".join(re.findall(r"'(?:[^']|'')*'|\S", expression)), expression
    reader = _Reader(tokens, contexts)
    value = reader.any_of()
    assert reader.tokens == [], expression
    return value


def as_text(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


class _Reader:
    def __init__(self, tokens: list[str], contexts: dict[str, Any]) -> None:
        self.tokens = tokens
        self._contexts = contexts

    def any_of(self) -> Any:
        value = self.all_of()
        while self.tokens[:1] == ["||"]:
            del self.tokens[0]
            other = self.all_of()
            value = value or other
        return value

    def all_of(self) -> Any:
        value = self.compared()
        while self.tokens[:1] == ["&&"]:
            del self.tokens[0]
            other = self.compared()
            value = other if value else value
        return value

    def compared(self) -> Any:
        value = self.one()
        if self.tokens[:1] in (["=="], ["!="]):
            operator = self.tokens.pop(0)
            return (as_text(value) == as_text(self.one())) is (operator == "==")
        return value

    def one(self) -> Any:
        token = self.tokens.pop(0)
        if token.startswith("'"):
            return token[1:-1].replace("''", "'")
        if token == "!":
            return not self.one()
        if token == "(":
            value = self.any_of()
            assert self.tokens.pop(0) == ")"
            return value
        if token == "contains":
            assert self.tokens.pop(0) == "("
            many = self.any_of()
            assert self.tokens.pop(0) == ","
            wanted = self.any_of()
            assert self.tokens.pop(0) == ")"
            return wanted in (many or ())
        return self._look_up(token.split("."))

    def _look_up(self, names: list[str]) -> Any:
        assert names[0] in self._contexts, names
        value: Any = self._contexts
        for place, name in enumerate(names):
            if name == "*":
                return [item.get(names[place + 1]) for item in value or ()]
            value = value.get(name) if isinstance(value, dict) else None
        return value
