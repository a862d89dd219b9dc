r"""P(z) of coreference chains: n-gram models of mentions whose entities are relabelled within each n-gram.

z is a row of states: `.` at the start of each sentence, a pronoun or a gender with the number of its entity, as `she:3`
or `M:0`, and at last, with `kneser-ney`, the end. Within an n-gram entities count from 0 in the order in which they
appear, so that the model learns who may follow whom and not who they are (Deng et al. 2022, section 5).

`kneser-ney` is interpolated modified Kneser-Ney whose n-grams are relabelled anew at each order. When the context gets
shorter by one state, at most one entity leaves it, and both that entity and one never seen become `new` there; the
probability of `new` is then shared between the two by how often each occurs with that word. So at every order the
legal successors (every entity of the context, and a new one) have probabilities that sum to one.

`paper` is what the authors' program does: n-grams are relabelled once, in the frame of the highest order, and cut to
the lower ones; raw counts at every order; one discount D = n1 / (n1 + 2 n2) an order and none for single states; a
state that was never seen at all has 1e-20 as a single state; there is no end. It gives mass to entities that cannot
occur, and so sums to less than one. Where an order has no n-gram that occurs once, D is 0 and a state never seen after
its context has probability 0: the authors' program stops there, and here the document is left out with that reason.
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
from finecomb.corpora.critics.ngrams import Floats, Ints, discounts
from finecomb.corpora.critics.priors import END, SavedState

ModelKind = Literal["kneser-ney", "paper"]

GENDERS = ("M", "F", "P", "N")
_LOWERCASE_PRONOUNS = (*MALE, *FEMALE, *PLURAL, *FIRST_SECOND_PERSON[1:])
_CAPITALISED_PRONOUNS = tuple(word.capitalize() for word in (*MALE, *FEMALE, *PLURAL, *FIRST_SECOND_PERSON))
PAD, SENTENCE = "", "."
SYMBOLS = (PAD, END, SENTENCE, *GENDERS, *_LOWERCASE_PRONOUNS, *_CAPITALISED_PRONOUNS)
_INDEX_BY_SYMBOL = {symbol: at for at, symbol in enumerate(SYMBOLS)}
_FIRST_ENTITY_SYMBOL = _INDEX_BY_SYMBOL["M"]  # symbols from here on have an entity
_ORDERS = range(2, 7)  # an n-gram must fit into 63 bits
_MIN_PROBABILITY = 1e-20
_SPLIT_WEIGHT = 5.0  # how many observations the split over all words is worth for the split of one word


class EncodedStates(NamedTuple):
    """States as numbers: of the symbol, and of the entity, -1 for none."""

    symbols: Ints
    entities: Ints


@dataclass(frozen=True, slots=True)
class _NgramLevel:
    keys: Ints  # sorted n-grams
    mass: Floats  # discounted share of each in its context, and a last 0
    contexts: Ints  # sorted contexts
    left: Floats  # weight of the next lower order by context, and a last 1


@dataclass(frozen=True)
class ChainModel:
    """A fitted model; a `Prior` over rows of states."""

    kind: ModelKind
    order: int
    levels: tuple[_NgramLevel, ...]
    splits: Floats
    """(order + 1, symbols): of `new`, the share of the entity that has just left the context."""

    @classmethod
    def fit(cls, zs: Iterable[Sequence[str]], kind: ModelKind = "kneser-ney", order: int = 5) -> ChainModel:
        """From rows of states, without their ends."""
        if order not in _ORDERS:
            raise FinecombError(f"the order of a model of chains is {_ORDERS[0]} to {_ORDERS[-1]}, not {order}")
        windows = _all_windows(zs, order, has_end_state(kind))
        splits = np.array([_leaving_entity_shares(windows, n) for n in range(order + 1)])
        return cls(kind, order, _FIT_BY_KIND[kind](windows, order), splits)

    def probabilities(self, windows: EncodedStates) -> Floats:
        """P(last state | states before it) of (m, order) windows."""
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
        """Whether the end of a text is a state."""
        return has_end_state(self.kind)

    def _lower_order_shares(self, windows: EncodedStates, n: int) -> Floats:
        """What part of the lower order's probability is this state's own."""
        ones = np.ones(len(windows.symbols))
        if self.kind == "paper":
            return ones
        back, new = _leaving_entity_masks(windows, n)
        split = self.splits[n, windows.symbols[:, -1]]
        return np.where(back, split, np.where(new, 1 - split, ones))

    def log_prob(self, z: Sequence[str]) -> Floats:
        """log P of each state, and of the end where it is one."""
        with np.errstate(divide="ignore"):
            logs: Floats = np.log(self.probabilities(_windows(encode(z, self.has_end_state), self.order)))
        return logs

    def expected_log_prob(self, posterior: object) -> Floats:
        """Chains are points."""
        raise TypeError("a model of chains has no expectation under a posterior that is not a point")

    def step_names(self, z: Sequence[str]) -> Sequence[str]:
        """The states, and the end where it is one."""
        return (*z, END) if self.has_end_state else tuple(z)

    def most_probable_states(self, z: Sequence[str]) -> list[tuple[str, float]]:
        """The most probable legal successor of what came before each state."""
        windows = _windows(encode(z, self.has_end_state), self.order)
        return [self.most_probable_successor(EncodedStates(*row)) for row in zip(*windows, strict=True)]

    def most_probable_successor(self, window: EncodedStates) -> tuple[str, float]:
        """The most probable last state of a window, with its log P; a new entity is numbered after those there."""
        candidates = successors(window, self.has_end_state)
        with np.errstate(divide="ignore"):
            logs = np.log(self.probabilities(candidates))
        at = int(logs.argmax())
        return decode(candidates.symbols[at, -1], candidates.entities[at, -1]), float(logs[at])

    def state(self) -> SavedState:
        """For storage."""
        levels = [{name: getattr(level, name) for name in _NgramLevel.__slots__} for level in self.levels]
        return {"kind": self.kind, "order": self.order, "levels": levels, "splits": self.splits}

    @classmethod
    def from_state(cls, state: SavedState) -> ChainModel:
        """From storage."""
        levels = tuple(_NgramLevel(**level) for level in state["levels"])
        return cls(state["kind"], state["order"], levels, state["splits"])


def has_end_state(kind: ModelKind) -> bool:
    """Whether a kind of model takes the end of a text as a state; the authors' program does not."""
    return kind != "paper"


def encode(z: Sequence[str], ends: bool = True) -> EncodedStates:
    """States as numbers, with `ends` the end put to them.

    >>> encode([".", "M:7", "he:7"]).entities.tolist()
    [-1, 7, 7, -1]
    """
    parts = [state.partition(":") for state in ((*z, END) if ends else z)]
    unknown = [symbol for symbol, _, _ in parts if symbol not in _INDEX_BY_SYMBOL]
    if unknown:
        raise FinecombError(f"{unknown[0]!r} is neither a pronoun nor one of {', '.join(GENDERS)}, nor '{SENTENCE}'")
    symbols = np.array([_INDEX_BY_SYMBOL[symbol] for symbol, _, _ in parts], np.int64)
    return EncodedStates(symbols, np.array([int(entity) if entity else -1 for _, _, entity in parts], np.int64))


def decode(symbol: int, entity: int) -> str:
    """One state as it is written."""
    return SYMBOLS[symbol] + (f":{entity}" if entity >= 0 else "")


class NgramCounts(NamedTuple):
    """The n-grams of a corpus, relabelled, each once."""

    keys: Ints
    counts: Ints
    windows: EncodedStates
    """(n-grams, order): one occurrence of each."""


def count_ngrams(zs: Iterable[Sequence[str]], order: int, ends: bool = True) -> NgramCounts:
    """How often each relabelled n-gram occurs that ends at a state or, with `ends`, at the end."""
    windows = _all_windows(zs, order, ends)
    keys, at, counts = np.unique(_ngram_keys(windows, order, "kneser-ney"), return_index=True, return_counts=True)
    return NgramCounts(keys, counts, EncodedStates(windows.symbols[at], windows.entities[at]))


def format_windows(windows: EncodedStates) -> list[tuple[str, ...]]:
    """Each window's states, relabelled, as they are written; padding is empty."""
    rows = zip(windows.symbols.tolist(), relabel_entities(windows.entities).tolist(), strict=True)
    return [tuple(map(decode, symbols, entities)) for symbols, entities in rows]


def relabel_entities(entities: Ints) -> Ints:
    """Entities of each row numbered from 0 in the order in which they appear; -1 stays.

    >>> relabel_entities(np.array([[7, -1, 3, 7]])).tolist()
    [[0, -1, 1, 0]]
    """
    same = entities[:, :, None] == entities[:, None, :]  # (m, n, n)
    first = same.argmax(axis=2)
    new = (first == np.arange(entities.shape[1])) & (entities >= 0)
    numbers = np.take_along_axis(np.cumsum(new, axis=1) - 1, first, axis=1)
    return np.where(entities >= 0, numbers, -1)


def successors(window: EncodedStates, ends: bool = True) -> EncodedStates:
    """Windows with the same context and every legal last state: each word with each entity there and a new one."""
    context, before = window.symbols[:-1], window.entities[:-1]
    options = np.append(np.unique(before[before >= 0]), before.max(initial=-1) + 1)
    words = np.arange(_FIRST_ENTITY_SYMBOL, len(SYMBOLS))
    signs = [_INDEX_BY_SYMBOL[END], _INDEX_BY_SYMBOL[SENTENCE]] if ends else [_INDEX_BY_SYMBOL[SENTENCE]]
    last = np.concatenate([signs, np.repeat(words, len(options))])
    entity = np.concatenate([np.full(len(signs), -1), np.tile(options, len(words))])
    rows = len(last)
    symbols = np.column_stack([np.tile(context, (rows, 1)), last])
    return EncodedStates(symbols, np.column_stack([np.tile(before, (rows, 1)), entity]))


def _windows(encoded: EncodedStates, order: int) -> EncodedStates:
    """(states, order): each state with those before it, padded at the beginning."""
    if not len(encoded.symbols):
        return EncodedStates(np.empty((0, order), np.int64), np.empty((0, order), np.int64))
    symbols = np.concatenate([np.full(order - 1, _INDEX_BY_SYMBOL[PAD]), encoded.symbols])
    entities = np.concatenate([np.full(order - 1, -1), encoded.entities])
    return EncodedStates(sliding_window_view(symbols, order), sliding_window_view(entities, order))


def _all_windows(zs: Iterable[Sequence[str]], order: int, ends: bool) -> EncodedStates:
    parts = [_windows(encode(z, ends), order) for z in zs]
    if not sum(len(part.symbols) for part in parts):
        raise FinecombError("there are no chains to count")
    symbols, entities = zip(*parts, strict=True)
    return EncodedStates(np.concatenate(symbols), np.concatenate(entities))


def _key_base(order: int) -> int:
    return len(SYMBOLS) * (order + 1)


def _ngram_keys(windows: EncodedStates, n: int, kind: ModelKind) -> Ints:
    """The last n states as one number; the context is its quotient by the base."""
    order = windows.symbols.shape[1]
    entities = windows.entities[:, order - n :] if kind == "kneser-ney" else windows.entities
    codes = windows.symbols[:, order - n :] * (order + 1) + relabel_entities(entities)[:, -n:] + 1
    return functools.reduce(lambda key, code: key * _key_base(order) + code, codes.T, np.zeros(len(codes), np.int64))


def _find_positions(table: Ints, wanted: Ints) -> Ints:
    """Places in a sorted table, -1 where absent."""
    at = np.minimum(np.searchsorted(table, wanted), len(table) - 1)
    return np.where(table[at] == wanted, at, -1)


def _leaving_entity_masks(windows: EncodedStates, n: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Where the first entity is not in the rest of the context: is the last state that entity, or is it a new one?"""
    entities = windows.entities[:, windows.symbols.shape[1] - n :]
    if n < 2:
        none = np.zeros(len(entities), bool)
        return none, none
    first, rest, last = entities[:, 0], entities[:, 1:-1], entities[:, -1]
    leaves = (first >= 0) & (rest != first[:, None]).all(axis=1) & (last >= 0)
    back = leaves & (last == first)
    return back, leaves & ~back & (rest != last[:, None]).all(axis=1)


def _leaving_entity_shares(windows: EncodedStates, n: int) -> Floats:
    """(symbols,): of words that follow with the leaving entity or a new one, the share of the first, smoothed."""
    back, new = _leaving_entity_masks(windows, n)
    last = windows.symbols[:, -1]
    backs, news = (np.bincount(last[rows], minlength=len(SYMBOLS)).astype(float) for rows in (back, new))
    overall = (backs.sum() + 1) / (backs.sum() + news.sum() + 2)
    share: Floats = (backs + _SPLIT_WEIGHT * overall) / (backs + news + _SPLIT_WEIGHT)
    return share


def _fit_kneser_ney(windows: EncodedStates, order: int) -> tuple[_NgramLevel, ...]:
    levels = []
    for n in range(1, order + 1):
        keys = _ngram_keys(windows, n, "kneser-ney")
        unique, counts = np.unique(keys, return_counts=True)
        if n < order:
            counts = _left_neighbour_counts(windows, n, keys, unique, counts)
        discount = np.array([0.0, *discounts(counts)])[np.minimum(counts, 3)]
        levels.append(_level(unique, counts, discount, order))
    return tuple(levels)


def _left_neighbour_counts(windows: EncodedStates, n: int, keys: Ints, unique: Ints, counts: Ints) -> Ints:
    """How many n-grams one longer end in each; those that begin with padding have none to count and keep their own."""
    at = np.unique(_ngram_keys(windows, n + 1, "kneser-ney"), return_index=True)[1]
    lefts = np.bincount(np.searchsorted(unique, keys[at]), minlength=len(unique))
    padded = unique // _key_base(windows.symbols.shape[1]) ** (n - 1) < windows.symbols.shape[1] + 1
    return np.where(padded & (n > 1), counts, lefts)


def _fit_paper_model(windows: EncodedStates, order: int) -> tuple[_NgramLevel, ...]:
    levels = []
    for n in range(1, order + 1):
        unique, counts = np.unique(_ngram_keys(windows, n, "paper"), return_counts=True)
        n1, n2 = (int((counts == times).sum()) for times in (1, 2))
        discount = n1 / (n1 + 2 * n2) if n > 1 and n1 else 0.0
        levels.append(_level(unique, counts, np.full(len(unique), discount), order))
    return tuple(levels)


_FIT_BY_KIND = {"kneser-ney": _fit_kneser_ney, "paper": _fit_paper_model}


def _level(keys: Ints, counts: Ints, discount: Floats, order: int) -> _NgramLevel:
    contexts, at = np.unique(keys // _key_base(order), return_inverse=True)
    total = np.bincount(at, counts)
    left = np.bincount(at, discount) / total
    return _NgramLevel(keys, np.append((counts - discount) / total[at], 0.0), contexts, np.append(left, 1.0))
