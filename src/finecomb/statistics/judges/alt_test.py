r"""The alternative annotator test: is a judge, person by person, at least as close to the others as that person is?

Calderon, Reichart and Dror (2025), "The Alternative Annotator Test for LLM-as-a-Judge". Person $j$ is left out; on each
item $i$ that $j$ answered, the judge and $j$ are scored against the remaining people. With
$d_i = 1[S(h_j) \ge S(f)] - 1[S(f) \ge S(h_j)]$ a one-sided t-test asks whether $E(d) < \epsilon$; the judge wins
against $j$ where that is so after the correction of Benjamini and Yekutieli. The winning rate is the share of people
against whom it wins, the advantage the mean over people of $P(S(f) \ge S(h_j))$.

Two things differ from the authors' program unless `authors=True`: items of one text are not taken for independent
(`clusters`), and a person whom the judge equals on every item is won against at every epsilon above 0, where the
authors' p is undefined and counts as a loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError
from finecomb.core.estimate import Estimate, Signature
from finecomb.statistics.inference.resampling import estimate_with_interval, study_and_resample_weights
from finecomb.statistics.judges.score_rules import Answer, ScoreRule, resolve_score_rule

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Item = Any
"""Whatever names an item: a string, a number, a pair."""
Answers = Mapping[Item, Answer]
Clusters = Mapping[Item, Hashable] | Callable[[Item], Hashable]

MIN_ITEMS = 30
MIN_CLUSTERS = 8
EQUAL_REASON = "equal, not shown to be better"


@dataclass(frozen=True, slots=True)
class PersonResult:
    """One person against the judge, both measured by the others."""

    person: str
    items: int
    """Answered by the person, by the judge and by somebody else."""
    texts: int
    """Clusters of these items."""
    advantage: Estimate
    """How often the judge is at least as close to the others as this person is."""
    disadvantage: float
    """Mean of d: how much more often the person is at least as close than the judge is."""
    p: float
    """Of the test that the disadvantage is epsilon or more."""
    wins: bool
    """Whether the judge wins against this person after the correction for many people."""
    why: str = ""
    """What is particular: no variance, too few items."""

    def row(self) -> dict[str, object]:
        """Flat, for a table."""
        columns: dict[str, object] = {"person": self.person, "items": self.items, "texts": self.texts}
        columns |= {"advantage": self.advantage.value, "low": self.advantage.low, "high": self.advantage.high}
        return columns | {"disadvantage": self.disadvantage, "p": self.p, "wins": self.wins, "why": self.why}


@dataclass(frozen=True, slots=True)
class AltTest:
    """The alternative annotator test of one judge; it passes where it wins against at least half of the people."""

    people: tuple[PersonResult, ...]
    rate: Estimate
    """Share of people against whom the judge wins."""
    chance: Estimate
    """Mean over people of how often the judge is at least as close to the others as the person is."""
    epsilon: float
    left_out: tuple[tuple[str, str], ...] = ()
    """People who were not tested, each with the reason."""
    notes: tuple[str, ...] = ()

    @property
    def winning_rate(self) -> float:
        """Share of people against whom the judge wins (omega)."""
        return self.rate.value

    @property
    def advantage(self) -> float:
        """Mean over people of how often the judge is at least as close to the others (rho)."""
        return self.chance.value

    @property
    def win_count(self) -> int:
        """How many people the judge wins against."""
        return sum(person.wins for person in self.people)

    @property
    def required_win_count(self) -> int:
        """How many people it must win against."""
        return math.ceil(len(self.people) / 2)

    @property
    def passes(self) -> bool:
        """Whether the judge wins against at least half of the people."""
        return self.winning_rate >= 0.5

    def rows(self) -> list[dict[str, object]]:
        """One flat row for each person."""
        return [person.row() for person in self.people]


# --- who is compared on what -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PersonComparison:
    """One person and the judge on the items that both and somebody else answered."""

    person: str
    judge: Bools
    """(items,): whether the judge is at least as close to the others."""
    human: Bools
    """(items,): whether the person is."""
    cluster: Ints
    """(items,): number of the text that each item belongs to."""

    @property
    def difference(self) -> Floats:
        """d, (items,): 1 where only the person is at least as close, -1 where only the judge is, else 0."""
        return self.human.astype(np.float64) - self.judge


def compare_each_person(
    people: Mapping[str, Answers], judge: Answers, score: str | ScoreRule, clusters: Clusters | None = None
) -> list[PersonComparison]:
    """Every person beside the judge, on the items that at least two people and the judge answered."""
    rule = resolve_score_rule(score)[1]
    answered = _answers_by_item(people, judge)
    text = _cluster_lookup(clusters)
    numbers: dict[Hashable, int] = {}
    results = []
    for person, answers in people.items():
        items = [item for item in answers if item in answered]
        scores = [_judge_and_person_scores(item, person, answered[item], judge[item], rule) for item in items]
        pairs = np.array(scores, dtype=np.float64).reshape(len(items), 2)  # the judge's, the person's
        cluster = np.array([numbers.setdefault(text(item), len(numbers)) for item in items], dtype=np.int64)
        results.append(PersonComparison(person, pairs[:, 0] >= pairs[:, 1], pairs[:, 1] >= pairs[:, 0], cluster))
    return results


def _answers_by_item(people: Mapping[str, Answers], judge: Answers) -> dict[Item, dict[str, Answer]]:
    """What each person answered to each item that the judge and two people answered."""
    answered: dict[Item, dict[str, Answer]] = {}
    for person, answers in people.items():
        for item, answer in answers.items():
            answered.setdefault(item, {})[person] = answer
    return {item: given for item, given in answered.items() if len(given) >= 2 and item in judge}


def _judge_and_person_scores(
    item: Item, person: str, given: Mapping[str, Answer], answer: Answer, rule: ScoreRule
) -> tuple[float, float]:
    others = [other for name, other in given.items() if name != person]
    return rule(answer, others), rule(given[person], others)


def _cluster_lookup(clusters: Clusters | None) -> Callable[[Item], Hashable]:
    if clusters is None:
        return lambda item: item
    if callable(clusters):
        return clusters

    def find_cluster(item: Item) -> Hashable:
        if item not in clusters:
            raise FinecombError(f"clusters do not say which text item {item!r} belongs to")
        return clusters[item]

    return find_cluster


# --- the test ----------------------------------------------------------------------------------------------------


def disadvantage_p_values(sums: Floats, sizes: Floats, epsilon: float, weights: Floats | None = None) -> Floats:
    """P-values of the one-sided t-test that the mean of d is epsilon or more, (draws,).

    `sums` and `sizes`, (clusters,), are the sum of d and the number of items of each cluster; `weights`, (draws,
    clusters), say how often each comes up. The mean is a ratio of sums, its variance that between clusters. Where
    nothing varies, 0 when the mean is below epsilon and 1 otherwise.
    """
    weights = np.ones((1, len(sums))) if weights is None else weights
    total, count = weights @ sums, weights @ sizes
    mean = np.divide(total, count, out=np.full(len(total), np.nan), where=count > 0)
    # sum over clusters of (sum d - mean * size)^2, opened up so that draws need no loop
    squares = weights @ sums**2 - 2 * mean * (weights @ (sums * sizes)) + mean**2 * (weights @ sizes**2)
    groups = weights.sum(axis=1)
    error = np.sqrt(np.maximum(squares, 0) * groups / np.maximum(groups - 1, 1)) / np.maximum(count, 1)
    flat = error < 1e-12
    t = np.divide(mean - epsilon, error, out=np.zeros_like(mean), where=~flat)
    p = scipy.special.stdtr(np.maximum(groups - 1, 1), t)
    return np.asarray(np.where(flat, np.where(mean < epsilon, 0.0, 1.0), p), dtype=np.float64)


def benjamini_yekutieli(p: Floats, q: float = 0.05) -> Bools:
    """Which hypotheses the procedure of Benjamini and Yekutieli (2001) rejects, for p-values of shape (..., tests).

    NaN is never rejected and still counts as a test.
    """
    tests = p.shape[-1]
    steps = np.arange(1, tests + 1)
    bounds = q * steps / (tests * (1 / steps).sum())
    order = np.argsort(p, axis=-1)  # NaN last
    below = np.take_along_axis(p, order, axis=-1) <= bounds
    last = np.where(below.any(axis=-1), tests - np.argmax(below[..., ::-1], axis=-1), 0)
    ranks = np.argsort(order, axis=-1)
    return np.asarray(ranks < last[..., None], dtype=np.bool_)


def alt_test(
    people: Mapping[str, Answers],
    judge: Answers,
    score: str | ScoreRule = "accuracy",
    epsilon: float = 0.15,
    clusters: Clusters | None = None,
    authors: bool = False,
    *,
    q: float = 0.05,
    min_items: int | None = None,
    draws: int = 1000,
    seed: int = 0,
) -> AltTest:
    """The alternative annotator test of a judge against people, for answers or for marks.

    `people` is {person: {item: answer}}, `judge` {item: answer}. `score` is `accuracy`, `rmse`, `char-f1` or `typed-f1`
    (answers are then lists of marks, (start, end) or (start, end, label)), or a function of an answer and the others'
    answers. `clusters` says which text an item belongs to, as a mapping or a function; without it every item is its
    own. `epsilon` is how much worse the judge may be in exchange for being cheap. A person needs `least_items` items:
    30, or, with ours, items of at least 8 texts when there are fewer than 30 texts at all. Intervals draw texts again.

    >>> people = {name: {item: item % 2 for item in range(40)} for name in "abc"}
    >>> result = alt_test(people, {item: item % 2 for item in range(40)}, epsilon=0.1)
    >>> result.winning_rate, result.advantage
    (1.0, 1.0)
    """
    if authors and clusters is not None:
        raise FinecombError("the authors' test knows no clusters; leave out clusters, or authors=True")
    if epsilon < 0 or epsilon >= 1:
        raise FinecombError(f"epsilon is a share from 0 up to 1, not {epsilon:g}")
    if len(people) < 2:
        raise FinecombError("one person only: the test compares each person with the others, so it needs two or more")
    every = compare_each_person(people, judge, score, clusters)
    if not any(len(contest.judge) for contest in every):
        raise FinecombError("people and judge share no item that two people answered, so nothing can be compared")
    least = MIN_ITEMS if authors else min_items
    tested, left_out = _select_testable_people(every, least)
    fields = {"statistic": "alt-test", "score": resolve_score_rule(score)[0], "epsilon": epsilon, "q": q}
    fields |= {"authors": authors or None, "people": len(tested), "draws": draws, "seed": seed}
    if authors:
        return _authors_alt_test(tested, left_out, epsilon, q, Signature.from_fields(**fields))
    return _clustered_alt_test(
        tested, left_out, epsilon, q, draws, seed, Signature.from_fields(**fields), _weak_evidence_notes(tested, judge)
    )


def _select_testable_people(
    every: Sequence[PersonComparison], min_items: int | None
) -> tuple[list[PersonComparison], list[tuple[str, str]]]:
    """People with enough items, and why the others are left out."""
    least_items = MIN_ITEMS if min_items is None else min_items
    texts = len(np.unique(np.concatenate([contest.cluster for contest in every])))
    by_text = min_items is None and texts < MIN_ITEMS
    reasons = [_too_few_items_reason(contest, least_items, by_text) for contest in every]
    tested = [contest for contest, reason in zip(every, reasons, strict=True) if not reason]
    left_out = [(contest.person, reason) for contest, reason in zip(every, reasons, strict=True) if reason]
    if not tested:
        raise FinecombError(f"nobody can be tested: {left_out[0][0]} has {left_out[0][1]}, the others likewise")
    return tested, left_out


def _too_few_items_reason(contest: PersonComparison, min_items: int, by_text: bool) -> str:
    items, texts = len(contest.judge), len(np.unique(contest.cluster))
    if by_text:
        few = texts < MIN_CLUSTERS
        return f"{texts} doubly judged texts, fewer than {MIN_CLUSTERS}" if few else ""
    return f"{items} items, fewer than {min_items}" if items < min_items else ""


def _weak_evidence_notes(tested: Sequence[PersonComparison], judge: Answers) -> tuple[str, ...]:
    texts = len(np.unique(np.concatenate([contest.cluster for contest in tested])))
    notes = []
    if texts < MIN_ITEMS:
        notes.append(f"{texts} texts are few: a judge a little worse than people looks like one that is not")
    try:
        constant = len({str(answer) for answer in judge.values()}) == 1
    except TypeError:
        constant = False
    if constant:
        notes.append("the judge gives the same answer to every item")
    return tuple(notes)


def _authors_alt_test(
    tested: Sequence[PersonComparison],
    left_out: Sequence[tuple[str, str]],
    epsilon: float,
    q: float,
    signature: Signature,
) -> AltTest:
    """As the authors' program computes it: items independent, an undefined p is not rejected, no intervals."""
    p = np.array([_item_t_test_p_value(contest.difference, epsilon) for contest in tested])
    wins = benjamini_yekutieli(p, q)
    shares = [float(contest.judge.mean()) for contest in tested]
    results = [
        PersonResult(
            contest.person, len(contest.judge), len(contest.judge), _estimate_without_interval(share, signature),
            float(contest.difference.mean()), float(p[at]), bool(wins[at]),
            "no variance: p is undefined" if math.isnan(p[at]) else "",
        )
        for at, (contest, share) in enumerate(zip(tested, shares, strict=True))
    ]  # fmt: skip
    rate, chance = (
        _estimate_without_interval(float(wins.mean()), signature),
        _estimate_without_interval(float(np.mean(shares)), signature),
    )
    return AltTest(tuple(results), rate, chance, epsilon, tuple(left_out))


def _estimate_without_interval(value: float, signature: Signature) -> Estimate:
    return Estimate(value, math.nan, math.nan, signature)


def _item_t_test_p_value(difference: Floats, epsilon: float) -> float:
    """The one-sided t-test over items; NaN without variance."""
    spread = difference.std(ddof=1)
    if not spread > 0:
        return math.nan
    t = (difference.mean() - epsilon) / (spread / math.sqrt(len(difference)))
    return float(scipy.special.stdtr(len(difference) - 1, t))


@dataclass(frozen=True, slots=True)
class _ClusterSums:
    """Sums of every contest by text, (people, texts): of d, of the judge's indicator, and the number of items."""

    difference: Floats
    judge: Floats
    items: Floats


def _cluster_sums(tested: Sequence[PersonComparison]) -> _ClusterSums:
    texts = np.unique(np.concatenate([contest.cluster for contest in tested]))
    places = [np.searchsorted(texts, contest.cluster) for contest in tested]

    def sum_by_text(values: Sequence[Floats]) -> Floats:
        rows = [np.bincount(at, column, len(texts)) for at, column in zip(places, values, strict=True)]
        return np.array(rows, dtype=np.float64)

    return _ClusterSums(
        sum_by_text([contest.difference for contest in tested]),
        sum_by_text([contest.judge.astype(np.float64) for contest in tested]),
        sum_by_text([np.ones(len(contest.judge)) for contest in tested]),
    )


def _clustered_alt_test(
    tested: Sequence[PersonComparison],
    left_out: Sequence[tuple[str, str]],
    epsilon: float,
    q: float,
    draws: int,
    seed: int,
    signature: Signature,
    notes: tuple[str, ...],
) -> AltTest:
    sums = _cluster_sums(tested)
    weights = study_and_resample_weights(sums.items.shape[1], draws, seed)
    p = _p_values_per_draw(sums, epsilon, weights)  # (1 + draws, people)
    wins = benjamini_yekutieli(p, q)
    shares = _advantage_shares(sums, weights)
    people = tuple(
        _person_result(
            contest, sums, at, p[0, at], bool(wins[0, at]), _estimate_from_draws(shares[:, at], signature), epsilon
        )
        for at, contest in enumerate(tested)
    )
    rate, chance = (
        _estimate_from_draws(wins.mean(axis=1), signature),
        _estimate_from_draws(_mean_of_finite(shares), signature),
    )
    return AltTest(people, rate, chance, epsilon, tuple(left_out), notes)


def _p_values_per_draw(sums: _ClusterSums, epsilon: float, weights: Floats) -> Floats:
    """P-values of every draw and person; only the texts that a person answered count for that person."""
    columns = []
    for difference, items in zip(sums.difference, sums.items, strict=True):
        read = items > 0
        columns.append(disadvantage_p_values(difference[read], items[read], epsilon, weights[:, read]))
    return np.stack(columns, axis=1)


def _advantage_shares(sums: _ClusterSums, weights: Floats) -> Floats:
    """How often the judge is at least as close, (draws, people); NaN where a draw has none of a person's texts."""
    top, bottom = weights @ sums.judge.T, weights @ sums.items.T
    shares: Floats = np.divide(top, bottom, out=np.full(top.shape, np.nan), where=bottom > 0)
    return shares


def _mean_of_finite(values: Floats) -> Floats:
    defined = np.isfinite(values)
    return np.asarray(np.where(defined, values, 0).sum(axis=1) / np.maximum(defined.sum(axis=1), 1), dtype=np.float64)


def _estimate_from_draws(values: Floats, signature: Signature) -> Estimate:
    """The first value, that of the study itself, with the interval of the others."""
    return estimate_with_interval(float(values[0]), values[1:], signature)


def _person_result(
    contest: PersonComparison, sums: _ClusterSums, at: int, p: float, wins: bool, advantage: Estimate, epsilon: float
) -> PersonResult:
    difference = contest.difference
    flat = np.ptp(difference) == 0
    equal = flat and not difference[0]
    why = "" if not equal else "equal on every item" if epsilon else EQUAL_REASON
    texts = int((sums.items[at] > 0).sum())
    return PersonResult(
        contest.person, len(difference), texts, advantage, float(difference.mean()), float(p), wins, why
    )
