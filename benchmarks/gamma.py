"""Best alignments beside pygamma-agreement on Scarecrow-like paragraphs, then alone where that cannot follow.

Each row runs in a process of its own, so that memory is its own.
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

from benchmarks._corpus import corpus
from benchmarks._docs import markdown, write_table
from benchmarks._ratios import conditions, note_ratio
from finecomb.core.study import Study
from finecomb.engine.engines import LocalEngine
from finecomb.engine.partitions import Executor
from finecomb.engine.process_pool import core_count
from finecomb.statistics.agreement.gamma.best_alignment import best_alignment
from finecomb.statistics.agreement.gamma.continuum import Continuum, continua
from finecomb.statistics.agreement.gamma.pooled_gamma import gamma_gap, measure_view
from finecomb.statistics.agreement.gamma.text_gamma import GammaSettings
from finecomb.statistics.selection.view import View, view

MEGABYTE = 1024 * (1 if sys.platform != "darwin" else 1024)
PAGE = "statistics/gamma.md"
BESIDE = ("annotators", "marks", "ours", "pygamma-agreement", "times")
ALONE = ("annotators", "marks an annotation", "seconds a paragraph", "memory", "proven", "largest gap")
CORPUS = (
    "paragraphs",
    "annotators",
    "samples of chance each",
    "processor seconds",
    "by the clock",
    "proven throughout",
)
WORDS, RATE = 112, 3.2  # about 3.15 marks an annotation


def seen(count: int, annotators: int, rate: float) -> View:
    return view(Study.from_items(corpus(count, annotators, WORDS, rate)))


def paragraphs(count: int, annotators: int, rate: float) -> list[Continuum]:
    chosen = seen(count, annotators, rate)
    return [each.continuum for each in continua(chosen.study, chosen.categories)]


def ours(texts: list[Continuum]) -> dict[str, float]:
    best_alignment(texts[0])  # imports
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


def peer(texts: list[Continuum]) -> dict[str, float]:
    import pygamma_agreement
    from pyannote.core import Segment

    distance = pygamma_agreement.CombinedCategoricalDissimilarity()

    def copied(marks: Continuum) -> Any:
        copy = pygamma_agreement.Continuum()
        for annotator in range(marks.annotators):
            copy.add_annotator(f"{annotator:02}")
        for owner, start, end, category in zip(marks.owner, marks.start, marks.end, marks.category, strict=True):
            copy.add(f"{owner:02}", Segment(float(start), float(end)), str(category))
        return copy

    began = time.process_time()
    disorders = [copied(each).get_best_alignment(distance).disorder for each in texts]
    return {"seconds": (time.process_time() - began) / len(texts), "disorder": float(disorders[0])}


def corpus_seconds(count: int) -> dict[str, float]:
    chosen = seen(count, 10, RATE)
    began = time.perf_counter()
    texts = measure_view(chosen, GammaSettings(), 0, Executor(LocalEngine(core_count())))
    took = time.perf_counter() - began
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    proven = sum(not gamma_gap([each]) for each in texts if not each.why)
    return {
        "wall": took,
        "seconds": sum(each.ru_utime + each.ru_stime for each in used),
        "proven": proven,
        "texts": sum(not each.why for each in texts),
    }


def _child(what: str, place: int, annotators: int, rate: float) -> dict[str, float]:
    """Of 20 paragraphs the one at a place when they are sorted by size, or with -1 all of them."""
    if what == "corpus":
        return corpus_seconds(place)
    texts = sorted(paragraphs(20, annotators, rate), key=len)
    texts = texts if place < 0 else [texts[place]]
    return {"marks": float(np.mean([len(each) for each in texts])), **{"ours": ours, "peer": peer}[what](texts)}


def run(what: str, place: int, annotators: int, rate: float = RATE) -> dict[str, float]:
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.gamma", what, str(place), str(annotators), str(rate)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def beside(place: int, annotators: int) -> tuple[dict[str, float], dict[str, float]]:
    """One paragraph aligned by us and by the peer, which must agree."""
    own, other = run("ours", place, annotators), run("peer", place, annotators)
    assert abs(own["disorder"] - other["disorder"]) < 1e-4, (own, other)
    return own, other


def beside_row(annotators: int, own: dict[str, float], other: dict[str, float]) -> tuple[str, ...]:
    """A row of the first table; memory and processor seconds of each."""
    mine = f"{own['seconds']:.3f} s, {own['peak']:.0f} MB"
    theirs = f"{other['seconds']:.2f} s, {other['peak']:,.0f} MB"
    return f"{annotators}", f"{own['marks']:.0f}", mine, theirs, f"{other['seconds'] / own['seconds']:,.0f}"


def alone_row(annotators: int, rate: float) -> tuple[str, ...]:
    """A row of the second table: twenty paragraphs, each as long as it takes."""
    found = run("ours", -1, annotators, rate)
    marks, peak = f"{found['marks'] / annotators:.1f}", f"{found['peak']:.0f} MB"
    return f"{annotators}", marks, f"{found['seconds']:.2f}", peak, f"{found['proven']:.0f}", f"{found['gap']:.1%}"


def main() -> None:
    rows = [beside_row(annotators, *beside(10, annotators)) for annotators in (3, 5, 8)]
    ten = [beside(place, 10) for place in (10, 12, 13, 14, 15)]
    own, other = (sum(found["seconds"] for found in side) for side in zip(*ten, strict=True))
    note_ratio("gamma: best alignments of five paragraphs beside pygamma-agreement", own, other)
    rows += [beside_row(10, *pair) for pair in ten]
    rows.append(("10", "these five", f"{own:.2f} s", f"{other:.0f} s", f"{other / own:,.0f}"))
    write_table(PAGE, "gamma beside", markdown(BESIDE, rows), conditions("pygamma-agreement", "highspy"))
    sizes = ((10, RATE), (15, RATE), (20, RATE), (20, 2.5 * RATE), (30, RATE))
    write_table(PAGE, "gamma alone", markdown(ALONE, (alone_row(*size) for size in sizes)))
    found = run("corpus", 130, 10)
    proven = f"{found['proven']:.0f} of {found['texts']:.0f}"
    row = ("130", "10", "30", f"{found['seconds']:.0f}", f"{found['wall']:.0f} s on {core_count()} cores", proven)
    write_table(PAGE, "gamma of a corpus", markdown(CORPUS, [row]))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    found = _child(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
    print(json.dumps({**found, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MEGABYTE}))
