"""Coverage and width of intervals and size of tests, from released annotations and simulations; writes docs tables.

A population is the set of all texts of a released study, or a large simulated one. Each replication draws G clusters
from it with replacement, so the true value is that of the population. All replications of a cell are rows of one
statistic, which the inference module computes together. Released data is read from the folder FINECOMB_DATA, and its
rows are omitted where the folder is absent.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks._docs import markdown_table, write_table
from finecomb.core.tokens import count_words
from finecomb.formats import read
from finecomb.statistics.agreement.agreement_options import AgreeOptions
from finecomb.statistics.agreement.alpha import binary_alpha_from_sums
from finecomb.statistics.agreement.rating_sources import UnitMarks
from finecomb.statistics.gold.scores import recall_precision_and_f1
from finecomb.statistics.inference.clusters import text_clusters
from finecomb.statistics.inference.intervals import (
    Bounds,
    Interval,
    IntervalSettings,
    StatisticKind,
    ratio_intervals,
    weighted_intervals,
)
from finecomb.statistics.inference.permutation_tests import difference_test, max_t_adjustment
from finecomb.statistics.selection.view import view

Floats = NDArray[np.float64]
PAGE = "statistics/intervals.md"
REPLICATIONS = 4000
SIZES = (10, 20, 40)
_BATCH = 50  # replications per call, since each needs all resamples in memory
_TEST_DRAWS = 499


@dataclass(frozen=True)
class Population:
    """Sums per cluster of a population, and the statistic computed from them."""

    source: str
    statistic: str
    command: str
    sums: Floats
    """(clusters, K): sufficient statistics."""
    evaluate: Callable[[Floats], Floats]
    """Function from sums, (..., K), to values, (...,)."""
    kind: StatisticKind
    bounds: Bounds | None = None

    @property
    def truth(self) -> float:
        """Value over the whole population."""
        return float(self.evaluate(self.sums.sum(axis=0)))


def ratio(sums: Floats) -> Floats:
    """Return the first sum divided by the second."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(sums[..., 1] > 0, sums[..., 0] / sums[..., 1], np.nan)


def f1_of_sums(sums: Floats) -> Floats:
    """Return F1 from the sums of gold, predicted, matched and right marks."""
    return recall_precision_and_f1(sums)[..., 2]


def recall_of_sums(sums: Floats) -> Floats:
    """Return recall from the sums of gold, predicted, matched and right marks."""
    return recall_precision_and_f1(sums)[..., 0]


@dataclass(frozen=True)
class CoverageCell:
    """Coverage and median width of an interval in one cell, and those of the percentile interval."""

    population: Population
    clusters: int
    replications: int
    coverage: float
    width: float
    defined: float
    """Share of replications with an interval."""
    method: str
    percentile_coverage: float
    percentile_width: float

    @property
    def error(self) -> float:
        """Monte-Carlo standard error of the coverage."""
        n = max(1, round(self.replications * self.defined))
        return math.sqrt(self.coverage * (1 - self.coverage) / n)


def measure_coverage(
    population: Population, clusters: int, replications: int, seed: int = 0, draws: int = 1000
) -> CoverageCell:
    """Draw replications and return how often the interval contains the true value."""
    rng = np.random.default_rng([seed, clusters])
    ours: list[Interval] = []
    percentile: list[Interval] = []
    for start in range(0, replications, _BATCH):
        rows = min(_BATCH, replications - start)
        drawn = population.sums[rng.integers(len(population.sums), size=(clusters, rows))]  # (G, rows, K)
        settings = IntervalSettings(draws=draws, seed=start)
        ours += _compute_intervals(population, drawn, settings)
        percentile += _compute_intervals(population, drawn, IntervalSettings("percentile", draws, start))
    methods = sorted({interval.method for interval in ours if interval.method})
    hits, width, defined = _summarise(ours, population.truth)
    percentile_hits, percentile_width, _ = _summarise(percentile, population.truth)
    return CoverageCell(
        population, clusters, replications, hits, width, defined, ", ".join(methods), percentile_hits, percentile_width
    )


def _compute_intervals(population: Population, drawn: Floats, settings: IntervalSettings) -> list[Interval]:
    if population.kind == "mean":
        bounds = population.bounds or (-math.inf, math.inf)
        return ratio_intervals(drawn[..., 0], drawn[..., 1], bounds=bounds, settings=settings)

    def evaluate(weights: Floats) -> Floats:
        return population.evaluate(np.tensordot(weights, drawn, axes=1))

    return weighted_intervals(
        evaluate, text_clusters(len(drawn)), population.kind, bounds=population.bounds, settings=settings
    )


def _summarise(intervals: list[Interval], truth: float) -> tuple[float, float, float]:
    """Return the coverage and the median width of the intervals that exist, and their share."""
    limits = np.array([(interval.low, interval.high) for interval in intervals])
    limits = limits[~np.isnan(limits[:, 0])]
    if not len(limits):
        return math.nan, math.nan, 0.0
    hits = (limits[:, 0] <= truth) & (truth <= limits[:, 1])
    return float(hits.mean()), float(np.median(limits[:, 1] - limits[:, 0])), len(limits) / len(intervals)


# --- populations -------------------------------------------------------------------------------------------------


def simulated_populations(size: int = 20_000, seed: int = 1) -> Iterator[Population]:
    """Yield skewed counts, clustered counts, rates, shares, alpha, F1 and recall of simulated texts."""
    rng = np.random.default_rng(seed)
    ones = np.ones(size)
    counts = rng.poisson(rng.gamma(0.7, 2.0 / 0.7, size)).astype(np.float64)
    yield Population(
        "simulated", "count per text", "measure", np.stack([counts, ones], 1), ratio, "mean", (0, math.inf)
    )
    texts = rng.integers(1, 6, size).astype(np.float64)
    shared = rng.gamma(1.0, 2.0, size)
    clustered = rng.poisson(shared * texts).astype(np.float64)
    sums = np.stack([clustered, texts], 1)
    yield Population("simulated", "count, 1 to 5 texts per prompt", "measure", sums, ratio, "mean", (0, math.inf))
    words = rng.integers(80, 400, size).astype(np.float64)
    marks = rng.poisson(rng.gamma(1.0, 1.0, size) * words / 60).astype(np.float64)
    sums = np.stack([100 * marks, words], 1)
    yield Population("simulated", "rate per 100 words", "measure", sums, ratio, "mean", (0, math.inf))
    clean = np.stack([(rng.random(size) < 0.2).astype(np.float64), ones], 1)
    yield Population("simulated", "share of texts with an error", "measure", clean, ratio, "mean", (0.0, 1.0))
    votes = simulated_vote_sums(min(size, 6000), rng)
    yield Population("simulated", "alpha", "agree", votes[:, :3], binary_alpha_from_sums, "coefficient")
    yield Population("simulated", "pairwise F1", "agree", votes[:, 3:5], ratio, "proportion")
    gold = rng.poisson(rng.gamma(1.0, 2.0, size))
    found = rng.binomial(gold, rng.beta(2.4, 1.6, size))
    predicted = found + rng.poisson(0.8, size)
    scores = np.stack([gold, predicted, found, found], 1).astype(np.float64)
    yield Population("simulated", "F1", "score", scores, f1_of_sums, "proportion")
    yield Population("simulated", "recall", "score", scores, recall_of_sums, "proportion")


def simulated_vote_sums(texts: int, rng: np.random.Generator, people: int = 3) -> Floats:
    """Return sums for alpha (disagreement, ones, ratings) and pairwise F1 (2 overlap, marks) of simulated texts."""
    result = np.zeros((texts, 5))
    for text in range(texts):
        length = int(rng.integers(60, 300))
        marked = np.zeros((people, length), dtype=bool)
        for _ in range(rng.poisson(1.5 * rng.gamma(1.5, 1 / 1.5))):
            start, size = int(rng.integers(0, length - 5)), int(rng.geometric(0.12))
            for hit in np.flatnonzero(rng.random(people) < 0.6):
                marked[hit, max(0, start + int(rng.integers(-1, 2))) : start + size + int(rng.integers(-1, 2))] = True
        for person in range(people):
            for _ in range(rng.poisson(0.3)):
                start = int(rng.integers(0, length - 5))
                marked[person, start : start + int(rng.geometric(0.12))] = True
        result[text] = vote_sums(marked.sum(axis=0), people)
    return result


def vote_sums(votes: NDArray[np.int64], people: int) -> Floats:
    """Return the sums of one text from the number of people who marked each unit."""
    k, m = votes.astype(np.float64), float(people)
    disagreement = (2 * k * (m - k)).sum() / max(m - 1, 1)
    overlap, marks = (k * (k - 1)).sum(), (m - 1) * k.sum()
    return np.array([disagreement, k.sum(), m * len(k), overlap, marks])


def released_populations() -> Iterator[Population]:
    """Yield statistics of Mu-SHROOM en-tst, FaithBench, SNaC and WMT MQM, if FINECOMB_DATA names their folder."""
    folder = os.environ.get("FINECOMB_DATA")
    if not folder:
        return
    data = Path(folder)
    yield from _mushroom_populations(data / "outside" / "no_licence_stated" / "mushroom")
    yield from _faithbench_populations(data / "outside" / "faithbench")
    yield from _snac_populations(data / "snac" / "SNaC_data.json")
    yield from _mqm_populations(data / "wmt_mqm_ted_ende" / "mqm_ted_ende.tsv")


def _mushroom_populations(folder: Path) -> Iterator[Population]:
    votes, scores, counts = [], [], []
    for file in sorted(folder.glob("mushroom.en-tst*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            marked = np.zeros((len(record["annotations"]), len(record["model_output_text"])), dtype=bool)
            for row, spans in enumerate(record["annotations"].values()):
                for start, end in spans:
                    marked[row, start:end] = True
            votes.append(vote_sums(marked.sum(axis=0), len(marked)))
            judge, gold = marked[0], marked[1:].sum(axis=0) * 2 > len(marked) - 1
            right = float((judge & gold).sum())
            scores.append([float(gold.sum()), float(judge.sum()), right, right])
            words = count_words(record["model_output_text"])
            marks = sum(map(len, record["annotations"].values())) / len(marked)
            counts.append([marks, 1.0, 100 * marks, float(words)])
    if not votes:
        return
    sums, table, name = np.array(votes), np.array(counts), "Mu-SHROOM en-tst"
    yield Population(name, "count per text", "measure", table[:, :2], ratio, "mean", (0, math.inf))
    yield Population(name, "rate per 100 words", "measure", table[:, 2:], ratio, "mean", (0, math.inf))
    yield Population(name, "alpha", "agree", sums[:, :3], binary_alpha_from_sums, "coefficient")
    yield Population(name, "pairwise F1", "agree", sums[:, 3:], ratio, "proportion")
    yield Population(name, "F1 of a person", "score", np.array(scores), f1_of_sums, "proportion")
    yield Population(name, "recall of a person", "score", np.array(scores), recall_of_sums, "proportion")


def _faithbench_populations(folder: Path) -> Iterator[Population]:
    counts = [
        [float(len(sample["annotations"])), 1.0]
        for file in sorted(folder.glob("batch_*.json"))
        if not file.stem.endswith("annotation")
        for sample in json.loads(file.read_text(encoding="utf-8"))["samples"]
    ]
    if counts:
        yield Population("FaithBench", "count per text", "measure", np.array(counts), ratio, "mean", (0, math.inf))


def _snac_populations(file: Path) -> Iterator[Population]:
    if not file.exists():
        return
    study = read(file)
    tally = UnitMarks(view(study), AgreeOptions(by_label=False)).tallies[0].coincidences[:, 0]  # (texts, 2, 2)
    sums = np.stack([tally[:, 0, 1] + tally[:, 1, 0], tally[:, 1].sum(axis=1), tally.sum(axis=(1, 2))], 1)
    yield Population("SNaC", "alpha", "agree", sums, binary_alpha_from_sums, "coefficient")
    counts = dict(study.marks.group_by("document").len().iter_rows())
    marks = np.array([[float(counts.get(id, 0)), 1.0] for id in study.documents["id"]])
    yield Population("SNaC", "count per text", "measure", marks, ratio, "mean", (0, math.inf))


def _mqm_populations(file: Path) -> Iterator[Population]:
    if not file.exists():
        return
    study = read(file)
    counts = dict(study.marks.group_by("document").len().iter_rows())
    by_source: dict[str, list[float]] = {}
    single = []
    for id, context, text in study.documents.select("id", "context", "text").iter_rows():
        marks, words = float(counts.get(id, 0)), float(count_words(text))
        cell = by_source.setdefault(json.loads(context)["source"], [0.0, 0.0, 0.0])
        for place, value in enumerate((marks, 1.0, words)):
            cell[place] += value
        single.append([marks, 1.0])
    name, clustered = "WMT MQM en-de", np.array(list(by_source.values()))
    yield Population(name, "count per segment", "measure", np.array(single), ratio, "mean", (0, math.inf))
    sums = clustered[:, :2]
    yield Population(name, "count, all systems per source", "measure", sums, ratio, "mean", (0, math.inf))
    sums = clustered[:, [0, 2]] * np.array([100.0, 1.0])
    yield Population(name, "rate per 100 words, all systems", "measure", sums, ratio, "mean", (0, math.inf))


# --- tests -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TestDesign:
    """Design of a comparison without a true difference."""

    __test__ = False
    name: str
    groups: str
    draw: Callable[[np.random.Generator], tuple[Floats, Floats, Floats]]
    """Function that draws pairs, clusters of the first group and clusters of the second group."""


def _texts(values: Floats) -> Floats:
    return np.stack([values, np.ones(len(values))], axis=1)


def _skewed(rng: np.random.Generator, size: int) -> Floats:
    return rng.poisson(rng.gamma(1.0, 2.0, size)).astype(np.float64)


def _partly_paired(rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    level = rng.gamma(1.0, 2.0, 10)
    return (
        (rng.poisson(level) - rng.poisson(level)).astype(np.float64),
        _texts(_skewed(rng, 8)),
        _texts(_skewed(rng, 12)),
    )


def _paired(rng: np.random.Generator, size: int) -> tuple[Floats, Floats, Floats]:
    level = rng.gamma(1.0, 2.0, size)
    return (rng.poisson(level) - rng.poisson(level)).astype(np.float64), np.zeros((0, 2)), np.zeros((0, 2))


def _clustered(rng: np.random.Generator, size: int) -> Floats:
    texts = rng.integers(1, 5, size).astype(np.float64)
    return np.stack([rng.poisson(rng.gamma(1.0, 2.0, size) * texts).astype(np.float64), texts], axis=1)


NO_PAIRS = np.zeros(0)
TEST_DESIGNS = (
    TestDesign(
        "unpaired, standard deviations 5 and 1",
        "10 and 40 texts",
        lambda rng: (NO_PAIRS, _texts(rng.normal(0, 5, 10)), _texts(rng.normal(0, 1, 40))),
    ),
    TestDesign(
        "unpaired, standard deviations 1 and 5",
        "10 and 40 texts",
        lambda rng: (NO_PAIRS, _texts(rng.normal(0, 1, 10)), _texts(rng.normal(0, 5, 40))),
    ),
    TestDesign(
        "unpaired, skewed counts",
        "10 and 40 texts",
        lambda rng: (NO_PAIRS, _texts(_skewed(rng, 10)), _texts(_skewed(rng, 40))),
    ),
    TestDesign(
        "unpaired, skewed counts",
        "20 and 20 texts",
        lambda rng: (NO_PAIRS, _texts(_skewed(rng, 20)), _texts(_skewed(rng, 20))),
    ),
    TestDesign(
        "unpaired, 1 to 4 texts per prompt",
        "10 and 20 prompts",
        lambda rng: (NO_PAIRS, _clustered(rng, 10), _clustered(rng, 20)),
    ),
    TestDesign("paired, skewed counts", "10 pairs", lambda rng: _paired(rng, 10)),
    TestDesign("paired, skewed counts", "20 pairs", lambda rng: _paired(rng, 20)),
    TestDesign("partly paired, skewed counts", "10 pairs, 8 and 12 texts", _partly_paired),
)


def measure_size(design: TestDesign, replications: int, seed: int = 0) -> float:
    """Return the share of replications in which the test rejects a true null hypothesis at 5%."""
    rng = np.random.default_rng(seed)
    alarms = 0
    for replication in range(replications):
        parts = design.draw(rng)
        own = np.random.default_rng([seed, replication])
        alarms += difference_test(*parts, _TEST_DRAWS, own, invert=False).p <= 0.05
    return alarms / replications


def measure_family_error(replications: int, comparisons: int = 6, texts: int = 20, seed: int = 0) -> float:
    """Return the share of replications in which max-t rejects one of several correlated true null hypotheses."""
    rng = np.random.default_rng(seed)
    alarms = 0
    for replication in range(replications):
        levels = rng.gamma(1.0, 2.0, (texts, 1))
        counts = rng.poisson(np.broadcast_to(levels, (texts, 4))).astype(np.float64)
        first, second = np.triu_indices(4, 1)
        differences = counts[:, first] - counts[:, second]
        errors = differences.std(axis=0, ddof=1) / math.sqrt(texts)
        statistics = differences.mean(axis=0) / np.where(errors > 0, errors, np.inf)
        centred = differences - differences.mean(axis=0)
        found = max_t_adjustment(centred, statistics, _TEST_DRAWS, np.random.default_rng([seed, replication]))
        alarms += bool((found.p <= 0.05).any())
    assert comparisons == len(first)
    return alarms / replications


# --- tables ------------------------------------------------------------------------------------------------------


def coverage_row(cell: CoverageCell) -> list[object]:
    """Return a row of the coverage table."""
    population = cell.population
    return [
        population.command, population.statistic, population.source, cell.clusters, cell.method,
        f"{cell.coverage:.3f} ± {cell.error:.3f}", f"{cell.percentile_coverage:.3f}",
        f"{cell.width / cell.percentile_width:.2f}", f"{cell.defined:.1%}",
    ]  # fmt: skip


def main(replications: int = REPLICATIONS) -> None:
    rows = [
        coverage_row(measure_coverage(population, clusters, replications))
        for population in (*simulated_populations(), *released_populations())
        for clusters in SIZES
    ]
    head = ["command", "statistic", "texts from", "clusters", "method", "coverage", "percentile coverage",
            "width / percentile width", "with interval"]  # fmt: skip
    conditions = f"{replications:,} replications per row, 1,000 resamples; the nominal level is .95."
    write_table(PAGE, "coverage", markdown_table(head, rows), conditions)
    error = math.sqrt(0.05 * 0.95 / replications)
    sizes = [
        [design.name, design.groups, f"{measure_size(design, replications):.3f} ± {error:.3f}"]
        for design in TEST_DESIGNS
    ]
    family = f"{measure_family_error(replications):.3f} ± {error:.3f}"
    sizes.append(["max-t, 6 pairs of 4 systems, any rejection", "20 prompts", family])
    conditions = f"{replications:,} replications per row, {_TEST_DRAWS} permutations; the nominal size is .05."
    write_table(PAGE, "size", markdown_table(["design", "sample", "size"], sizes), conditions)


if __name__ == "__main__":
    main()
