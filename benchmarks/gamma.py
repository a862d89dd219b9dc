"""Best alignments compared with pygamma-agreement on Scarecrow-like paragraphs, then alone at sizes beyond its reach.

Each row runs in a separate process, so that its memory is measured separately.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
import warnings
from typing import Any

import numpy as np

from benchmarks._corpus import simulate_corpus
from benchmarks._docs import markdown_table, write_table
from benchmarks._ratios import describe_conditions, record_ratio
from finecomb.core.study import Study
from finecomb.engine.engines import LocalEngine
from finecomb.engine.partitions import Executor
from finecomb.engine.processes import usable_core_count
from finecomb.statistics.agreement.gamma.best_alignment import best_alignment
from finecomb.statistics.agreement.gamma.continuum import Continuum, build_document_continua
from finecomb.statistics.agreement.gamma.pooled_gamma import measure_gamma_of_texts, unproven_gamma_gap
from finecomb.statistics.agreement.gamma.text_gamma import GammaSettings
from finecomb.statistics.selection.view import View, view

MEGABYTE = 1024 * (1 if sys.platform != "darwin" else 1024)
PAGE = "statistics/gamma.md"
COMPARISON_HEADER = ("annotators", "marks", "ours", "pygamma-agreement", "times")
SCALING_HEADER = ("annotators", "marks an annotation", "seconds a paragraph", "memory", "proven", "largest gap")
CORPUS_HEADER = (
    "paragraphs",
    "annotators",
    "samples of chance each",
    "processor seconds",
    "by the clock",
    "proven throughout",
)
WORDS_PER_TEXT, MARK_RATE = 112, 3.2  # about 3.15 marks per annotation


def simulated_view(count: int, annotators: int, rate: float) -> View:
    return view(Study.from_items(simulate_corpus(count, annotators, WORDS_PER_TEXT, rate)))


def simulated_continua(count: int, annotators: int, rate: float) -> list[Continuum]:
    chosen = simulated_view(count, annotators, rate)
    return [each.continuum for each in build_document_continua(chosen.study, chosen.categories)]


def measure_ours(texts: list[Continuum]) -> dict[str, float]:
    best_alignment(texts[0])  # load imports before timing
    began = time.process_time()
    found = [best_alignment(each) for each in texts]
    took = (time.process_time() - began) / len(texts)
    gaps = [1 - each.lower / each.upper for each in found]
    return {
        "seconds": took,
        "proven": sum(each.status == "proven" for each in found),
        "gap": max(gaps),
        "disorder": found[0].upper,
    }


def measure_pygamma(texts: list[Continuum]) -> dict[str, float]:
    import pygamma_agreement
    from pyannote.core import Segment

    distance = pygamma_agreement.CombinedCategoricalDissimilarity()

    def to_pygamma(marks: Continuum) -> Any:
        copy = pygamma_agreement.Continuum()
        for annotator in range(marks.annotators):
            copy.add_annotator(f"{annotator:02}")
        for owner, start, end, category in zip(marks.owner, marks.start, marks.end, marks.category, strict=True):
            copy.add(f"{owner:02}", Segment(float(start), float(end)), str(category))
        return copy

    began = time.process_time()
    disorders = [to_pygamma(each).get_best_alignment(distance).disorder for each in texts]
    return {"seconds": (time.process_time() - began) / len(texts), "disorder": float(disorders[0])}


def measure_corpus(count: int) -> dict[str, float]:
    chosen = simulated_view(count, 10, MARK_RATE)
    began = time.perf_counter()
    texts = measure_gamma_of_texts(chosen, GammaSettings(), 0, Executor(LocalEngine(usable_core_count())))
    took = time.perf_counter() - began
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    proven = sum(not unproven_gamma_gap([each]) for each in texts if not each.why)
    return {
        "wall": took,
        "seconds": sum(each.ru_utime + each.ru_stime for each in used),
        "proven": proven,
        "texts": sum(not each.why for each in texts),
    }


def _measure_in_child(what: str, place: int, annotators: int, rate: float) -> dict[str, float]:
    """Measure one of 20 paragraphs, by its position when sorted by size, or all of them for -1."""
    if what == "corpus":
        return measure_corpus(place)
    texts = sorted(simulated_continua(20, annotators, rate), key=len)
    texts = texts if place < 0 else [texts[place]]
    return {
        "marks": float(np.mean([len(each) for each in texts])),
        **{"ours": measure_ours, "peer": measure_pygamma}[what](texts),
    }


def run_child(what: str, place: int, annotators: int, rate: float = MARK_RATE) -> dict[str, float]:
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.gamma", what, str(place), str(annotators), str(rate)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def compare_alignments(place: int, annotators: int) -> tuple[dict[str, float], dict[str, float]]:
    """Align one paragraph with both programs and check that they agree."""
    own, other = run_child("ours", place, annotators), run_child("peer", place, annotators)
    assert abs(own["disorder"] - other["disorder"]) < 1e-4, (own, other)
    return own, other


def comparison_row(annotators: int, own: dict[str, float], other: dict[str, float]) -> tuple[str, ...]:
    """Return a row of the first table, with memory and CPU seconds of each program."""
    mine = f"{own['seconds']:.3f} s, {own['peak']:.0f} MB"
    theirs = f"{other['seconds']:.2f} s, {other['peak']:,.0f} MB"
    return f"{annotators}", f"{own['marks']:.0f}", mine, theirs, f"{other['seconds'] / own['seconds']:,.0f}"


def scaling_row(annotators: int, rate: float) -> tuple[str, ...]:
    """Return a row of the second table: twenty paragraphs without a time limit."""
    found = run_child("ours", -1, annotators, rate)
    marks, peak = f"{found['marks'] / annotators:.1f}", f"{found['peak']:.0f} MB"
    return f"{annotators}", marks, f"{found['seconds']:.2f}", peak, f"{found['proven']:.0f}", f"{found['gap']:.1%}"


def main() -> None:
    rows = [comparison_row(annotators, *compare_alignments(10, annotators)) for annotators in (3, 5, 8)]
    ten = [compare_alignments(place, 10) for place in (10, 12, 13, 14, 15)]
    own, other = (sum(found["seconds"] for found in side) for side in zip(*ten, strict=True))
    record_ratio("gamma: best alignments of five paragraphs beside pygamma-agreement", own, other)
    rows += [comparison_row(10, *pair) for pair in ten]
    rows.append(("10", "these five", f"{own:.2f} s", f"{other:.0f} s", f"{other / own:,.0f}"))
    write_table(
        PAGE,
        "gamma beside",
        markdown_table(COMPARISON_HEADER, rows),
        describe_conditions("pygamma-agreement", "highspy"),
    )
    sizes = ((10, MARK_RATE), (15, MARK_RATE), (20, MARK_RATE), (20, 2.5 * MARK_RATE), (30, MARK_RATE))
    write_table(PAGE, "gamma alone", markdown_table(SCALING_HEADER, (scaling_row(*size) for size in sizes)))
    found = run_child("corpus", 130, 10)
    proven = f"{found['proven']:.0f} of {found['texts']:.0f}"
    row = (
        "130",
        "10",
        "30",
        f"{found['seconds']:.0f}",
        f"{found['wall']:.0f} s on {usable_core_count()} cores",
        proven,
    )
    write_table(PAGE, "gamma of a corpus", markdown_table(CORPUS_HEADER, [row]))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    found = _measure_in_child(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
    print(json.dumps({**found, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MEGABYTE}))
