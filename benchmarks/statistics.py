"""Measures and agreement on a corpus of Scarecrow's size, with alpha compared with the package `krippendorff`."""

from __future__ import annotations

import krippendorff
import numpy as np

from benchmarks._corpus import simulate_corpus
from benchmarks._docs import markdown_table, write_table
from benchmarks._ratios import describe_conditions, record_ratio
from benchmarks._timing import best_seconds
from finecomb.core.study import Study
from finecomb.statistics.agreement.agreement import agree
from finecomb.statistics.measures.annotation_measures import ANNOTATION_MEASURES, measure
from finecomb.statistics.measures.unit_grid import build_unit_grid, count_unit_votes
from finecomb.statistics.selection.view import View, view


def krippendorff_seconds(seen: View) -> float:
    """Return the seconds of the peer for alpha of each label, from precomputed value counts."""
    counted = count_unit_votes(seen.study, build_unit_grid(seen.study), seen.categories)
    counts = [np.stack([counted.annotators_per_unit - marked, marked], axis=1) for marked in counted.marked]
    return best_seconds(
        lambda: [krippendorff.alpha(value_counts=each, level_of_measurement="nominal") for each in counts]
    )


def measure_row(documents: int, annotators: int) -> tuple[str, ...]:
    """Return one table row: ours with 1,000 resamples, the peer once and times 1,000."""
    seen = view(Study.from_items(simulate_corpus(documents, annotators)))
    drawn = best_seconds(lambda: agree(seen, ["alpha"], draws=1000))
    theirs = krippendorff_seconds(seen)
    everything = best_seconds(lambda: measure(seen, list(ANNOTATION_MEASURES), ["model"], draws=1000), 1)
    size = f"{documents:,} x {annotators}, {len(seen.study.marks):,}"
    record_ratio(f"statistics: alpha with 1,000 resamples beside krippendorff, {size}", drawn, 1000 * theirs)
    times = (f"{drawn:.2f} s", f"{theirs:.2f} s", f"{1000 * theirs:,.0f} s", f"{1000 * theirs / drawn:,.0f}")
    return (size, *times, f"{everything:.2f} s")


TABLE_HEADER = (
    "documents x annotators, marks",
    "alpha, 1,000 resamples",
    "`krippendorff`, one alpha per label",
    "the same, times 1,000",
    "ratio",
    "all measures",
)


def main() -> None:
    sizes = ((325, 10), (1300, 5), (1300, 10), (1300, 20))
    table = markdown_table(TABLE_HEADER, [measure_row(documents, annotators) for documents, annotators in sizes])
    write_table("performance.md", "statistics", table, describe_conditions("krippendorff", "numpy", "polars"))
