from __future__ import annotations

import numpy as np
import pytest
import scipy

from finecomb.core.errors import FinecombError
from finecomb.statistics.inference.mean_interval import (
    ErrorMoments,
    hall_interval,
    invert_hall_transform,
    mean_error_moments,
)
from finecomb.statistics.judges.ppi import (
    TextValues,
    cross_fitted_predictions,
    estimate_variance_gain,
    ppi_mean,
)

RNG = np.random.default_rng(0)


def values(n: int = 20, texts: int = 300, seed: int = 0, informative: bool = True) -> TextValues:
    rng = np.random.default_rng(seed)
    counts = rng.negative_binomial(0.5, 0.2, texts)
    judge = rng.binomial(counts, 0.7) + rng.poisson(4.68, texts) if informative else rng.permutation(counts)
    return TextValues(counts[:n].astype(float), np.arange(n), judge[None].astype(float))


def slow_third(sample: np.ndarray) -> float:
    """Return the unbiased third central moment of the mean of a sample."""
    return float(scipy.stats.skew(sample, bias=False) * sample.std(ddof=1) ** 3 / len(sample) ** 2)


def test_people_alone_are_the_plain_mean() -> None:
    own = values().without_judges_or_strata()
    mean, plain = ppi_mean(own), mean_error_moments(own.human)
    assert mean.value == pytest.approx(own.human.mean())
    assert mean.spread.variance == pytest.approx(own.human.var(ddof=1) / 20)
    assert (mean.spread.variance, mean.spread.third, mean.spread.df) == pytest.approx(
        (plain.variance, plain.third, plain.df)
    )
    # g1 by SciPy, whose unbiased skewness divides by the biased deviation
    assert plain.skewness == pytest.approx(float(scipy.stats.skew(own.human, bias=False)) / np.sqrt(20))


def test_without_skewness_the_interval_is_students() -> None:
    low, high = hall_interval(1.0, ErrorMoments(0.04, 0.0, 9))
    assert (low, high) == pytest.approx(scipy.stats.t.interval(0.95, 9, 1.0, 0.2))


def test_differences_take_the_farther_ends() -> None:
    bent, student = (hall_interval(0.0, ErrorMoments(1.0, third, 19)) for third in (0.6, 0.0))
    both = hall_interval(0.0, ErrorMoments(1.0, 0.6, 19), signed=True)
    assert both == (min(bent[0], student[0]), max(bent[1], student[1]))


@pytest.mark.parametrize("skewness", [-0.8, -0.1, 0.3, 0.9])
@pytest.mark.parametrize("z", [-2.3, 0.0, 2.3])
def test_unbending_inverts_halls_cubic(skewness: float, z: float) -> None:
    t = invert_hall_transform(z, skewness)
    assert t + skewness / 3 * t**2 + skewness**2 / 27 * t**3 + skewness / 6 == pytest.approx(z)


def test_residuals_are_those_of_fits_without_the_text() -> None:
    own = values(12)
    mean = ppi_mean(own)
    judge = own.judges[0, :12]
    gap = own.judges[0].mean() - judge.mean()
    centred = judge - judge.mean()
    weights = 1 / 12 + (mean.slopes[0] / np.polyfit(judge, own.human, 1)[0]) * gap * centred / (centred**2).sum()
    influence = mean.influence / weights
    shrunk = mean.slopes[0] / np.polyfit(judge, own.human, 1)[0]
    leverage = shrunk * centred**2 / (centred**2).sum()
    residuals = own.human - own.human.mean() - mean.slopes[0] * centred
    assert influence == pytest.approx(residuals / (1 - leverage) / np.sqrt(1 - 1 / 12))


def test_the_estimate_is_prediction_powered_with_tuned_power() -> None:
    ppi = pytest.importorskip("ppi_py", reason="ppi-python is not installed")
    own = values(40)
    judge = own.judges[0]
    mean = ppi_mean(own)
    unread = judge[40:]
    shrinkage = mean.slopes[0] / np.polyfit(judge[:40], own.human, 1)[0]
    weight = mean.slopes[0] * len(unread) / 300  # as the weight of texts that no person annotated
    theirs = ppi.ppi_mean_pointestimate(own.human, judge[:40], unread, lam=weight)
    assert mean.value == pytest.approx(float(np.squeeze(theirs)))
    assert 0.8 < shrinkage < 1
    low, high = ppi.ppi_mean_ci(own.human, judge[:40], unread, alpha=0.05, lam=weight)
    ours = mean.interval()
    assert ours[1] - ours[0] > float(
        np.squeeze(high) - np.squeeze(low)
    )  # the interval of ppi-python is for large samples


def test_a_judge_of_no_use_changes_nothing() -> None:
    own = values(informative=False, seed=3)
    assert not ppi_mean(own).uses_judges
    assert ppi_mean(own).interval() == pytest.approx(ppi_mean(own.without_judges_or_strata()).interval())


def test_judges_add_nothing_where_people_have_read_everything() -> None:
    for seed in range(20):
        own = values(60, 60, seed)
        mean, alone = ppi_mean(own), ppi_mean(own.without_judges_or_strata())
        assert mean.value == pytest.approx(alone.value)
        assert mean.spread.variance > 0.95 * alone.spread.variance


def test_strata_are_means_weighted_by_their_shares() -> None:
    strata = np.repeat([0, 1], [100, 300])
    human = np.array([1.0, 2.0, 4.0, 10.0, 12.0, 17.0])
    own = TextValues(human, np.array([0, 1, 2, 100, 101, 102]), np.zeros((0, 400)), strata)
    mean = ppi_mean(own)
    assert mean.value == pytest.approx(0.25 * human[:3].mean() + 0.75 * human[3:].mean())
    expected = (0.25**2 * human[:3].var(ddof=1) + 0.75**2 * human[3:].var(ddof=1)) / 3
    assert mean.spread.variance == pytest.approx(expected)


def test_unequal_chances_are_weighed_back() -> None:
    human = np.array([0.0, 0.0, 6.0, 6.0, 6.0, 6.0])
    inclusion = np.array([0.1, 0.1, 0.2, 0.2, 0.2, 0.2])
    own = TextValues(human, np.arange(6), np.zeros((0, 40)), inclusion=inclusion)
    assert ppi_mean(own).value == pytest.approx(3)  # two at 10 and four at 5: each group stands for half of the texts
    with pytest.raises(FinecombError, match="inclusion probabilities must be above 0"):
        TextValues(human, np.arange(6), np.zeros((0, 40)), inclusion=np.zeros(6))


def test_a_stratum_with_one_text_is_refused() -> None:
    own = TextValues(np.array([1.0, 2.0, 3.0]), np.array([0, 1, 2]), np.zeros((0, 4)), np.array([0, 0, 1, 1]))
    with pytest.raises(FinecombError, match="stratum 1 requires at least 2 texts annotated by people, found 1"):
        ppi_mean(own)


def test_the_same_judge_twice_counts_once() -> None:
    own = values(30)
    twice = TextValues(own.human, own.read, np.concatenate([own.judges, own.judges]))
    assert ppi_mean(twice).value == pytest.approx(ppi_mean(own).value)
    assert ppi_mean(twice).slopes.sum() == pytest.approx(ppi_mean(own).slopes.sum())


def test_a_constant_judge_is_no_use_and_no_trouble() -> None:
    own = values()
    constant = TextValues(own.human, own.read, np.ones((1, 300)))
    assert ppi_mean(constant).interval() == pytest.approx(ppi_mean(own.without_judges_or_strata()).interval())


def test_equal_values_have_no_interval_rather_than_one_of_width_0() -> None:
    own = TextValues(np.zeros(20), np.arange(20), np.ones((1, 100)))
    assert np.isnan(ppi_mean(own).interval()).all()


def test_a_trained_judge_never_judges_what_it_was_fitted_on() -> None:
    human = RNG.normal(size=20)
    features = list(range(50))
    read = np.arange(20)

    def train(texts: object, known: np.ndarray) -> object:
        table = dict(zip(texts, known, strict=True))  # type: ignore[call-overload]
        return lambda asked: np.array([table.get(each, 0.0) for each in asked])

    predicted = cross_fitted_predictions(features, human, read, train, folds=4)  # type: ignore[arg-type]
    assert (predicted[:20] == 0).all()  # a judge that only memorises knows nothing about held-out texts
    with pytest.raises(FinecombError, match="folds"):
        cross_fitted_predictions(features, human, read, train, folds=21)  # type: ignore[arg-type]


def test_a_difference_adds_variances_and_subtracts_skewness() -> None:
    one, other = (ErrorMoments(0.5, 0.2, 10) for _ in range(2))
    spread = one + -other
    assert (spread.variance, spread.third, spread.df) == pytest.approx((1.0, 0.0, 20))


def test_worth_is_the_ratio_of_variances() -> None:
    worth = []
    for seed in range(50):
        own = values(40, seed=seed)
        before, after = ppi_mean(own.without_judges_or_strata()), ppi_mean(own)
        gain = estimate_variance_gain(before, after)
        assert gain.ratio == pytest.approx(before.spread.variance / after.spread.variance)
        assert gain.low <= gain.ratio <= gain.high
        worth.append(gain.ratio)
    assert 1.2 < np.median(worth) < 2.0  # 1.74 with correlation .7, many texts and even residuals


@pytest.mark.parametrize(("n", "least"), [(20, 0.93), (40, 0.94)])
def test_intervals_hold_with_few_texts(n: int, least: float) -> None:
    """Small version of the table in the docs, with tolerance for the chance of 400 studies."""
    intervals = np.array([ppi_mean(values(n, 200, seed)).interval() for seed in range(400)])
    held = ((intervals[:, 0] <= 2) & (intervals[:, 1] >= 2)).mean()
    assert held > least - 2 * np.sqrt(0.05 * 0.95 / 400)
