"""Texts as bags of words over a filtered vocabulary."""

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

from finecomb.core.errors import FinecombError
from finecomb.core.tokens import words

_WORD = re.compile(r"(?<![\\@])\b[^\W\d_]{2,}\b")
_FORMULA_PREFIXES = ("xmath", "xcite")
NO_WORD = "has no word of the critic's vocabulary"
"""Why a document has no place in the latent space of a critic that reads bags of words."""


_UNSPACED = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")


def is_unspaced(text: str) -> bool:
    """Whether a text has letters of a script that is written without spaces between words, as Chinese and Thai."""
    return not text.isascii() and _UNSPACED.search(text) is not None


def unspaced_words(text: str) -> list[str]:
    """Words of such a text by our own rule for tokens: a character each, and words of other scripts as elsewhere.

    >>> unspaced_words("我们用 BERT 模型。")
    ['我', '们', '用', 'bert', '模', '型']
    """
    tokens = (text[start:end].lower() for start, end in words(text).tolist())
    return [token for token in tokens if token[0].isalpha() and (len(token) > 1 or _UNSPACED.match(token))]


def word_count(text: str) -> int:
    """How long a text is: words between spaces, or tokens where no spaces are written."""
    return len(unspaced_words(text)) if is_unspaced(text) else len(text.split())


def extract_terms(text: str) -> list[str]:
    """Runs of two or more letters in lower case, without LaTeX commands and the stand-ins for formulas.

    >>> extract_terms(r"The mass \\alpha of @xmath0 is 3 kg, isn't it?")
    ['the', 'mass', 'of', 'is', 'kg', 'isn', 'it']
    """
    if is_unspaced(text):
        return unspaced_words(text)
    letters = _WORD.findall(text.lower())
    return [word for word in letters if not word.startswith(_FORMULA_PREFIXES)] if "x" in text else letters


_PROSE = re.compile(r"""(?<![^\s("'’«„“‹¿¡])[^\W\d_]{2,}(?=[.,;:!?…)"'’»“”›]*(?:\s|$)|['’])""")


def prose_words(text: str) -> list[str]:
    """Words that stand by themselves: no pieces of options, paths, addresses and names of functions.

    >>> prose_words("L'option --all-files de ls(1) montre (aussi) /etc/passwd.")
    ['option', 'de', 'montre', 'aussi']
    """
    return unspaced_words(text) if is_unspaced(text) else _PROSE.findall(text.lower())


@dataclass(frozen=True)
class Vocabulary:
    """The words that count, in alphabetical order."""

    words: tuple[str, ...]
    read: Callable[[str], list[str]] = extract_terms
    """How a text is cut into words."""

    @classmethod
    def fit(
        cls,
        texts: Sequence[str],
        max_df: float = 0.5,
        min_count: int = 5,
        read: Callable[[str], list[str]] = extract_terms,
    ) -> Vocabulary:
        """Words that occur at least `least` times, and in at most the share `most` of the texts."""
        occurrences: Counter[str] = Counter()
        documents: Counter[str] = Counter()
        for text in texts:
            counts = Counter(read(text))
            occurrences.update(counts)
            documents.update(counts.keys())
        chosen = [w for w, count in occurrences.items() if count >= min_count and documents[w] <= max_df * len(texts)]
        if not chosen:
            raise FinecombError(
                f"of {len(occurrences):,} words in {len(texts):,} documents none occurs {min_count} times and "
                "in at most "
                f"{max_df:.0%} of them; give more documents, or other values of `least` and `most`"
            )
        return cls(tuple(sorted(chosen)), read)

    @functools.cached_property
    def index_by_word(self) -> dict[str, int]:
        """Where each word stands."""
        return {word: at for at, word in enumerate(self.words)}

    def word_indices(self, text: str) -> NDArray[np.int64]:
        """The words of a text by their places; other words are left out."""
        return np.array([at for word in self.read(text) if (at := self.index_by_word.get(word)) is not None], np.int64)

    def known_word_share(self, text: str) -> float:
        """The share of the words of a text that are in the vocabulary; NaN without words."""
        words_there = self.read(text)
        return float(np.mean([word in self.index_by_word for word in words_there])) if words_there else float("nan")

    def bags_of_words(self, texts: Iterable[str]) -> csr_array:
        """(texts, words): how often each word occurs in each text; other words are left out."""
        rows = [self.word_indices(text) for text in texts]
        starts = np.cumsum([0, *(len(row) for row in rows)])
        flat: NDArray[np.int64] = np.concatenate([np.zeros(0, np.int64), *rows])
        counts = csr_array((np.ones(len(flat)), flat, starts), shape=(len(rows), len(self.words)))
        counts.sum_duplicates()
        return counts
