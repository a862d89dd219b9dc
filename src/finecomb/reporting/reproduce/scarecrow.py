"""Exhibits of Dou et al. (2022), "Is GPT-3 Text Indistinguishable from Human Text? Scarecrow"."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from finecomb.core.errors import FinecombError, param
from finecomb.core.results import Finding
from finecomb.core.study import annotation_rows_with_groups, document_meta_names
from finecomb.reporting.figures import paper_charts
from finecomb.reporting.figures.figure_model import Chart
from finecomb.reporting.reproduce.annotated_examples import build_examples
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
from finecomb.reporting.reproduce.typical_words import typical_words
from finecomb.statistics.agreement.agreement import agree
from finecomb.statistics.measures.annotation_measures import measure
from finecomb.statistics.measures.count_variation import mark_count_variation
from finecomb.statistics.measures.cross_tables import Normalise, cross_tabulate
from finecomb.statistics.measures.mark_audit import audited_counts
from finecomb.statistics.measures.study_counts import counts_by_group
from finecomb.statistics.selection.view import ANY_LABEL, View

PAPER = "scarecrow"
MINOR_GRAMMAR = "grammar-usage:1"
"""Marks that the paper excludes from its analyses: grammar errors of severity 1 (appendix C)."""
DECODING_COLUMN_NAMES = {
    "top_p": ("top_p", "p"),
    "temperature": ("temperature", "t"),
    "penalty": ("frequency_penalty", "penalty"),
}
"""Names that studies use for each decoding parameter."""
_SETTING_ABBREVIATIONS = {"top_p": "p", "temperature": "t", "penalty": "f.p."}
COMPARISON_DECODING_SETTINGS = {"top_p": "0.96", "temperature": "1", "penalty": "0"}
"""Decoding parameters at which the paper compares models."""


def _decoding_columns(study: PaperStudy) -> dict[str, str]:
    """Return the document meta column of each decoding parameter that the study has."""
    names = document_meta_names(study.study)
    known = {
        ours: next((name for name in theirs if name in names), "") for ours, theirs in DECODING_COLUMN_NAMES.items()
    }
    return {ours: name for ours, name in known.items() if name}


def _filtered_view(study: PaperStudy, *, equal: bool = True, readers: bool = True, where: Sequence[str] = ()) -> View:
    """Return the data of a figure; with `equal`, only human text and models with the paper's decoding parameters.

    With `readers`, the group of reader issues, which are not errors, is included.
    """
    protocols = study.study.protocols.values()
    has_grammar = any(label.name == "grammar-usage" for protocol in protocols for label in protocol.labels)
    has_reader_issues = any(group.name == "reader" for protocol in protocols for group in protocol.groups)
    drop = (MINOR_GRAMMAR,) * has_grammar + ("reader",) * (has_reader_issues and not readers)
    if equal and (settings := _decoding_columns(study)):
        same = " and ".join(f"{name} == {COMPARISON_DECODING_SETTINGS[ours]}" for ours, name in settings.items())
        comparable = study.view(drop=drop, where=(*where, f'model == "human" or ({same})'))
        if not comparable.study.annotations.is_empty():
            return comparable
    return study.view(drop=drop, where=tuple(where))


def _model_grouping(study: PaperStudy) -> list[str]:
    return ["model"] if "model" in document_meta_names(study.study) else []


def _measure_by_model(study: PaperStudy, measures: Sequence[str]) -> list[Finding]:
    """Measure each error type by model; raise an error if documents have no model."""
    by = _model_grouping(study)
    require_exhibit_data(by, "no document has `meta.model`")
    return _drop_all_labels_findings(measure(_filtered_view(study), measures, by, **study.resampling_options))


def _join_measure_charts(rows: Sequence[ExhibitRow], titles: Mapping[str, str]) -> Chart:
    """Draw one column per measure; the first measure ranks the models of all columns."""
    names = paper_charts.rank_names_by_mean([row for row in rows if row["measure"] == next(iter(titles))], "model")
    charts = {}
    for name, title in titles.items():
        if chosen := [row for row in rows if row["measure"] == name]:
            charts[title] = paper_charts.dot_chart(chosen, "model", title, panel="kind", names=names, columns=1)
    return paper_charts.join_columns(charts)


def _drop_all_labels_findings(findings: Sequence[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.columns["label"] != ANY_LABEL]


def _add_label_titles(study: PaperStudy, rows: Sequence[ExhibitRow]) -> list[dict[str, Any]]:
    """Add the column `kind`, the title and flag of the label, which is the title of a panel."""
    heads = {name: f"{style.flag} {style.title}" for name, style in study.label_styles.items()}
    return [{**row, "kind": heads.get(str(row["label"]), "all marks")} for row in rows]


def figure_2(study: PaperStudy) -> RenderedExhibit:
    """Plot coverage by error type and model with intervals, next to human text."""
    findings = _measure_by_model(study, ["coverage"])
    rows = _add_label_titles(study, point_rows(findings, "label", "model"))
    return RenderedExhibit(
        tuple(rows),
        "Share of tokens covered by each error type, with 95% intervals.",
        paper_charts.dot_chart(rows, "model", "share of tokens", panel="kind"),
        signature=first_signature(findings),
    )


def figure_3(study: PaperStudy) -> RenderedExhibit:
    """Plot coverage by model as bars stacked by error type."""
    findings = _measure_by_model(study, ["coverage"])
    rows = point_rows(findings, "model", "label")
    chart = paper_charts.stacked_bar_chart(
        rows, "model", "label", "share of tokens, all error types added", study.label_styles
    )
    return RenderedExhibit(
        tuple(rows),
        "Tokens in two marks count twice, so that error types add up.",
        chart,
        signature=first_signature(findings),
    )


def _format_configuration(columns: dict[str, Any], settings: dict[str, str]) -> str:
    """Format a model with its decoding parameters, as in Figure 4 of the paper."""
    model = str(columns.get("model", "all texts"))
    values = {ours: columns.get(name) for ours, name in settings.items()}
    if model == paper_charts.HUMAN_SYSTEM or not any(values.values()):
        return model
    words = [f"{_SETTING_ABBREVIATIONS[ours]}={value}" for ours, value in values.items() if value is not None]
    return ", ".join([model, *words])


def figure_4(study: PaperStudy) -> RenderedExhibit:
    """Rank all decoding configurations by coverage without reader issues."""
    settings = _decoding_columns(study)
    by = [*_model_grouping(study), *settings.values()]
    require_exhibit_data(by, "no document has `meta.model` or decoding parameters")
    all_findings = measure(
        _filtered_view(study, equal=False, readers=False), ["coverage"], by, **study.resampling_options
    )
    findings = [finding for finding in all_findings if finding.columns["label"] == ANY_LABEL]
    rows = [
        {**point_row(finding.estimate), "configuration": _format_configuration(dict(finding.columns), settings)}
        for finding in findings
        if not math.isnan(finding.estimate.value)
    ]
    require_exhibit_data(rows, "coverage is undefined for every configuration")
    chart = paper_charts.dot_chart(rows, "configuration", "share of tokens in errors")
    return RenderedExhibit(
        tuple(rows),
        "Without reader issues. Most errors first, human text last.",
        chart,
        signature=first_signature(findings),
    )


def figure_7(study: PaperStudy) -> RenderedExhibit:
    """Show one annotated text per model: the annotation with the median number of marks."""
    rows, html = build_examples(
        _filtered_view(study).study, "model" if _model_grouping(study) else "", study.label_styles
    )
    require_exhibit_data(html, "no text has an annotation")
    return RenderedExhibit(tuple(rows), "The annotation with the median number of marks per model.", html=html)


def figure_8(study: PaperStudy) -> RenderedExhibit:
    """Plot the marks of all annotators on one text, one row per annotator."""
    part = _filtered_view(study, equal=False).study
    annotator_counts = part.annotations.group_by("document").agg(pl.col("annotator").n_unique().alias("readers"))
    marked = part.spans.filter(pl.col("part") == "text")
    require_exhibit_data(len(marked), "no mark has a position in its text")
    ranked = marked.group_by("document").agg(pl.len().alias("marks")).join(annotator_counts, on="document")
    chosen = ranked.sort(["readers", "marks", "document"], descending=[True, True, False])["document"][0]
    spans = marked.filter(pl.col("document") == chosen).sort("annotator", "start")
    rows: list[ExhibitRow] = [
        {"reader": reader, "label": label or "no type", "start": start, "end": end}
        for reader, label, start, end in spans.select("annotator", "label", "start", "end").iter_rows()
    ]
    chart = paper_charts.span_strip_chart(
        rows, "reader", "label", f"character position in text {chosen}", study.label_styles
    )
    return RenderedExhibit(
        tuple(rows), f"Text {chosen} has the most annotators and, among those, the most marks.", chart
    )


SAMPLE_SIZES = (10, 25, 50, 75, 100, 150, 200)


def _largest_model_view(study: PaperStudy) -> View:
    """Return the texts of the model with the most texts, or all texts if documents have no model."""
    part = _filtered_view(study)
    if not _model_grouping(study):
        return part
    rows = counts_by_group(part.study, ["model"]).filter(pl.col("model") != paper_charts.HUMAN_SYSTEM)
    require_exhibit_data(len(rows), "no text is by a machine")
    largest = rows.sort("documents", "model", descending=[True, False])["model"][0]
    return _filtered_view(study, where=[f'model == "{largest}"'])


def figure_9(study: PaperStudy) -> RenderedExhibit:
    """Plot the coefficient of variation of the number of marks by number of texts, in total and by error type."""
    findings = mark_count_variation(_largest_model_view(study), SAMPLE_SIZES, **study.resampling_options)
    rows = _add_label_titles(study, point_rows(findings, "label", "documents"))
    rows.sort(key=lambda row: row["label"] != ANY_LABEL)
    chart = paper_charts.line_chart(rows, "documents", "sd / mean", panel="kind")
    return RenderedExhibit(
        tuple(rows),
        "Results for the model with the most texts. Bands are 95% intervals.",
        chart,
        signature=first_signature(findings),
    )


def table_5(study: PaperStudy) -> RenderedExhibit:
    """Compute mean, standard deviation and coefficient of variation of the number of marks in 50 texts."""
    findings = mark_count_variation(_largest_model_view(study), (50,), **study.resampling_options)
    rows = [
        {
            "error": "Total errors" if finding.columns["label"] == ANY_LABEL else finding.columns["label"],
            "mean": finding.columns["mean"],
            "std.": finding.columns["sd"],
            "c.v. (%)": 100 * finding.estimate.value,
        }
        for finding in findings
    ]
    return RenderedExhibit(
        tuple(rows), "Number of marks in 50 texts sampled from the study.", signature=first_signature(findings)
    )


def figure_10(study: PaperStudy) -> RenderedExhibit:
    """Plot the shares of topics among texts and of error types among marks."""
    part = _filtered_view(study, equal=False).study
    kinds = part.marks.group_by("label").len().sort("len", "label", descending=[True, False])
    require_exhibit_data(len(kinds), "no text has a mark")
    rows: list[ExhibitRow] = _share_rows("types of marks", kinds)
    if "topic" in document_meta_names(part):
        topics = annotation_rows_with_groups(part, ["topic"]).unique("document").group_by("topic").len()
        rows = [*_share_rows("topics of texts", topics.sort("len", "topic", descending=[True, False])), *rows]
    charts = {}
    for panel in dict.fromkeys(str(row["share of"]) for row in rows):
        chosen = [row for row in rows if row["share of"] == panel]
        charts[panel] = paper_charts.share_bar_chart(chosen, "name", "share")
    return RenderedExhibit(tuple(rows), "Shares of all texts and of all marks.", paper_charts.join_columns(charts))


def _share_rows(share_of: str, table: pl.DataFrame) -> list[ExhibitRow]:
    total = table["len"].sum()
    return [{"share of": share_of, "name": name or "none", "value": count / total} for name, count in table.iter_rows()]


def _token_length_figure(study: PaperStudy, name: str, title: str) -> RenderedExhibit:
    findings = _drop_all_labels_findings(
        measure(_filtered_view(study, equal=False), [name], **study.resampling_options)
    )
    rows = _add_label_titles(study, point_rows(findings, "label"))
    chart = paper_charts.dot_chart(rows, "kind", title)
    return RenderedExhibit(
        tuple(rows), "Longest first, with 95% intervals.", chart, signature=first_signature(findings)
    )


def figure_11(study: PaperStudy) -> RenderedExhibit:
    """Plot the number of tokens per mark, by error type."""
    return _token_length_figure(study, "span-length", "tokens per mark")


def figure_19(study: PaperStudy) -> RenderedExhibit:
    """Plot the number of tokens per explanation, by error type."""
    return _token_length_figure(study, "explanation-length", "tokens per explanation")


COUNTING_MEASURES = {"coverage": "coverage", "severity-coverage": "coverage × severity", "count": "marks per text"}


def figure_12(study: PaperStudy) -> RenderedExhibit:
    """Plot coverage, severity-weighted coverage and marks per text, by error type and model."""
    findings = _measure_by_model(study, list(COUNTING_MEASURES))
    rows = _add_label_titles(study, point_rows(findings, "measure", "label", "model"))
    return RenderedExhibit(
        tuple(rows),
        "Each column has its own axis.",
        _join_measure_charts(rows, COUNTING_MEASURES),
        signature=first_signature(findings),
    )


NORMALISATIONS: dict[Normalise, str] = {"column": "shares within each topic", "label": "shares within each error type"}


def _topic_view(study: PaperStudy) -> View:
    part = _largest_model_view(study)
    require_exhibit_data("topic" in document_meta_names(part.study), "no document has `meta.topic`")
    return part


def figure_13(study: PaperStudy) -> RenderedExhibit:
    """Plot error types by topic, as shares of each topic and of each error type."""
    rows: list[dict[str, object]] = []
    for normalise, head in NORMALISATIONS.items():
        findings = _drop_all_labels_findings(
            cross_tabulate(_topic_view(study), "topic", normalise=normalise, **study.resampling_options)
        )
        rows += [{"normalised": head, **row} for row in point_rows(findings, "label", "topic")]
    chart = paper_charts.heat_map(rows, "topic", "label", panel="normalised", columns=1)
    return RenderedExhibit(
        tuple(rows), "Results for the model with the most texts.", chart, signature=first_signature(findings)
    )


def _decoding_view(study: PaperStudy, readers: bool, penalty: str = "") -> tuple[View, dict[str, str]]:
    """Return the machine texts with known decoding parameters, and the columns of these parameters."""
    settings = _decoding_columns(study)
    require_exhibit_data({"top_p", "temperature"} <= set(settings), "documents need both `top_p` and `temperature`")
    where = [f'model != "{paper_charts.HUMAN_SYSTEM}"'] if _model_grouping(study) else []
    if penalty and "penalty" in settings:
        where.append(f"{settings['penalty']} == {penalty}")
    part = _filtered_view(study, equal=False, readers=readers, where=where)
    require_exhibit_data(
        len(part.study.annotations), "no machine text with these decoding parameters has an annotation"
    )
    return part, settings


def figure_14(study: PaperStudy) -> RenderedExhibit:
    """Plot off-prompt and redundant marks by temperature and top-p, without a frequency penalty."""
    part, settings = _decoding_view(study, readers=True, penalty="0")
    by = [settings["temperature"], settings["top_p"]]
    by_label: dict[object, list[Finding]] = {"off-prompt": [], "redundant": []}
    for finding in measure(part, ["coverage"], by, **study.resampling_options):
        by_label.setdefault(finding.columns["label"], []).append(finding)
    rows = [
        _rename_settings(row, settings)
        for label in ("off-prompt", "redundant")
        for row in point_rows(by_label[label], "label", *by)
    ]
    chart = paper_charts.heat_map(rows, "temperature", "top-p", panel="label", digits=3, shared=False)
    signature = first_signature(by_label["redundant"])
    return RenderedExhibit(
        tuple(rows), "Share of tokens. Temperature 0 is greedy decoding.", chart, signature=signature
    )


def _rename_settings(row: ExhibitRow, settings: dict[str, str]) -> dict[str, object]:
    """Rename the decoding parameters of a row to the names in the figure."""
    names = {settings["temperature"]: "temperature", settings["top_p"]: "top-p"}
    return {names.get(name, name): value for name, value in row.items()}


def figure_15(study: PaperStudy) -> RenderedExhibit:
    """Plot errors by temperature and top-p, with and without a frequency penalty."""
    part, settings = _decoding_view(study, readers=False)
    require_exhibit_data("penalty" in settings, "no document has a frequency penalty")
    by = [settings["temperature"], settings["top_p"], settings["penalty"]]
    by_label = measure(part, ["coverage"], by, **study.resampling_options)
    findings = [finding for finding in by_label if finding.columns["label"] == ANY_LABEL]
    rows = [
        {"panel": f"frequency penalty {row[settings['penalty']]}", **_rename_settings(row, settings)}
        for row in point_rows(findings, *by)
    ]
    chart = paper_charts.heat_map(rows, "temperature", "top-p", panel="panel", digits=3)
    return RenderedExhibit(
        tuple(rows), "Share of tokens in errors, without reader issues.", chart, signature=first_signature(findings)
    )


AUDIT_MEASURES = {
    "count": "marks per text",
    "legitimate": "share confirmed",
    "audited-count": "confirmed marks per text",
}


def figure_16(study: PaperStudy) -> RenderedExhibit:
    """Plot marks per text, the share confirmed by an audit, and confirmed marks per text, by error type and author."""
    if study.audit is None:
        raise FinecombError(f"{param('audit', 'AUDIT')} is missing; draw a sample with `finecomb audit STUDY -o AUDIT`")
    part, by = _filtered_view(study, equal=False, readers=False), _model_grouping(study)
    findings = _drop_all_labels_findings(measure(part, ["count"], by, **study.resampling_options))
    findings += _drop_all_labels_findings(audited_counts(part, study.audit, by, **study.resampling_options))
    rows = _add_label_titles(study, point_rows(findings, "measure", "label", *by))
    return RenderedExhibit(
        tuple(rows),
        "Intervals combine the uncertainty of the counts and of the audit.",
        _join_measure_charts(rows, AUDIT_MEASURES),
        signature=first_signature(findings),
    )


def figure_17(study: PaperStudy) -> RenderedExhibit:
    """Plot coverage by topic."""
    findings = measure(_topic_view(study), ["coverage"], ["topic"], **study.resampling_options)
    rows = point_rows([finding for finding in findings if finding.columns["label"] == ANY_LABEL], "topic")
    chart = paper_charts.dot_chart(rows, "topic", "share of tokens, all error types added")
    return RenderedExhibit(
        tuple(rows), "Results for the model with the most texts.", chart, signature=first_signature(findings)
    )


def _explanations_by_label(study: PaperStudy) -> dict[str, list[str]]:
    """Return the explanations of marks by label, in the order of the protocol."""
    part = _filtered_view(study, equal=False)
    answers = part.study.answers.filter((pl.col("of") == "mark") & (pl.col("question") == "explanation"))
    texts: dict[str, list[str]] = {label: [] for label in part.categories}
    for label, text in answers.select("label", "text").drop_nulls().iter_rows():
        texts.setdefault(label, []).append(text)
    known = {label: words for label, words in texts.items() if words}
    require_exhibit_data(known, "no mark has an explanation")
    return known


def figure_18(study: PaperStudy) -> RenderedExhibit:
    """Plot the words and word pairs that are typical of the explanations of each error type."""
    words = typical_words(_explanations_by_label(study))
    require_exhibit_data(words, "no word is typical of the explanations of one error type")
    rows = _add_label_titles(study, [
        {"label": word.group, "words": word.words, "count": word.occurrences, "log-odds": word.log_odds,
         "value": word.score}
        for word in words
    ])  # fmt: skip
    charts = paper_charts.ranked_dot_chart(rows, "words", "log-odds divided by standard error", panel="kind")
    return RenderedExhibit(
        tuple(rows), "Log-odds with an informative prior: frequent for this error type and rare for others.", charts
    )


def figure_20(study: PaperStudy) -> RenderedExhibit:
    """List explanations of typical length from the error types with the longest and shortest explanations."""
    texts = _explanations_by_label(study)
    means = {label: sum(len(text.split()) for text in group) / len(group) for label, group in texts.items()}
    ranked = sorted(means, key=lambda label: -means[label])
    rows: list[ExhibitRow] = []
    for head, labels in (("longer", ranked[:2]), ("shorter", ranked[2:][-2:])):
        for label in labels:
            usual = sorted(dict.fromkeys(texts[label]), key=lambda text: (abs(len(text.split()) - means[label]), text))
            rows += [{"explanations": head, "error": label, "example": text} for text in usual[:3]]
    return RenderedExhibit(tuple(rows), "Up to three explanations per error type, closest to its mean length.")


def table_2(study: PaperStudy) -> RenderedExhibit:
    """Compute leave-one-out precision, recall and F1 of annotators, by error type."""
    part = _filtered_view(study, equal=False)
    findings = require_defined(agree(part, ["one-vs-rest"], **study.resampling_options))
    names = {"one-vs-rest-precision": "Human P", "one-vs-rest-recall": "Human R", "one-vs-rest-f1": "Human F1"}
    rows = [
        {"error": f.columns["label"], "score": names[str(f.columns["measure"])], "value": f.estimate.value}
        for f in findings
    ]
    return RenderedExhibit(
        tuple(pivot_rows(rows, "error", "score")),
        "Tokens of each annotator compared with the union of the other annotators' marks.",
        signature=first_signature(findings),
    )


def table_4(study: PaperStudy) -> RenderedExhibit:
    """Compute agreement on tokens by error type: alpha averaged over texts, and two-agree."""
    findings = require_defined(
        agree(_filtered_view(study, equal=False), ["alpha-mean-one", "two-agree"], **study.resampling_options)
    )
    names = {"alpha-mean-one": "Krippendorff’s α", "two-agree": "Two Agree (%)"}
    rows = [
        {"error": f.columns["label"], "m": names[str(f.columns["measure"])], "value": point_row(f.estimate)["value"]}
        for f in findings
    ]
    caption = "Alpha per text, averaged over texts. As in the paper, texts without a mark of the type count as 1."
    return RenderedExhibit(tuple(pivot_rows(rows, "error", "m")), caption, signature=first_signature(findings))


def table_6(study: PaperStudy) -> RenderedExhibit:
    """Count the texts, annotations and marks of each model and configuration."""
    by = [*_model_grouping(study), *_decoding_columns(study).values()]
    require_exhibit_data(by, "no document has `meta.model` or decoding parameters")
    names = {"documents": "GENS", "annotations": "ANNS", "marks": "SPANS"}
    table = counts_by_group(study.view().study, by).drop("marks per annotation").rename(names)
    return RenderedExhibit(tuple(table.iter_rows(named=True)), "All marks, including those that the figures omit.")


EXHIBITS = (
    Exhibit(PAPER, "Figure 2", "Coverage by error type and model", figure_2, "models"),
    Exhibit(PAPER, "Figure 3", "Coverage stacked by error type", figure_3, "models"),
    Exhibit(PAPER, "Figure 4", "Ranking of decoding configurations", figure_4, "models or decoding parameters"),
    Exhibit(PAPER, "Figure 7", "Annotated examples", figure_7, "marks"),
    Exhibit(PAPER, "Figure 8", "Marks of all annotators on one text", figure_8, "marks with a position"),
    Exhibit(PAPER, "Figure 9", "Variation by number of texts", figure_9, "two texts with marks"),
    Exhibit(PAPER, "Figure 10", "Shares of topics and error types", figure_10, "marks; topics for the left part"),
    Exhibit(PAPER, "Figure 11", "Length of marks", figure_11, "marks with a position"),
    Exhibit(PAPER, "Figure 12", "Coverage, severity and counts", figure_12, "models; severities for the middle part"),
    Exhibit(PAPER, "Figure 13", "Error types by topic", figure_13, "topics"),
    Exhibit(
        PAPER, "Figure 14", "Off-prompt and redundant marks by decoding parameters", figure_14, "top_p and temperature"
    ),
    Exhibit(PAPER, "Figure 15", "Errors by frequency penalty", figure_15, "top_p, temperature, frequency_penalty"),
    Exhibit(PAPER, "Figure 16", "Mark counts after an audit", figure_16, "an audit of the marks (--audit)"),
    Exhibit(PAPER, "Figure 17", "Coverage by topic", figure_17, "topics"),
    Exhibit(PAPER, "Figure 18", "Typical words of explanations", figure_18, "explanations"),
    Exhibit(PAPER, "Figure 19", "Length of explanations", figure_19, "explanations"),
    Exhibit(PAPER, "Figure 20", "Example explanations", figure_20, "explanations"),
    Exhibit(PAPER, "Table 2", "Leave-one-out agreement of annotators", table_2, "three annotators per text"),
    Exhibit(PAPER, "Table 4", "Agreement on tokens", table_4, "two annotators per text"),
    Exhibit(PAPER, "Table 5", "Variation of mark counts in 50 texts", table_5, "two texts with marks"),
    Exhibit(PAPER, "Table 6", "Texts, annotations and marks", table_6, "models or decoding parameters"),
)
