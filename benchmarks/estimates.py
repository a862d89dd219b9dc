"""Coverage of intervals from judges and people in 5,000 simulated studies per cell; writes tables in the docs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks._docs import markdown_table, write_table
from finecomb.statistics.inference.confidence_sequence import MIN_COUNT_TEXTS, betting_interval, monitored_mean
from finecomb.statistics.inference.mean_interval import ErrorMoments, hall_interval
from finecomb.statistics.judges.ppi import TextValues, ppi_mean
from finecomb.statistics.judges.text_allocation import shrunk_stratum_deviations, stratum_probabilities

Floats = NDArray[np.float64]
Texts = tuple[
    Floats, Floats, Floats
]  # human values, values of a judge with correlation .7, values of a judge of pure noise
STUDY_COUNT = 5000
TEXT_COUNT = 500
MIN_COVERAGE_BY_TEXT_COUNT = {20: 0.93, 40: 0.94}
PAGE = "judges/estimates.md"


class SimulatedMeasure(NamedTuple):
    """Type of measure: its name, its true mean, and a function that draws texts."""

    name: str
    mean: float
    draw: Callable[[np.random.Generator], Texts]
    bar: bool = False
    signed: bool = False


def error_count_sampler(dispersion: float, found: float, alarms: float) -> Callable[[np.random.Generator], Texts]:
    """Return a sampler of errors per text (negative binomial, mean 2) and of a judge that errs both ways."""

    def draw(rng: np.random.Generator) -> Texts:
        errors = rng.negative_binomial(dispersion, dispersion / (dispersion + 2), TEXT_COUNT)
        judge = rng.binomial(errors, found) + rng.poisson(alarms, TEXT_COUNT)
        noise = rng.negative_binomial(dispersion, dispersion / (dispersion + 2), TEXT_COUNT)
        return errors.astype(float), judge.astype(float), noise.astype(float)

    return draw


def draw_differences(rng: np.random.Generator) -> Texts:
    """Draw differences in errors between two systems on the same prompt, from people and from the judge."""
    first, second = (error_count_sampler(0.5, 0.7, 4.68)(rng) for _ in range(2))
    return first[0] - second[0], first[1] - second[1], first[2] - second[2]


def _add_judges(values: Floats, mean: float, deviation: float, rng: np.random.Generator) -> Texts:
    judge = 0.7 * (values - mean) / deviation + np.sqrt(1 - 0.49) * rng.normal(size=TEXT_COUNT)
    return values, judge, rng.normal(size=TEXT_COUNT)


def draw_shares(rng: np.random.Generator) -> Texts:
    """Draw the marked share of a text: 0 for 40% of texts, otherwise beta with mean 1/7."""
    values = np.where(rng.random(TEXT_COUNT) < 0.4, 0.0, rng.beta(1, 6, TEXT_COUNT))
    return _add_judges(values, 0.6 / 7, 0.1173, rng)


def draw_ratings(rng: np.random.Generator) -> Texts:
    """Draw ratings from 1 to 5, most of them 4 or 5."""
    values = rng.choice(np.arange(1.0, 6.0), TEXT_COUNT, p=[0.05, 0.05, 0.15, 0.35, 0.4])
    return _add_judges(values, 4.0, 1.095, rng)


SIMULATED_MEASURES = (
    SimulatedMeasure("errors per text, mean 2, k = .5", 2.0, error_count_sampler(0.5, 0.7, 4.68), bar=True),
    SimulatedMeasure("heavier tail, mean 2, k = .2", 2.0, error_count_sampler(0.2, 0.7, 10.37)),
    SimulatedMeasure("share of the text marked", 0.6 / 7, draw_shares),
    SimulatedMeasure("ratings from 1 to 5", 4.0, draw_ratings),
    SimulatedMeasure("paired differences of errors", 0.0, draw_differences, signed=True),
)


class IntervalQuality(NamedTuple):
    """Coverage and mean width of an interval."""

    coverage: float
    width: float


def interval_quality(intervals: Floats, truth: float) -> IntervalQuality:
    low, high = intervals.T
    return IntervalQuality(float(((low <= truth) & (truth <= high)).mean()), float((high - low).mean()))


def student_interval(values: TextValues) -> tuple[float, float]:
    mean = ppi_mean(values)
    return hall_interval(mean.value, ErrorMoments(mean.spread.variance, 0.0, mean.spread.df))


def published_ppi_interval(values: TextValues) -> tuple[float, float]:
    """Return the published PPI++ interval with power tuning, based on the normal quantile."""
    judge, human = values.judges[0], values.human
    read, unread = judge[values.read], np.delete(judge, values.read)
    n, others = len(human), len(unread)
    power = np.cov(human, read)[0, 1] / (judge.var(ddof=1) * (1 + n / others))
    value = power * unread.mean() + (human - power * read).mean()
    variance = power**2 * unread.var() / others + (human - power * read).var() / n
    return hall_interval(value, ErrorMoments(float(variance)))


def simulate_studies(world: SimulatedMeasure, n: int, studies: int, seed: int) -> dict[str, IntervalQuality]:
    """Simulate the studies of one cell."""
    results: dict[str, list[tuple[float, float]]] = {}
    for study in range(studies):
        rng = np.random.default_rng([seed, n, study])
        human, judge, noise = world.draw(rng)
        for name, other in (("judge", judge), ("noise", noise)):
            values = TextValues(human[:n], np.arange(n), other[None])
            results.setdefault(name, []).append(ppi_mean(values).interval(signed=world.signed))
        values = TextValues(human[:n], np.arange(n), judge[None])
        results.setdefault("classic", []).append(
            ppi_mean(values.without_judges_or_strata()).interval(signed=world.signed)
        )
        results.setdefault("student", []).append(student_interval(values.without_judges_or_strata()))
        results.setdefault("published", []).append(published_ppi_interval(values))
    return {name: interval_quality(np.array(each), world.mean) for name, each in results.items()}


def write_coverage_table(count: int, seed: int = 0) -> None:
    rows, misses = [], []
    for world in SIMULATED_MEASURES:
        for n, bar in MIN_COVERAGE_BY_TEXT_COUNT.items():
            cell = simulate_studies(world, n, count, seed)
            classic, judge, noise = (cell[name] for name in ("classic", "judge", "noise"))
            widths = [each.width / classic.width for each in (judge, noise)]
            cells = [f"{each.coverage:.3f}" for each in (classic, judge, noise, cell["student"], cell["published"])]
            rows.append([world.name, n, *cells[:3], *(f"{each:.3f}" for each in widths), *cells[3:]])
            if world.bar:
                fine = min(each.coverage for each in (classic, judge, noise)) >= bar and widths[0] < 1
                misses += [] if fine and widths[1] <= 1.02 else [f"{world.name}, {n} texts"]
    head = ["values", "human texts", "people alone", "with a judge of r = .7", "with a judge of noise"]
    head += ["width, r = .7", "width, noise", "Student, people alone", "PPI++ as published, r = .7"]
    write_table(PAGE, "coverage", markdown_table(head, rows))
    print("bars: " + ("all held" if not misses else f"MISSED: {misses}"), flush=True)


# --- designs -----------------------------------------------------------------------------------------------------

STRATUM_SIZE = 100
STRATA = np.repeat(np.arange(5), STRATUM_SIZE)
StratumSampler = Callable[[np.random.Generator], Floats]


def draw_normal_strata(rng: np.random.Generator) -> Floats:
    """Draw values of 500 texts in five strata with standard deviations 1, 1, 1, 2 and 5."""
    return np.concatenate([rng.normal(3, deviation, STRATUM_SIZE) for deviation in (1, 1, 1, 2, 5)])


def draw_count_strata(rng: np.random.Generator) -> Floats:
    """Draw errors of 500 texts in five strata, negative binomial with means .5, .5, .5, 1 and 6 and k = .8."""
    means = (0.5, 0.5, 0.5, 1, 6)
    return np.concatenate([rng.negative_binomial(0.8, 0.8 / (0.8 + mean), STRATUM_SIZE) for mean in means]).astype(
        float
    )


def stratified_interval(values: Floats, read: NDArray[np.int64]) -> tuple[float, float]:
    return ppi_mean(TextValues(values[read], read, np.zeros((0, len(values))), STRATA)).interval()


def fewest_first_interval(draw: StratumSampler, n: int, rng: np.random.Generator) -> tuple[float, float]:
    values = draw(rng)
    read = np.concatenate([rng.permutation(STRATUM_SIZE)[: n // 5] + STRATUM_SIZE * stratum for stratum in range(5)])
    return stratified_interval(values, read)


def neyman_interval(draw: StratumSampler, n: int, rng: np.random.Generator) -> tuple[float, float]:
    """Return the interval when texts are assigned one at a time by Neyman allocation, as the server does."""
    values, sizes = draw(rng), np.full(5, STRATUM_SIZE)
    orders = [rng.permutation(STRATUM_SIZE) + STRATUM_SIZE * stratum for stratum in range(5)]
    counts = np.zeros(5, dtype=np.int64)
    for _ in range(n):
        parts = [values[order[:count]] for order, count in zip(orders, counts, strict=True)]
        chances = stratum_probabilities(sizes, counts, shrunk_stratum_deviations(parts), sizes - counts)
        counts[rng.choice(5, p=chances)] += 1
    read = np.concatenate([order[:count] for order, count in zip(orders, counts, strict=True)])
    return stratified_interval(values, read)


def write_design_table(count: int, seed: int = 1) -> None:
    """Compare "fewest first" with Neyman allocation; the target is the same width with 25% fewer texts."""
    rows, results = [], {}
    worlds = (
        ("deviations 1, 1, 1, 2, 5", draw_normal_strata, 3.0),
        ("counts, means .5, .5, .5, 1, 6", draw_count_strata, 1.7),
    )
    for world, draw, truth in worlds:
        for name, design, n in (
            ("fewest first", fewest_first_interval, 100),
            ("drawn", neyman_interval, 75),
            ("drawn", neyman_interval, 65),
        ):
            ends = np.array([design(draw, n, np.random.default_rng([seed, n, study])) for study in range(count)])
            result = results[world, name, n] = interval_quality(ends, truth)
            rows.append([world, name, n, f"{result.width:.3f}", f"{result.coverage:.3f}"])
    head = ["five strata", "texts are given out", "human texts", "width of the interval", "holds the truth"]
    write_table(PAGE, "designs", markdown_table(head, rows))
    first, drawn = results[worlds[0][0], "fewest first", 100], results[worlds[0][0], "drawn", 75]
    fine = drawn.width <= first.width and drawn.coverage >= 0.93
    print(f"25% fewer human texts: {'held' if fine else 'MISSED'}", flush=True)


# --- continuous monitoring ---------------------------------------------------------------------------------------


def write_watching_table(count: int, seed: int = 2) -> None:
    rows = []
    for name, share in (("share of texts with an error, .05", 0.05), ("the same, .5", 0.5)):
        wrong = 0
        for study in range(count):
            rng = np.random.default_rng([seed, study])
            low, high = betting_interval(
                (rng.random(300) < share).astype(float)
            )  # the interval at each time is the intersection of all earlier ones
            wrong += not low <= share <= high
        rows.append([name, "bounded", "1 to 300", f"{wrong / count:.3f}"])
    for name, dispersion in (("errors per text, mean 2, k = .5", 0.5), ("the same, k = .2", 0.2)):
        wrong = sum(_is_ever_wrong(np.random.default_rng([seed, study]), dispersion) for study in range(count))
        rows.append([name, "counts", f"{MIN_COUNT_TEXTS} to 300", f"{wrong / count:.3f}"])
    write_table(PAGE, "watching", markdown_table(["values", "kind", "watched after texts", "wrong at any time"], rows))


def _is_ever_wrong(rng: np.random.Generator, dispersion: float) -> bool:
    values = rng.negative_binomial(dispersion, dispersion / (dispersion + 2), 300).astype(float)
    for texts in range(MIN_COUNT_TEXTS, 301):
        watched = monitored_mean(values[:texts])
        if not watched.low <= 2 <= watched.high:
            return True
    return False


def main() -> None:
    count = int(sys.argv[2]) if len(sys.argv) > 2 and sys.argv[2].isdigit() else STUDY_COUNT
    write_coverage_table(count)
    write_design_table(count // 5)
    write_watching_table(count // 5)
