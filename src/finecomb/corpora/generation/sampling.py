"""The next token from a model's output: frequency penalty, temperature, nucleus and argmax, on plain arrays.

The order is that of Dou et al. (2022), section 5.2: the penalty is taken from the model's output, before the softmax;
temperature divides what is left; the nucleus is cut from the probabilities that result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finecomb.corpora.generation.decoding import Decoding

Floats = NDArray[np.floating[Any]]
"""Of a model: 32 bits are enough for a pass over the whole vocabulary, sums are of 64."""
Ints = NDArray[np.int64]


def apply_frequency_penalty(logits: Floats, counts: Mapping[int, int], penalty: float) -> Floats:
    """Logits less the penalty for each time that a token was sampled before: equation 1 of Dou et al. (2022).

    l_i(t) <- l_i(t) - c_<i(t) * alpha_f. `counts` are of sampled tokens, without those of the prompt.

    >>> apply_frequency_penalty(np.array([1.0, 2.0, 3.0]), {2: 2}, 0.5).tolist()
    [1.0, 2.0, 2.0]
    """
    if not penalty or not counts:
        return logits
    lowered = logits.copy()
    lowered[list(counts)] -= penalty * np.fromiter(counts.values(), dtype=np.float64)
    return lowered


def probabilities(logits: Floats, temperature: float) -> Floats:
    """The softmax of logits over a temperature above 0."""
    scaled = logits - logits.max()
    if temperature != 1:
        scaled /= logits.dtype.type(temperature)
    np.exp(scaled, out=scaled)
    scaled /= scaled.sum(dtype=np.float64).astype(logits.dtype)
    return np.asarray(scaled)


def nucleus(probability: Floats, top_p: float) -> Ints:
    """The fewest tokens whose probabilities add up to `top_p` (Holtzman et al. 2020), in the order of their numbers.

    The token with which the sum reaches `top_p` belongs to it, so that there is always one. Of equally likely tokens
    the one with the lower number comes first.

    >>> nucleus(np.array([0.1, 0.5, 0.4]), 0.6).tolist()
    [1, 2]
    """
    if top_p >= 1:
        return np.arange(len(probability))
    # all tokens below this add up to less than 1 - top_p, so that none of them is needed: far fewer are left to sort
    candidates = np.flatnonzero(probability >= (1 - top_p) / len(probability))
    values = probability[candidates]
    descending = np.sort(values)[::-1]
    size = int(np.searchsorted(np.cumsum(descending, dtype=np.float64), top_p - 1e-12)) + 1
    if size >= len(candidates):
        return candidates
    least = descending[size - 1]
    chosen = values > least
    ties = np.flatnonzero(values == least)[: size - int(chosen.sum())]  # quicker than to sort tokens by their values
    chosen[ties] = True
    return np.asarray(candidates[chosen])


def next_token(logits: Floats, counts: Mapping[int, int], decoding: Decoding, random: np.random.Generator) -> int:
    """The token that comes next. Argmax takes the likeliest after the penalty and draws no random number."""
    lowered = apply_frequency_penalty(logits, counts, decoding.frequency_penalty)
    if decoding.is_argmax:
        return int(lowered.argmax())
    probability = probabilities(lowered, decoding.temperature)
    tokens = nucleus(probability, decoding.top_p)
    sums = np.cumsum(probability[tokens], dtype=np.float64)
    return int(tokens[min(np.searchsorted(sums, random.random() * sums[-1], side="right"), len(tokens) - 1)])


@dataclass(slots=True)
class TokenSampler:
    """Draws the tokens of one continuation, and counts them for the penalty."""

    decoding: Decoding
    random: np.random.Generator
    tokens: list[int] = field(default_factory=list)
    """Sampled so far, without the prompt."""
    counts: dict[int, int] = field(default_factory=dict)

    def draw(self, logits: Floats) -> int:
        """The next token, which counts from now on."""
        token = next_token(logits, self.counts, self.decoding, self.random)
        self.tokens.append(token)
        self.counts[token] = self.counts.get(token, 0) + 1
        return token
