"""Scores of all spans of a text: start, end and length each give their share once, and a span is the sum of three.

A feed-forward network over [start; end; length] has a first layer W[s; e; l] = As + Be + Cl. So A and B are applied to
each word once and not to each span, and a span costs one sum, one rectifier and the last layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
MAX_SPAN_WORDS = 30
"""Words in the longest span that is looked at (Scarecrow, section 6)."""


@dataclass(frozen=True, slots=True)
class SpanHead:
    """The weights of the network; column 0 of its answers is `no error`."""

    start: Floats
    """(width, hidden): A."""
    end: Floats
    """(width, hidden): B."""
    length: Floats
    """(longest, hidden): C applied to each learnt length embedding, the bias in it."""
    out: Floats
    """(hidden, classes)."""
    bias: Floats
    """(classes,)."""

    @property
    def max_span_words(self) -> int:
        """Words in the longest span."""
        return len(self.length)

    def to_arrays(self) -> dict[str, Floats]:
        """For storage."""
        return {"start": self.start, "end": self.end, "length": self.length, "out": self.out, "bias": self.bias}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> SpanHead:
        """From storage."""
        return cls(*(arrays[name].astype(np.float32) for name in ("start", "end", "length", "out", "bias")))


def all_span_logits(starts: Floats, ends: Floats, head: SpanHead) -> list[Floats]:
    """Logits of every span by length: entry n is (words - n, classes) for spans of n + 1 words, by their first word.

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
    """Chances of classes, (spans, classes)."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    chances: Floats = powers / powers.sum(axis=1, keepdims=True)
    return chances


def word_probabilities(logits: list[Floats], words: int) -> Floats:
    """(words, classes - 1): the highest chance of each error among the spans that cover a word."""
    classes = logits[0].shape[1] - 1 if logits else 0
    best = np.zeros((words, classes), dtype=np.float32)
    for extra, rows in enumerate(logits):
        chances = softmax(rows)[:, 1:]
        for offset in range(extra + 1):
            place = best[offset : offset + len(chances)]
            np.maximum(place, chances, out=place)
    return best
