"""Comparisons of two systems as work on partitions: each pair of systems is a row, and so is their difference."""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import polars as pl

from finecomb.core.errors import FinecombError, param
from finecomb.core.estimate import Estimate, Finding, Signature
from finecomb.engine.partitions import Executor, Tables, rows_per_partition
from finecomb.statistics.inference.permutation_tests import Values, paired_permutation_test, unpaired_permutation_test
from finecomb.version import __version__

Pairing = Literal["auto", "yes", "no"]
_PAIRS_PER_PARTITION = 1  # comparisons of a partition: one holds all values of two systems
_DIFFERENCE_SCHEMA = {
    "a_mean": pl.Float64,
    "b_mean": pl.Float64,
    "together": pl.Boolean,
    "n": pl.String,
    "difference": pl.Float64,
    "p": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "exact": pl.Boolean,
}


class SystemDifference(NamedTuple):
    """What comes of comparing two systems: a row of the results."""

    a_mean: float
    b_mean: float
    together: bool
    """Whether documents were paired."""
    n: str
    """How many pairs, or how many documents of each system."""
    difference: float
    p: float
    low: float
    high: float
    exact: bool
    """Whether every arrangement was looked at."""


@dataclass(frozen=True, slots=True)
class SystemPair:
    """Two systems that are to be compared."""

    columns: Mapping[str, object]
    """Measure, label and the systems `a` and `b`."""
    a: pl.DataFrame
    """Columns value and key, a row for each document of the first system."""
    b: pl.DataFrame
    signature: Signature

    def row(self) -> pl.DataFrame:
        """All that the comparison needs, as one row."""
        names = {name: [str(self.columns[name])] for name in ("label", "a", "b")}
        values = {f"{side}_{name}": [getattr(self, side)[name]] for side in "ab" for name in ("value", "key")}
        return pl.DataFrame({**names, **values})

    def finding(self, result: SystemDifference) -> Finding:
        """The result as a row of the table that people see."""
        test = f"{'paired' if result.together else 'unpaired'} permutation{', exact' if result.exact else ''}"
        columns = {
            **self.columns,
            "a_mean": result.a_mean,
            "b_mean": result.b_mean,
            "test": test,
            "n": result.n,
            "p": result.p,
        }
        return Finding(columns, _difference_estimate(result, self.signature))


def _difference_estimate(result: SystemDifference, signature: Signature) -> Estimate:
    if math.isnan(result.p):
        lacking_pairs, lacking_texts = (
            "fewer than two prompts are shared",
            "a system has fewer than two documents with a value",
        )
        why = lacking_pairs if result.together else lacking_texts
        return Estimate(math.nan, math.nan, math.nan, signature, why)
    return Estimate(result.difference, result.low, result.high, signature)


@dataclass(frozen=True, slots=True)
class ComparisonWork:
    """A comparison as work that can be sent to other processes: all that it depends on beside the values."""

    pairing: Pairing
    draws: int
    seed: int

    def key(self) -> str:
        """All that a difference depends on beside the values of two systems and their names."""
        return "\x1f".join(map(str, ("compare", self.pairing, self.draws, self.seed, __version__)))

    def __call__(self, rows: pl.DataFrame) -> Tables:
        """The difference of each two systems with its interval and p."""
        results = [self._difference(row) for row in rows.iter_slices(1)]
        return {"differences": pl.DataFrame(results, _DIFFERENCE_SCHEMA, orient="row")}

    def _difference(self, row: pl.DataFrame) -> SystemDifference:
        a, b = (pl.DataFrame({name: row[f"{side}_{name}"][0] for name in ("value", "key")}) for side in "ab")
        together = self.pairing == "yes" or (self.pairing == "auto" and _has_all_keys_paired(a, b))
        pairs = _pair_by_key(a, b)
        first, second = (
            (pairs[side].to_numpy() for side in "ab") if together else (side["value"].to_numpy() for side in (a, b))
        )
        test = (paired_permutation_test if together else unpaired_permutation_test)(
            first, second, self.draws, self._rng(row)
        )
        n = str(len(pairs)) if together else f"{len(a)}+{len(b)}"
        difference, p, low, high = (float(number) for number in (test.difference, test.p, test.low, test.high))
        return SystemDifference(
            _mean_or_nan(first), _mean_or_nan(second), together, n, difference, p, low, high, test.exact
        )

    def _rng(self, row: pl.DataFrame) -> np.random.Generator:
        """Random numbers that depend on the names of systems and label alone."""
        names = "\x1f".join(row[name][0] for name in ("a", "b", "label"))
        return np.random.default_rng([self.seed, zlib.crc32(names.encode())])

    def handle_lost_row(self, row: pl.DataFrame, reason: str) -> Tables:
        """An error: where no process survives a comparison, p of the others cannot be corrected either."""
        systems = f"{row['a'][0]} and {row['b'][0]}"
        raise FinecombError(f"{systems} cannot be compared: {reason}; ask for fewer {param('draws')}")


def compare_systems(pairs: Sequence[SystemPair], work: ComparisonWork, spread: Executor) -> Iterator[Finding]:
    """The finding of every two systems, worked on as `spread` says."""
    run = spread.start_run(work, work.handle_lost_row, work.key())
    for _ in run.run_partitions(_system_pair_partitions(pairs, rows_per_partition(len(pairs), _PAIRS_PER_PARTITION))):
        pass
    results = run.table("differences").collect().select(list(_DIFFERENCE_SCHEMA)).iter_rows() if pairs else ()
    for pair, result in zip(pairs, results, strict=True):
        yield pair.finding(SystemDifference(*result))


def _system_pair_partitions(pairs: Iterable[SystemPair], size: int) -> Iterator[pl.DataFrame]:
    """Rows as they are needed: together they would hold the values of each system once for every other."""
    source = iter(pairs)
    while batch := [pair.row() for pair in itertools.islice(source, size)]:
        yield pl.concat(batch)


def _pair_by_key(a: pl.DataFrame, b: pl.DataFrame) -> pl.DataFrame:
    """One row per shared key: the mean value of each system."""
    sides = [
        side.filter(pl.col("key").is_not_null()).group_by("key").agg(pl.col("value").mean().alias(name))
        for side, name in ((a, "a"), (b, "b"))
    ]
    return sides[0].join(sides[1], on="key").sort("key")


def _has_all_keys_paired(a: pl.DataFrame, b: pl.DataFrame) -> bool:
    """Whether every document of one of the two systems has its key in the other."""
    sides = [set(side["key"].to_list()) for side in (a, b)]
    return any(one and None not in one and one <= other for one, other in (sides, sides[::-1]))


def _mean_or_nan(values: Values) -> float:
    return float(values.mean()) if len(values) else math.nan
