"""Measures and agreement on a corpus of Scarecrow's size, alpha beside the `krippendorff` package in the same run."""

from __future__ import annotations

import krippendorff
import numpy as np

from benchmarks._corpus import corpus
from benchmarks._timing import seconds
from finecomb.agreement.agree import agree
from finecomb.core.study import Study
from finecomb.measure.grid import lay, votes
from finecomb.measure.measures import MEASURES, measure
from finecomb.measure.view import View, view


def peer(seen: View) -> float:
    """Alpha of every label by the peer, on value counts that are laid out beforehand and not timed."""
    counted = votes(seen.study, lay(seen.study), seen.categories)
    counts = [np.stack([counted.m - marked, marked], axis=1) for marked in counted.marked]
    return seconds(lambda: [krippendorff.alpha(value_counts=each, level_of_measurement="nominal") for each in counts])


def row(documents: int, annotators: int) -> None:
    seen = view(Study.from_items(corpus(documents, annotators)))
    ours = seconds(lambda: agree(seen, ["alpha"], draws=0))
    drawn = seconds(lambda: agree(seen, ["alpha"], draws=1000))
    theirs = peer(seen)
    everything = seconds(lambda: measure(seen, list(MEASURES), ["model"], draws=1000), 1)
    size = f"{documents:,} x {annotators} x {len(seen.categories)}, {len(seen.study.marks):,} marks"
    print(f"{size}: alpha of all labels {ours:.2f} s from marks, {drawn:.2f} s with 1,000 resamples;")
    times = f"{1000 * theirs:,.0f} s for 1,000 resamples, {1000 * theirs / drawn:,.0f} times as long"
    print(f"  krippendorff {theirs:.2f} s from counts laid out beforehand, so {times};")
    print(f"  all {len(MEASURES)} measures by label and model with 1,000 resamples {everything:.2f} s", flush=True)


def main() -> None:
    for documents, annotators in ((325, 10), (1300, 5), (1300, 10), (1300, 20)):
        row(documents, annotators)
