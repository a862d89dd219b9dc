"""The exhibits of Thomson and Reiter (2020), "A Gold Standard Methodology for Evaluating Accuracy"."""

from __future__ import annotations

import math

import polars as pl

from finecomb.core.frames import parse_json_object
from finecomb.reporting.reproduce.annotated_examples import build_examples
from finecomb.reporting.reproduce.exhibits import (
    Exhibit,
    ExhibitRow,
    PaperStudy,
    Rendering,
    first_signature,
    pivot_rows,
    point_row,
    require,
)
from finecomb.statistics.gold.gold_merge import Gold, gold
from finecomb.statistics.gold.merge_tables import error_rates_table, label_confusion_table
from finecomb.statistics.gold.scores import score
from finecomb.statistics.measures.study_counts import document_meta_names
from finecomb.statistics.measures.text_sizes import text_size_summary

PAPER = "thomson-reiter"
MACHINE_KINDS = ("llm", "detector", "checker")


def _merge_gold(study: PaperStudy) -> Gold:
    part = study.view()
    require(len(part.study.marks), "nobody has marked anything")
    people = part.study.annotations["annotator"].n_unique()
    return gold(part, 2 if people > 1 else 1)


def table_1(study: PaperStudy) -> Rendering:
    """Which kind was taken for which: the majority down, what the minority said across."""
    rows = [{"error type": row.pop("label"), **row} for row in map(dict, label_confusion_table(_merge_gold(study)))]
    return Rendering(tuple(rows), "Errors that two readers marked; `no error` counts those who did not mark them.")


def table_2(study: PaperStudy) -> Rendering:
    """Errors per text of each system, by kind."""
    by = "model" if "model" in document_meta_names(study.study) else "document"
    findings = [
        f
        for f in error_rates_table(_merge_gold(study), by, **study.resampling_options)
        if f.columns["label"] != "split"
    ]
    long = [{"system": f.columns[by], "label": f.columns["label"], **point_row(f.estimate)} for f in findings]
    return Rendering(tuple(pivot_rows(long, "system", "label")), "Errors without a majority for one kind are left out.",
                     signature=first_signature(findings))  # fmt: skip


def table_3(study: PaperStudy) -> Rendering:
    """Recall and precision of every automatic metric of the study, by kind."""
    people = study.study.annotators.filter(pl.col("kind").is_in(MACHINE_KINDS))["id"].to_list()
    machines = [id for id in people if id in set(study.study.submitted_work().annotations["annotator"])]
    require(machines, "no metric has marked these texts: add its marks with `finecomb merge` or `finecomb detect`")
    scores = score(_merge_gold(study).study, study.study.submitted_work(), judges=machines, **study.resampling_options)
    long: list[ExhibitRow] = []
    for row in scores.rows:
        for name in ("recall", "precision"):
            estimate = getattr(row, name)
            value = None if math.isnan(estimate.value) else estimate.value
            head = f"{row.columns['judge']}: {name}"
            long.append({"measurement": head, "label": row.columns["label"], "value": value})
    return Rendering(tuple(pivot_rows(long, "measurement", "label")), "Against what two readers marked.",
                     signature=str(scores.rows[0].recall.signature) if scores.rows else "")  # fmt: skip


def figure_1(study: PaperStudy) -> Rendering:
    """A text with its errors, their kinds and corrections: the one with the median number of marks."""
    rows, html = build_examples(study.view().study, "", study.label_looks)
    require(html, "nobody has marked a text")
    return Rendering(tuple(rows), "The annotation with the median number of marks.", html=html)


def recruitment(study: PaperStudy) -> Rendering:
    """Who annotated: texts and marks of each person, and what the study knows about them."""
    work = study.study.submitted_work()
    texts = dict(work.annotations.group_by("annotator").agg(pl.col("document").n_unique()).iter_rows())
    marks = dict(work.marks.group_by("annotator").len().iter_rows())
    rows: list[ExhibitRow] = []
    for person in study.study.annotators.iter_rows(named=True):
        if person["kind"] in ("human", "pooled"):
            facts = {**parse_json_object(person["survey"]), **parse_json_object(person["meta"])}
            plain = {name: value for name, value in facts.items() if isinstance(value, str | int | float)}
            row = {"annotator": person["id"], "texts": texts.get(person["id"], 0), "marks": marks.get(person["id"], 0)}
            rows.append({**row, **plain})
    require(rows, "no person has annotated")
    names = dict.fromkeys(name for row in rows for name in row)
    return Rendering(tuple({name: row.get(name) for name in names} for row in rows), "Everybody who took part.")


def text_lengths(study: PaperStudy) -> Rendering:
    """How long the texts are, in all and by system."""
    part = study.view().study
    by = ["model"] if "model" in document_meta_names(part) else []
    whole = [{"texts of": "all", **row} for row in text_size_summary(part).iter_rows(named=True)]
    groups = text_size_summary(part, by).iter_rows(named=True) if by else []
    rows = [{"texts of": row.pop("model"), **row} for row in groups]
    return Rendering((*whole, *rows), "In words, of the texts that people annotated.")


EXHIBITS = (
    Exhibit(PAPER, "Table 1", "Which kind was taken for which", table_1, "two readers of one text"),
    Exhibit(PAPER, "Table 2", "Errors per text by system", table_2, "two readers of one text; models"),
    Exhibit(PAPER, "Table 3", "Recall and precision of metrics", table_3, "marks of a detector or checker"),
    Exhibit(PAPER, "Figure 1", "A text with its errors", figure_1, "marks"),
    Exhibit(PAPER, "Recruitment", "Who annotated", recruitment, "annotators"),
    Exhibit(PAPER, "Lengths", "How long the texts are", text_lengths, "texts that were annotated"),
)
