"""Token windows for an encoder: sentences to score, preceded by as much context as fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finecomb.annotators.detectors.coherence.narrative import Bools, Narrative

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TokenWindow:
    """The tokens of consecutive sentences."""

    text: int
    """Index of the text."""
    ids: Ints
    """Token IDs, (tokens,), with an opening token first and a boundary token before each segment."""
    sentences: Ints
    """Sentence index of each token, (tokens,), with -1 for the opening token."""
    offsets: Ints
    """Start and end of each token in code points, (tokens, 2), empty for special tokens."""
    scored: tuple[int, int]
    """Half-open range of the sentences that this window scores. Earlier ones are context."""

    def attention_mask(self) -> Bools:
        """Return the attention mask, (tokens, tokens), in which a token sees its own and earlier sentences only."""
        visible: Bools = self.sentences[None, :] <= self.sentences[:, None]
        return visible


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """The opening and boundary tokens of windows."""

    opening: int
    boundary: int


def build_token_windows(
    texts: Sequence[Narrative], encoded: Sequence[tuple[Ints, Ints]], special: SpecialTokens, length: int, context: int
) -> list[TokenWindow]:
    """Build windows that score each sentence once. `encoded` holds each text's token IDs and offsets.

    A sentence longer than a window is truncated.
    """
    windows: list[TokenWindow] = []
    for number, (text, (ids, offsets)) in enumerate(zip(texts, encoded, strict=True)):
        pieces = []
        for index, sentence in enumerate(text.sentences):
            inside = (offsets[:, 0] < sentence.end) & (offsets[:, 1] > sentence.start)
            piece = (ids[inside], offsets[inside])
            if sentence.opens and index:
                boundary = np.array([[sentence.start, sentence.start]])
                piece = (np.concatenate([[special.boundary], piece[0]]), np.concatenate([boundary, piece[1]]))
            pieces.append(piece)
        sizes = [len(piece_ids) for piece_ids, _ in pieces]
        first = 0
        while first < len(pieces):
            start, used = first, 1
            while start and used + sizes[start - 1] <= context:
                start -= 1
                used += sizes[start]
            end = first
            while end < len(pieces) and (end == first or used + sizes[end] <= length):
                used += sizes[end]
                end += 1
            window_ids, window_offsets = zip(*pieces[start:end], strict=True)
            ids_in_window = np.concatenate([[special.opening], *window_ids])[:length].astype(np.int64)
            numbers = np.concatenate([[-1], np.repeat(np.arange(start, end), sizes[start:end])])[:length]
            spans = np.concatenate([np.zeros((1, 2)), *window_offsets])[:length].astype(np.int64)
            windows.append(TokenWindow(number, ids_in_window, numbers.astype(np.int64), spans, (first, end)))
            first = end
    return windows
