r"""Confidence sequences: intervals that remain valid when they are checked after every text.

An ordinary interval is valid for a single look at the data. Checking it after each text and stopping once it is narrow,
or excludes zero, gives an error rate far above 5%. There are two kinds of confidence sequence:

- **bounded** values (shares, coverage, ratings on a scale): the hedged betting sequence of Waudby-Smith and Ramdas
  (2023), "Estimating means of bounded random variables by betting". The error is at most 1 - level from the first text
  on, for any distribution.
- **counts** and other unbounded values: the asymptotic sequence of Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas
  (2024), whose boundary replaces the t quantile in the interval for skewed means. It is approximate and starts at 30
  texts.
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
SequenceKind = Literal["bounded", "counts"]
MIN_COUNT_TEXTS = 30
"""Minimum number of texts for a confidence sequence of counts."""
NARROWEST_TEXT_COUNT = 100
"""Number of texts for which the width of a confidence sequence of counts is minimised."""
GRID_STEPS = 1000


@dataclass(frozen=True, slots=True)
class MonitoredMean:
    """Mean of the values so far, with an interval that stays valid however often it is checked."""

    kind: SequenceKind
    texts: int
    value: float
    low: float
    high: float
    why: str = ""
    """Reason why there is no interval; empty if there is one."""
    level: float = 0.95

    @property
    def description(self) -> str:
        """Phrase that states how valid the interval is under repeated checks."""
        error = f"{100 * (1 - self.level):.3g}%"
        if self.kind == "bounded":
            return f"valid when checked after every text: error rate at most {error}"
        start = f"from {MIN_COUNT_TEXTS} texts on"
        return f"approximately valid when checked after every text, {start}: error rate about {error}"


def monitored_mean(values: Floats, bounds: tuple[float, float] | None = None, level: float = 0.95) -> MonitoredMean:
    """Compute the confidence sequence after the last of `values`, which are in order of arrival.

    `bounds` are the smallest and largest possible value. Without bounds, the values are treated as counts.
    """
    if bounds is not None:
        return _monitored_bounded_mean(values, bounds, level)
    n = len(values)
    mean = float(values.mean()) if n else math.nan
    if n < MIN_COUNT_TEXTS:
        return MonitoredMean(
            "counts", n, mean, math.nan, math.nan, f"at least {MIN_COUNT_TEXTS} texts are needed, found {n}", level
        )
    if np.ptp(values) == 0:
        return MonitoredMean(
            "counts", n, mean, math.nan, math.nan, "all texts have the same value, so there is no interval", level
        )
    low, high = hall_interval(mean, mean_error_moments(values), quantile=confidence_sequence_boundary(n, level))
    return MonitoredMean("counts", n, mean, low, high, level=level)


def confidence_sequence_boundary(texts: int, level: float = 0.95, tightest: int = NARROWEST_TEXT_COUNT) -> float:
    r"""Return the factor that replaces 1.96 as the multiplier of the standard error after `texts` texts.

    $\sqrt{2 (t\rho^2 + 1) / (t\rho^2) \cdot \log(\sqrt{t\rho^2 + 1} / \alpha)}$, with $\rho$ chosen so that the
    multiplier is smallest at `tightest` texts.
    """
    alpha = 1 - level
    rho = (-2 * math.log(alpha) + math.log(-2 * math.log(alpha)) + 1) / tightest
    scaled = texts * rho
    return math.sqrt(2 * (scaled + 1) / scaled * math.log(math.sqrt(scaled + 1) / alpha))


def _monitored_bounded_mean(values: Floats, bounds: tuple[float, float], level: float) -> MonitoredMean:
    low, high = bounds
    if not low < high:
        raise FinecombError(f"the lower bound must be less than the upper bound, found {low:g} and {high:g}")
    if len(values) and (values.min() < low or values.max() > high):
        outside = values[(values < low) | (values > high)][0]
        raise FinecombError(f"value {outside:g} is outside the bounds {low:g} to {high:g}")
    if not len(values):
        return MonitoredMean("bounded", 0, math.nan, low, high, "no texts yet", level)
    inside = betting_interval((values - low) / (high - low), level)
    scaled = [low + (high - low) * end for end in inside]
    return MonitoredMean("bounded", len(values), float(values.mean()), scaled[0], scaled[1], level=level)


def betting_interval(values: Floats, level: float = 0.95) -> tuple[float, float]:
    """Return the range of means in [0, 1] that the hedged betting sequence has not excluded after the last value.

    For each mean on a grid, one bettor wagers that values are larger and another that they are smaller. Each stakes a
    share that depends on past values only. A mean is excluded once half the wealth of either bettor exceeds 1 / (1 -
    level).
    """
    alpha = 1 - level
    means = np.linspace(0, 1, GRID_STEPS + 1)
    # Share of wealth to stake on each value, given the values before it
    times = np.arange(1, len(values) + 1)
    mean = (0.5 + np.cumsum(values)) / (times + 1)
    squares = (0.25 + np.cumsum((values - mean) ** 2)) / (times + 1)
    before = np.concatenate([[0.25], squares[:-1]])
    wager = np.asarray(np.sqrt(2 * math.log(2 / alpha) / (before * times * np.log1p(times))), dtype=np.float64)
    with np.errstate(divide="ignore"):
        # stakes are truncated at half of what would risk all wealth, so that logarithms stay finite
        up = np.minimum(wager[:, None], 0.5 / means)
        down = np.minimum(wager[:, None], 0.5 / (1 - means))
    gains = values[:, None] - means
    log_up, log_down = (np.cumsum(np.log1p(winnings), axis=0).max(axis=0) for winnings in (up * gains, -down * gains))
    plausible = np.flatnonzero(np.maximum(log_up, log_down) < math.log(2 / alpha))
    if not len(plausible):
        return float("nan"), float("nan")
    step = 1 / GRID_STEPS  # the true mean can lie between two grid points
    return max(0.0, float(means[plausible[0]]) - step), min(1.0, float(means[plausible[-1]]) + step)
