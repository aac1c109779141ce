"""Values as the columns of every database keep them: text, JSON, timestamps, namespaces, and words for the index."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

if TYPE_CHECKING:
    from collections.abc import Iterable


# A pair of surrogates is one character. No database accepts a lone one or NUL. Other escapes stay as they are.
_ESCAPES = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u(?P<lone>[dD][89a-fA-F][0-9a-fA-F]{2})|(?P<nul>u0000)|.)"
)


def storable(text: str) -> str:
    r"""Write what a database cannot keep as an escape: NUL as `\x00`, a lone surrogate as `\udc80`."""
    if text.isascii():
        return text.replace("\0", "\\x00") if "\0" in text else text
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode("utf-8")


def storable_json(text: str) -> str:
    r"""Do the same in the texts and keys of a JSON document: a lone `\ud83d` becomes `\\ud83d`."""
    if "\\u" not in text or not ("\\ud" in text or "\\u0000" in text or "\\uD" in text):
        return text
    return _ESCAPES.sub(_write_twice, text)


def storable_parameters(parameters: Any) -> Any:
    """Make all text in a statement's parameters storable."""
    values = parameters.values() if isinstance(parameters, Mapping) else parameters
    for value in values:
        if isinstance(value, str) and (not value.isascii() or "\0" in value):
            break
    else:
        return parameters
    if isinstance(parameters, Mapping):
        return {name: storable(value) if isinstance(value, str) else value for name, value in parameters.items()}
    assert isinstance(parameters, Sequence)
    return [storable(value) if isinstance(value, str) else value for value in parameters]


def _write_twice(found: re.Match[str]) -> str:
    if found["lone"] is not None:
        return rf"\\u{found['lone'].lower()}"
    return found[0] if found["nul"] is None else r"\\x00"


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def to_ms(timestamp: datetime) -> int:
    """Return the milliseconds since the epoch of an aware timestamp, without fractions."""
    return (timestamp - _EPOCH) // _MILLISECOND


def from_ms(milliseconds: int) -> datetime:
    """Return the aware UTC timestamp of milliseconds since the epoch."""
    return _EPOCH + milliseconds * _MILLISECOND


# The character that follows the slash: no text that begins with "plans/" sorts at or after "plans0".
_AFTER_SLASH = "0"


def write_namespace(elements: Iterable[str]) -> str:
    """Write a namespace as text that sorts by whole elements, so that all below one is a range of an index.

    An element is percent-encoded and ends with a slash: `("plans", "etl/daily")` is `plans/etl%2Fdaily/`.
    """
    return "".join([f"{quote(storable(element), safe='')}/" for element in elements])


def read_namespace(text: str) -> tuple[str, ...]:
    """Read what `write_namespace` wrote."""
    return tuple(unquote(element) for element in text.split("/")[:-1])


def namespace_range(prefix: Iterable[str]) -> tuple[str, str] | None:
    """Return the range of the namespaces that begin with these whole elements: its first text, and the first one after it.

    None stands for all namespaces: the prefix is empty.
    """
    low = write_namespace(prefix)
    return (low, low[:-1] + _AFTER_SLASH) if low else None


# Letters of scripts without blanks between words: kana, bopomofo, Han, Hangul.
_RUN = re.compile(
    "[\u3005\u3007\u3040-\u30ff\u3100-\u312f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U0003ffff]+"
)
# Letters and digits, with the accents that may follow them; like the tokenizer, an underscore separates.
_WORD = re.compile("(?:[^\\W_][\u0300-\u036f]*)+")
_ACCENT = re.compile("[\u0300-\u036f]")
_MOST_WORDS = 40
STOP_WORDS = frozenset(
    {
        *("a", "an", "and", "are", "as", "at", "be", "but", "by", "did", "do", "for", "from", "had", "has", "have"),
        *("how", "i", "if", "in", "into", "is", "it", "its", "no", "not", "of", "on", "or", "s", "such", "t", "that"),
        *("the", "their", "then", "there", "these", "they", "this", "to", "was", "we", "were", "what", "when"),
        *("where", "which", "why", "will", "with", "you"),
    }
)


def separate(text: str) -> str:
    """Write a text for the index: runs of letters without blanks become pairs of neighbours, and the last letter alone.

    FTS5's tokenizer takes a run of Chinese, Japanese or Korean letters for one word; pairs let a part of it be found.
    """
    return text if text.isascii() else _RUN.sub(lambda run: f" {' '.join(_cut(run[0], with_last=True))} ", text)


def find_words(text: str, *, keep_all: bool = False) -> list[str]:
    """Find the words of a query, in lower case and without repeats. Stop words count only if there are no others; forty at most.

    `keep_all` gives all words of a text as they stand.
    """
    spaced = _RUN.sub(lambda run: f" {' '.join(_cut(run[0], with_last=len(run[0]) == 1))} ", text)
    words = _WORD.findall(spaced)
    if keep_all:
        return words
    each = list(dict.fromkeys(map(str.lower, words)))
    return [word for word in each if word not in STOP_WORDS][:_MOST_WORDS] or each[:_MOST_WORDS]


def write_term(word: str) -> str:
    """Write a word in FTS5's language."""
    return f'"{word.removesuffix("*")}"*' if is_beginning(word) else f'"{word}"'


def is_beginning(word: str) -> bool:
    """Tell whether a word of a query stands for all that begin with it.

    Those are words with `*` at their end, and a single letter of a script without blanks, which matches the pairs that begin with it.
    """
    return word.endswith("*") or (len(word) == 1 and _RUN.match(word) is not None)


def fold(word: str) -> str:
    """Return a word without case and accents, as FTS5's tokenizer does with `remove_diacritics 2`, for other indexes."""
    return word.lower() if word.isascii() else _ACCENT.sub("", "".join(map(_fold_letter, word)))


def _fold_letter(letter: str) -> str:
    folded = letter.casefold()
    # A letter that would become two, such as the sharp s, stays one.
    small = folded if len(folded) == 1 else letter.lower()
    base = unicodedata.normalize("NFD", small)[0]
    return base if base.isascii() else small


def _cut(run: str, *, with_last: bool) -> list[str]:
    pairs = [run[start : start + 2] for start in range(len(run) - 1)]
    return [*pairs, run[-1]] if with_last else pairs
