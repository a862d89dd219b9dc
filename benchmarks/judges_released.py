"""The whole answer on released data: six language models beside 29 people, and estimates from a third of the work.

Needs the folder named by FINECOMB_DATA; the tables go into the docs.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks._docs import markdown, write_table
from benchmarks._span_annotation import campaign
from finecomb.core.estimate import Estimate
from finecomb.core.study import Study
from finecomb.statistics.gold.scores import score
from finecomb.statistics.judges.calibration import CalibrationOptions, calibrate, find_alpha
from finecomb.statistics.judges.estimates import Estimates, estimate_means

READ = 28


def judges_of(study: Study) -> list[str]:
    """The language models of a study."""
    return study.annotators.filter(pl.col("kind") == "llm")["id"].sort().to_list()


def _cell(estimate: Estimate | None, digits: int = 2) -> str:
    return "" if estimate is None else estimate.short(digits)


def people_table(study: Study) -> None:
    """Every model among the 29 people of `iaa`."""
    rows = []
    for judge in judges_of(study):
        result = calibrate(study, judge, CalibrationOptions(levels=("token",)))
        found = next(each.estimate for each in result.found if each.columns["part"] == "all")
        ratio = next(each.estimate for each in result.bias if each.columns["label"] == "any")
        alphas = [_cell(find_alpha(result.agreement, who)) for who in ("judge", "difference")]
        wins = f"{sum(person.wins for person in result.test.people)} of {len(result.test.people)}"
        rows.append([judge, *alphas, wins, _cell(result.test.chance), _cell(found), _cell(ratio), result.verdict])
    people = _cell(find_alpha(result.agreement, "people"))
    head = ["judge", f"alpha with a person (two people: {people})", "difference", "wins", "at least as close"]
    head += ["finds of a person's marks", "marks for one of a person's", "answer"]
    write_table("judges/calibrate.md", "iaa", markdown(head, rows))


def score_table(study: Study) -> None:
    """Characters that every model marks like the one person of `dev`."""
    person = next(name for name in study.annotators["id"] if name not in judges_of(study))
    result = score(study, match="char", gold_annotator=person, judges=judges_of(study), by=(), unread="leave-out")
    rows = [
        [
            row.columns["judge"],
            row.columns["label"],
            *(_cell(getattr(row, name), 3) for name in ("precision", "recall", "f1")),
        ]
        for row in result.rows
    ]
    write_table("judges/calibrate.md", "dev", markdown(["judge", "label", "precision", "recall", "F1"], rows))


def estimate_table(study: Study) -> None:
    """Marks per text of `dev` from 28 of the 84 human readings, with one model and with all six."""
    judges = judges_of(study)
    person = next(name for name in study.annotators["id"] if name not in judges)
    documents = study.documents["id"].to_list()
    read = np.random.default_rng(0).permutation(documents)[:READ].tolist()
    part = study.filter_annotations((pl.col("annotator") != person) | pl.col("document").is_in(read))
    truth = estimate_means(study, measures=("count",), people=[person], strata=()).find(method="people alone")
    rows = [["all 84 texts read by the person", f"{truth.value:.2f}", "", "", ""]]
    alone = estimate_means(part, judges[:1])
    rows += [_row(method, alone, method) for method in ("people alone", "in fixed shares")]
    rows += [_row(f"and {judge}", estimate_means(part, [judge]), "with judges") for judge in judges]
    rows.append(_row("and all six", estimate_means(part, judges), "with judges"))
    head = [f"from {READ} human texts", "marks per text", "worth, texts", "the judge adds", "advice"]
    write_table("judges/estimates.md", "dev", markdown(head, rows))


def _row(name: str, result: Estimates, method: str) -> list[str]:
    finding = next(each for each in result.findings if each.columns["method"] == method)
    columns = finding.columns
    added = ""
    if "added" in columns:
        added = " ".join(f"{float(str(columns[each])):+.0f}" for each in ("added", "added_low", "added_high"))
        value, low, high = added.split()
        added = f"{value} [{low}, {high}]"
    worth = f"{float(str(columns['worth'])):.0f}"
    return [name, finding.estimate.short(2), worth, added, str(columns.get("advice", ""))]


def main() -> None:
    place = os.environ.get("FINECOMB_DATA", "")
    if not place:
        print("FINECOMB_DATA is not set: nothing to read")
        return
    people_table(campaign(Path(place), "iaa"))
    score_table(campaign(Path(place), "dev"))
    estimate_table(campaign(Path(place), "dev"))
