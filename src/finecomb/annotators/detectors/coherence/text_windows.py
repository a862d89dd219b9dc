"""A text cut into windows for an encoder: some sentences to score, after as much context as fits before them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finecomb.annotators.detectors.coherence.narrative import Bools, Narrative

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TokenWindow:
    """Tokens of neighbouring sentences."""

    text: int
    """Number of the text."""
    ids: Ints
    """(tokens,) of the encoder's vocabulary; one that opens the window first, and one where a segment begins."""
    sentences: Ints
    """(tokens,): the number of each token's sentence; -1 for the opening token."""
    offsets: Ints
    """(tokens, 2) in code points of the text; empty ranges for special tokens."""
    scored: tuple[int, int]
    """Which sentences, first and one past the last, this window scores; those before are context."""

    def attention_mask(self) -> Bools:
        """(tokens, tokens): a token sees its own sentence and what comes before it, and nothing of what follows."""
        seen: Bools = self.sentences[None, :] <= self.sentences[:, None]
        return seen


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """The two special tokens that windows use."""

    opening: int
    boundary: int


def build_windows(
    texts: Sequence[Narrative], encoded: Sequence[tuple[Ints, Ints]], special: SpecialTokens, length: int, context: int
) -> list[TokenWindow]:
    """Windows of all texts; `encoded` has each text's token ids and offsets. Every sentence is scored once.

    A sentence that is longer than a window is cut at the window's end.
    """
    cut: list[TokenWindow] = []
    for number, (text, (ids, offsets)) in enumerate(zip(texts, encoded, strict=True)):
        pieces = _sentence_tokens(text, ids, offsets, special)
        first = 0
        while first < len(pieces):
            window, first = _build_window(number, pieces, first, special, length, context)
            cut.append(window)
    return cut


def _sentence_tokens(text: Narrative, ids: Ints, offsets: Ints, special: SpecialTokens) -> list[tuple[Ints, Ints]]:
    """Ids and offsets of each sentence; one that begins a segment, the first apart, has the boundary before it."""
    pieces = []
    for at, sentence in enumerate(text.sentences):
        inside = (offsets[:, 0] < sentence.end) & (offsets[:, 1] > sentence.start)
        piece = (ids[inside], offsets[inside])
        if sentence.opens and at:
            place = np.array([[sentence.start, sentence.start]])
            piece = (np.concatenate([[special.boundary], piece[0]]), np.concatenate([place, piece[1]]))
        pieces.append(piece)
    return pieces


def _build_window(
    text: int, pieces: Sequence[tuple[Ints, Ints]], first: int, special: SpecialTokens, length: int, context: int
) -> tuple[TokenWindow, int]:
    """The window that scores sentences from `first` on, and the sentence after it."""
    sizes = [len(ids) for ids, _ in pieces]
    start, used = first, 1
    while start and used + sizes[start - 1] <= context:
        start -= 1
        used += sizes[start]
    end = first
    while end < len(pieces) and (end == first or used + sizes[end] <= length):
        used += sizes[end]
        end += 1
    ids = np.concatenate([[special.opening], *(pieces[at][0] for at in range(start, end))])[:length]
    offsets = np.concatenate([np.zeros((1, 2)), *(pieces[at][1] for at in range(start, end))])[:length]
    numbers = np.concatenate([[-1], np.repeat(np.arange(start, end), sizes[start:end])])[:length]
    window = TokenWindow(text, ids.astype(np.int64), numbers.astype(np.int64), offsets.astype(np.int64), (first, end))
    return window, end
