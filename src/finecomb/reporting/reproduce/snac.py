"""Exhibits of Goyal, Li and Durrett (2022), "SNaC: Coherence Error Detection for Narrative Summarization"."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import polars as pl

from finecomb.core.results import Finding
from finecomb.core.study import Study, document_meta_names
from finecomb.reporting.figures import paper_charts
from finecomb.reporting.reproduce.annotated_examples import build_examples, join_and_shorten_quotes
from finecomb.reporting.reproduce.exhibits import (
    Exhibit,
    ExhibitRow,
    PaperStudy,
    RenderedExhibit,
    first_signature,
    pivot_rows,
    point_row,
    point_rows,
    require_defined,
    require_exhibit_data,
)
from finecomb.reporting.reproduce.thomson_reiter import MACHINE_KINDS
from finecomb.statistics.agreement.agreement import agree
from finecomb.statistics.agreement.agreement_options import AgreementLevel
from finecomb.statistics.gold.gold_merge import merge_into_gold
from finecomb.statistics.gold.scalar_metrics import scalar_metric_correlations
from finecomb.statistics.gold.scores import MatchName, Score, score_judges_against_gold
from finecomb.statistics.measures.annotation_measures import measure
from finecomb.statistics.measures.rating_correlation import mark_count_rating_correlation
from finecomb.statistics.measures.text_sizes import annotation_work_summary, text_size_summary
from finecomb.statistics.selection.view import ANY_LABEL, View

PAPER = "snac"
MARKS_PROTOCOL, RATINGS_PROTOCOL = "snac", "likert"
"""Protocols of marks and of ratings."""
_MEASURE_TITLES = {"alpha": "Krippendorff’s α", "two-agree": "Two-agree %"}


def _protocol_filter(study: PaperStudy, name: str) -> str:
    """Return the protocol to filter by, or an empty string (no filter) if the study has no other protocol."""
    return name if any(protocol.name == name for protocol in study.study.protocols.values()) else ""


def _view_under_marks_protocol(study: PaperStudy) -> View:
    part = study.view(protocol=_protocol_filter(study, MARKS_PROTOCOL))
    require_exhibit_data(len(part.study.annotations), "no text has an annotation under a protocol with marks")
    return part


def _model_grouping(study: PaperStudy) -> list[str]:
    return ["model"] if "model" in document_meta_names(study.study) else []


def figure_3(study: PaperStudy) -> RenderedExhibit:
    """Show one annotated summary with the number of annotators per mark."""
    rows, html = build_examples(_view_under_marks_protocol(study).study, "", study.label_styles)
    return RenderedExhibit(tuple(rows), "The annotation with the median number of marks.", html=html)


def figure_4(study: PaperStudy) -> RenderedExhibit:
    """Plot the share of marks and the share of tokens of each error type, by system."""
    names = {"fraction": "share of marks", "coverage": "share of tokens"}
    part = _view_under_marks_protocol(study)
    findings = list(measure(part, ["fraction"], _model_grouping(study), **study.resampling_options))
    findings += measure(part, ["coverage"], _model_grouping(study), overlap="union", **study.resampling_options)
    labelled = [finding for finding in findings if finding.columns["label"] != ANY_LABEL]
    rows = point_rows(labelled, "measure", "label", *_model_grouping(study))
    rows = [{**row, "model": row.get("model", "all texts")} for row in rows]
    charts = {}
    for name, title in names.items():
        chosen = [row for row in rows if row["measure"] == name]
        heads = list(part.categories)
        charts[title] = paper_charts.dot_chart(chosen, "label", title, panel="model", names=heads, columns=1, width=260)
    return RenderedExhibit(
        tuple(rows),
        "Error types are in the order of the protocol.",
        paper_charts.join_columns(charts),
        signature=first_signature(findings),
    )


def figure_5(study: PaperStudy) -> RenderedExhibit:
    """List missing-information marks made by a single annotator."""
    merged = merge_into_gold(_view_under_marks_protocol(study), 1)
    single = merged.kept_errors.filter((pl.col("votes") == 1) & (pl.col("readers") > 1) & (pl.col("label") == "ref"))
    require_exhibit_data(len(single), "no `ref` mark was made by only one of several annotators")
    marks = merged.clusters.join(single.select("cluster"), on="cluster", how="semi")
    words = dict(_view_under_marks_protocol(study).study.marks.select("id", "quotes").iter_rows())
    rows = [
        {"document": document, "annotator": annotator, "quote": join_and_shorten_quotes(words.get(mark, ()))}
        for document, annotator, mark in marks.select("document", "annotator", "mark").head(12).iter_rows()
    ]
    return RenderedExhibit(tuple(rows), f"{len(rows)} of {len(single):,} errors that only one annotator marked.")


def table_1(study: PaperStudy) -> RenderedExhibit:
    """Compute agreement on ratings of whole summaries."""
    name = _protocol_filter(study, RATINGS_PROTOCOL)
    require_exhibit_data(name, "ratings of whole texts under the protocol `likert` are needed")
    part = study.view(protocol=name)
    findings = require_defined(
        agree(part, ["alpha-ordinal"], level="document", question="coherence", **study.resampling_options)
    )
    rows = [
        {"agreement": "Krippendorff’s α, ordinal", "texts": point_row(finding.estimate)["value"]}
        for finding in findings
    ]
    return RenderedExhibit(tuple(rows), "Agreement on coherence ratings.", signature=first_signature(findings))


def table_2(study: PaperStudy) -> RenderedExhibit:
    """Count the summaries, marks, sentences and segments of each system."""
    by = _model_grouping(study)
    part = _view_under_marks_protocol(study).study
    sizes = text_size_summary(part, by)
    votes = annotation_work_summary(part, by).select(*by, "votes")
    table = sizes.join(votes, on=by) if by else sizes.with_columns(votes["votes"])
    shown = table.select(*by, summaries="documents", span="votes", sentence="sentences", segment="segments")
    rows = [{"dataset": row.pop("model", "all texts"), **row} for row in shown.iter_rows(named=True)]
    total: dict[str, object] = {name: sum(int(row[name]) for row in rows) for name in rows[0] if name != "dataset"}
    return RenderedExhibit((*rows, {"dataset": "Total", **total}), "`span` counts a mark once per annotator.")


def table_3(study: PaperStudy) -> RenderedExhibit:
    """Correlate the number of marks with the rating by the same annotator, by error type and group."""
    name = _protocol_filter(study, RATINGS_PROTOCOL)
    require_exhibit_data(name, "ratings of whole texts under the protocol `likert` by the same annotators are needed")
    ratings = study.view(protocol=name)
    findings: list[Finding] = []
    details: tuple[Literal["group", "label"], ...] = ("group", "label")
    for detail in details:
        findings += mark_count_rating_correlation(
            _view_under_marks_protocol(study), "coherence", ratings, detail=detail, **study.resampling_options
        )
    pooled = [f for f in findings if f.columns.get("annotator") == "all"]
    rows = []
    for finding in pooled:
        p, r = finding.columns.get("p"), finding.estimate.value
        star = "*" if isinstance(p, float) and p < 0.05 else ""
        rows.append({"error type": finding.columns["label"], "r": "–" if math.isnan(r) else f"{r:.2f}{star}"})
    return RenderedExhibit(
        tuple({str(row["error type"]): row for row in rows}.values()),
        "A star marks p < 0.05.",
        signature=first_signature(findings),
    )


def table_4(study: PaperStudy) -> RenderedExhibit:
    """Compute agreement on sentences and segments, by group of error types."""
    kinds = dict(study.study.annotators.select("id", "kind").iter_rows())
    kinds_present = {kinds.get(id) for id in study.study.submitted_work().annotations["annotator"]}
    require_exhibit_data(
        kinds_present != {"pooled"}, "the study contains only vote counts; marks of individual annotators are needed"
    )
    part = study.view(protocol=_protocol_filter(study, MARKS_PROTOCOL), back_off="group")
    rows: list[ExhibitRow] = []
    levels: dict[AgreementLevel, str] = {"sentence": "Sent", "segment": "Seg"}
    for level, head in levels.items():
        findings = agree(part, ["alpha"], level=level, **study.resampling_options)
        rows += [{"": f.columns["label"], "level": head, "value": point_row(f.estimate)["value"]} for f in findings]
    return RenderedExhibit(
        tuple(pivot_rows(rows, "", "level")),
        "Krippendorff’s α of marked versus unmarked units.",
        signature=first_signature(findings),
    )


def table_5(study: PaperStudy) -> RenderedExhibit:
    """Compute agreement on tokens by error type: alpha and two-agree."""
    findings = require_defined(
        agree(_view_under_marks_protocol(study), ["alpha", "two-agree"], **study.resampling_options)
    )
    long = [
        {
            "error": f.columns["label"],
            "m": _MEASURE_TITLES[str(f.columns["measure"])],
            "value": point_row(f.estimate)["value"],
        }
        for f in findings
    ]
    rows = [row for row in pivot_rows(long, "error", "m") if row["error"] != ANY_LABEL]
    return RenderedExhibit(tuple(rows), "Tokens pooled over texts.", signature=first_signature(findings))


def _machine_annotators(study: PaperStudy) -> list[str]:
    kinds = dict(study.study.annotators.select("id", "kind").iter_rows())
    annotators = _marks_study(study).annotations["annotator"].unique(maintain_order=True)
    machines = [id for id in annotators if kinds.get(id) in MACHINE_KINDS]
    require_exhibit_data(machines, "no model has annotated these texts; see `finecomb train`, `detect` and `annotate`")
    return machines


def _merge_gold(study: PaperStudy) -> Study:
    merged = merge_into_gold(_view_under_marks_protocol(study), 1, size="union").study
    protocol = merged.protocol(_protocol_filter(study, MARKS_PROTOCOL))
    return replace(merged, protocols={protocol.id: protocol})


def _marks_study(study: PaperStudy) -> Study:
    """Return the annotations under the protocol with marks, without ratings."""
    work = study.study.submitted_work()
    protocol = work.protocol(_protocol_filter(study, MARKS_PROTOCOL))
    return replace(work.filter_annotations(pl.col("protocol") == protocol.id), protocols={protocol.id: protocol})


def _score_machines(study: PaperStudy, match: MatchName) -> Sequence[Score]:
    machines, work = _machine_annotators(study), _marks_study(study)
    return score_judges_against_gold(_merge_gold(study), work, match, judges=machines, **study.resampling_options).rows


def figure_7(study: PaperStudy) -> RenderedExhibit:
    """Plot sentence-level recall and precision of every judge, over all error types together."""
    chosen = [row for row in _score_machines(study, "sentence") if row.columns["label"] == ANY_LABEL]
    rows = [
        {"score": name, "judge": row.columns["judge"], **point_row(getattr(row, name))}
        for row in chosen
        for name in ("recall", "precision", "f1")
        if not math.isnan(getattr(row, name).value)
    ]
    require_exhibit_data(rows, "recall and precision are undefined for every judge")
    chart = paper_charts.dot_chart(rows, "judge", "share of sentences", panel="score", columns=3)
    caption = (
        "Marks have no scores, so each judge is a point instead of a curve. Gold contains every mark of any annotator."
    )
    return RenderedExhibit(tuple(rows), caption, chart, signature=str(chosen[0].recall.signature))


def table_6(study: PaperStudy) -> RenderedExhibit:
    """Compare models with people on sentences, by error type; people are scored against each other."""
    rows: list[ExhibitRow] = []
    for row in _score_machines(study, "sentence"):
        for name, head in (("precision", "P"), ("recall", "R"), ("f1", "F1")):
            value = point_row(getattr(row, name))["value"]
            rows.append({"error": row.columns["label"], "of": f"{row.columns['judge']} {head}", "value": value})
    findings = agree(_view_under_marks_protocol(study), ["one-vs-rest"], level="sentence", **study.resampling_options)
    names = {"one-vs-rest-precision": "P", "one-vs-rest-recall": "R", "one-vs-rest-f1": "F1"}
    rows += [
        {"error": f.columns["label"], "of": f"people {names[str(f.columns['measure'])]}",
         "value": point_row(f.estimate)["value"]}
        for f in findings
    ]  # fmt: skip
    return RenderedExhibit(
        tuple(pivot_rows(rows, "error", "of")),
        "Each person is compared with all other people together.",
        signature=first_signature(findings),
    )


def table_7(study: PaperStudy) -> RenderedExhibit:
    """Correlate scalar metrics such as ROUGE with the number of errors."""
    findings = scalar_metric_correlations(_merge_gold(study), study.study, **study.resampling_options)
    rows = [{**f.columns, **point_row(f.estimate)} for f in findings]
    require_exhibit_data(rows, "no text has a metric score")
    return RenderedExhibit(
        tuple(rows),
        "A quality metric should have a negative correlation with the number of errors.",
        signature=first_signature(findings),
    )


def table_8(study: PaperStudy) -> RenderedExhibit:
    """Count the texts of the training, development and test splits."""
    require_exhibit_data("split" in document_meta_names(study.study), "no document has `meta.split` (train, dev, test)")
    table = text_size_summary(study.study, ["split"])
    return RenderedExhibit(tuple(table.iter_rows(named=True)), "Texts of the study, without synthetic training data.")


def table_10(study: PaperStudy) -> RenderedExhibit:
    """Compute sentence recall by error type; a mark of any type on the sentence counts."""
    work, machines = _marks_study(study), _machine_annotators(study)
    rows = [
        {"model": row.columns["judge"], "error": row.columns["label"], "value": point_row(row.recall)["value"]}
        for row in score_judges_against_gold(
            _merge_gold(study), work, "sentence", "gold", judges=machines, **study.resampling_options
        ).rows
    ]
    return RenderedExhibit(
        tuple(pivot_rows(rows, "model", "error")),
        "An upper bound, because the error type of the model's mark is ignored.",
    )


def table_11(study: PaperStudy) -> RenderedExhibit:
    """Compute precision, recall and F1 of a model on sentences, by error type."""
    rows = [
        {
            "judge": row.columns["judge"], "error": row.columns["label"], "P": point_row(row.precision)["value"],
            "R": point_row(row.recall)["value"], "F1": point_row(row.f1)["value"],
        }
        for row in _score_machines(study, "sentence")
        if row.columns["label"] != ANY_LABEL
    ]  # fmt: skip
    return RenderedExhibit(tuple(rows), "Gold contains every mark of any annotator.")


EXHIBITS = (
    Exhibit(PAPER, "Figure 3", "An annotated summary", figure_3, "marks"),
    Exhibit(PAPER, "Figure 4", "Share of marks and of tokens by error type", figure_4, "marks; models for panels"),
    Exhibit(PAPER, "Figure 5", "Marks made by a single annotator", figure_5, "two annotators per text"),
    Exhibit(PAPER, "Figure 7", "Sentence-level recall and precision of models", figure_7, "marks of a model"),
    Exhibit(PAPER, "Table 1", "Agreement on ratings of texts", table_1, "ratings under `likert`"),
    Exhibit(PAPER, "Table 2", "Summaries, marks, sentences, segments", table_2, "marks; models for rows"),
    Exhibit(PAPER, "Table 3", "Correlation of mark counts with ratings", table_3, "marks, and ratings under `likert`"),
    Exhibit(PAPER, "Table 4", "Agreement on sentences and segments", table_4, "marks of individual annotators"),
    Exhibit(PAPER, "Table 5", "Agreement on tokens", table_5, "two annotators, or votes"),
    Exhibit(PAPER, "Table 6", "Models compared with people", table_6, "marks of a model; two annotators per text"),
    Exhibit(PAPER, "Table 7", "Correlation of scalar metrics with errors", table_7, "scores of a metric"),
    Exhibit(PAPER, "Table 8", "Training, development and test splits", table_8, "`meta.split` of documents"),
    Exhibit(PAPER, "Table 10", "Sentence recall by error type", table_10, "marks of a model"),
    Exhibit(PAPER, "Table 11", "Scores of a model by error type", table_11, "marks of a model"),
)
