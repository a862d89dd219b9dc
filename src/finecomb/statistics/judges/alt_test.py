r"""Alternative annotator test: a leave-one-out comparison of a judge with each person.

Calderon, Reichart and Dror (2025), "The Alternative Annotator Test for LLM-as-a-Judge". Person $j$ is left out. On each
item $i$ that $j$ answered, the judge and $j$ are scored against the remaining people. With
$d_i = 1[S(h_j) \ge S(f)] - 1[S(f) \ge S(h_j)]$, a one-sided t-test checks whether $E(d) < \epsilon$. The judge wins
against $j$ if the test is significant after the correction of Benjamini and Yekutieli. The winning rate is the share
of people against whom the judge wins. The advantage is the mean over people of $P(S(f) \ge S(h_j))$.

Without `authors=True`, two things differ from the authors' program. Items of one text are not treated as independent
(`clusters`). A judge that equals a person on every item wins at every epsilon above 0, whereas the authors' p-value is
undefined and counts as a loss.
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
from finecomb.core.results import Estimate, Signature
from finecomb.statistics.inference.resampling import estimate_with_interval, ratio_or_nan, study_and_resample_weights
from finecomb.statistics.judges.score_rules import Answer, ScoreRule, resolve_score_rule

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Item = Any
"""Identifier of an item: any hashable value, e.g. a string, a number or a pair."""
Answers = Mapping[Item, Answer]
Clusters = Mapping[Item, Hashable] | Callable[[Item], Hashable]

MIN_ITEMS = 30
MIN_CLUSTERS = 8
EQUAL_NOT_BETTER_REASON = "equal, not shown to be better"


@dataclass(frozen=True, slots=True)
class PersonResult:
    """Result of the alternative annotator test for one person; the other people's answers are the reference."""

    person: str
    items: int
    """Number of items answered by the person, the judge and at least one other person."""
    texts: int
    """Number of clusters (texts) to which the items belong."""
    advantage: Estimate
    """Share of items on which the judge is at least as close to the other people as this person."""
    disadvantage: float
    """Mean of d: share of items on which the person is at least as close to the others, minus the judge's share."""
    p: float
    """P-value for the null hypothesis that the disadvantage is at least epsilon."""
    wins: bool
    """True if the judge wins against this person after the correction for multiple tests."""
    why: str = ""
    """Note on a special case, e.g. no variance; empty otherwise."""

    def row(self) -> dict[str, object]:
        """Return the result of this person as a flat table row."""
        columns: dict[str, object] = {"person": self.person, "items": self.items, "texts": self.texts}
        columns |= {"advantage": self.advantage.value, "low": self.advantage.low, "high": self.advantage.high}
        return columns | {"disadvantage": self.disadvantage, "p": self.p, "wins": self.wins, "why": self.why}


@dataclass(frozen=True, slots=True)
class AltTest:
    """Alternative annotator test of one judge. To pass, the judge must win against at least half of the people."""

    people: tuple[PersonResult, ...]
    rate: Estimate
    """Share of people against whom the judge wins."""
    chance: Estimate
    """Mean over people of the share of items on which the judge is at least as close to the others as the person."""
    epsilon: float
    left_out: tuple[tuple[str, str], ...] = ()
    """People who were not tested, with the reason for each."""
    notes: tuple[str, ...] = ()

    @property
    def winning_rate(self) -> float:
        """Share of people against whom the judge wins (omega)."""
        return self.rate.value

    @property
    def advantage(self) -> float:
        """Mean over people of the share of items on which the judge is at least as close to the others (rho)."""
        return self.chance.value

    @property
    def win_count(self) -> int:
        """Number of people against whom the judge wins."""
        return sum(person.wins for person in self.people)

    @property
    def required_win_count(self) -> int:
        """Number of people against whom the judge must win to pass."""
        return math.ceil(len(self.people) / 2)

    @property
    def passes(self) -> bool:
        """True if the judge wins against at least half of the people."""
        return self.winning_rate >= 0.5

    def rows(self) -> list[dict[str, object]]:
        """Return one flat table row per person."""
        return [person.row() for person in self.people]


# --- comparison of each person with the judge --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PersonComparison:
    """Comparison of one person and the judge on the items that both and at least one other person answered."""

    person: str
    judge: Bools
    """(items,): True where the judge is at least as close to the others as the person."""
    human: Bools
    """(items,): True where the person is at least as close to the others as the judge."""
    cluster: Ints
    """(items,): cluster number (text) of each item."""

    @property
    def difference(self) -> Floats:
        """d, (items,): 1 where only the person is at least as close, -1 where only the judge is, otherwise 0."""
        return self.human.astype(np.float64) - self.judge


def compare_each_person_with_judge(
    people: Mapping[str, Answers], judge: Answers, score: str | ScoreRule, clusters: Clusters | None = None
) -> list[PersonComparison]:
    """Compare each person with the judge on the items answered by the judge and at least two people."""
    rule = resolve_score_rule(score)[1]
    answered: dict[Item, dict[str, Answer]] = {}
    for person, answers in people.items():
        for item, answer in answers.items():
            answered.setdefault(item, {})[person] = answer
    numbers: dict[Hashable, int] = {}
    results = []
    for person, answers in people.items():
        items = [item for item in answers if len(answered[item]) >= 2 and item in judge]
        scores = np.zeros((len(items), 2))  # columns: judge, person
        cluster = np.zeros(len(items), dtype=np.int64)
        for place, item in enumerate(items):
            others = [answer for name, answer in answered[item].items() if name != person]
            scores[place] = rule(judge[item], others), rule(answers[item], others)
            if isinstance(clusters, Mapping) and item not in clusters:
                raise FinecombError(f"clusters have no entry for item {item!r}; add it")
            text = item if clusters is None else clusters(item) if callable(clusters) else clusters[item]
            cluster[place] = numbers.setdefault(text, len(numbers))
        results.append(PersonComparison(person, scores[:, 0] >= scores[:, 1], scores[:, 1] >= scores[:, 0], cluster))
    return results


# --- the test ----------------------------------------------------------------------------------------------------


def cluster_t_test_p_values(sums: Floats, sizes: Floats, epsilon: float, weights: Floats | None = None) -> Floats:
    """Return the p-values of one-sided t-tests, (draws,); the null hypothesis is a mean of d of at least epsilon.

    `sums` and `sizes`, (clusters,), are the sum of d and the number of items in each cluster. `weights`, (draws,
    clusters), are the resampling weights. The mean is a ratio of sums with the variance between clusters. Without
    variance, p is 0 if the mean is below epsilon and 1 otherwise.
    """
    weights = np.ones((1, len(sums))) if weights is None else weights
    total, count = weights @ sums, weights @ sizes
    mean = np.divide(total, count, out=np.full(len(total), np.nan), where=count > 0)
    # sum over clusters of (sum d - mean * size)^2, expanded so that all draws are one matrix product
    squares = weights @ sums**2 - 2 * mean * (weights @ (sums * sizes)) + mean**2 * (weights @ sizes**2)
    groups = weights.sum(axis=1)
    # Rounding can make the sum of squares slightly negative.
    error = np.sqrt(np.maximum(squares, 0) * groups / np.maximum(groups - 1, 1)) / np.maximum(count, 1)
    has_no_variance = error < 1e-12
    t = np.divide(mean - epsilon, error, out=np.zeros_like(mean), where=~has_no_variance)
    # The test is on clusters, so the degrees of freedom are those of clusters, not of items.
    p = scipy.special.stdtr(np.maximum(groups - 1, 1), t)
    return np.asarray(np.where(has_no_variance, np.where(mean < epsilon, 0.0, 1.0), p), dtype=np.float64)


def benjamini_yekutieli(p: Floats, q: float = 0.05) -> Bools:
    """Return a mask of the hypotheses rejected by the procedure of Benjamini and Yekutieli (2001), (..., tests).

    A p-value of NaN is never rejected but counts as a test.
    """
    tests = p.shape[-1]
    steps = np.arange(1, tests + 1)
    # The harmonic sum allows for dependent tests: all people are compared with the same judge on shared items.
    bounds = q * steps / (tests * (1 / steps).sum())
    order = np.argsort(p, axis=-1)  # NaN sorts last
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
    """Run the alternative annotator test of a judge against people, for answers or for marks.

    `people` is {person: {item: answer}} and `judge` is {item: answer}. `score` is `accuracy`, `rmse`, `char-f1` or
    `typed-f1`, or a function of an answer and the answers of the others. For the F1 scores, answers are lists of marks,
    (start, end) or (start, end, label). `clusters` maps an item to its text, as a mapping or a function. Without it,
    each item is its own cluster. `epsilon` is the margin by which the judge may be worse than a person, since it is
    cheaper. A person needs `min_items` items, by default 30. Unless `authors` is set, items from 8 texts suffice if all
    people together annotated fewer than 30 texts. Intervals resample texts.

    >>> people = {name: {item: item % 2 for item in range(40)} for name in "abc"}
    >>> result = alt_test(people, {item: item % 2 for item in range(40)}, epsilon=0.1)
    >>> result.winning_rate, result.advantage
    (1.0, 1.0)
    """
    if authors and clusters is not None:
        raise FinecombError("authors=True and clusters cannot be used together; omit one of them")
    if epsilon < 0 or epsilon >= 1:
        raise FinecombError(f"epsilon must be at least 0 and less than 1, found {epsilon:g}")
    if len(people) < 2:
        raise FinecombError(f"the alternative annotator test requires at least two people, found {len(people)}")
    comparisons = compare_each_person_with_judge(people, judge, score, clusters)
    if not any(len(contest.judge) for contest in comparisons):
        raise FinecombError(
            "no item was answered by the judge and at least two people; collect answers from both to the same items"
        )
    # The published test has a fixed minimum.
    required_items = MIN_ITEMS if authors else min_items
    tested, left_out = _select_testable_people(comparisons, required_items)
    fields = {"statistic": "alt-test", "score": resolve_score_rule(score)[0], "epsilon": epsilon, "q": q}
    fields |= {"authors": authors or None, "people": len(tested), "draws": draws, "seed": seed}
    if authors:
        return _alt_test_as_published(tested, left_out, epsilon, q, Signature.from_fields(**fields))
    notes = []
    texts = len(np.unique(np.concatenate([contest.cluster for contest in tested])))
    if texts < MIN_ITEMS:
        notes.append(
            f"only {texts} texts were tested, so small differences between judge and people cannot be detected"
        )
    if len({str(answer) for answer in judge.values()}) == 1:
        notes.append("the judge gives the same answer to every item")
    return _clustered_alt_test(tested, left_out, epsilon, q, draws, seed, Signature.from_fields(**fields), notes)


def _select_testable_people(
    every: Sequence[PersonComparison], min_items: int | None
) -> tuple[list[PersonComparison], list[tuple[str, str]]]:
    """Return the people with enough items, and the reasons for leaving out the others."""
    texts = len(np.unique(np.concatenate([contest.cluster for contest in every])))
    # With fewer than 30 texts in the study, a person needs 8 texts instead of 30 items.
    by_text = min_items is None and texts < MIN_ITEMS
    required = MIN_CLUSTERS if by_text else MIN_ITEMS if min_items is None else min_items
    tested, left_out = [], []
    for contest in every:
        found = len(np.unique(contest.cluster)) if by_text else len(contest.judge)
        if found >= required:
            tested.append(contest)
            continue
        needed = f"at least {required} {'texts' if by_text else 'items'}"
        reason = f"{needed} shared with the judge and another person are needed, found {found}"
        left_out.append((contest.person, reason))
    if not tested:
        person, reason = left_out[0]
        raise FinecombError(
            f"no person can be tested: for {person}, {reason}; collect more human answers to the judge's items"
        )
    return tested, left_out


def _alt_test_as_published(
    tested: Sequence[PersonComparison],
    left_out: Sequence[tuple[str, str]],
    epsilon: float,
    q: float,
    signature: Signature,
) -> AltTest:
    """Run the test as the authors' program does: items are independent, undefined p is a loss, no intervals."""
    p = np.full(len(tested), np.nan)
    for index, contest in enumerate(tested):
        difference = contest.difference
        spread = difference.std(ddof=1)
        if spread > 0:
            t = (difference.mean() - epsilon) / (spread / math.sqrt(len(difference)))
            p[index] = scipy.special.stdtr(len(difference) - 1, t)
    wins = benjamini_yekutieli(p, q)
    shares = [float(contest.judge.mean()) for contest in tested]
    results = [
        PersonResult(
            contest.person, len(contest.judge), len(contest.judge), _estimate_without_interval(share, signature),
            float(contest.difference.mean()), float(p[index]), bool(wins[index]),
            "p is undefined: no variance" if math.isnan(p[index]) else "",
        )
        for index, (contest, share) in enumerate(zip(tested, shares, strict=True))
    ]  # fmt: skip
    rate = _estimate_without_interval(float(wins.mean()), signature)
    chance = _estimate_without_interval(float(np.mean(shares)), signature)
    return AltTest(tuple(results), rate, chance, epsilon, tuple(left_out))


def _estimate_without_interval(value: float, signature: Signature) -> Estimate:
    return Estimate(value, math.nan, math.nan, signature)


def _clustered_alt_test(
    tested: Sequence[PersonComparison],
    left_out: Sequence[tuple[str, str]],
    epsilon: float,
    q: float,
    draws: int,
    seed: int,
    signature: Signature,
    notes: Sequence[str],
) -> AltTest:
    """Run the test with the variance between texts, and compute intervals by resampling texts."""
    texts = np.unique(np.concatenate([contest.cluster for contest in tested]))
    weights = study_and_resample_weights(len(texts), draws, seed)
    p, shares = np.zeros((2, len(weights), len(tested)))  # (1 + draws, people) each
    for index, contest in enumerate(tested):
        positions = np.searchsorted(texts, contest.cluster)
        sums: list[Floats] = [
            np.bincount(positions, column, len(texts)).astype(np.float64)
            for column in (contest.difference, contest.judge, np.ones(len(positions)))
        ]
        difference, judge, items = sums
        # Resampled texts that the person did not answer must not add degrees of freedom.
        read = items > 0
        p[:, index] = cluster_t_test_p_values(difference[read], items[read], epsilon, weights[:, read])
        shares[:, index] = ratio_or_nan(weights @ judge, weights @ items)
    wins = benjamini_yekutieli(p, q)
    people = []
    for index, contest in enumerate(tested):
        difference = contest.difference
        # At epsilon 0, a judge equal to the person is not better, so it does not win.
        equal = "equal on every item" if epsilon else EQUAL_NOT_BETTER_REASON
        people.append(PersonResult(
            contest.person, len(difference), len(np.unique(contest.cluster)),
            _estimate_from_draws(shares[:, index], signature), float(difference.mean()), float(p[0, index]),
            bool(wins[0, index]), "" if difference.any() else equal,
        ))  # fmt: skip
    defined = np.isfinite(shares)
    chance: Floats = np.where(defined, shares, 0).sum(axis=1) / np.maximum(defined.sum(axis=1), 1)
    rate = _estimate_from_draws(wins.mean(axis=1), signature)
    return AltTest(tuple(people), rate, _estimate_from_draws(chance, signature), epsilon, tuple(left_out), tuple(notes))


def _estimate_from_draws(values: Floats, signature: Signature) -> Estimate:
    """Return an estimate of the first value, that of the study, with an interval from the values of the resamples."""
    return estimate_with_interval(float(values[0]), values[1:], signature)
