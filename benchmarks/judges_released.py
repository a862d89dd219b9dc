"""Judges on released data: six language models compared with 29 people, and estimates from a third of the work.

Requires FINECOMB_DATA; writes tables in the docs.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks._docs import markdown_table, write_table
from benchmarks._span_annotation import read_campaign
from finecomb.core.results import Estimate
from finecomb.core.study import Study
from finecomb.statistics.gold.scores import score_judges_against_gold
from finecomb.statistics.judges.calibration import CalibrationOptions, calibrate_against_people, find_alpha_estimate
from finecomb.statistics.judges.estimates import Estimates, estimate_means

READ_TEXT_COUNT = 28


def language_model_ids(study: Study) -> list[str]:
    """Return the IDs of the language models of a study."""
    return study.annotators.filter(pl.col("kind") == "llm")["id"].sort().to_list()


def _format_estimate(estimate: Estimate | None, digits: int = 2) -> str:
    return "" if estimate is None else estimate.short(digits)


def write_people_table(study: Study) -> None:
    """Compare each model with the 29 people of `iaa`."""
    rows = []
    for judge in language_model_ids(study):
        result = calibrate_against_people(study, judge, CalibrationOptions(levels=("token",)))
        found = next(each.estimate for each in result.found if each.columns["part"] == "all")
        ratio = next(each.estimate for each in result.bias if each.columns["label"] == "any")
        alphas = [_format_estimate(find_alpha_estimate(result.agreement, who)) for who in ("judge", "difference")]
        wins = f"{sum(person.wins for person in result.test.people)} of {len(result.test.people)}"
        rows.append(
            [
                judge,
                *alphas,
                wins,
                _format_estimate(result.test.chance),
                _format_estimate(found),
                _format_estimate(ratio),
                result.verdict,
            ]
        )
    people = _format_estimate(find_alpha_estimate(result.agreement, "people"))
    head = ["judge", f"alpha with a person (two people: {people})", "difference", "wins", "at least as close"]
    head += ["finds of a person's marks", "judge marks per human mark", "verdict"]
    write_table("judges/calibrate.md", "iaa", markdown_table(head, rows))


def write_score_table(study: Study) -> None:
    """Score the characters that each model marks against the single annotator of `dev`."""
    person = next(name for name in study.annotators["id"] if name not in language_model_ids(study))
    result = score_judges_against_gold(
        study, match="char", gold_annotator=person, judges=language_model_ids(study), by=(), unread="leave-out"
    )
    rows = [
        [
            row.columns["judge"],
            row.columns["label"],
            *(_format_estimate(getattr(row, name), 3) for name in ("precision", "recall", "f1")),
        ]
        for row in result.rows
    ]
    write_table("judges/calibrate.md", "dev", markdown_table(["judge", "label", "precision", "recall", "F1"], rows))


def write_estimate_table(study: Study) -> None:
    """Estimate marks per text of `dev` from 28 of the 84 human annotations, with one model and with all six."""
    judges = language_model_ids(study)
    person = next(name for name in study.annotators["id"] if name not in judges)
    documents = study.documents["id"].to_list()
    read = np.random.default_rng(0).permutation(documents)[:READ_TEXT_COUNT].tolist()
    part = study.filter_annotations((pl.col("annotator") != person) | pl.col("document").is_in(read))
    truth = estimate_means(study, measures=("count",), people=[person], strata=()).find(method="people alone")
    rows = [["all 84 texts read by the person", f"{truth.value:.2f}", "", "", ""]]
    alone = estimate_means(part, judges[:1])
    rows += [_estimate_row(method, alone, method) for method in ("people alone", "in fixed shares")]
    rows += [_estimate_row(f"and {judge}", estimate_means(part, [judge]), "with judges") for judge in judges]
    rows.append(_estimate_row("and all six", estimate_means(part, judges), "with judges"))
    head = [f"from {READ_TEXT_COUNT} human texts", "marks per text", "worth, texts", "the judge adds", "advice"]
    write_table("judges/estimates.md", "dev", markdown_table(head, rows))


def _estimate_row(name: str, result: Estimates, method: str) -> list[str]:
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
        print("skipped: set FINECOMB_DATA")
        return
    write_people_table(read_campaign(Path(place), "iaa"))
    write_score_table(read_campaign(Path(place), "dev"))
    write_estimate_table(read_campaign(Path(place), "dev"))
