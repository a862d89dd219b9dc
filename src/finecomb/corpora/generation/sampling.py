"""Token sampling from logits: frequency penalty, temperature, nucleus and argmax, on NumPy arrays.

The order follows Dou et al. (2022), section 5.2: subtract the penalty from the logits, divide by the temperature, and
cut the nucleus from the resulting probabilities.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finecomb.corpora.generation.decoding import Decoding

Floats = NDArray[np.floating[Any]]
"""Logits and probabilities: 32 bits suffice for an array over the vocabulary; sums use 64 bits."""
Ints = NDArray[np.int64]


def apply_frequency_penalty(logits: Floats, counts: Mapping[int, int], penalty: float) -> Floats:
    """Return the logits minus the penalty for each earlier sample of a token (Dou et al. 2022, equation 1).

    l_i(t) <- l_i(t) - c_<i(t) * alpha_f. `counts` covers sampled tokens, not the prompt.

    >>> apply_frequency_penalty(np.array([1.0, 2.0, 3.0]), {2: 2}, 0.5).tolist()
    [1.0, 2.0, 2.0]
    """
    if not penalty or not counts:
        return logits
    lowered = logits.copy()
    lowered[list(counts)] -= penalty * np.fromiter(counts.values(), dtype=np.float64)
    return lowered


def softmax_probabilities(logits: Floats, temperature: float) -> Floats:
    """Return the softmax of the logits divided by a temperature above 0."""
    scaled = logits - logits.max()
    if temperature != 1:
        scaled /= logits.dtype.type(temperature)
    np.exp(scaled, out=scaled)
    scaled /= scaled.sum(dtype=np.float64).astype(logits.dtype)
    return np.asarray(scaled)


def nucleus_tokens(probability: Floats, top_p: float) -> Ints:
    """Return the smallest set of tokens whose probabilities reach `top_p` (Holtzman et al. 2020), sorted by token ID.

    The token that reaches `top_p` is included, so the set is never empty. Among equally likely tokens, lower IDs come
    first.

    >>> nucleus_tokens(np.array([0.1, 0.5, 0.4]), 0.6).tolist()
    [1, 2]
    """
    if top_p >= 1:
        return np.arange(len(probability))
    # tokens below this threshold sum to less than 1 - top_p, so none of them is needed and few are left to sort
    candidates = np.flatnonzero(probability >= (1 - top_p) / len(probability))
    values = probability[candidates]
    descending = np.sort(values)[::-1]
    size = int(np.searchsorted(np.cumsum(descending, dtype=np.float64), top_p - 1e-12)) + 1
    if size >= len(candidates):
        return candidates
    threshold = descending[size - 1]
    chosen = values > threshold
    ties = np.flatnonzero(values == threshold)[: size - int(chosen.sum())]  # faster than sorting the tokens themselves
    chosen[ties] = True
    return np.asarray(candidates[chosen])


def draw_next_token(logits: Floats, counts: Mapping[int, int], decoding: Decoding, random: np.random.Generator) -> int:
    """Draw the next token. Argmax takes the most likely token after the penalty and draws no random number."""
    lowered = apply_frequency_penalty(logits, counts, decoding.frequency_penalty)
    if decoding.is_argmax:
        return int(lowered.argmax())
    probability = softmax_probabilities(lowered, decoding.temperature)
    tokens = nucleus_tokens(probability, decoding.top_p)
    sums = np.cumsum(probability[tokens], dtype=np.float64)
    return int(tokens[min(np.searchsorted(sums, random.random() * sums[-1], side="right"), len(tokens) - 1)])


@dataclass(slots=True)
class TokenSampler:
    """Sampler of one continuation; it counts the sampled tokens for the frequency penalty."""

    decoding: Decoding
    random: np.random.Generator
    tokens: list[int] = field(default_factory=list)
    """Tokens sampled so far, without the prompt."""
    counts: dict[int, int] = field(default_factory=dict)

    def draw(self, logits: Floats) -> int:
        """Draw the next token and count it."""
        token = draw_next_token(logits, self.counts, self.decoding, self.random)
        self.tokens.append(token)
        self.counts[token] = self.counts.get(token, 0) + 1
        return token
