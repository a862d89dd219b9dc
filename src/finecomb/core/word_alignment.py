"""Alignment of a quote's words with the most similar words of a text."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import process
from rapidfuzz.distance import OSA

from finecomb.core.text_folding import Range, fold_text, normalise_text

Costs = NDArray[np.float64]
_MAX_CANDIDATES = 64
_MAX_DIFFERENT_SHARE = 0.34  # maximum share of a quote's words that may differ
_PUNCTUATION_COST, _ABSENT_COST, _CHANGED_COST, _SKIPPED_COST = (
    0.15,
    1.1,
    1.2,
    0.7,
)  # alignment costs; an ordinary word costs 1


@dataclass(frozen=True, slots=True)
class WordList:
    """Words of a text as written and in normal form, each with the cost of omitting it from an alignment."""

    written: tuple[str, ...]
    plain: tuple[str, ...]
    offsets: tuple[Range, ...]
    weights: Costs

    @classmethod
    def from_text(cls, text: str) -> WordList:
        """Split `text` into words and punctuation."""
        matches = [(match.group(), match.span()) for match in _TOKEN.finditer(text)]
        simple = tuple(_normalise_word(word) for word, _ in matches)
        weights = np.array([1.0 if word[:1].isalnum() else _PUNCTUATION_COST for word in simple])
        return cls(tuple(word for word, _ in matches), simple, tuple(span for _, span in matches), weights)


_TOKEN = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")


@functools.lru_cache(maxsize=1 << 14)
def _normalise_word(word: str) -> str:
    return normalise_text(fold_text(word))


@dataclass(frozen=True, slots=True)
class Alignment:
    """An alignment of a quote's words with a range of the text's words."""

    first: int
    last: int
    cost: float
    """Share of the quote that differs."""
    pairs: tuple[tuple[int | None, int | None], ...]
    """Pairs of word indices, in the quote and in the text; None if a word has no counterpart."""


def find_near_alignments(quote: WordList, text: WordList, max_share: float = _MAX_DIFFERENT_SHARE) -> list[Alignment]:
    """Return the best alignments of a quote with ranges of the text, without those that overlap a better one."""
    # Cost of replacing each word of the quote with each word of the text; misspellings cost less
    vocabulary = list(dict.fromkeys(text.plain))
    alike = process.cdist(quote.plain, vocabulary, scorer=OSA.normalized_similarity, dtype=np.float32)
    number = {word: index for index, word in enumerate(vocabulary)}
    alike = alike[:, [number[word] for word in text.plain]].astype(np.float64)
    heavy = np.maximum(quote.weights[:, None], text.weights[None])
    changes = np.where(alike == 1, 0.0, heavy * np.where(alike >= 0.5, 1.1 - alike, _CHANGED_COST))
    skips = np.concatenate([[0.0], np.cumsum(_SKIPPED_COST * text.weights)])
    table = np.zeros((len(quote.plain) + 1, len(text.plain) + 1))
    for row, (weight, change) in enumerate(zip(quote.weights, changes, strict=True), 1):
        best = table[row - 1] + _ABSENT_COST * weight
        best[1:] = np.minimum(best[1:], table[row - 1, :-1] + change)
        table[row] = np.minimum.accumulate(best - skips) + skips
    limit = max_share * quote.weights.sum()
    costs = table[-1, 1:]
    padded = np.pad(costs, 1, constant_values=np.inf)
    low = np.flatnonzero((costs <= (limit + 1e-9)) & (costs <= padded[:-2]) & (costs <= padded[2:]))
    ends = [int(index) for index in low[np.argsort(costs[low], kind="stable")]]
    alignments: list[Alignment] = []
    for end in ends[:_MAX_CANDIDATES]:
        traced = _trace_alignment(table, changes, quote, text, end)
        if traced and not any(
            traced.first <= alignment.last and alignment.first <= traced.last for alignment in alignments
        ):
            alignments.append(traced)
    return alignments


def _trace_alignment(table: Costs, changes: Costs, quote: WordList, text: WordList, end: int) -> Alignment | None:
    """Trace back the alignment that ends at a word of the text."""
    row, column = len(quote.plain), end + 1
    pairs: list[tuple[int | None, int | None]] = []
    while row:
        max_cost = table[row, column] + 1e-9
        if column and max_cost >= table[row - 1, column - 1] + changes[row - 1, column - 1]:
            row, column = row - 1, column - 1
            pairs.append((row, column))
        elif max_cost >= table[row - 1, column] + _ABSENT_COST * quote.weights[row - 1]:
            row -= 1
            pairs.append((row, None))
        else:
            column -= 1
            pairs.append((None, column))
    columns = [column for _, column in pairs if column is not None]
    aligned = [column for row_, column in pairs if row_ is not None and column is not None]
    if not aligned or max(columns) != max(aligned):  # the range ends in words that are not in the quote
        return None
    cost = float(table[-1, end + 1] / quote.weights.sum())
    return Alignment(min(aligned), max(aligned), cost, tuple(reversed(pairs)))
