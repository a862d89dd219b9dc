"""Verdicts of `calibrate` for simulated judges of known quality; writes tables in the docs."""

from __future__ import annotations

from collections import Counter
from typing import get_args

from benchmarks._docs import markdown_table, write_table
from finecomb.annotators.simulated.simulated_readers import SimulatedJudge, simulate_readings
from finecomb.statistics.inference.clusters import text_clusters
from finecomb.statistics.judges.replacement import run_replacement_test

PAGE = "judges/calibrate.md"
STUDY_COUNT = 2000
POWER_STUDY_COUNT = 300
PEOPLE = (4, 8, 20)
TEXTS = (60, 100, 200, 400)
REPLACE = "can replace people"


def verdict_shares(
    judge: SimulatedJudge, texts: int, people: int, f1: float, count: int = STUDY_COUNT
) -> dict[str, float]:
    """Return the share of simulated studies in which each verdict was reached."""
    verdicts: Counter[str] = Counter()
    for study in range(count):
        readings = simulate_readings(judge, texts, people, f1, [36, study])
        verdicts[run_replacement_test(readings.sum_disagreement(study), text_clusters(texts)).verdict] += 1
    return {verdict: number / count for verdict, number in verdicts.items()}


def main() -> None:
    write_verdict_table()
    write_power_table()


def write_verdict_table(count: int = STUDY_COUNT) -> None:
    rows: list[list[object]] = []
    for f1 in (0.4, 0.6):
        for judge in get_args(SimulatedJudge):
            shares = verdict_shares(judge, 200, 4, f1, count)
            named = (REPLACE, "can assist but not replace people", "cannot be used for this", "too few texts to decide")
            rows.append([f1, judge, *(f"{shares.get(verdict, 0):.3f}" for verdict in named)])
    head = ["F1 of people", "judge", "can replace", "can assist", "cannot be used", "too few texts"]
    write_table(PAGE, "replacement verdicts", markdown_table(head, rows))


def write_power_table(count: int = POWER_STUDY_COUNT) -> None:
    rows: list[list[object]] = []
    for f1 in (0.4, 0.6):
        for people in PEOPLE:
            for texts in TEXTS:
                shares = [
                    verdict_shares(judge, texts, people, f1, count).get(REPLACE, 0.0)
                    for judge in ("person", "80% agreement", "half recall")
                ]
                rows.append([f1, people, texts, *(f"{share:.3f}" for share in shares)])
    head = ["F1 of people", "people", "texts", "a further person", "80% of people's agreement", "half the recall"]
    write_table(PAGE, "replacement power", markdown_table(head, rows))
