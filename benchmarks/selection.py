"""CPU time of common operations on 13,000 annotations: select, measure, agree, merge, score and write a table.

CPU time reduces the effect of load. `PYTHONPATH=OTHER/src python -m benchmarks selection` measures another checkout,
for a comparison before and after a change.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks._corpus import simulate_corpus
from finecomb import formats
from finecomb.core.study import Study
from finecomb.statistics.agreement.agreement import agree
from finecomb.statistics.gold.gold_merge import merge_into_gold
from finecomb.statistics.gold.scores import score_judges_against_gold
from finecomb.statistics.measures.annotation_measures import measure
from finecomb.statistics.selection.view import Filters, view


def processor_seconds(run: Callable[[], object], repeats: int = 3) -> float:
    """Return the lowest CPU time of several runs."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    study = Study.from_items(simulate_corpus())
    whole = view(study)
    standard = merge_into_gold(whole, align="overlap").study
    print(f"{len(whole.study.annotations):,} annotations, {len(whole.study.marks):,} marks; CPU seconds")
    with tempfile.TemporaryDirectory() as folder:
        runs: dict[str, Callable[[], object]] = {
            "view": lambda: view(study),
            "view, one system": lambda: view(study, Filters(where=(("model", "m1"),))),
            "coverage by label and system, 1,000 resamples": lambda: measure(whole, ["coverage"], ["model"]),
            "alpha, 1,000 resamples": lambda: agree(whole, ["alpha"]),
            "gold, aligned by overlap": lambda: merge_into_gold(whole, align="overlap"),
            "score, optimal, 1,000 resamples": lambda: score_judges_against_gold(standard, study, "optimal"),
            "a CSV table": lambda: formats.save_records(study.items(), Path(folder) / "table.csv", force=True),
        }
        for name, run in runs.items():
            print(f"  {name}: {processor_seconds(run):.2f}", flush=True)
