r"""P(z) of coreference chains: n-gram models of mentions with entities relabelled within each n-gram.

z is a sequence of states: `.` at the start of each sentence, a pronoun or a gender with the number of its entity, such
as `she:3` or `M:0`, and with `kneser-ney` a final end state. Within an n-gram, entities are numbered from 0 in order of
appearance, so that the model learns the pattern of mentions, not identities (Deng et al. 2022, section 5).

`kneser-ney` is interpolated modified Kneser-Ney with n-grams relabelled at each order. Shortening the context by one
state removes at most one entity. Both that entity and an unseen one then become `new`, and the probability of `new` is
divided between the two by how often each occurs with that word. At every order, the probabilities of the legal
successors (each entity of the context, and a new one) therefore sum to one.

`paper` follows the authors' program. N-grams are relabelled once, at the highest order, and truncated for the lower
orders. Counts are raw at every order, with one discount D = n1 / (n1 + 2 n2) per order, none for unigrams. An unseen
state has the unigram probability 1e-20, and there is no end state. Some mass goes to impossible entities, so
probabilities sum to less than one. If an order has no n-gram that occurs once, D is 0 and a state unseen after its
context has probability 0. The authors' program stops there; here the document is dropped with that reason.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from finecomb.annotators.coreference.pronouns import FEMALE, FIRST_SECOND_PERSON, MALE, PLURAL
from finecomb.core.errors import FinecombError
from finecomb.corpora.critics.ngrams import Floats, Ints, kneser_ney_discounts
from finecomb.corpora.critics.priors import END, SavedState

ModelKind = Literal["kneser-ney", "paper"]

GENDERS = ("M", "F", "P", "N")
_LOWERCASE_PRONOUNS = (*MALE, *FEMALE, *PLURAL, *FIRST_SECOND_PERSON[1:])
_CAPITALISED_PRONOUNS = tuple(word.capitalize() for word in (*MALE, *FEMALE, *PLURAL, *FIRST_SECOND_PERSON))
PAD, SENTENCE_START = "", "."
SYMBOLS = (PAD, END, SENTENCE_START, *GENDERS, *_LOWERCASE_PRONOUNS, *_CAPITALISED_PRONOUNS)
_INDEX_BY_SYMBOL = {symbol: at for at, symbol in enumerate(SYMBOLS)}
_FIRST_ENTITY_SYMBOL = _INDEX_BY_SYMBOL["M"]  # symbols from here on carry an entity
_ALLOWED_ORDERS = range(2, 7)  # an n-gram must fit into 63 bits
_MIN_PROBABILITY = 1e-20
_SPLIT_PRIOR_WEIGHT = 5.0  # pseudo-observations that the split over all words contributes to the split of one word


class EncodedStates(NamedTuple):
    """States as symbol indices and entity numbers, -1 for no entity."""

    symbols: Ints
    entities: Ints


@dataclass(frozen=True, slots=True)
class _NgramLevel:
    keys: Ints  # sorted n-grams
    mass: Floats  # discounted share of each n-gram in its context, and a final 0
    contexts: Ints  # sorted contexts
    left: Floats  # weight of the next lower order per context, and a final 1


@dataclass(frozen=True)
class MentionNgramModel:
    """Fitted n-gram model of mentions, a `Prior` over state sequences."""

    kind: ModelKind
    order: int
    levels: tuple[_NgramLevel, ...]
    splits: Floats
    """Share of P(`new`) that belongs to the entity just dropped from the context, shape (order + 1, symbols)."""

    @classmethod
    def fit(cls, zs: Iterable[Sequence[str]], kind: ModelKind = "kneser-ney", order: int = 5) -> MentionNgramModel:
        """Fit to state sequences without their end states."""
        if order not in _ALLOWED_ORDERS:
            raise FinecombError(f"order must be between {_ALLOWED_ORDERS[0]} and {_ALLOWED_ORDERS[-1]}, found {order}")
        windows = _corpus_windows(zs, order, has_end_state(kind))
        splits = np.array([_leaving_entity_shares(windows, n) for n in range(order + 1)])
        return cls(kind, order, _FIT_BY_KIND[kind](windows, order), splits)

    def probabilities(self, windows: EncodedStates) -> Floats:
        """Return P(last state | previous states) of windows of shape (m, order)."""
        base = 1 / (len(SYMBOLS) - 1) if self.kind == "kneser-ney" else 0.0
        probability = np.full(len(windows.symbols), base)
        for n, level in enumerate(self.levels, 1):
            keys = _ngram_keys(windows, n, self.kind)
            contexts = keys // _key_base(self.order)
            lower = probability * self._lower_order_shares(windows, n)
            probability = (
                level.mass[_find_positions(level.keys, keys)]
                + level.left[_find_positions(level.contexts, contexts)] * lower
            )
            if self.kind == "paper" and n == 1:
                probability = np.maximum(probability, _MIN_PROBABILITY)
        return probability

    @property
    def has_end_state(self) -> bool:
        """True if the end of a text is a state."""
        return has_end_state(self.kind)

    def _lower_order_shares(self, windows: EncodedStates, n: int) -> Floats:
        """Return the share of the lower order's probability that belongs to the last state of each window."""
        ones = np.ones(len(windows.symbols))
        if self.kind == "paper":
            return ones
        back, new = _leaving_entity_masks(windows, n)
        split = self.splits[n, windows.symbols[:, -1]]
        return np.where(back, split, np.where(new, 1 - split, ones))

    def log_prob(self, z: Sequence[str]) -> Floats:
        """Return log P of each state, including the end state if there is one."""
        with np.errstate(divide="ignore"):
            logs: Floats = np.log(self.probabilities(_state_windows(encode_states(z, self.has_end_state), self.order)))
        return logs

    def expected_log_prob(self, posterior: object) -> Floats:
        """Raise an error: coreference posteriors are points."""
        raise TypeError("the mention model defines E log P(z) only for point posteriors")

    def step_names(self, z: Sequence[str]) -> Sequence[str]:
        """Return the states, including the end state if there is one."""
        return (*z, END) if self.has_end_state else tuple(z)

    def most_probable_states(self, z: Sequence[str]) -> list[tuple[str, float]]:
        """Return, for each state, the most probable legal state given those before it, and its log P."""
        windows = _state_windows(encode_states(z, self.has_end_state), self.order)
        return [self.most_probable_successor(EncodedStates(*row)) for row in zip(*windows, strict=True)]

    def most_probable_successor(self, window: EncodedStates) -> tuple[str, float]:
        """Return the most probable last state of a window and its log P; a new entity gets the next number."""
        candidates = successor_windows(window, self.has_end_state)
        with np.errstate(divide="ignore"):
            logs = np.log(self.probabilities(candidates))
        best = int(logs.argmax())
        return decode_state(candidates.symbols[best, -1], candidates.entities[best, -1]), float(logs[best])

    def state(self) -> SavedState:
        """Return the state for saving."""
        levels = [{name: getattr(level, name) for name in _NgramLevel.__slots__} for level in self.levels]
        return {"kind": self.kind, "order": self.order, "levels": levels, "splits": self.splits}

    @classmethod
    def from_state(cls, state: SavedState) -> MentionNgramModel:
        """Rebuild the model from its saved state."""
        levels = tuple(_NgramLevel(**level) for level in state["levels"])
        return cls(state["kind"], state["order"], levels, state["splits"])


def has_end_state(kind: ModelKind) -> bool:
    """Check whether a kind of model has an end state; the authors' program has none."""
    return kind != "paper"


def encode_states(z: Sequence[str], ends: bool = True) -> EncodedStates:
    """Encode states as numbers, with an end state appended if `ends`.

    >>> encode_states([".", "M:7", "he:7"]).entities.tolist()
    [-1, 7, 7, -1]
    """
    parts = [state.partition(":") for state in ((*z, END) if ends else z)]
    unknown = [symbol for symbol, _, _ in parts if symbol not in _INDEX_BY_SYMBOL]
    if unknown:
        raise FinecombError(
            f"unknown state {unknown[0]!r}; expected a pronoun, one of {', '.join(GENDERS)}, or '{SENTENCE_START}'"
        )
    symbols = np.array([_INDEX_BY_SYMBOL[symbol] for symbol, _, _ in parts], np.int64)
    return EncodedStates(symbols, np.array([int(entity) if entity else -1 for _, _, entity in parts], np.int64))


def decode_state(symbol: int, entity: int) -> str:
    """Return the written form of a state."""
    return SYMBOLS[symbol] + (f":{entity}" if entity >= 0 else "")


class NgramCounts(NamedTuple):
    """Distinct relabelled n-grams of a corpus with their counts."""

    keys: Ints
    counts: Ints
    windows: EncodedStates
    """One occurrence of each n-gram, shape (n-grams, order)."""


def count_ngrams(zs: Iterable[Sequence[str]], order: int, ends: bool = True) -> NgramCounts:
    """Count the relabelled n-grams that end at a state or, with `ends`, at the end state."""
    windows = _corpus_windows(zs, order, ends)
    keys, positions, counts = np.unique(
        _ngram_keys(windows, order, "kneser-ney"), return_index=True, return_counts=True
    )
    return NgramCounts(keys, counts, EncodedStates(windows.symbols[positions], windows.entities[positions]))


def format_windows(windows: EncodedStates) -> list[tuple[str, ...]]:
    """Return the written forms of each window's relabelled states; padding is empty."""
    rows = zip(windows.symbols.tolist(), relabel_entities(windows.entities).tolist(), strict=True)
    return [tuple(map(decode_state, symbols, entities)) for symbols, entities in rows]


def relabel_entities(entities: Ints) -> Ints:
    """Number the entities of each row from 0 in order of appearance; -1 stays.

    >>> relabel_entities(np.array([[7, -1, 3, 7]])).tolist()
    [[0, -1, 1, 0]]
    """
    same = entities[:, :, None] == entities[:, None, :]  # (m, n, n)
    first = same.argmax(axis=2)
    new = (first == np.arange(entities.shape[1])) & (entities >= 0)
    numbers = np.take_along_axis(np.cumsum(new, axis=1) - 1, first, axis=1)
    return np.where(entities >= 0, numbers, -1)


def successor_windows(window: EncodedStates, ends: bool = True) -> EncodedStates:
    """Return windows with the same context and each legal last state: each word with each known entity or a new one."""
    context, before = window.symbols[:-1], window.entities[:-1]
    options = np.append(np.unique(before[before >= 0]), before.max(initial=-1) + 1)
    words = np.arange(_FIRST_ENTITY_SYMBOL, len(SYMBOLS))
    signs = [_INDEX_BY_SYMBOL[END], _INDEX_BY_SYMBOL[SENTENCE_START]] if ends else [_INDEX_BY_SYMBOL[SENTENCE_START]]
    last = np.concatenate([signs, np.repeat(words, len(options))])
    entity = np.concatenate([np.full(len(signs), -1), np.tile(options, len(words))])
    rows = len(last)
    symbols = np.column_stack([np.tile(context, (rows, 1)), last])
    return EncodedStates(symbols, np.column_stack([np.tile(before, (rows, 1)), entity]))


def _state_windows(encoded: EncodedStates, order: int) -> EncodedStates:
    """Return each state with the states before it, padded at the beginning, shape (states, order)."""
    if not len(encoded.symbols):
        return EncodedStates(np.empty((0, order), np.int64), np.empty((0, order), np.int64))
    symbols = np.concatenate([np.full(order - 1, _INDEX_BY_SYMBOL[PAD]), encoded.symbols])
    entities = np.concatenate([np.full(order - 1, -1), encoded.entities])
    return EncodedStates(sliding_window_view(symbols, order), sliding_window_view(entities, order))


def _corpus_windows(zs: Iterable[Sequence[str]], order: int, ends: bool) -> EncodedStates:
    parts = [_state_windows(encode_states(z, ends), order) for z in zs]
    if not sum(len(part.symbols) for part in parts):
        raise FinecombError("the fitting documents contain no coreference chains; use documents about people")
    symbols, entities = zip(*parts, strict=True)
    return EncodedStates(np.concatenate(symbols), np.concatenate(entities))


def _key_base(order: int) -> int:
    return len(SYMBOLS) * (order + 1)


def _ngram_keys(windows: EncodedStates, n: int, kind: ModelKind) -> Ints:
    """Encode the last n states of each window as one integer; dividing it by the base gives the context."""
    order = windows.symbols.shape[1]
    entities = windows.entities[:, order - n :] if kind == "kneser-ney" else windows.entities
    codes = windows.symbols[:, order - n :] * (order + 1) + relabel_entities(entities)[:, -n:] + 1
    return functools.reduce(lambda key, code: key * _key_base(order) + code, codes.T, np.zeros(len(codes), np.int64))


def _find_positions(table: Ints, wanted: Ints) -> Ints:
    """Return the position of each wanted value in a sorted table, or -1 if it is absent."""
    positions = np.minimum(np.searchsorted(table, wanted), len(table) - 1)
    return np.where(table[positions] == wanted, positions, -1)


def _leaving_entity_masks(windows: EncodedStates, n: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return masks of windows whose first entity leaves the context: where the last state repeats it or is new."""
    entities = windows.entities[:, windows.symbols.shape[1] - n :]
    if n < 2:
        none = np.zeros(len(entities), bool)
        return none, none
    first, rest, last = entities[:, 0], entities[:, 1:-1], entities[:, -1]
    leaves = (first >= 0) & (rest != first[:, None]).all(axis=1) & (last >= 0)
    back = leaves & (last == first)
    return back, leaves & ~back & (rest != last[:, None]).all(axis=1)


def _leaving_entity_shares(windows: EncodedStates, n: int) -> Floats:
    """Return, per symbol, the smoothed share of the leaving entity, as against new entities, shape (symbols,)."""
    back, new = _leaving_entity_masks(windows, n)
    last = windows.symbols[:, -1]
    backs, news = (np.bincount(last[rows], minlength=len(SYMBOLS)).astype(float) for rows in (back, new))
    overall = (backs.sum() + 1) / (backs.sum() + news.sum() + 2)
    share: Floats = (backs + _SPLIT_PRIOR_WEIGHT * overall) / (backs + news + _SPLIT_PRIOR_WEIGHT)
    return share


def _fit_kneser_ney(windows: EncodedStates, order: int) -> tuple[_NgramLevel, ...]:
    levels = []
    for n in range(1, order + 1):
        keys = _ngram_keys(windows, n, "kneser-ney")
        unique, counts = np.unique(keys, return_counts=True)
        if n < order:
            positions = np.unique(_ngram_keys(windows, n + 1, "kneser-ney"), return_index=True)[1]
            lefts = np.bincount(np.searchsorted(unique, keys[positions]), minlength=len(unique))
            padded = unique // _key_base(windows.symbols.shape[1]) ** (n - 1) < windows.symbols.shape[1] + 1
            counts = np.where(padded & (n > 1), counts, lefts)
        discount = np.array([0.0, *kneser_ney_discounts(counts)])[np.minimum(counts, 3)]
        levels.append(_build_level(unique, counts, discount, order))
    return tuple(levels)


def _fit_paper_model(windows: EncodedStates, order: int) -> tuple[_NgramLevel, ...]:
    levels = []
    for n in range(1, order + 1):
        unique, counts = np.unique(_ngram_keys(windows, n, "paper"), return_counts=True)
        n1, n2 = (int((counts == times).sum()) for times in (1, 2))
        discount = n1 / (n1 + 2 * n2) if n > 1 and n1 else 0.0
        levels.append(_build_level(unique, counts, np.full(len(unique), discount), order))
    return tuple(levels)


_FIT_BY_KIND = {"kneser-ney": _fit_kneser_ney, "paper": _fit_paper_model}


def _build_level(keys: Ints, counts: Ints, discount: Floats, order: int) -> _NgramLevel:
    contexts, context_index = np.unique(keys // _key_base(order), return_inverse=True)
    total = np.bincount(context_index, counts)
    left = np.bincount(context_index, discount) / total
    return _NgramLevel(keys, np.append((counts - discount) / total[context_index], 0.0), contexts, np.append(left, 1.0))
