"""N-gram models of integer sequences with interpolated modified Kneser-Ney smoothing, vectorised over arrays.

Chen and Goodman (1998), "An Empirical Study of Smoothing Techniques for Language Modeling". The highest order uses raw
counts. Lower orders count distinct left neighbours, except for n-grams at the start of a sequence, which have none and
keep raw counts. A sequence begins with a symbol that is never predicted. An end symbol, if needed, is an ordinary
token. No n-gram extends before the beginning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from finecomb.core.errors import FinecombError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Tokens = NDArray[np.integer[Any]]  # integers from 0 to size - 1, shape (n,)

_FALLBACK_DISCOUNTS = (0.5, 1.0, 1.5)  # used where counts of counts give no discount, as in small or saturated orders


@dataclass(frozen=True, slots=True)
class NgramLevel:
    """One order of a model: n-grams numbered by context and last token. Contexts are the n-grams of the lower order."""

    starts: Ints
    """Number of the first n-gram of each context, then the total number of n-grams, shape (contexts + 1,)."""
    tokens: Ints
    """Last token of each n-gram, ascending within a context."""
    mass: Floats
    """(c - D) / c(context) of each n-gram, and a final 0 for unseen ones."""
    left: Floats
    """Weight of the next lower order per context, and a final 1 for unseen contexts."""

    def find_ngrams(self, contexts: Ints, tokens: Ints, size: int) -> Ints:
        """Return the number of each n-gram `contexts` + `tokens`, or -1 if it is unseen."""
        if not len(self.tokens):
            return np.full(len(tokens), -1, np.int64)
        numbers = np.arange(1, len(self.tokens) + 1)
        table = csr_array((numbers, self.tokens, self.starts), shape=(len(self.starts) - 1, size + 1))
        numbers_there = np.asarray(table[np.maximum(contexts, 0), tokens])
        return np.where(contexts < 0, 0, numbers_there) - 1


@dataclass(frozen=True, slots=True)
class KneserNeyModel:
    """N-gram model of sequences of integers from 0 to size - 1."""

    order: int
    size: int
    levels: tuple[NgramLevel, ...]

    @classmethod
    def fit(cls, sequences: Sequence[Tokens], order: int, size: int) -> KneserNeyModel:
        """Fit to `sequences` of integers below `size`.

        >>> model = KneserNeyModel.fit([np.array([0, 1, 0, 1, 2])] * 9, order=3, size=3)
        >>> model.log_probs([np.array([0, 1, 2])])[0].round(2)
        array([-0.1 , -0.06, -0.73])
        """
        if order < 1:
            raise FinecombError(f"order must be at least 1, found {order}")
        stream, depth = _concatenate_sequences(sequences, size)
        if not depth.any():
            raise FinecombError("an n-gram model requires at least one token, found none")
        # Build all orders of the model: n-grams are numbered from shorter ones and counted from longer ones
        numbers, context, tokens, contexts = stream, np.zeros(size + 1, np.int64), np.arange(size + 1), 1
        levels = []
        for n in range(1, order):
            longer, longer_context, longer_tokens, suffixes = _extend_ngrams(numbers, stream, depth, n + 1, size + 1)
            begins = numbers[depth == n - 1] if n > 1 else numbers[:0]  # the begin symbol alone is not counted
            counts = np.bincount(suffixes, minlength=len(tokens)) + np.bincount(begins, minlength=len(tokens))
            levels.append(_build_level(context, tokens, counts, contexts))
            numbers, context, tokens, contexts = longer, longer_context, longer_tokens, len(tokens)
        counts = np.bincount(numbers[depth >= max(order - 1, 1)], minlength=len(tokens))
        return cls(order, size, (*levels, _build_level(context, tokens, counts, contexts)))

    def log_probs(self, sequences: Sequence[Tokens]) -> list[Floats]:
        """Return log P(token | previous tokens) in nats for each token of each sequence."""
        stream, depth = _concatenate_sequences(sequences, self.size)
        probability = np.full(len(stream), 1 / self.size)
        context = np.zeros(len(stream), np.int64)
        for level in self.levels:
            number = level.find_ngrams(context, stream, self.size)
            probability = level.mass[number] + level.left[context] * probability
            context = np.roll(number, 1)
        logs = np.log(np.where(depth == 0, 1.0, probability))
        ends = np.cumsum([len(sequence) + 1 for sequence in sequences])
        return [part[1:] for part in np.split(logs, ends[:-1])] if len(ends) else []

    def next_probs(self, history: Tokens) -> Floats:
        """Return P(token | history) of each token, shape (size,); sums to one."""
        recent = np.append(self.size, np.asarray(history, np.int64))[-max(self.order - 1, 1) :]
        probability = np.full(self.size, 1 / self.size)
        for length, level in enumerate(self.levels[: len(recent) + 1]):
            number = np.zeros(1, np.int64)
            for shorter, token in zip(self.levels, recent[len(recent) - length :], strict=False):
                number = shorter.find_ngrams(number, np.array([token]), self.size)
            context = int(number[0])
            probability = level.left[context] * probability
            row = slice(*level.starts[context : context + 2]) if context >= 0 else slice(0)
            predicted = level.tokens[row] < self.size
            probability[level.tokens[row][predicted]] += level.mass[:-1][row][predicted]
        return probability

    def sample_sequences(self, rng: np.random.Generator, count: int, length: int, end: int | None = None) -> list[Ints]:
        """Draw `count` sequences of `length` tokens, truncated after the first `end` token if given."""
        tokens = np.empty((length, count), np.int64)
        numbers = [0, self.size, *[-1] * self.order][: self.order]
        contexts = [np.full(count, number, np.int64) for number in numbers]
        cumulative_masses = [np.append(0.0, np.cumsum(level.mass[:-1])) for level in self.levels]
        for step in range(length):
            tokens[step] = self._draw_tokens(contexts, cumulative_masses, rng)
            levels = zip(self.levels[:-1], contexts[:-1], strict=True)
            contexts = [
                contexts[0],
                *(level.find_ngrams(context, tokens[step], self.size) for level, context in levels),
            ]
        if end is None or not length:
            return list(tokens.T)
        ends = np.where((tokens == end).any(axis=0), (tokens == end).argmax(axis=0) + 1, length)
        return [sequence[:stop] for sequence, stop in zip(tokens.T, ends, strict=True)]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all arrays of the model by name, for saving; `from_arrays` rebuilds the model."""
        level_arrays = {
            f"{name}_{n}": getattr(level, name) for n, level in enumerate(self.levels) for name in NgramLevel.__slots__
        }
        return {"shape": np.array([self.order, self.size]), **level_arrays}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> KneserNeyModel:
        """Rebuild the model from the output of `to_arrays`."""
        order, size = (int(number) for number in arrays["shape"])
        levels = [NgramLevel(*(arrays[f"{name}_{n}"] for name in NgramLevel.__slots__)) for n in range(order)]
        return cls(order, size, tuple(levels))

    def _draw_tokens(self, contexts: list[Ints], running: list[Floats], rng: np.random.Generator) -> Ints:
        """Draw one token per sequence: from the highest order down, each level keeps the draw or backs off."""
        tokens = rng.integers(self.size, size=len(contexts[0]))
        remaining = np.arange(len(tokens))
        for n in reversed(range(self.order)):
            level_contexts, dice = contexts[n][remaining], rng.random(len(remaining))
            accepted = dice < 1 - self.levels[n].left[level_contexts]
            first, last = (
                running[n][self.levels[n].starts[level_contexts[accepted]]],
                running[n][self.levels[n].starts[level_contexts[accepted] + 1]],
            )
            throw = np.minimum(
                first + dice[accepted], np.nextafter(last, first)
            )  # rounding must not reach the next context
            tokens[remaining[accepted]] = self.levels[n].tokens[np.searchsorted(running[n], throw, side="right") - 1]
            remaining = remaining[~accepted]
        return tokens


def _concatenate_sequences(sequences: Sequence[Tokens], size: int) -> tuple[Ints, Ints]:
    """Concatenate sequences, each after a begin symbol `size`, with each symbol's distance from the beginning."""
    lengths = np.array([len(sequence) for sequence in sequences], np.int64)
    starts = np.cumsum(lengths + 1) - lengths - 1
    depth = np.arange(int(lengths.sum()) + len(lengths)) - np.repeat(starts, lengths + 1)
    stream = np.full(len(depth), size, np.int64)
    if lengths.any():
        tokens = np.concatenate([np.asarray(sequence) for sequence in sequences])
        if not 0 <= tokens.min() <= tokens.max() < size:
            raise FinecombError(f"tokens must be integers from 0 to {size - 1}, found {tokens.min()} to {tokens.max()}")
        stream[depth > 0] = tokens
    return stream, depth


def _extend_ngrams(numbers: Ints, stream: Ints, depth: Ints, n: int, base: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Extend n-grams by one token; return the new numbers, and the context, last token and suffix of each n-gram."""
    positions = np.flatnonzero(depth >= n - 1)
    key = numbers[positions - 1] * base + stream[positions]
    by_key = _fast_argsort(key)
    ranked = key[by_key]
    new = np.append(True, ranked[1:] != ranked[:-1])[: len(ranked)]
    longer = np.full(len(numbers), -1, np.int64)
    longer[positions[by_key]] = np.cumsum(new) - 1
    return longer, ranked[new] // base, ranked[new] % base, numbers[positions[by_key[new]]]


def _fast_argsort(keys: Ints) -> Ints:
    """Return the sort order of `keys`; if key and position fit into one integer, sorting both is five times as fast."""
    bits = len(keys).bit_length()
    if len(keys) and int(keys.max()).bit_length() + bits > 63:
        return np.argsort(keys)
    return np.sort(keys << bits | np.arange(len(keys))) & ((1 << bits) - 1)


def _build_level(context: Ints, tokens: Ints, counts: Ints, contexts: int) -> NgramLevel:
    discount = np.array([0.0, *kneser_ney_discounts(counts)])[np.minimum(counts, 3)]
    total = np.bincount(context, counts, minlength=contexts)
    divisor = np.where(total > 0, total, 1.0)
    left = np.where(total > 0, np.bincount(context, discount, minlength=contexts) / divisor, 1.0)
    starts = np.append(0, np.cumsum(np.bincount(context, minlength=contexts)))
    return NgramLevel(starts, tokens, np.append((counts - discount) / divisor[context], 0.0), np.append(left, 1.0))


def kneser_ney_discounts(counts: Ints) -> tuple[float, float, float]:
    """Return D1, D2 and D3+ from counts of counts (Chen and Goodman, equation 26); invalid values get fallbacks."""
    n1, n2, n3, n4 = (int(number) for number in np.bincount(np.minimum(counts, 5), minlength=6)[1:5])
    if not (n1 and n2 and n3):
        return _FALLBACK_DISCOUNTS
    y = n1 / (n1 + 2 * n2)
    estimates = (1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3)
    return estimates if all(estimate > 0 for estimate in estimates) else _FALLBACK_DISCOUNTS
