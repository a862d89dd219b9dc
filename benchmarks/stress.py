"""Cost of `finecomb stress` with BLEU and chrF compared with sacrebleu alone on the same texts."""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from benchmarks._corpus import make_documents
from benchmarks._docs import markdown_table, write_table
from benchmarks._ratios import describe_conditions, record_ratio
from finecomb.core.records import Document
from finecomb.corpora.stress.corruptions import CORRUPTIONS
from finecomb.corpora.stress.stress_metrics import Metric, SacrebleuScores
from finecomb.corpora.stress.stress_trial import StressPair, StressTable, corrupt_documents, run_stress_trial

TEXT_COUNT = 20


def make_texts() -> list[Document]:
    """Build texts of about 100 words, each with another one as its reference."""
    made = make_documents(TEXT_COUNT + 1, 100)
    pairs = itertools.pairwise(made)
    return [one.model_copy(update={"references": (other.text,)}) for one, other in pairs]


def processor_seconds(run: Callable[[], object]) -> float:
    """Return the lower CPU time of two runs."""
    times = []
    for _ in range(2):
        before = time.process_time()
        run()
        times.append(time.process_time() - before)
    return min(times)


def score_with_sacrebleu(pairs: list[StressPair], name: str) -> list[float]:
    """Score each text with sacrebleu alone."""
    metric = BLEU(effective_order=True) if name == "bleu" else CHRF()
    candidates = [candidate for pair in pairs for candidate in (pair.whole, pair.damaged)]
    return [metric.sentence_score(candidate.text, list(candidate.references)).score for candidate in candidates]


def run_stress(made: list[Document], metric: Metric) -> StressTable:
    """Damage and score texts with Finecomb, with intervals from 1,000 resamples."""
    return run_stress_trial(corrupt_documents(made, CORRUPTIONS, 0), [metric])


def main() -> None:
    """Compare both metrics, ours with 1,000 resamples."""
    made, rows = make_texts(), []
    pairs = corrupt_documents(made, CORRUPTIONS, 0)
    for name in ("bleu", "chrf"):
        metric = Metric(name, SacrebleuScores(name), needs_references=True)
        ours = processor_seconds(functools.partial(run_stress, made, metric))
        theirs = processor_seconds(functools.partial(score_with_sacrebleu, pairs, name))
        ratio = record_ratio(f"stress: {name} beside sacrebleu alone", ours, theirs)
        rows.append((f"`{name}`", f"{2 * len(pairs):,}", f"{ours:.1f} s", f"{theirs:.1f} s", f"{ratio:.2f}"))
    head = ("metric", "texts scored", "`stress`, 1,000 resamples", "sacrebleu alone", "ratio")
    write_table("performance.md", "stress", markdown_table(head, rows), describe_conditions("sacrebleu"))
