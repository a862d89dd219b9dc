"""Pairwise comparisons of systems as tasks for an executor: one input row and one result row per pair."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError, param
from finecomb.core.results import Estimate, Finding, Signature
from finecomb.engine.partitions import Executor, ProgressWatcher, Tables, rows_per_partition
from finecomb.statistics.inference.permutation_tests import choose_parts, difference_test
from finecomb.version import __version__

Pairing = Literal["auto", "yes", "no"]
_PAIRS_PER_PARTITION = 1  # one pair per partition, since a pair holds all values of two systems
_DIFFERENCE_SCHEMA = {
    "a_mean": pl.Float64,
    "b_mean": pl.Float64,
    "design": pl.String,
    "n": pl.String,
    "difference": pl.Float64,
    "p": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "exact": pl.Boolean,
    "error": pl.Float64,
    "why": pl.String,
}
_SIDE_COLUMNS = ("value", "key", "cluster")


class SystemDifference(NamedTuple):
    """Result of comparing two systems, as a row of the results table."""

    a_mean: float
    b_mean: float
    design: str
    """`paired`, `unpaired` or `partly paired`."""
    n: str
    """Number of pairs, numbers of clusters of each system, or both."""
    difference: float
    p: float
    low: float
    high: float
    exact: bool
    """True if the test enumerated all arrangements."""
    error: float
    """Standard error of the difference."""
    why: str
    """Reason for a missing p-value or interval."""


class ComparedClusters(NamedTuple):
    """Differences of pairs and sums of unpaired clusters of two systems, each with the names of its clusters."""

    pairs: NDArray[np.float64]
    pair_names: list[str]
    first: NDArray[np.float64]
    """(clusters, 2): sum of values and number of texts of each unpaired cluster of the first system."""
    first_names: list[str]
    second: NDArray[np.float64]
    second_names: list[str]


def split_into_pairs(a: pl.DataFrame, b: pl.DataFrame, pairing: Pairing) -> ComparedClusters:
    """Pair the documents of two systems that have the same key, and sum the others by cluster.

    `a` and `b` have the columns value, key and cluster. Documents of one system with the same key are averaged, and the
    differences of keys of one cluster as well. With `auto`, unmatched documents form unpaired clusters; with `yes` they
    are omitted; with `no`, all documents are unpaired.
    """
    sides = [
        side.filter(pl.col("key").is_not_null())
        .group_by("key", maintain_order=True)
        .agg(pl.col("value").mean(), pl.col("cluster").first())
        for side in (a, b)
    ]
    pairs = sides[0].join(sides[1], on="key", suffix="_b").sort("key")
    if pairing == "no":
        pairs = pairs.clear()
    by_cluster = (
        pairs.with_columns(value=pl.col("value") - pl.col("value_b"))
        .group_by("cluster", maintain_order=True)
        .agg(pl.col("value").mean())
    )
    groups: list[tuple[NDArray[np.float64], list[str]]] = []
    for side in (a, b):
        rest = side.filter(~pl.col("key").is_in(pairs["key"].implode()).fill_null(value=False))
        if pairing == "yes":
            rest = rest.clear()
        sums = rest.group_by("cluster", maintain_order=True).agg(pl.col("value").sum(), texts=pl.len())
        groups.append((sums.select("value", "texts").to_numpy().astype(np.float64), sums["cluster"].to_list()))
    return ComparedClusters(by_cluster["value"].to_numpy(), by_cluster["cluster"].to_list(), *groups[0], *groups[1])


@dataclass(frozen=True, slots=True)
class SystemPair:
    """Two systems to compare, with the values of their documents."""

    columns: Mapping[str, object]
    """Values of the columns measure, label, `a` and `b` (the two systems)."""
    a: pl.DataFrame
    """Values of the first system: columns value, key and cluster, with one row per document."""
    b: pl.DataFrame
    signature: Signature

    def to_row(self) -> pl.DataFrame:
        """Return the input of the comparison as a table with one row."""
        names = {name: [str(self.columns[name])] for name in ("label", "a", "b")}
        values = {f"{side}_{name}": [getattr(self, side)[name]] for side in "ab" for name in _SIDE_COLUMNS}
        return pl.DataFrame({**names, **values})


@dataclass(frozen=True, slots=True)
class SystemComparisonTask:
    """Settings of a comparison, as a task that can be sent to other processes."""

    pairing: Pairing
    draws: int
    seed: int

    def key(self) -> str:
        """Return a cache key that covers all inputs of a difference except the values and names of the systems."""
        return "\x1f".join(map(str, ("compare-t", self.pairing, self.draws, self.seed, __version__)))

    def __call__(self, rows: pl.DataFrame) -> Tables:
        """Return the difference of each pair of systems with its interval and p."""
        results = []
        for row in rows.iter_slices(1):
            a, b = (pl.DataFrame({name: row[f"{side}_{name}"][0] for name in _SIDE_COLUMNS}) for side in "ab")
            parts = split_into_pairs(a, b, self.pairing)
            # The generator depends only on the seed and the names of the systems and the label. The `hash` of a string
            # differs between processes; a checksum does not.
            names = "\x1f".join(row[name][0] for name in ("a", "b", "label"))
            rng = np.random.default_rng([self.seed, zlib.crc32(names.encode())])
            test = difference_test(parts.pairs, parts.first, parts.second, self.draws, rng)
            sizes = len(parts.pairs), len(parts.first), len(parts.second)
            chosen = choose_parts(*sizes)
            design = "partly paired" if len(chosen) == 2 else "paired" if "pairs" in chosen else "unpaired"
            if not chosen and self.pairing == "yes":
                design = "paired"
            unpaired = f"{sizes[1]}+{sizes[2]}"
            n = {"paired": str(sizes[0]), "unpaired": unpaired}.get(design, f"{sizes[0]} pairs, {unpaired}")
            sides = [a, b]
            if design == "paired":  # means over pairs, whose difference is tested
                shared = list(set(a["key"]) & set(b["key"]) - {None})
                paired = [side.filter(pl.col("key").is_in(shared)) for side in sides]
                sides = [side.group_by("key", maintain_order=True).agg(pl.col("value").mean()) for side in paired]
            means = [float(side["value"].to_numpy().mean()) if len(side) else math.nan for side in sides]
            results.append(
                SystemDifference(
                    means[0], means[1], design, n, test.difference, test.p, test.low, test.high, test.exact,
                    test.error, test.why,
                )
            )  # fmt: skip
        return {"differences": pl.DataFrame(results, _DIFFERENCE_SCHEMA, orient="row")}

    def handle_lost_row(self, row: pl.DataFrame, reason: str) -> Tables:
        """Raise an error for an unfinished comparison, because p-values are corrected over all comparisons."""
        systems = f"{row['a'][0]} and {row['b'][0]}"
        raise FinecombError(f"{systems} cannot be compared: {reason}; reduce {param('draws')}")


def run_pair_comparisons(
    pairs: Sequence[SystemPair], work: SystemComparisonTask, spread: Executor, watch: ProgressWatcher | None = None
) -> Iterator[tuple[Finding, float]]:
    """Yield the finding of each pair of systems and its standard error, computed by the executor `spread`.

    `watch` reports progress. It receives the count of each finished comparison and the total number.
    """
    run = spread.start_run(work, work.handle_lost_row, work.key())
    size = rows_per_partition(len(pairs), _PAIRS_PER_PARTITION)
    # A generator, because all rows together would repeat each system's values for each pair.
    batches = (pairs[start : start + size] for start in range(0, len(pairs), size))
    counts = run.run_partitions(pl.concat([pair.to_row() for pair in batch]) for batch in batches)
    for _ in watch(counts, len(pairs)) if watch else counts:
        pass
    results = run.result_table("differences").collect().select(list(_DIFFERENCE_SCHEMA)).iter_rows() if pairs else ()
    for pair, row in zip(pairs, results, strict=True):
        cells: Any = [math.nan if isinstance(cell, float) and math.isnan(cell) else cell for cell in row]
        result = SystemDifference(*cells)
        test = f"{result.design} permutation{', exact' if result.exact else ''}"
        columns = {**pair.columns, "a_mean": result.a_mean, "b_mean": result.b_mean}
        columns |= {"test": test, "n": result.n, "p": result.p}
        signature = pair.signature.insert(interval="inverted-test")
        estimate = Estimate(result.difference, result.low, result.high, signature, result.why)
        if math.isnan(result.p):
            few = "fewer than two clusters of documents can be paired"
            why = few if result.design == "paired" else "a system has fewer than two clusters of documents with a value"
            why = result.why if "no permutations" in result.why else why
            estimate = Estimate(math.nan, math.nan, math.nan, signature, why)
        yield Finding(columns, estimate), result.error
