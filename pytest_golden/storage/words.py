"""Words as the full-text index has them. Pure.

FTS5's tokenizer takes a run of Chinese, Japanese or Korean letters for one word. Such runs are cut into overlapping
pairs, so that a part of one is found too.
"""

from __future__ import annotations

import re
import unicodedata

# Letters that are written without blanks between words: kana, bopomofo, Han, Hangul.
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
    """Write a text for the index: runs without blanks as pairs of neighbours, and the last letter alone."""
    return text if text.isascii() else _RUN.sub(lambda run: f" {' '.join(_cut(run[0], with_last=True))} ", text)


def find_words(text: str, *, keep_all: bool = False) -> list[str]:
    """Find the words of a query, lower-cased and each once: no stop words as long as there are others, forty at most.

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
    return f'"{word}"*' if begins_pairs(word) else f'"{word}"'


def begins_pairs(word: str) -> bool:
    """Tell whether a word of a query is a letter alone of a run without blanks: pairs that begin with it are meant."""
    return len(word) == 1 and _RUN.match(word) is not None


def fold(word: str) -> str:
    """Give a word without case and accents, as FTS5's tokenizer does with `remove_diacritics 2`, for other indexes."""
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
