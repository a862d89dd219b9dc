from __future__ import annotations

import math
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from finecomb.core.errors import FinecombError
from finecomb.corpora.critics.coreference_model import (
    SYMBOLS,
    EncodedStates,
    MentionNgramModel,
    count_ngrams,
    encode_states,
    format_windows,
    relabel_entities,
    successor_windows,
)
from finecomb.corpora.critics.priors import END

Gram = tuple[str, ...]
Chain = list[str]
ORDER = 4

words = st.sampled_from(["M", "F", "he", "He", "her", "N"])
states = st.one_of(st.just("."), st.builds(lambda word, person: f"{word}:{person}", words, st.integers(0, 3)))
chains = st.lists(st.lists(states, max_size=10), min_size=1, max_size=6)


def relabel(gram: Gram) -> Gram:
    numbers: dict[str, int] = {}
    labels = []
    for state in gram:
        word, colon, person = state.partition(":")
        labels.append(f"{word}:{numbers.setdefault(person, len(numbers))}" if colon else state)
    return tuple(labels)


def windows(z: Chain, order: int, ends: bool = True) -> list[Gram]:
    padded = [""] * (order - 1) + ([*z, END] if ends else [*z])
    return [tuple(padded[at : at + order]) for at in range(len(padded) - order + 1)]


class SlowPaper:
    """What the authors' program computes: n-grams relabelled in the highest order's frame and cut, raw counts."""

    def __init__(self, zs: list[Chain], order: int) -> None:
        self.order = order
        self.counts: list[Counter[Gram]] = [Counter() for _ in range(order + 1)]
        for z in zs:
            for window in windows(z, order, ends=False):
                framed = relabel(window)
                for n in range(1, order + 1):
                    self.counts[n][framed[order - n :]] += 1
        self.prefixes = [Counter[Gram]() for _ in range(order + 1)]
        self.types: list[dict[Gram, int]] = [defaultdict(int) for _ in range(order + 1)]
        for n in range(1, order + 1):
            for gram, count in self.counts[n].items():
                self.prefixes[n][gram[:-1]] += count
                self.types[n][gram[:-1]] += 1

    def probability(self, window: Gram) -> float:
        framed, n = relabel(window), self.order
        while framed[:-1] not in self.prefixes[n]:
            framed, n = framed[1:], n - 1
        return self._recursive(framed, n)

    def _recursive(self, gram: Gram, n: int) -> float:
        once, twice = (sum(count == times for count in self.counts[n].values()) for times in (1, 2))
        discount = once / (once + 2 * twice) if n > 1 and once else 0.0
        total = self.prefixes[n][gram[:-1]]
        first = max(self.counts[n][gram] - discount, 0) / total
        if n == 1:
            return first if first > 0 else 1e-20
        lower = discount * self.types[n][gram[:-1]] / total * self._recursive(gram[1:], n - 1)
        return first + lower  # theirs stops with an error at 0


class SlowKneserNey:
    """Interpolated modified Kneser-Ney, relabelled at each order, from its definition."""

    def __init__(self, zs: list[Chain], order: int) -> None:
        self.order = order
        self.seen = [window for z in zs for window in windows(z, order)]
        raw: list[Counter[Gram]] = [Counter() for _ in range(order + 1)]
        for window in self.seen:
            for n in range(1, order + 1):
                raw[n][relabel(window[order - n :])] += 1
        self.counts = [Counter[Gram]() for _ in range(order + 1)]
        for n in range(1, order + 1):
            for gram, count in raw[n].items():
                is_raw = n == order or (n > 1 and gram[0] == "")
                lefts = sum(1 for longer in raw[n + 1] if relabel(longer[1:]) == gram) if not is_raw else 0
                self.counts[n][gram] = count if is_raw else lefts

    def discounts(self, n: int) -> list[float]:
        of = Counter(self.counts[n].values())
        if not (of[1] and of[2] and of[3]):
            return [0, 0.5, 1, 1.5]
        y = of[1] / (of[1] + 2 * of[2])
        estimates = [k - (k + 1) * y * of[k + 1] / of[k] for k in (1, 2, 3)]
        return [0, *estimates] if min(estimates) > 0 else [0, 0.5, 1, 1.5]

    def kind(self, window: Gram, n: int) -> str:
        """`back` when the last state is the person that leaves the context next, `new` when a new one, else `both`."""
        people = [state.partition(":")[2] for state in window[len(window) - n :]]
        if n < 2 or not people[-1] or not people[0] or people[0] in people[1:-1]:
            return ""
        if people[-1] == people[0]:
            return "back"
        return "" if people[-1] in people[1:-1] else "new"

    def split(self, word: str, n: int) -> float:
        kinds_by_word = [(window[-1].partition(":")[0], kind) for window in self.seen if (kind := self.kind(window, n))]
        backs = sum(kind == "back" for _, kind in kinds_by_word)
        overall = (backs + 1) / (len(kinds_by_word) + 2)
        kinds = [kind for other, kind in kinds_by_word if other == word]
        return (kinds.count("back") + 5 * overall) / (len(kinds) + 5)

    def probability(self, window: Gram, n: int | None = None) -> float:
        n = self.order if n is None else n
        if n == 0:
            return 1 / (len(SYMBOLS) - 1)
        gram = relabel(window[len(window) - n :])
        share = self.split(window[-1].partition(":")[0], n)
        share = {"back": share, "new": 1 - share}.get(self.kind(window, n), 1.0)
        lower = share * self.probability(window, n - 1)
        row = {ngram: count for ngram, count in self.counts[n].items() if ngram[:-1] == gram[:-1]}
        if not row:
            return lower
        discount, total = self.discounts(n), sum(row.values())
        ours = row.get(gram, 0)
        left = sum(discount[min(count, 3)] for count in row.values()) / total
        return (ours - discount[min(ours, 3)]) / total + left * lower


@settings(max_examples=30)
@given(chains.filter(any), chains)
def test_paper_equals_its_definition(fitted: list[Chain], scored: list[Chain]) -> None:
    model, slow = MentionNgramModel.fit(fitted, "paper", ORDER), SlowPaper(fitted, ORDER)
    for z in scored:
        expected = [slow.probability(window) for window in windows(z, ORDER, ends=False)]
        assert np.exp(model.log_prob(z)) == pytest.approx(expected, rel=1e-9, abs=0)


def test_paper_is_the_authors_program_worked_by_hand() -> None:
    """No end state; the floor of 1e-20 is for single states only, so that a seen context leaves less than that."""
    model = MentionNgramModel.fit([[".", "M:0", "he:0"], [".", "M:0", "he:0"], [".", "F:0"]], "paper", 2)
    # single states: . 3, M:0 2, he:0 2, F:0 1, of 8
    # pairs: begin-. 3, .-M:0 2, M:0-he:0 2, .-F:0 1, so that D = 1 / (1 + 2 x 2)
    after_begin = (3 - 0.2) / 3 + 0.2 * 1 / 3 * 3 / 8
    female = (1 - 0.2) / 3 + 0.2 * 2 / 3 * 1 / 8
    assert np.exp(model.log_prob([".", "F:4"])) == pytest.approx([after_begin, female])
    never_seen = 0.2 * 2 / 3 * 1e-20  # `.` was seen, `she` was not
    assert np.exp(model.log_prob([".", "she:0"])) == pytest.approx([after_begin, never_seen], rel=1e-9, abs=0)
    # F:0 is no context, so single states decide; in the frame of the pair he is number 1, and no single state is he:1
    assert np.exp(model.log_prob([".", "F:0", "he:1"]))[2] == pytest.approx(1e-20, rel=1e-9, abs=0)
    assert list(model.step_names([".", "F:0"])) == [".", "F:0"]


def test_paper_has_probability_nil_where_nothing_is_discounted() -> None:
    model = MentionNgramModel.fit([[".", "M:0"]] * 2 + [[".", "F:0"]] * 2, "paper", 2)
    assert np.isneginf(model.log_prob([".", "."])[1])


@settings(max_examples=20, deadline=None)
@given(chains, chains)
def test_kneser_ney_equals_its_definition(fitted: list[Chain], scored: list[Chain]) -> None:
    model, slow = MentionNgramModel.fit(fitted, "kneser-ney", ORDER), SlowKneserNey(fitted, ORDER)
    for z in scored[:2]:
        assert model.log_prob(z) == pytest.approx([math.log(slow.probability(window)) for window in windows(z, ORDER)])


@settings(max_examples=30)
@given(chains, st.lists(states, max_size=8), st.integers(2, 6))
def test_kneser_ney_sums_to_one_over_legal_successors(fitted: list[Chain], history: Chain, order: int) -> None:
    model = MentionNgramModel.fit(fitted, "kneser-ney", order)
    padded = encode_states([*history])
    symbols = np.concatenate([np.zeros(order, np.int64), padded.symbols])[-order:]
    entities = np.concatenate([np.full(order, -1), padded.entities])[-order:]
    assert model.probabilities(successor_windows(EncodedStates(symbols, entities))).sum() == pytest.approx(1)


def test_the_papers_model_does_not_sum_to_one() -> None:
    """It gives mass to persons who cannot come next, because lower orders keep the numbers of the highest."""
    rng = np.random.default_rng(0)
    fitted = [[f"{rng.choice(['M', 'he', 'F', 'her'])}:{rng.integers(4)}" for _ in range(12)] for _ in range(20)]
    model = MentionNgramModel.fit(fitted, "paper", 5)
    last = encode_states(["M:0", "M:0", "M:0", "F:0"])
    assert model.probabilities(successor_windows(EncodedStates(last.symbols, last.entities))).sum() < 0.9


@given(st.lists(st.lists(st.integers(-1, 4), min_size=5, max_size=5), min_size=1, max_size=5))
def test_canonical_numbers_persons_by_first_appearance(rows: list[list[int]]) -> None:
    for row, ours in zip(rows, relabel_entities(np.array(rows)).tolist(), strict=True):
        numbers: dict[int, int] = {}
        assert ours == [numbers.setdefault(entity, len(numbers)) if entity >= 0 else -1 for entity in row]


@given(chains)
def test_renaming_persons_changes_nothing(zs: list[Chain]) -> None:
    model = MentionNgramModel.fit(zs, "kneser-ney", ORDER)
    renamed = [f"{word}{colon}{9 - int(person)}" if colon else word for word, colon, person in map(split, zs[0])]
    assert model.log_prob(renamed) == pytest.approx(model.log_prob(zs[0]))


def split(state: str) -> tuple[str, str, str]:
    return state.partition(":")


def test_likeliest_is_the_best_legal_successor() -> None:
    model = MentionNgramModel.fit([[".", "F:0", "her:0", "her:0"]] * 20, "kneser-ney", 5)
    z = [".", "F:7", "her:7", "M:2"]
    best = model.most_probable_states(z)
    assert [name for name, _ in best][:4] == [".", "F:0", "her:7", "her:7"]
    assert all(log_p >= log_prob for (_, log_p), log_prob in zip(best, model.log_prob(z), strict=True))


def test_tally_counts_relabelled_ngrams() -> None:
    ngrams = count_ngrams([["M:3", "he:3"], ["M:1", "he:1"], ["M:1", "he:0"]], 2)
    assert dict(zip(format_windows(ngrams.windows), ngrams.counts.tolist(), strict=True)) == {
        ("", "M:0"): 3, ("M:0", "he:0"): 2, ("M:0", "he:1"): 1, ("he:0", END): 3
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["kneser-ney", "paper"])
def test_a_model_is_made_again_from_its_state(kind: str) -> None:
    model = MentionNgramModel.fit([[".", "M:0", "he:0"], [".", "F:0"]], kind, 3)  # type: ignore[arg-type]
    again = MentionNgramModel.from_state(model.state())
    assert (again.log_prob([".", "F:1", "he:1"]) == model.log_prob([".", "F:1", "he:1"])).all()


def test_what_is_no_state_is_refused() -> None:
    with pytest.raises(FinecombError, match="unknown state 'dog'; expected a pronoun"):
        encode_states(["dog:1"])
    with pytest.raises(FinecombError, match="order must be between 2 and 6, found 9"):
        MentionNgramModel.fit([["M:0"]], order=9)
    with pytest.raises(FinecombError, match="the fitting documents contain no coreference chains"):
        MentionNgramModel.fit([])
