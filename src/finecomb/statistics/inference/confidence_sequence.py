r"""Intervals that may be watched: they hold at every moment at once, so one may look after each text and stop.

An ordinary interval is for one look. Whoever looks after each text and stops when the interval is narrow, or leaves out
zero, is wrong far more often than one time in twenty. Two kinds of confidence sequence:

- **bounded** values (shares, coverage, ratings on a scale): the hedged betting sequence of Waudby-Smith and Ramdas
  (2023), "Estimating means of bounded random variables by betting". The error is at most 1 - level, from the first text
  on, whatever the distribution.
- **counts** and other values without a bound: the asymptotic sequence of Waudby-Smith, Arbour, Sinha, Kennedy and
  Ramdas (2024), whose boundary replaces the quantile of t in our interval for skewed means. It is approximate, and
  starts at 30 texts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError
from finecomb.statistics.inference.mean_interval import hall_interval, mean_error_moments

Floats = NDArray[np.float64]
Kind = Literal["bounded", "counts"]
MIN_COUNT_TEXTS = 30
"""Texts after which a sequence for counts starts."""
NARROWEST_TEXT_COUNT = 100
"""Texts at which a sequence for counts is as narrow as it can be made."""
GRID = 1000


@dataclass(frozen=True, slots=True)
class MonitoredMean:
    """The mean of the values so far, with an interval that holds at every moment."""

    kind: Kind
    texts: int
    value: float
    low: float
    high: float
    why: str = ""
    """Why there is no interval yet."""

    @property
    def description(self) -> str:
        """Which kind of interval it is, in a sentence."""
        if self.kind == "bounded":
            return "may be watched: wrong at any time in at most 5% of studies"
        return (
            f"may be watched from {MIN_COUNT_TEXTS} texts on: wrong at any time in about 5% of studies, approximately"
        )


def monitored_mean(values: Floats, bounds: tuple[float, float] | None = None, level: float = 0.95) -> MonitoredMean:
    """The sequence's interval after the last of `values`, which are in the order in which they came.

    With `bounds`, every value lies between them.
    """
    if bounds is not None:
        return _monitored_bounded_mean(values, bounds, level)
    n = len(values)
    mean = float(values.mean()) if n else math.nan
    if n < MIN_COUNT_TEXTS:
        return MonitoredMean("counts", n, mean, math.nan, math.nan, f"starts at {MIN_COUNT_TEXTS} texts; there are {n}")
    if np.ptp(values) == 0:
        return MonitoredMean("counts", n, mean, math.nan, math.nan, "all texts have the same value, so no interval")
    low, high = hall_interval(mean, mean_error_moments(values), quantile=sequence_boundary(n, level))
    return MonitoredMean("counts", n, mean, low, high)


def sequence_boundary(texts: int, level: float = 0.95, tightest: int = NARROWEST_TEXT_COUNT) -> float:
    r"""What stands in place of 1.96 after so many texts.

    $\sqrt{2 (t\rho^2 + 1) / (t\rho^2) \cdot \log(\sqrt{t\rho^2 + 1} / \alpha)}$, with $\rho$ such that it is smallest
    at `tightest` texts.
    """
    alpha = 1 - level
    rho = (-2 * math.log(alpha) + math.log(-2 * math.log(alpha)) + 1) / tightest
    scaled = texts * rho
    return math.sqrt(2 * (scaled + 1) / scaled * math.log(math.sqrt(scaled + 1) / alpha))


def _monitored_bounded_mean(values: Floats, bounds: tuple[float, float], level: float) -> MonitoredMean:
    low, high = bounds
    if not low < high:
        raise FinecombError(f"bounds go from the smallest to the largest value, not from {low:g} to {high:g}")
    if len(values) and (values.min() < low or values.max() > high):
        outside = values[(values < low) | (values > high)][0]
        raise FinecombError(f"{outside:g} lies outside the bounds {low:g} to {high:g}")
    if not len(values):
        return MonitoredMean("bounded", 0, math.nan, low, high, "no text yet")
    inside = betting_interval((values - low) / (high - low), level)
    scaled = [low + (high - low) * end for end in inside]
    return MonitoredMean("bounded", len(values), float(values.mean()), scaled[0], scaled[1])


def betting_interval(values: Floats, level: float = 0.95) -> tuple[float, float]:
    """Means, between 0 and 1, against which no bettor has become rich: the hedged sequence after the last value.

    For every mean on a grid, one bettor wagers that values are larger and one that they are smaller, a share that
    depends on the past only. A mean is left out once half the fortune of either has passed 1 / (1 - level).
    """
    alpha = 1 - level
    means = np.linspace(0, 1, GRID + 1)
    wager = _betting_fractions(values, alpha)
    with np.errstate(divide="ignore"):
        up = np.minimum(wager[:, None], 0.5 / means)
        down = np.minimum(wager[:, None], 0.5 / (1 - means))
    gains = values[:, None] - means
    log_up, log_down = (np.cumsum(np.log1p(winnings), axis=0).max(axis=0) for winnings in (up * gains, -down * gains))
    plausible = np.flatnonzero(np.maximum(log_up, log_down) < math.log(2 / alpha))
    if not len(plausible):
        return float("nan"), float("nan")
    step = 1 / GRID  # the truth may lie between two points of the grid
    return max(0.0, float(means[plausible[0]]) - step), min(1.0, float(means[plausible[-1]]) + step)


def _betting_fractions(values: Floats, alpha: float) -> Floats:
    """What to wager on each value, from the values before it."""
    times = np.arange(1, len(values) + 1)
    mean = (0.5 + np.cumsum(values)) / (times + 1)
    squares = (0.25 + np.cumsum((values - mean) ** 2)) / (times + 1)
    before = np.concatenate([[0.25], squares[:-1]])
    return np.asarray(np.sqrt(2 * math.log(2 / alpha) / (before * times * np.log1p(times))), dtype=np.float64)
