"""Scoring of 13,000 annotations by ten judges with 1,000 resamples, compared with one pass in plain Python."""

from __future__ import annotations

import time

import polars as pl
from sklearn.metrics import precision_recall_fscore_support

from benchmarks._corpus import simulate_corpus
from benchmarks._docs import markdown_table, write_table
from benchmarks._ratios import describe_conditions, record_ratio
from benchmarks._timing import best_seconds
from finecomb.core.records import Annotation
from finecomb.core.study import Study
from finecomb.statistics.gold.gold_merge import merge_into_gold
from finecomb.statistics.gold.scores import MatchName, score_judges_against_gold
from finecomb.statistics.measures.unit_grid import build_unit_grid, count_unit_votes, locate_spans_on_grid

MAX_SECONDS = 5.0
MATCH_RULES: tuple[MatchName, ...] = ("optimal", "overlap", "exact", "partial", "token", "char")


def count_matches_in_python(truth: Study, study: Study) -> dict[str, int]:
    """Count the matches of each judge by the task's rule, without labels, checks or intervals."""
    known = {each.document: each for each in truth.iter_annotations()}
    found: dict[str, int] = {}
    for each in study.iter_annotations():
        found[each.annotator] = found.get(each.annotator, 0) + _match_count(known[each.document], each)
    return found


def _match_count(truth: Annotation, judge: Annotation) -> int:
    used: set[int] = set()
    for gold_mark in sorted(truth.marks, key=lambda mark: mark.spans):
        for at, mark in enumerate(sorted(judge.marks, key=lambda mark: mark.spans)):
            if at not in used and any(one.overlap_length(other) for one in gold_mark.spans for other in mark.spans):
                used.add(at)
                break
    return len(used)


def sklearn_seconds(truth: Study, study: Study) -> float:
    """Return CPU seconds of scikit-learn for precision, recall and F1 of all labels, once per judge, without setup."""
    grid = build_unit_grid(study)
    labels = sorted(study.marks["label"].unique())
    right = count_unit_votes(truth, grid, labels).marked.T > 0
    rows = locate_spans_on_grid(study, grid).join(
        study.annotations.select("annotator", annotation="id"), on="annotation"
    )
    judges = [
        count_unit_votes(study, grid, labels, rows.filter(pl.col("annotator") == id)).marked.T > 0
        for id in study.annotators["id"]
    ]
    return best_seconds(lambda: [precision_recall_fscore_support(right, one, zero_division=0) for one in judges])


def score_seconds(truth: Study, study: Study, match: MatchName) -> float:
    """Return CPU seconds, because the clock is affected by other programs."""
    before = time.process_time()
    score_judges_against_gold(truth, study, match, draws=1000)
    busy = time.process_time() - before
    print(f"  {match:8} {busy:.2f} s, {'within' if busy < MAX_SECONDS else 'OVER'} {MAX_SECONDS:.0f} s", flush=True)
    return busy


def main() -> None:
    study = Study.from_items(simulate_corpus())
    seconds = best_seconds(lambda: merge_into_gold(study, align="overlap"), 1)
    print(f"merging ten annotators into gold by overlap: {seconds:.2f} s")
    truth = merge_into_gold(study, align="overlap").study
    counts = f"{len(study.annotations):,} annotations, {len(study.marks):,} marks"
    print(f"{counts}, against {len(truth.marks):,} gold marks with 1,000 resamples:", flush=True)
    took = {match: score_seconds(truth, study, match) for match in MATCH_RULES}
    plain = best_seconds(lambda: count_matches_in_python(truth, study))
    record_ratio("score: optimal with 1,000 resamples beside one pass in plain Python", took["optimal"], plain)
    theirs = sklearn_seconds(truth, study)
    record_ratio("score: token with 1,000 resamples beside scikit-learn", took["token"], 1000 * theirs)
    floors = ("one pass in plain Python, no intervals", "`scikit-learn`, tokens, no intervals", "the same, times 1,000")
    head = ("rule", *(f"`{match}`" for match in MATCH_RULES), *floors)
    times = (f"{plain:.1f}", f"{theirs:.1f}", f"{1000 * theirs:,.0f}")
    row = ("processor seconds", *(f"{busy:.1f}" for busy in took.values()), *times)
    write_table(
        "performance.md", "score", markdown_table(head, [row]), describe_conditions("numpy", "polars", "scikit-learn")
    )
