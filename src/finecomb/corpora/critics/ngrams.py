"""N-gram models of integer sequences: interpolated modified Kneser-Ney, counted and scored by whole arrays.

Chen and Goodman (1998), "An Empirical Study of Smoothing Techniques for Language Modeling". The highest order uses
raw counts; below it an n-gram counts its distinct left neighbours, unless it begins a sequence, where there are none
and it keeps its raw count. A sequence begins with one symbol of its own that is never predicted; an end symbol, where
one is wanted, is a token like any other. No n-gram reaches back beyond the beginning.
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
Tokens = NDArray[np.integer[Any]]  # (n,): integers from 0 to size - 1

_FALLBACK_DISCOUNTS = (0.5, 1.0, 1.5)  # where the counts of counts give no discount, as in small or saturated orders


@dataclass(frozen=True, slots=True)
class NgramLevel:
    """One order of a model: its n-grams, numbered by context and last token; its contexts are those one shorter."""

    starts: Ints
    """(contexts + 1,): the n-grams of a context are those from its start up to the next."""
    tokens: Ints
    """The last token of every n-gram, rising within a context."""
    mass: Floats
    """(c - D) / c(context) of every n-gram, and a last 0 for those never seen."""
    left: Floats
    """The weight of the next lower order by context, and a last 1 for contexts never seen."""

    def find(self, contexts: Ints, tokens: Ints, size: int) -> Ints:
        """The numbers of the n-grams `contexts` + `tokens`, -1 where never seen."""
        if not len(self.tokens):
            return np.full(len(tokens), -1, np.int64)
        numbers = np.arange(1, len(self.tokens) + 1)
        table = csr_array((numbers, self.tokens, self.starts), shape=(len(self.starts) - 1, size + 1))
        numbers_there = np.asarray(table[np.maximum(contexts, 0), tokens])
        return np.where(contexts < 0, 0, numbers_there) - 1


@dataclass(frozen=True, slots=True)
class KneserNeyModel:
    """An n-gram model of sequences of the integers 0 ... size - 1."""

    order: int
    size: int
    levels: tuple[NgramLevel, ...]

    @classmethod
    def fit(cls, sequences: Sequence[Tokens], order: int, size: int) -> KneserNeyModel:
        """Counted on `sequences` of integers below `size`.

        >>> model = KneserNeyModel.fit([np.array([0, 1, 0, 1, 2])] * 9, order=3, size=3)
        >>> model.log_probs([np.array([0, 1, 2])])[0].round(2)
        array([-0.1 , -0.06, -0.73])
        """
        if order < 1:
            raise FinecombError(f"an n-gram model needs an order of at least 1, not {order}")
        stream, depth = _concatenate_sequences(sequences, size)
        if not depth.any():
            raise FinecombError("an n-gram model needs at least one token to count")
        return cls(order, size, tuple(_levels(stream, depth, order, size)))

    def log_probs(self, sequences: Sequence[Tokens]) -> list[Floats]:
        """log P(token | tokens before it) in nats, for every token of every sequence."""
        stream, depth = _concatenate_sequences(sequences, self.size)
        probability = np.full(len(stream), 1 / self.size)
        context = np.zeros(len(stream), np.int64)
        for level in self.levels:
            number = level.find(context, stream, self.size)
            probability = level.mass[number] + level.left[context] * probability
            context = np.roll(number, 1)
        logs = np.log(np.where(depth == 0, 1.0, probability))
        ends = np.cumsum([len(sequence) + 1 for sequence in sequences])
        return [part[1:] for part in np.split(logs, ends[:-1])] if len(ends) else []

    def next_probs(self, history: Tokens) -> Floats:
        """P(token | history) of every token, shape (size,); sums to one."""
        recent = np.append(self.size, np.asarray(history, np.int64))[-max(self.order - 1, 1) :]
        probability = np.full(self.size, 1 / self.size)
        for length, level in enumerate(self.levels[: len(recent) + 1]):
            context = self._context_number(recent[len(recent) - length :])
            probability = level.left[context] * probability
            row = slice(*level.starts[context : context + 2]) if context >= 0 else slice(0)
            predicted = level.tokens[row] < self.size
            probability[level.tokens[row][predicted]] += level.mass[:-1][row][predicted]
        return probability

    def sample(self, rng: np.random.Generator, count: int, length: int, end: int | None = None) -> list[Ints]:
        """`count` sequences of `length` tokens, cut after the first `end` where one is given."""
        drawn = np.empty((length, count), np.int64)
        contexts = self._initial_contexts(count)
        running = [np.append(0.0, np.cumsum(level.mass[:-1])) for level in self.levels]
        for step in range(length):
            drawn[step] = self._draw(contexts, running, rng)
            contexts = self._advance(contexts, drawn[step])
        return [_cut_after_end(sequence, end) for sequence in drawn.T]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All there is to save, by name; `from_arrays` makes the model again."""
        named = {
            f"{name}_{n}": getattr(level, name) for n, level in enumerate(self.levels) for name in NgramLevel.__slots__
        }
        return {"shape": np.array([self.order, self.size]), **named}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> KneserNeyModel:
        """The model that gave `arrays`."""
        order, size = (int(number) for number in arrays["shape"])
        levels = [NgramLevel(*(arrays[f"{name}_{n}"] for name in NgramLevel.__slots__)) for n in range(order)]
        return cls(order, size, tuple(levels))

    def _context_number(self, tokens: Ints) -> int:
        """The number of `tokens` as a context, 0 for none, -1 where never seen."""
        number = np.zeros(1, np.int64)
        for level, token in zip(self.levels, tokens, strict=False):
            number = level.find(number, np.array([token]), self.size)
        return int(number[0])

    def _initial_contexts(self, count: int) -> list[Ints]:
        """Contexts of every level at the beginning of `count` sequences."""
        numbers = [0, self.size, *[-1] * self.order][: self.order]
        return [np.full(count, number, np.int64) for number in numbers]

    def _advance(self, contexts: list[Ints], tokens: Ints) -> list[Ints]:
        """The contexts of every level after one more token."""
        levels = zip(self.levels[:-1], contexts[:-1], strict=True)
        return [contexts[0], *(level.find(context, tokens, self.size) for level, context in levels)]

    def _draw(self, contexts: list[Ints], running: list[Floats], rng: np.random.Generator) -> Ints:
        """One token for every sequence: from the highest order down, each level keeps its mass or passes it on."""
        tokens = rng.integers(self.size, size=len(contexts[0]))
        still = np.arange(len(tokens))
        for n in reversed(range(self.order)):
            here, dice = contexts[n][still], rng.random(len(still))
            taken = dice < 1 - self.levels[n].left[here]
            tokens[still[taken]] = _pick_tokens(self.levels[n], running[n], here[taken], dice[taken])
            still = still[~taken]
        return tokens


def _concatenate_sequences(sequences: Sequence[Tokens], size: int) -> tuple[Ints, Ints]:
    """All sequences in a row, each after a begin symbol `size`, and how far every symbol is from its beginning."""
    lengths = np.array([len(sequence) for sequence in sequences], np.int64)
    starts = np.cumsum(lengths + 1) - lengths - 1
    depth = np.arange(int(lengths.sum()) + len(lengths)) - np.repeat(starts, lengths + 1)
    stream = np.full(len(depth), size, np.int64)
    if lengths.any():
        tokens = np.concatenate([np.asarray(sequence) for sequence in sequences])
        if not 0 <= tokens.min() <= tokens.max() < size:
            raise FinecombError(f"tokens must be integers from 0 to {size - 1}, not {tokens.min()} to {tokens.max()}")
        stream[depth > 0] = tokens
    return stream, depth


def _levels(stream: Ints, depth: Ints, order: int, size: int) -> list[NgramLevel]:
    """Every order of the model: n-grams are numbered from those one shorter and counted from those one longer."""
    numbers, context, tokens, contexts = stream, np.zeros(size + 1, np.int64), np.arange(size + 1), 1
    levels = []
    for n in range(1, order):
        longer, longer_context, longer_tokens, suffixes = _extend_ngrams(numbers, stream, depth, n + 1, size + 1)
        begins = numbers[depth == n - 1] if n > 1 else numbers[:0]  # the begin symbol alone is not counted
        counts = np.bincount(suffixes, minlength=len(tokens)) + np.bincount(begins, minlength=len(tokens))
        levels.append(_level(context, tokens, counts, contexts))
        numbers, context, tokens, contexts = longer, longer_context, longer_tokens, len(tokens)
    counts = np.bincount(numbers[depth >= max(order - 1, 1)], minlength=len(tokens))
    return [*levels, _level(context, tokens, counts, contexts)]


def _extend_ngrams(numbers: Ints, stream: Ints, depth: Ints, n: int, base: int) -> tuple[Ints, Ints, Ints, Ints]:
    """From the `numbers` of n-grams one shorter: the numbers of n-grams; context, last token and suffix of each."""
    places = np.flatnonzero(depth >= n - 1)
    key = numbers[places - 1] * base + stream[places]
    by_key = _argsort(key)
    ranked = key[by_key]
    new = np.append(True, ranked[1:] != ranked[:-1])[: len(ranked)]
    longer = np.full(len(numbers), -1, np.int64)
    longer[places[by_key]] = np.cumsum(new) - 1
    return longer, ranked[new] // base, ranked[new] % base, numbers[places[by_key[new]]]


def _argsort(keys: Ints) -> Ints:
    """The order of `keys`: where key and place fit into one integer, a plain sort of both is five times as fast."""
    bits = len(keys).bit_length()
    if len(keys) and int(keys.max()).bit_length() + bits > 63:
        return np.argsort(keys)
    return np.sort(keys << bits | np.arange(len(keys))) & ((1 << bits) - 1)


def _level(context: Ints, tokens: Ints, counts: Ints, contexts: int) -> NgramLevel:
    discount = np.array([0.0, *discounts(counts)])[np.minimum(counts, 3)]
    total = np.bincount(context, counts, minlength=contexts)
    divisor = np.where(total > 0, total, 1.0)
    left = np.where(total > 0, np.bincount(context, discount, minlength=contexts) / divisor, 1.0)
    starts = np.append(0, np.cumsum(np.bincount(context, minlength=contexts)))
    return NgramLevel(starts, tokens, np.append((counts - discount) / divisor[context], 0.0), np.append(left, 1.0))


def discounts(counts: Ints) -> tuple[float, float, float]:
    """D1, D2 and D3+ from the counts of counts (Chen and Goodman, equation 26), or fixed ones where these fail."""
    n1, n2, n3, n4 = (int(number) for number in np.bincount(np.minimum(counts, 5), minlength=6)[1:5])
    if not (n1 and n2 and n3):
        return _FALLBACK_DISCOUNTS
    y = n1 / (n1 + 2 * n2)
    estimates = (1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3)
    return estimates if all(estimate > 0 for estimate in estimates) else _FALLBACK_DISCOUNTS


def _pick_tokens(level: NgramLevel, running: Floats, contexts: Ints, dice: Floats) -> Ints:
    """The token whose share of its context's mass, in the `running` sum, holds the throw of the dice."""
    first, last = running[level.starts[contexts]], running[level.starts[contexts + 1]]
    throw = np.minimum(first + dice, np.nextafter(last, first))  # rounding must not reach the next context
    return level.tokens[np.searchsorted(running, throw, side="right") - 1]


def _cut_after_end(sequence: Ints, end: int | None) -> Ints:
    ends = np.flatnonzero(sequence == end) if end is not None else sequence[:0]
    return sequence[: ends[0] + 1] if len(ends) else sequence
