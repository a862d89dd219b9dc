"""The exhibits of Dou et al. (2022), "Is GPT-3 Text Indistinguishable from Human Text? Scarecrow"."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import polars as pl

from finecomb.core.errors import param
from finecomb.core.estimate import Finding
from finecomb.reporting.figures import paper_charts
from finecomb.reporting.reproduce.annotated_examples import build_examples
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
from finecomb.reporting.reproduce.typical_words import typical_words
from finecomb.statistics.agreement.agreement import agree
from finecomb.statistics.measures.annotation_measures import measure
from finecomb.statistics.measures.count_variation import variation
from finecomb.statistics.measures.cross_tables import Normalise, cross_tabulate
from finecomb.statistics.measures.mark_audit import audited_counts
from finecomb.statistics.measures.study_counts import annotation_rows_with_groups, counts_by_group, document_meta_names
from finecomb.statistics.selection.view import ANY, View

PAPER = "scarecrow"
MINOR_GRAMMAR = "grammar-usage:1"
"""The paper leaves out grammar errors of severity 1 (appendix C)."""
DECODING_NAMES = {
    "top_p": ("top_p", "p"),
    "temperature": ("temperature", "t"),
    "penalty": ("frequency_penalty", "penalty"),
}
"""What studies call the settings of decoding."""
_SETTING_ABBREVIATIONS = {"top_p": "p", "temperature": "t", "penalty": "f.p."}
COMPARISON_SETTINGS = {"top_p": "0.96", "temperature": "1", "penalty": "0"}
"""The settings at which the paper compares models."""


def _decoding_columns(study: PaperStudy) -> dict[str, str]:
    """The document meta of each decoding setting that the study has."""
    names = document_meta_names(study.study)
    known = {ours: next((name for name in theirs if name in names), "") for ours, theirs in DECODING_NAMES.items()}
    return {ours: name for ours, name in known.items() if name}


def _dropped_labels(study: PaperStudy) -> tuple[str, ...]:
    labels = {label.name for protocol in study.study.protocols.values() for label in protocol.labels}
    return (MINOR_GRAMMAR,) if "grammar-usage" in labels else ()


def _reader_issue_groups(study: PaperStudy) -> tuple[str, ...]:
    """The group of marks that are no errors, where the protocol has it."""
    groups = {group.name for protocol in study.study.protocols.values() for group in protocol.groups}
    return ("reader",) if "reader" in groups else ()


def _filtered_view(study: PaperStudy, *, equal: bool = True, readers: bool = True, where: Sequence[str] = ()) -> View:
    """What a figure is made from: with `equal` human text and models at the paper's settings, where they vary."""
    drop = _dropped_labels(study) + (() if readers else _reader_issue_groups(study))
    conditions = [*where]
    if equal and (settings := _decoding_columns(study)):
        same = " and ".join(f"{name} == {COMPARISON_SETTINGS[ours]}" for ours, name in settings.items())
        whole = study.view(drop=drop, where=(*conditions, f'model == "human" or ({same})'))
        if not whole.study.annotations.is_empty():
            return whole
    return study.view(drop=drop, where=tuple(conditions))


def _model_grouping(study: PaperStudy) -> list[str]:
    return ["model"] if "model" in document_meta_names(study.study) else []


def _label_findings(findings: Sequence[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.columns["label"] != ANY]


def _add_label_titles(study: PaperStudy, rows: Sequence[ExhibitRow]) -> list[dict[str, Any]]:
    """Rows with `kind`: the name of the label with its flag, as panels are headed."""
    looks = study.label_looks
    heads = {name: f"{look.flag} {look.title}" for name, look in looks.items()}
    return [{**row, "kind": heads.get(str(row["label"]), "all marks")} for row in rows]


def _label_titles(study: PaperStudy, rows: Sequence[ExhibitRow]) -> list[str]:
    return list(dict.fromkeys(str(row["kind"]) for row in _add_label_titles(study, rows)))


def figure_2(study: PaperStudy) -> Rendering:
    """Coverage by kind of error and model, with intervals; human text beside every machine."""
    by = _model_grouping(study)
    require(by, "documents say no model: `meta.model` is missing")
    findings = _label_findings(measure(_filtered_view(study), ["coverage"], by, **study.resampling_options))
    rows = _add_label_titles(study, point_rows(findings, "label", "model"))
    chart = paper_charts.dot_chart(rows, "model", "share of tokens", panel="kind", panels=_label_titles(study, rows))
    return Rendering(tuple(rows), "Share of tokens that each kind covers, with 95% intervals.", chart,
                     signature=first_signature(findings))  # fmt: skip


def figure_3(study: PaperStudy) -> Rendering:
    """The same stacked: what each kind adds to a model's coverage."""
    by = _model_grouping(study)
    require(by, "documents say no model: `meta.model` is missing")
    findings = _label_findings(measure(_filtered_view(study), ["coverage"], by, **study.resampling_options))
    rows = point_rows(findings, "model", "label")
    chart = paper_charts.stacked_bar_chart(
        rows, "model", "label", "share of tokens, all kinds added", study.label_looks
    )
    return Rendering(tuple(rows), "Tokens in two marks count twice, so that kinds add up.", chart,
                     signature=first_signature(findings))  # fmt: skip


def _format_configuration(columns: dict[str, Any], settings: dict[str, str]) -> str:
    """A model with its settings in words, as the paper's Figure 4 names them."""
    model = str(columns.get("model", "all texts"))
    values = {ours: columns.get(name) for ours, name in settings.items()}
    if model == paper_charts.HUMAN or not any(values.values()):
        return model
    words = [f"{_SETTING_ABBREVIATIONS[ours]}={value}" for ours, value in values.items() if value is not None]
    return ", ".join([model, *words])


def figure_4(study: PaperStudy) -> Rendering:
    """All configurations ranked by coverage without reader issues."""
    settings = _decoding_columns(study)
    by = [*_model_grouping(study), *settings.values()]
    require(by, "documents say neither model nor decoding settings")
    whole = measure(_filtered_view(study, equal=False, readers=False), ["coverage"], by, **study.resampling_options)
    findings = [finding for finding in whole if finding.columns["label"] == ANY]
    rows = [
        {**point_row(finding.estimate), "configuration": _format_configuration(dict(finding.columns), settings)}
        for finding in findings
        if not math.isnan(finding.estimate.value)
    ]
    require(rows, "no configuration has a value")
    chart = paper_charts.dot_chart(rows, "configuration", "share of tokens in errors")
    return Rendering(tuple(rows), "Reader issues are left out; most errors first, human text last.", chart,
                     signature=first_signature(findings))  # fmt: skip


def figure_7(study: PaperStudy) -> Rendering:
    """One annotated text of each model, as one reader marked it: the one with the median number of marks."""
    rows, html = build_examples(
        _filtered_view(study).study, "model" if _model_grouping(study) else "", study.label_looks
    )
    require(html, "nobody has marked a text")
    return Rendering(tuple(rows), "The annotation with the median number of marks of each model.", html=html)


def figure_8(study: PaperStudy) -> Rendering:
    """Everybody's marks on one text, a bar for each reader."""
    part = _filtered_view(study, equal=False).study
    readers = part.annotations.group_by("document").agg(pl.col("annotator").n_unique().alias("readers"))
    marked = part.spans.filter(pl.col("part") == "text")
    require(len(marked), "no mark has a place in its text")
    ranked = marked.group_by("document").agg(pl.len().alias("marks")).join(readers, on="document")
    chosen = ranked.sort(["readers", "marks", "document"], descending=[True, True, False])["document"][0]
    spans = marked.filter(pl.col("document") == chosen).sort("annotator", "start")
    rows: list[ExhibitRow] = [
        {"reader": reader, "label": label or "no type", "start": start, "end": end}
        for reader, label, start, end in spans.select("annotator", "label", "start", "end").iter_rows()
    ]
    chart = paper_charts.span_strip_chart(rows, "reader", "label", f"character of text {chosen}", study.label_looks)
    return Rendering(tuple(rows), f"Text {chosen}: the one with the most readers, then the most marks.", chart)


SAMPLE_SIZES = (10, 25, 50, 75, 100, 150, 200)


def _largest_model_view(study: PaperStudy) -> View:
    """The model with the most texts, or everything."""
    whole = _filtered_view(study)
    if not _model_grouping(study):
        return whole
    rows = counts_by_group(whole.study, ["model"]).filter(pl.col("model") != paper_charts.HUMAN)
    require(len(rows), "there is no text by a machine")
    largest = rows.sort("documents", "model", descending=[True, False])["model"][0]
    return _filtered_view(study, where=[f'model == "{largest}"'])


def figure_9(study: PaperStudy) -> Rendering:
    """The coefficient of variation of the number of marks against the number of texts, in all and by kind."""
    findings = variation(_largest_model_view(study), SAMPLE_SIZES, **study.resampling_options)
    rows = _add_label_titles(study, point_rows(findings, "label", "documents"))
    rows.sort(key=lambda row: row["label"] != ANY)
    chart = paper_charts.line_chart(rows, "documents", "sd / mean", panel="kind")
    return Rendering(tuple(rows), "Of the model with the most texts; bands are 95% intervals.", chart,
                     signature=first_signature(findings))  # fmt: skip


def table_5(study: PaperStudy) -> Rendering:
    """Mean, standard deviation and coefficient of variation of marks in 50 texts."""
    findings = variation(_largest_model_view(study), (50,), **study.resampling_options)
    rows = [
        {
            "error": "Total errors" if finding.columns["label"] == ANY else finding.columns["label"],
            "mean": finding.columns["mean"],
            "std.": finding.columns["sd"],
            "c.v. (%)": 100 * finding.estimate.value,
        }
        for finding in findings
    ]
    return Rendering(
        tuple(rows), "Numbers of marks in 50 texts drawn from the study.", signature=first_signature(findings)
    )


def figure_10(study: PaperStudy) -> Rendering:
    """Shares of topics among texts, and of kinds among marks."""
    part = _filtered_view(study, equal=False).study
    kinds = part.marks.group_by("label").len().sort("len", "label", descending=[True, False])
    require(len(kinds), "nothing was marked")
    rows: list[ExhibitRow] = _share_rows("types of marks", kinds)
    if "topic" in document_meta_names(part):
        topics = annotation_rows_with_groups(part, ["topic"]).unique("document").group_by("topic").len()
        rows = [*_share_rows("topics of texts", topics.sort("len", "topic", descending=[True, False])), *rows]
    charts = {}
    for panel in dict.fromkeys(str(row["share of"]) for row in rows):
        chosen = [row for row in rows if row["share of"] == panel]
        names = [str(row["name"]) for row in chosen]
        charts[panel] = paper_charts.bar_chart(chosen, "name", "share", names=names, digits=1, percent=True)
    return Rendering(tuple(rows), "Of all texts and of all marks.", paper_charts.concat_charts(charts))


def _share_rows(share_of: str, table: pl.DataFrame) -> list[ExhibitRow]:
    total = table["len"].sum()
    return [{"share of": share_of, "name": name or "none", "value": count / total} for name, count in table.iter_rows()]


def _length_figure(study: PaperStudy, name: str, title: str) -> Rendering:
    findings = _label_findings(measure(_filtered_view(study, equal=False), [name], **study.resampling_options))
    rows = _add_label_titles(study, point_rows(findings, "label"))
    chart = paper_charts.dot_chart(rows, "kind", title)
    return Rendering(tuple(rows), "Longest first, with 95% intervals.", chart, signature=first_signature(findings))


def figure_11(study: PaperStudy) -> Rendering:
    """Tokens in a mark, by kind."""
    return _length_figure(study, "span-length", "tokens of a mark")


def figure_19(study: PaperStudy) -> Rendering:
    """Tokens in an explanation, by kind."""
    return _length_figure(study, "explanation-length", "tokens of an explanation")


COUNTING_MEASURES = {"coverage": "coverage", "severity-coverage": "coverage × severity", "count": "marks per text"}


def figure_12(study: PaperStudy) -> Rendering:
    """Three ways of counting, by kind and model."""
    by = _model_grouping(study)
    require(by, "documents say no model: `meta.model` is missing")
    findings = _label_findings(measure(_filtered_view(study), list(COUNTING_MEASURES), by, **study.resampling_options))
    rows = _add_label_titles(study, point_rows(findings, "measure", "label", "model"))
    charts = {}
    for name, title in COUNTING_MEASURES.items():
        chosen = [row for row in rows if row["measure"] == name]
        if chosen:
            names = paper_charts.rank_by_mean([row for row in rows if row["measure"] == "coverage"], "model")
            heads = _label_titles(study, chosen)
            charts[title] = paper_charts.dot_chart(
                chosen, "model", title, panel="kind", panels=heads, names=names, columns=1
            )
    return Rendering(tuple(rows), "Each column has an axis of its own.", paper_charts.concat_charts(charts),
                     signature=first_signature(findings))  # fmt: skip


NORMALISATIONS: dict[Normalise, str] = {"column": "shares of each topic", "label": "shares of each kind"}


def _topic_view(study: PaperStudy) -> View:
    part = _largest_model_view(study)
    require("topic" in document_meta_names(part.study), "documents say no topic: `meta.topic` is missing")
    return part


def figure_13(study: PaperStudy) -> Rendering:
    """Kinds by topic as shares, of each topic and of each kind."""
    rows: list[dict[str, object]] = []
    for normalise, head in NORMALISATIONS.items():
        findings = _label_findings(
            cross_tabulate(_topic_view(study), "topic", normalise=normalise, **study.resampling_options)
        )
        rows += [{"normalised": head, **row} for row in point_rows(findings, "label", "topic")]
    chart = paper_charts.heat_map(rows, "topic", "label", "", panel="normalised", columns=1)
    return Rendering(tuple(rows), "Of the model with the most texts.", chart, signature=first_signature(findings))


def _settings_findings(study: PaperStudy, part: View, label: str, by: Sequence[str]) -> list[Finding]:
    findings = measure(part, ["coverage"], list(by), **study.resampling_options)
    return [finding for finding in findings if finding.columns["label"] == label]


def _decoding_view(study: PaperStudy, readers: bool, penalty: str = "") -> tuple[View, dict[str, str]]:
    """Texts by machines whose decoding settings are known."""
    settings = _decoding_columns(study)
    require({"top_p", "temperature"} <= set(settings), "documents do not say top_p and temperature")
    where = [f'model != "{paper_charts.HUMAN}"'] if _model_grouping(study) else []
    if penalty and "penalty" in settings:
        where.append(f"{settings['penalty']} == {penalty}")
    part = _filtered_view(study, equal=False, readers=readers, where=where)
    require(len(part.study.annotations), "no text by a machine says its decoding settings")
    return part, settings


def figure_14(study: PaperStudy) -> Rendering:
    """Off-prompt and redundant marks by temperature and top-p, without a frequency penalty."""
    part, settings = _decoding_view(study, readers=True, penalty="0")
    by = [settings["temperature"], settings["top_p"]]
    rows: list[dict[str, object]] = []
    findings: list[Finding] = []
    for label in ("off-prompt", "redundant"):
        findings = _settings_findings(study, part, label, by)
        rows += [_rename_settings(row, settings) for row in point_rows(findings, "label", *by)]
    chart = paper_charts.heat_map(rows, "temperature", "top-p", "", panel="label", digits=3, shared=False)
    return Rendering(tuple(rows), "Share of tokens; temperature 0 is the likeliest word.", chart,
                     signature=first_signature(findings))  # fmt: skip


def _rename_settings(row: ExhibitRow, settings: dict[str, str]) -> dict[str, object]:
    """A row with the settings under the names that the figure has."""
    names = {settings["temperature"]: "temperature", settings["top_p"]: "top-p"}
    return {names.get(name, name): value for name, value in row.items()}


def figure_15(study: PaperStudy) -> Rendering:
    """Errors by temperature and top-p, without and with a frequency penalty."""
    part, settings = _decoding_view(study, readers=False)
    require("penalty" in settings, "documents do not say a frequency penalty")
    by = [settings["temperature"], settings["top_p"], settings["penalty"]]
    findings = _settings_findings(study, part, ANY, by)
    rows = [
        {"panel": f"frequency penalty {row[settings['penalty']]}", **_rename_settings(row, settings)}
        for row in point_rows(findings, *by)
    ]
    chart = paper_charts.heat_map(rows, "temperature", "top-p", "", panel="panel", digits=3)
    return Rendering(tuple(rows), "Share of tokens in errors, reader issues left out.", chart,
                     signature=first_signature(findings))  # fmt: skip


AUDIT_MEASURES = {
    "count": "marks per text",
    "legitimate": "share confirmed",
    "audited-count": "confirmed marks per text",
}


def figure_16(study: PaperStudy) -> Rendering:
    """Marks per text, the share that an audit confirms, and what is left: by kind, machine beside human."""
    made_with = f"made with `measure {param('audit_sample')}`"
    require(study.audit is not None, f"needs an audit of the marks: {param('audit', 'STUDY')}, {made_with}")
    assert study.audit is not None
    part, by = _filtered_view(study, equal=False, readers=False), _model_grouping(study)
    findings = _label_findings(measure(part, ["count"], by, **study.resampling_options))
    findings += _label_findings(audited_counts(part, study.audit, by, **study.resampling_options))
    rows = _add_label_titles(study, point_rows(findings, "measure", "label", *by))
    names = paper_charts.rank_by_mean(
        [row for row in rows if row["measure"] == "count"], "model"
    )  # the same in every column
    charts = {}
    for name, title in AUDIT_MEASURES.items():
        chosen = [row for row in rows if row["measure"] == name]
        if chosen:
            heads = _label_titles(study, chosen)
            charts[title] = paper_charts.dot_chart(
                chosen, "model", title, panel="kind", panels=heads, names=names, columns=1
            )
    return Rendering(tuple(rows), "Intervals join the counts' and the audit's.", paper_charts.concat_charts(charts),
                     signature=first_signature(findings))  # fmt: skip


def figure_17(study: PaperStudy) -> Rendering:
    """Coverage by topic."""
    findings = measure(_topic_view(study), ["coverage"], ["topic"], **study.resampling_options)
    rows = point_rows([finding for finding in findings if finding.columns["label"] == ANY], "topic")
    chart = paper_charts.dot_chart(rows, "topic", "share of tokens, all kinds added")
    return Rendering(tuple(rows), "Of the model with the most texts.", chart, signature=first_signature(findings))


def _explanations_by_label(study: PaperStudy) -> dict[str, list[str]]:
    """What people wrote about marks, by label in the order of the protocol."""
    part = _filtered_view(study, equal=False)
    answers = part.study.answers.filter((pl.col("of") == "mark") & (pl.col("question") == "explanation"))
    texts: dict[str, list[str]] = {label: [] for label in part.categories}
    for label, text in answers.select("label", "text").drop_nulls().iter_rows():
        texts.setdefault(label, []).append(text)
    known = {label: words for label, words in texts.items() if words}
    require(known, "no mark has an explanation")
    return known


def figure_18(study: PaperStudy) -> Rendering:
    """Words and pairs of words that are typical of the explanations of each kind."""
    words = typical_words(_explanations_by_label(study))
    require(words, "explanations share no words")
    rows = _add_label_titles(study, [
        {"label": word.group, "words": word.words, "count": word.occurrences, "log-odds": word.log_odds,
         "value": word.score}
        for word in words
    ])  # fmt: skip
    charts = paper_charts.ranked_dot_chart(rows, "words", "log-odds over its standard error", panel="kind")
    return Rendering(tuple(rows), "Log-odds with a prior: frequent here and rare in other explanations.", charts)


def figure_20(study: PaperStudy) -> Rendering:
    """Explanations of usual length from the kinds that take the most and the fewest words."""
    texts = _explanations_by_label(study)
    means = {label: sum(len(text.split()) for text in group) / len(group) for label, group in texts.items()}
    ranked = sorted(means, key=lambda label: -means[label])
    rows: list[ExhibitRow] = []
    for head, labels in (("longer", ranked[:2]), ("shorter", ranked[2:][-2:])):
        for label in labels:
            usual = sorted(dict.fromkeys(texts[label]), key=lambda text: (abs(len(text.split()) - means[label]), text))
            rows += [{"explanations": head, "error": label, "example": text} for text in usual[:3]]
    return Rendering(tuple(rows), "The three explanations nearest to their kind's mean length.")


def table_2(study: PaperStudy) -> Rendering:
    """Each reader against all others together, by kind; machines of the study in the reader's place beside them."""
    part = _filtered_view(study, equal=False)
    findings = require_defined(agree(part, ["one-vs-rest"], **study.resampling_options))
    rows = pivot_rows([_one_vs_rest_row("Human", finding) for finding in findings], "error", "score")
    return Rendering(tuple(rows), "Tokens; the others together are everybody's marks but one's.",
                     signature=first_signature(findings))  # fmt: skip


def _one_vs_rest_row(who: str, finding: Finding) -> dict[str, object]:
    names = {"one-vs-rest-precision": "P", "one-vs-rest-recall": "R", "one-vs-rest-f1": "F1"}
    score = f"{who} {names[str(finding.columns['measure'])]}"
    value = None if math.isnan(finding.estimate.value) else finding.estimate.value
    return {"error": finding.columns["label"], "score": score, "value": value}


def table_4(study: PaperStudy) -> Rendering:
    """Agreement on tokens by kind: alpha as the mean over texts, and two-agree."""
    findings = require_defined(
        agree(_filtered_view(study, equal=False), ["alpha-mean-one", "two-agree"], **study.resampling_options)
    )
    names = {"alpha-mean-one": "Krippendorff’s α", "two-agree": "Two Agree (%)"}
    rows = [
        {"error": f.columns["label"], "m": names[str(f.columns["measure"])], "value": point_row(f.estimate)["value"]}
        for f in findings
    ]
    caption = "Alpha of each text, mean over texts; texts where nobody used the kind count as 1, as in the paper."
    return Rendering(tuple(pivot_rows(rows, "error", "m")), caption, signature=first_signature(findings))


def table_6(study: PaperStudy) -> Rendering:
    """Texts, annotations and marks of each model and setting."""
    settings = _decoding_columns(study)
    by = [*_model_grouping(study), *settings.values()]
    require(by, "documents say neither model nor decoding settings")
    names = {"documents": "GENS", "annotations": "ANNS", "marks": "SPANS"}
    table = counts_by_group(study.view().study, by).drop("marks per annotation").rename(names)
    return Rendering(tuple(table.iter_rows(named=True)), "All marks, also those that figures leave out.")


EXHIBITS = (
    Exhibit(PAPER, "Figure 2", "Coverage by kind of error and model", figure_2, "models"),
    Exhibit(PAPER, "Figure 3", "Coverage stacked by kind", figure_3, "models"),
    Exhibit(PAPER, "Figure 4", "All decoding configurations ranked", figure_4, "models, or decoding settings"),
    Exhibit(PAPER, "Figure 7", "Annotated examples", figure_7, "marks"),
    Exhibit(PAPER, "Figure 8", "Everybody's marks on one text", figure_8, "marks with a place"),
    Exhibit(PAPER, "Figure 9", "Variation against number of texts", figure_9, "two texts with marks"),
    Exhibit(PAPER, "Figure 10", "Shares of topics and of kinds", figure_10, "marks; topics for the left part"),
    Exhibit(PAPER, "Figure 11", "Lengths of marks", figure_11, "marks with a place"),
    Exhibit(PAPER, "Figure 12", "Three ways of counting", figure_12, "models; severities for the middle part"),
    Exhibit(PAPER, "Figure 13", "Kinds by topic, both ways", figure_13, "topics"),
    Exhibit(PAPER, "Figure 14", "Decoding: off-prompt and redundant", figure_14, "top_p and temperature"),
    Exhibit(PAPER, "Figure 15", "Decoding: frequency penalty", figure_15, "top_p, temperature, frequency_penalty"),
    Exhibit(PAPER, "Figure 16", "Counts after an audit", figure_16, "an audit of the marks (--audit)"),
    Exhibit(PAPER, "Figure 17", "Coverage by topic", figure_17, "topics"),
    Exhibit(PAPER, "Figure 18", "Typical words of explanations", figure_18, "explanations"),
    Exhibit(PAPER, "Figure 19", "Lengths of explanations", figure_19, "explanations"),
    Exhibit(PAPER, "Figure 20", "Examples of explanations", figure_20, "explanations"),
    Exhibit(PAPER, "Table 2", "One reader against the rest", table_2, "three readers of one text"),
    Exhibit(PAPER, "Table 4", "Agreement on tokens", table_4, "two readers of one text"),
    Exhibit(PAPER, "Table 5", "Variation of counts in 50 texts", table_5, "two texts with marks"),
    Exhibit(PAPER, "Table 6", "Texts, annotations and marks", table_6, "models, or decoding settings"),
)
