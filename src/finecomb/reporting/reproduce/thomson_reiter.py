"""Exhibits of Thomson and Reiter (2020), "A Gold Standard Methodology for Evaluating Accuracy"."""

from __future__ import annotations

import math

import polars as pl

from finecomb.core.frames import parse_json_object
from finecomb.core.study import document_meta_names
from finecomb.reporting.reproduce.annotated_examples import build_examples
from finecomb.reporting.reproduce.exhibits import (
    Exhibit,
    ExhibitRow,
    PaperStudy,
    RenderedExhibit,
    first_signature,
    pivot_rows,
    point_row,
    require_exhibit_data,
)
from finecomb.statistics.gold.gold_merge import Gold, merge_into_gold
from finecomb.statistics.gold.merge_tables import error_rates_table, label_confusion_table
from finecomb.statistics.gold.scores import score_judges_against_gold
from finecomb.statistics.measures.text_sizes import text_size_summary

PAPER = "thomson-reiter"
MACHINE_KINDS = ("llm", "detector", "checker")


def _merge_gold(study: PaperStudy) -> Gold:
    part = study.view()
    require_exhibit_data(len(part.study.marks), "no text has a mark")
    return merge_into_gold(part, 2 if part.study.annotations["annotator"].n_unique() > 1 else 1)


def table_1(study: PaperStudy) -> RenderedExhibit:
    """Compute the confusion of error types, majority label in rows and minority label in columns."""
    rows = [{"error type": row.pop("label"), **row} for row in map(dict, label_confusion_table(_merge_gold(study)))]
    return RenderedExhibit(
        tuple(rows), "Errors marked by at least two annotators. `no error` counts annotators who did not mark them."
    )


def table_2(study: PaperStudy) -> RenderedExhibit:
    """Compute errors per text by system and error type."""
    by = "model" if "model" in document_meta_names(study.study) else "document"
    findings = [
        f
        for f in error_rates_table(_merge_gold(study), by, **study.resampling_options)
        if f.columns["label"] != "split"
    ]
    long = [{"system": f.columns[by], "label": f.columns["label"], **point_row(f.estimate)} for f in findings]
    return RenderedExhibit(
        tuple(pivot_rows(long, "system", "label")),
        "Errors without a majority label are omitted.",
        signature=first_signature(findings),
    )


def table_3(study: PaperStudy) -> RenderedExhibit:
    """Compute recall and precision of every automatic metric in the study, by error type."""
    people = study.study.annotators.filter(pl.col("kind").is_in(MACHINE_KINDS))["id"].to_list()
    machines = [id for id in people if id in set(study.study.submitted_work().annotations["annotator"])]
    require_exhibit_data(
        machines, "no metric has marked these texts; add its marks with `finecomb merge` or `finecomb detect`"
    )
    scores = score_judges_against_gold(
        _merge_gold(study).study, study.study.submitted_work(), judges=machines, **study.resampling_options
    )
    long: list[ExhibitRow] = []
    for row in scores.rows:
        for name in ("recall", "precision"):
            estimate = getattr(row, name)
            value = None if math.isnan(estimate.value) else estimate.value
            head = f"{row.columns['judge']}: {name}"
            long.append({"measurement": head, "label": row.columns["label"], "value": value})
    return RenderedExhibit(
        tuple(pivot_rows(long, "measurement", "label")),
        "Compared with errors marked by at least two annotators.",
        signature=str(scores.rows[0].recall.signature) if scores.rows else "",
    )


def figure_1(study: PaperStudy) -> RenderedExhibit:
    """Show a text with its errors, their types and corrections: the annotation with the median number of marks."""
    rows, html = build_examples(study.view().study, "", study.label_styles)
    require_exhibit_data(html, "no text has an annotation")
    return RenderedExhibit(tuple(rows), "The annotation with the median number of marks.", html=html)


def recruitment_table(study: PaperStudy) -> RenderedExhibit:
    """List the annotators with their number of texts and marks, and the survey and platform data of the study."""
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
    require_exhibit_data(rows, "no text has an annotation by a person")
    return RenderedExhibit(tuple(rows), "All annotators who took part.")


def text_length_table(study: PaperStudy) -> RenderedExhibit:
    """Compute the length of annotated texts, in total and by system."""
    part = study.view().study
    by = ["model"] if "model" in document_meta_names(part) else []
    all_texts = [{"texts of": "all", **row} for row in text_size_summary(part).iter_rows(named=True)]
    groups = text_size_summary(part, by).iter_rows(named=True) if by else []
    rows = [{"texts of": row.pop("model"), **row} for row in groups]
    return RenderedExhibit((*all_texts, *rows), "Length in words of the annotated texts.")


EXHIBITS = (
    Exhibit(PAPER, "Table 1", "Confusion of error types", table_1, "two annotators per text"),
    Exhibit(PAPER, "Table 2", "Errors per text by system", table_2, "two annotators per text; models"),
    Exhibit(PAPER, "Table 3", "Recall and precision of metrics", table_3, "marks of a detector or checker"),
    Exhibit(PAPER, "Figure 1", "A text with its errors", figure_1, "marks"),
    Exhibit(PAPER, "Recruitment", "Annotators", recruitment_table, "annotators"),
    Exhibit(PAPER, "Lengths", "Text lengths", text_length_table, "annotated texts"),
)
