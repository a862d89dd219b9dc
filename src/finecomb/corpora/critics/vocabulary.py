"""Bags of words over a filtered vocabulary."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import regex
from numpy.typing import NDArray
from scipy.sparse import csr_array

from finecomb.core.errors import FinecombError, param
from finecomb.core.tokens import word_offsets

_TERM_PATTERN = re.compile(r"(?<![\\@])\b[^\W\d_]{2,}\b")
_FORMULA_PREFIXES = ("xmath", "xcite")
NO_KNOWN_WORD_REASON = "has no word of the critic's vocabulary"
"""Reason why a critic based on bags of words cannot project a document."""


_UNSPACED_SCRIPT_PATTERN = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")


def has_unspaced_script(text: str) -> bool:
    """Check whether a text has letters of a script written without spaces between words, such as Chinese or Thai."""
    return not text.isascii() and _UNSPACED_SCRIPT_PATTERN.search(text) is not None


def split_unspaced_text(text: str) -> list[str]:
    """Split a text in a script without spaces into one token per character; words in other scripts stay whole.

    >>> split_unspaced_text("我们用 BERT 模型。")
    ['我', '们', '用', 'bert', '模', '型']
    """
    tokens = (text[start:end].lower() for start, end in word_offsets(text).tolist())
    return [
        token for token in tokens if token[0].isalpha() and (len(token) > 1 or _UNSPACED_SCRIPT_PATTERN.match(token))
    ]


def word_count(text: str) -> int:
    """Return the length of a text in whitespace-separated words, or in tokens for scripts without spaces."""
    return len(split_unspaced_text(text)) if has_unspaced_script(text) else len(text.split())


def extract_terms(text: str) -> list[str]:
    """Return runs of two or more letters in lower case, without LaTeX commands and formula placeholders.

    >>> extract_terms(r"The mass \\alpha of @xmath0 is 3 kg, isn't it?")
    ['the', 'mass', 'of', 'is', 'kg', 'isn', 'it']
    """
    if has_unspaced_script(text):
        return split_unspaced_text(text)
    letters = _TERM_PATTERN.findall(text.lower())
    return [word for word in letters if not word.startswith(_FORMULA_PREFIXES)] if "x" in text else letters


_PROSE_WORD_PATTERN = re.compile(r"""(?<![^\s("'’«„“‹¿¡])[^\W\d_]{2,}(?=[.,;:!?…)"'’»“”›]*(?:\s|$)|['’])""")


def prose_words(text: str) -> list[str]:
    """Return the words of a text that are not part of an option, path, address or function name.

    >>> prose_words("L'option --all-files de ls(1) montre (aussi) /etc/passwd.")
    ['option', 'de', 'montre', 'aussi']
    """
    return split_unspaced_text(text) if has_unspaced_script(text) else _PROSE_WORD_PATTERN.findall(text.lower())


@dataclass(frozen=True)
class Vocabulary:
    """Vocabulary of a model, in alphabetical order."""

    words: tuple[str, ...]
    read: Callable[[str], list[str]] = extract_terms
    """Function that splits a text into words."""

    @classmethod
    def fit(
        cls,
        texts: Sequence[str],
        max_df: float = 0.5,
        min_count: int = 5,
        read: Callable[[str], list[str]] = extract_terms,
    ) -> Vocabulary:
        """Select words that occur at least `min_count` times, in at most the share `max_df` of the texts."""
        occurrences: Counter[str] = Counter()
        documents: Counter[str] = Counter()
        for text in texts:
            counts = Counter(read(text))
            occurrences.update(counts)
            documents.update(counts.keys())
        chosen = [w for w, count in occurrences.items() if count >= min_count and documents[w] <= max_df * len(texts)]
        if not chosen:
            raise FinecombError(
                f"none of {len(occurrences):,} words in {len(texts):,} documents occurs at least {min_count} times and "
                f"in at most {max_df:.0%} of the documents; use more documents, lower {param('set_', 'least=N')} or "
                f"raise {param('set_', 'most=SHARE')}"
            )
        return cls(tuple(sorted(chosen)), read)

    @functools.cached_property
    def index_by_word(self) -> dict[str, int]:
        """Index of each word."""
        return {word: index for index, word in enumerate(self.words)}

    def word_indices(self, text: str) -> NDArray[np.int64]:
        """Return the vocabulary indices of a text's words, without unknown words."""
        return np.array(
            [index for word in self.read(text) if (index := self.index_by_word.get(word)) is not None], np.int64
        )

    def known_word_share(self, text: str) -> float:
        """Return the share of a text's words that are in the vocabulary; NaN if the text has no words."""
        words_there = self.read(text)
        return float(np.mean([word in self.index_by_word for word in words_there])) if words_there else float("nan")

    def bags_of_words(self, texts: Iterable[str]) -> csr_array:
        """Return word counts per text, shape (texts, words), without unknown words."""
        rows = [self.word_indices(text) for text in texts]
        starts = np.cumsum([0, *(len(row) for row in rows)])
        flat: NDArray[np.int64] = np.concatenate([np.zeros(0, np.int64), *rows])
        counts = csr_array((np.ones(len(flat)), flat, starts), shape=(len(rows), len(self.words)))
        counts.sum_duplicates()
        return counts
