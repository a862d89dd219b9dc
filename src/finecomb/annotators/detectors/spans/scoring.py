"""Scores of all spans in a text, as sums of start and end terms that are computed once per word.

The first layer of a network over [start; end; length] is W[s; e; l] = As + Be + Cl. A and B are therefore applied once
per word instead of once per span, and each span costs one sum, one rectifier and the last layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
MAX_SPAN_WORDS = 30
"""Maximum length of a span in words (Scarecrow, section 6)."""


@dataclass(frozen=True, slots=True)
class SpanHead:
    """The weights of the network. Class 0 is `no error`."""

    start: Floats
    """A, (width, hidden)."""
    end: Floats
    """B, (width, hidden)."""
    length: Floats
    """C applied to each length embedding plus the bias, (longest, hidden)."""
    out: Floats
    """Weights of the last layer, (hidden, classes)."""
    bias: Floats
    """Bias of the last layer, (classes,)."""

    @property
    def max_span_words(self) -> int:
        """Maximum length of a span in words."""
        return len(self.length)

    def to_arrays(self) -> dict[str, Floats]:
        """Return the weights as named arrays for storage."""
        return {"start": self.start, "end": self.end, "length": self.length, "out": self.out, "bias": self.bias}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> SpanHead:
        """Rebuild the weights from stored arrays."""
        return cls(*(arrays[name].astype(np.float32) for name in ("start", "end", "length", "out", "bias")))


def all_span_logits(starts: Floats, ends: Floats, head: SpanHead) -> list[Floats]:
    """Return the logits of all spans by length: entry n is (words - n, classes) for spans of n + 1 words.

    `starts` and `ends` are vectors of the words' first and last tokens, (words, width).
    """
    of_start, of_end = starts @ head.start, ends @ head.end
    logits = []
    for extra in range(min(head.max_span_words, len(starts))):
        hidden = of_start[: len(starts) - extra] + of_end[extra:] + head.length[extra]
        np.maximum(hidden, 0, out=hidden)
        logits.append(hidden @ head.out + head.bias)
    return logits


def softmax(logits: Floats) -> Floats:
    """Return the class probabilities, (spans, classes)."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    chances: Floats = powers / powers.sum(axis=1, keepdims=True)
    return chances


def word_probabilities(logits: list[Floats], words: int) -> Floats:
    """Return the highest probability of each error type among the spans that cover each word, (words, classes - 1)."""
    classes = logits[0].shape[1] - 1 if logits else 0
    best = np.zeros((words, classes), dtype=np.float32)
    for extra, rows in enumerate(logits):
        chances = softmax(rows)[:, 1:]
        for offset in range(extra + 1):
            place = best[offset : offset + len(chances)]
            np.maximum(place, chances, out=place)
    return best
