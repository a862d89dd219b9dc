"""The exhibits of Goyal, Li and Durrett (2022), "SNaC: Coherence Error Detection for Narrative Summarization"."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import polars as pl

from finecomb.core.estimate import Finding
from finecomb.core.study import Study
from finecomb.reporting.figures import paper_charts
from finecomb.reporting.reproduce.annotated_examples import build_examples, shorten_quotes
from finecomb.reporting.reproduce.exhibits import (
    Exhibit,
    ExhibitRow,
    PaperStudy,
    Rendering,
    first_signature,
    pivot_rows,
    point_row,
    point_rows,
    require,
    require_defined,
)
from finecomb.reporting.reproduce.thomson_reiter import MACHINE_KINDS
from finecomb.statistics.agreement.agreement import agree
from finecomb.statistics.agreement.agreement_options import AgreementLevel
from finecomb.statistics.gold.gold_merge import gold
from finecomb.statistics.gold.scalar_metrics import scalar_metric_correlations
from finecomb.statistics.gold.scores import Match, Score, score
from finecomb.statistics.measures.annotation_measures import measure
from finecomb.statistics.measures.rating_correlation import count_rating_correlation
from finecomb.statistics.measures.study_counts import document_meta_names
from finecomb.statistics.measures.text_sizes import text_size_summary, work_summary
from finecomb.statistics.selection.view import ANY, View

PAPER = "snac"
MARKS_PROTOCOL, RATINGS_PROTOCOL = "snac", "likert"
"""The protocols of marks and of ratings."""
_MEASURE_TITLES = {"alpha": "Krippendorff’s α", "two-agree": "Two-agree %"}


def _protocol_filter(study: PaperStudy, name: str) -> str:
    """The name of a protocol where a study has several; the only one needs none."""
    return name if any(protocol.name == name for protocol in study.study.protocols.values()) else ""


def _marks_view(study: PaperStudy) -> View:
    part = study.view(protocol=_protocol_filter(study, MARKS_PROTOCOL))
    require(len(part.study.annotations), "nobody has annotated these texts")
    return part


def _model_grouping(study: PaperStudy) -> list[str]:
    return ["model"] if "model" in document_meta_names(study.study) else []


def figure_3(study: PaperStudy) -> Rendering:
    """One annotated summary with the number of readers behind each mark."""
    rows, html = build_examples(_marks_view(study).study, "", study.label_looks)
    return Rendering(tuple(rows), "The annotation with the median number of marks.", html=html)


def figure_4(study: PaperStudy) -> Rendering:
    """Shares of kinds among marks, and share of tokens that each kind covers, by system."""
    names = {"fraction": "share of marks", "coverage": "share of tokens"}
    part = _marks_view(study)
    findings = list(measure(part, ["fraction"], _model_grouping(study), **study.resampling_options))
    findings += measure(part, ["coverage"], _model_grouping(study), overlap="union", **study.resampling_options)
    labelled = [finding for finding in findings if finding.columns["label"] != ANY]
    rows = point_rows(labelled, "measure", "label", *_model_grouping(study))
    rows = [{**row, "model": row.get("model", "all texts")} for row in rows]
    charts = {}
    for name, title in names.items():
        chosen = [row for row in rows if row["measure"] == name]
        heads = list(part.categories)
        charts[title] = paper_charts.dot_chart(chosen, "label", title, panel="model", names=heads, columns=1, width=260)
    return Rendering(tuple(rows), "Kinds in the order of the protocol.", paper_charts.concat_charts(charts),
                     signature=first_signature(findings))  # fmt: skip


def figure_5(study: PaperStudy) -> Rendering:
    """Missing-information marks that only one reader made."""
    merged = gold(_marks_view(study), 1)
    single = merged.kept_errors.filter((pl.col("votes") == 1) & (pl.col("readers") > 1) & (pl.col("label") == "ref"))
    require(len(single), "no `ref` mark was made by one of several readers alone")
    marks = merged.clusters.join(single.select("cluster"), on="cluster", how="semi")
    words = dict(_marks_view(study).study.marks.select("id", "quotes").iter_rows())
    rows = [
        {"document": document, "annotator": annotator, "quote": shorten_quotes(words.get(mark, ()))}
        for document, annotator, mark in marks.select("document", "annotator", "mark").head(12).iter_rows()
    ]
    return Rendering(tuple(rows), f"Twelve of {len(single):,}; nobody else marked these words.")


def table_1(study: PaperStudy) -> Rendering:
    """Agreement on ratings of whole summaries."""
    name = _protocol_filter(study, RATINGS_PROTOCOL)
    require(name, "needs ratings of whole texts under the protocol `likert`")
    part = study.view(protocol=name)
    findings = require_defined(
        agree(part, ["alpha-ordinal"], level="document", question="coherence", **study.resampling_options)
    )
    rows = [
        {"agreement": "Krippendorff’s α, ordinal", "texts": point_row(finding.estimate)["value"]}
        for finding in findings
    ]
    return Rendering(tuple(rows), "Of the rating of coherence.", signature=first_signature(findings))


def table_2(study: PaperStudy) -> Rendering:
    """Summaries, marks, sentences and segments of each system."""
    by = _model_grouping(study)
    part = _marks_view(study).study
    sizes = text_size_summary(part, by)
    votes = work_summary(part, by).select(*by, "votes")
    table = sizes.join(votes, on=by) if by else sizes.with_columns(votes["votes"])
    shown = table.select(*by, summaries="documents", span="votes", sentence="sentences", segment="segments")
    rows = [{"dataset": row.pop("model", "all texts"), **row} for row in shown.iter_rows(named=True)]
    total: dict[str, object] = {name: sum(int(row[name]) for row in rows) for name in rows[0] if name != "dataset"}
    return Rendering((*rows, {"dataset": "Total", **total}), "`span` counts each reader of a mark.")


def table_3(study: PaperStudy) -> Rendering:
    """Correlation of the number of marks with the same reader's rating, by kind and group of kinds."""
    name = _protocol_filter(study, RATINGS_PROTOCOL)
    require(name, "needs ratings of whole texts under the protocol `likert` by the same people")
    ratings = study.view(protocol=name)
    findings: list[Finding] = []
    details: tuple[Literal["group", "label"], ...] = ("group", "label")
    for detail in details:
        findings += count_rating_correlation(
            _marks_view(study), "coherence", ratings, detail=detail, **study.resampling_options
        )
    pooled = [f for f in findings if f.columns.get("annotator") == "all"]
    rows = [{"error type": f.columns["label"], "r": _format_with_star(f)} for f in pooled]
    return Rendering(tuple(_unique_error_types(rows)), "A star where p < 0.05.",
                     signature=first_signature(findings))  # fmt: skip


def _unique_error_types(rows: Sequence[ExhibitRow]) -> list[ExhibitRow]:
    return list({str(row["error type"]): row for row in rows}.values())


def _format_with_star(finding: Finding) -> str:
    if math.isnan(finding.estimate.value):
        return "–"
    p = finding.columns.get("p")
    return f"{finding.estimate.value:.2f}{'*' if isinstance(p, float) and p < 0.05 else ''}"


def table_4(study: PaperStudy) -> Rendering:
    """Agreement on sentences and segments, by group of kinds."""
    _require_individuals(study)
    part = study.view(protocol=_protocol_filter(study, MARKS_PROTOCOL), back_off="group")
    rows: list[ExhibitRow] = []
    levels: dict[AgreementLevel, str] = {"sentence": "Sent", "segment": "Seg"}
    for level, head in levels.items():
        findings = agree(part, ["alpha"], level=level, **study.resampling_options)
        rows += [{"": f.columns["label"], "level": head, "value": point_row(f.estimate)["value"]} for f in findings]
    return Rendering(tuple(pivot_rows(rows, "", "level")), "Krippendorff’s α: marked or not.",
                     signature=first_signature(findings))  # fmt: skip


def _require_individuals(study: PaperStudy) -> None:
    kinds = dict(study.study.annotators.select("id", "kind").iter_rows())
    readers = {kinds.get(id) for id in study.study.submitted_work().annotations["annotator"]}
    require(readers != {"pooled"}, "the data has votes only: who marked what is not known, and this needs it")


def table_5(study: PaperStudy) -> Rendering:
    """Agreement on tokens by kind: alpha and two-agree."""
    findings = require_defined(agree(_marks_view(study), ["alpha", "two-agree"], **study.resampling_options))
    long = [
        {
            "error": f.columns["label"],
            "m": _MEASURE_TITLES[str(f.columns["measure"])],
            "value": point_row(f.estimate)["value"],
        }
        for f in findings
    ]
    rows = [row for row in pivot_rows(long, "error", "m") if row["error"] != ANY]
    return Rendering(tuple(rows), "Tokens pooled over texts.", signature=first_signature(findings))


def _machines(study: PaperStudy) -> list[str]:
    kinds = dict(study.study.annotators.select("id", "kind").iter_rows())
    readers = _marks_study(study).annotations["annotator"].unique(maintain_order=True)
    machines = [id for id in readers if kinds.get(id) in MACHINE_KINDS]
    require(machines, "no model has marked these texts: see `finecomb train`, `detect` and `annotate`")
    return machines


def _merge_gold(study: PaperStudy) -> Study:
    merged = gold(_marks_view(study), 1, size="union").study
    protocol = merged.protocol(_protocol_filter(study, MARKS_PROTOCOL))
    return replace(merged, protocols={protocol.id: protocol})


def _marks_study(study: PaperStudy) -> Study:
    """The work under the protocol of marks, without ratings."""
    work = study.study.submitted_work()
    protocol = work.protocol(_protocol_filter(study, MARKS_PROTOCOL))
    return replace(work.filter_annotations(pl.col("protocol") == protocol.id), protocols={protocol.id: protocol})


def _score_machines(study: PaperStudy, match: Match) -> Sequence[Score]:
    machines, work = _machines(study), _marks_study(study)
    return score(_merge_gold(study), work, match, judges=machines, **study.resampling_options).rows


def figure_7(study: PaperStudy) -> Rendering:
    """Models on sentences: recall and precision of every judge, all kinds together."""
    chosen = [row for row in _score_machines(study, "sentence") if row.columns["label"] == ANY]
    rows = [
        {"score": name, "judge": row.columns["judge"], **point_row(getattr(row, name))}
        for row in chosen
        for name in ("recall", "precision", "f1")
        if not math.isnan(getattr(row, name).value)
    ]
    require(rows, "no score has a value")
    chart = paper_charts.dot_chart(rows, "judge", "share of sentences", panel="score", columns=3)
    caption = "Marks are not graded, so each judge is one point and no curve; anything that one reader marked counts."
    return Rendering(tuple(rows), caption, chart, signature=str(chosen[0].recall.signature))


def table_6(study: PaperStudy) -> Rendering:
    """Models beside people on sentences, by kind; people are scored against each other."""
    rows: list[ExhibitRow] = []
    for row in _score_machines(study, "sentence"):
        for name, head in (("precision", "P"), ("recall", "R"), ("f1", "F1")):
            value = point_row(getattr(row, name))["value"]
            rows.append({"error": row.columns["label"], "of": f"{row.columns['judge']} {head}", "value": value})
    findings = agree(_marks_view(study), ["one-vs-rest"], level="sentence", **study.resampling_options)
    names = {"one-vs-rest-precision": "P", "one-vs-rest-recall": "R", "one-vs-rest-f1": "F1"}
    rows += [
        {"error": f.columns["label"], "of": f"people {names[str(f.columns['measure'])]}",
         "value": point_row(f.estimate)["value"]}
        for f in findings
    ]  # fmt: skip
    return Rendering(tuple(pivot_rows(rows, "error", "of")), "Each person against the others together.",
                     signature=first_signature(findings))  # fmt: skip


def table_7(study: PaperStudy) -> Rendering:
    """Scalar metrics such as ROUGE against the number of errors."""
    findings = scalar_metric_correlations(_merge_gold(study), study.study, **study.resampling_options)
    rows = [{**f.columns, **point_row(f.estimate)} for f in findings]
    require(rows, "no metric has scored these texts")
    return Rendering(
        tuple(rows), "A metric of quality should correlate negatively.", signature=first_signature(findings)
    )


def table_8(study: PaperStudy) -> Rendering:
    """Sizes of the parts that a model is trained and tested on."""
    require(
        "split" in document_meta_names(study.study), "documents say no part: `meta.split` (train, dev, test) is missing"
    )
    table = text_size_summary(study.study, ["split"])
    return Rendering(tuple(table.iter_rows(named=True)), "Of the study's own texts; synthetic ones are not made here.")


def table_10(study: PaperStudy) -> Rendering:
    """Recall of sentences by kind: any mark of the model on a sentence counts as found."""
    rows = [
        {"model": row.columns["judge"], "error": row.columns["label"], "value": point_row(row.recall)["value"]}
        for row in _score_any_label(study)
    ]
    return Rendering(tuple(pivot_rows(rows, "model", "error")), "An upper bound: the model's kind is not looked at.")


def _score_any_label(study: PaperStudy) -> Sequence[Score]:
    """Recall of each gold kind, whatever kind the judge gave."""
    work, machines = _marks_study(study), _machines(study)
    return score(_merge_gold(study), work, "sentence", "gold", judges=machines, **study.resampling_options).rows


def table_11(study: PaperStudy) -> Rendering:
    """A model's kinds on sentences: precision, recall and F1."""
    rows = [
        {
            "judge": row.columns["judge"], "error": row.columns["label"], "P": point_row(row.precision)["value"],
            "R": point_row(row.recall)["value"], "F1": point_row(row.f1)["value"],
        }
        for row in _score_machines(study, "sentence")
        if row.columns["label"] != ANY
    ]  # fmt: skip
    return Rendering(tuple(rows), "Against everything that one reader marked.")


EXHIBITS = (
    Exhibit(PAPER, "Figure 3", "An annotated summary", figure_3, "marks"),
    Exhibit(PAPER, "Figure 4", "Shares of kinds and of tokens", figure_4, "marks; models for panels"),
    Exhibit(PAPER, "Figure 5", "Marks that one reader made alone", figure_5, "two readers of one text"),
    Exhibit(PAPER, "Figure 7", "Models on sentences", figure_7, "marks of a model"),
    Exhibit(PAPER, "Table 1", "Agreement on ratings of texts", table_1, "ratings under `likert`"),
    Exhibit(PAPER, "Table 2", "Summaries, marks, sentences, segments", table_2, "marks; models for rows"),
    Exhibit(PAPER, "Table 3", "Counts of marks against ratings", table_3, "marks, and ratings under `likert`"),
    Exhibit(PAPER, "Table 4", "Agreement on sentences and segments", table_4, "readers by name"),
    Exhibit(PAPER, "Table 5", "Agreement on tokens", table_5, "two readers, or votes"),
    Exhibit(PAPER, "Table 6", "Models beside people", table_6, "marks of a model; two readers of one text"),
    Exhibit(PAPER, "Table 7", "Scalar metrics", table_7, "scores of a metric"),
    Exhibit(PAPER, "Table 8", "Parts for training and testing", table_8, "`meta.split` of documents"),
    Exhibit(PAPER, "Table 10", "Recall of sentences by kind", table_10, "marks of a model"),
    Exhibit(PAPER, "Table 11", "A model's kinds on sentences", table_11, "marks of a model"),
)
