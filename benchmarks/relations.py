"""Relation metric and box-score checker on the shared task's 60 texts, in the layout of Thomson and Reiter's Table 3.

Recall is the share of gold errors of a type that share a character with any mark. Precision is the share of marks of a
type that share a character with any gold error. The checker's weights are fitted without the game that they score.
Requires FINECOMB_DATA.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.boxscore import collect_training_texts, print_table, read_shared_task
from finecomb.annotators.detectors import find_detector_factory
from finecomb.annotators.detectors.boxscore.checker import BoxScoreChecker
from finecomb.annotators.detectors.boxscore.ranker_training import cross_validate
from finecomb.core.records import Annotation, Mark
from finecomb.core.study import Study

TYPES = ("name", "number", "word", "context", "not-checkable", "other")


def score_rows(
    gold: Mapping[str, Sequence[Mark]], annotations: Iterable[Annotation], judge: str
) -> list[dict[str, object]]:
    """Return recall and precision by error type."""
    marks = {annotation.document: annotation.marks for annotation in annotations}
    rows: list[dict[str, object]] = []
    for label in (*TYPES, "all"):
        errors = [(name, mark) for name, listed in gold.items() for mark in listed if label in ("all", mark.label)]
        reports = [(name, mark) for name, listed in marks.items() for mark in listed if label in ("all", mark.label)]
        found = sum(_overlaps_any(mark, marks.get(name, ())) for name, mark in errors)
        right = sum(_overlaps_any(mark, gold.get(name, ())) for name, mark in reports)
        ratios = {"recall": _ratio(found, len(errors)), "precision": _ratio(right, len(reports))}
        rows.append({"judge": judge, "type": label, "errors": len(errors), "reported": len(reports), **ratios})
    return rows


def _ratio(part: int, whole: int) -> float | str:
    return part / whole if whole else "–"


def _overlaps_any(mark: Mark, others: Iterable[Mark]) -> bool:
    return any(
        one.start < two.end and two.start < one.end for one in mark.spans for other in others for two in other.spans
    )


def cross_validated_annotations(study: Study) -> list[Annotation]:
    """Return the checker's marks with `all`, from weights fitted without the game."""
    rankers = {name: fold.ranker for fold in cross_validate(collect_training_texts(study)) for name in fold.documents}
    return [
        BoxScoreChecker(study.protocol(), rankers[document.id], basis="all")(document)
        for document in study.iter_documents()
    ]


def main() -> None:
    place = os.environ.get("FINECOMB_DATA")
    if not place:
        sys.exit("set FINECOMB_DATA to the folder with the released data")
    study = read_shared_task(Path(place) / "accuracy_shared_task")
    gold = {annotation.document: annotation.marks for annotation in study.iter_annotations()}
    metric = find_detector_factory("relations")
    program = metric.make(study.protocol(), metric.options())
    by_metric = [program(document) for document in study.iter_documents()]
    rows = score_rows(gold, by_metric, "relations") + score_rows(
        gold, cross_validated_annotations(study), "boxscore --basis all"
    )
    print_table("Layout of Table 3 of Thomson and Reiter (2020), on other texts", rows)
