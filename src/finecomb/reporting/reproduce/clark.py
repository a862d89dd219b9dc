"""The exhibits of Clark et al. (2021), "All That's 'Human' Is Not Gold"."""

from __future__ import annotations

import math
from collections.abc import Sequence

import polars as pl

from finecomb.core.errors import FinecombError
from finecomb.core.estimate import Finding
from finecomb.reporting.figures import paper_charts
from finecomb.reporting.reproduce.exhibits import (
    Exhibit,
    ExhibitRow,
    PaperStudy,
    Rendering,
    first_signature,
    point_row,
    require,
)
from finecomb.statistics.comparisons.comment_codes import comment_codes
from finecomb.statistics.comparisons.human_or_machine import human_or_machine, score_histogram, score_tests
from finecomb.statistics.measures.study_counts import document_meta_names
from finecomb.statistics.selection.view import View, answer_text_expression

PAPER = "clark"
RATINGS_PROTOCOL, CODES_PROTOCOL = "turing", "comments"
NO_TRAINING = "none"
_COLUMN_TITLES = {
    "accuracy": "Acc.", "f1": "F1", "precision": "Prec.", "recall": "Recall", "alpha": "Kripp. α", "% human": "% human",
    "% confident": "% confident",
}  # fmt: skip


def _ratings_view(study: PaperStudy, *where: str) -> View:
    has_ratings = any(protocol.name == RATINGS_PROTOCOL for protocol in study.study.protocols.values())
    part = study.view(protocol=RATINGS_PROTOCOL if has_ratings else "", where=where)
    require(len(part.study.annotations), "nobody has rated a text as human or machine")
    return part


def _available_columns(study: PaperStudy, *names: str) -> list[str]:
    columns = {*document_meta_names(study.study), "condition"}
    return [name for name in names if name in columns]


def _conditions(study: PaperStudy) -> list[str]:
    return [name for name in study.study.annotators["condition"].unique(maintain_order=True) if name]


def _untrained_ratings_view(study: PaperStudy) -> View:
    """Readers without training, where some had one."""
    return _ratings_view(study, *([f'condition == "{NO_TRAINING}"'] if NO_TRAINING in _conditions(study) else []))


def _table_rows(groups: Sequence[Finding], by: Sequence[str]) -> list[dict[str, object]]:
    """One row for each group in the paper's columns; a star where accuracy differs from chance, p corrected."""
    rows: dict[tuple[object, ...], dict[str, object]] = {}
    for finding in groups:
        key = tuple(finding.columns.get(name) for name in by)
        row = rows.setdefault(
            key, {"row": " ".join(str(value) for value in key) or "all", **dict(zip(by, key, strict=True))}
        )
        name = _COLUMN_TITLES.get(str(finding.columns["measure"]))
        if name:
            row[name] = point_row(finding.estimate)["value"]
            p = finding.columns.get("p_adjusted")
            row |= {"differs from chance": "*" if p < 0.05 else ""} if isinstance(p, float) else {}
    return list(rows.values())


def _accuracy_table(study: PaperStudy, part: View, *names: str) -> Rendering:
    by = _available_columns(study, *names)
    findings = human_or_machine(part, by, **study.resampling_options)
    rows = _table_rows(findings, by)
    words = [
        "Machine is the positive class; p is corrected over rows (Bonferroni).",
        *map(_format_sentence, findings.notes),
    ]
    return Rendering(tuple(rows), " ".join(words), signature=first_signature(findings))


def _format_sentence(note: str) -> str:
    return f"{note[0].upper()}{note[1:]}."


def table_1(study: PaperStudy) -> Rendering:
    """Can readers without training tell human from machine? By model and domain."""
    return _accuracy_table(study, _untrained_ratings_view(study), "model", "domain")


def table_2(study: PaperStudy) -> Rendering:
    """The same by kind of training and domain."""
    require(len(_conditions(study)) > 1, "all readers had the same training: annotators' `condition` does not vary")
    return _accuracy_table(study, _ratings_view(study), "condition", "domain")


def table_3(study: PaperStudy) -> Rendering:
    """What readers went by: shares of the groups of codes, by training."""
    by = ["condition"] if len(_conditions(study)) > 1 else []
    findings = comment_codes(study.study, by, **study.resampling_options)
    groups = [f for f in findings if f.columns.get("level") == "group"]
    rows: dict[str, dict[str, object]] = {}
    for finding in groups:
        name = str(finding.columns.get("condition", "all"))
        row = rows.setdefault(name, {"training": name})
        row[str(finding.columns.get("name"))] = point_row(finding.estimate)["value"]
    require(rows, "no comment was coded")
    return Rendering(tuple(rows.values()), "In per cent of all codes given.", signature=first_signature(findings))


def _coded_comments(study: PaperStudy) -> pl.DataFrame:
    """One row for each code of a comment: code, comment."""
    has_codes = any(protocol.name == CODES_PROTOCOL for protocol in study.study.protocols.values())
    require(has_codes, "no comment was coded: needs annotations under the protocol `comments`")
    work = study.study.submitted_work()
    codes = work.answers.filter((pl.col("of") == "annotation") & (pl.col("question") == "codes"))
    about = work.annotations.select("about", annotation="id")
    comments = work.annotations.select(
        about="id", comment=pl.coalesce(answer_text_expression("why"), answer_text_expression("change"))
    )
    rows = codes.join(about, on="annotation").join(comments, on="about").select("about", "comment", code="text")
    require(len(rows), "no comment was coded")
    return rows.filter(pl.col("comment").is_not_null())


def table_4(study: PaperStudy) -> Rendering:
    """Every code with an example."""
    rows = _coded_comments(study).sort("code", "about").unique("code", keep="first", maintain_order=True)
    return Rendering(
        tuple(rows.select("code", example="comment").iter_rows(named=True)), "The first comment with each."
    )


def table_5(study: PaperStudy) -> Rendering:
    """Comments about what machines can and cannot do."""
    protocol = study.study.protocol(CODES_PROTOCOL)
    options = [option for question in protocol.document_questions for option in question.options if option.group]
    capabilities = [str(option.value) for option in options if "capab" in str(option.group).lower()]
    rows = _coded_comments(study).filter(pl.col("code").is_in(capabilities)).unique("about", maintain_order=True)
    require(len(rows), "no comment was coded as one about what machines can do")
    return Rendering(tuple(rows.select("code", "comment").head(12).iter_rows(named=True)), "Up to twelve of them.")


def _model_score_histogram(study: PaperStudy, number: int) -> Rendering:
    by = _available_columns(study, "model", "domain")
    require("model" in by, "documents say no model: `meta.model` is missing")
    findings = score_histogram(_untrained_ratings_view(study), by)
    models = sorted({str(f.columns["model"]) for f in findings})
    require(len(models) > number, f"there {'is one model' if len(models) == 1 else f'are {len(models)} models'} only")
    chosen = [f for f in findings if f.columns["model"] == models[number]]
    rows: list[ExhibitRow] = [
        {"domain": f.columns.get("domain", "all"), "texts judged rightly": f.columns["score"],
         "value": f.columns["evaluators"]}
        for f in chosen
    ]  # fmt: skip
    chart = paper_charts.histogram(rows, "texts judged rightly", "evaluators", panel="domain")
    return Rendering(
        tuple(rows), f"Human texts and texts by {models[number]}.", chart, signature=first_signature(chosen)
    )


def figure_3(study: PaperStudy) -> Rendering:
    """How many readers judged how many texts rightly: the first model."""
    return _model_score_histogram(study, 0)


def figure_4(study: PaperStudy) -> Rendering:
    """How many readers judged how many texts rightly: the second model."""
    return _model_score_histogram(study, 1)


def significance_tests(study: PaperStudy) -> Rendering:
    """The tests of the running text: accuracy between models, domains and kinds of training."""
    rows: list[ExhibitRow] = []
    findings: list[Finding] = []
    for between in _available_columns(study, "model", "domain", "condition"):
        part = _untrained_ratings_view(study) if between != "condition" else _ratings_view(study)
        try:
            findings = score_tests(part, between)
        except FinecombError:  # one group only
            continue
        rows += [{"between": between, **_test_row(finding)} for finding in findings]
    require(rows, "there are no two groups of readers to compare")
    return Rendering(tuple(rows), "Scores of readers: analysis of variance, Tukey's test, Cohen's d.",
                     signature=first_signature(findings))  # fmt: skip


def _test_row(finding: Finding) -> dict[str, object]:
    value = None if math.isnan(finding.estimate.value) else finding.estimate.value
    names = ("test", "a", "b", "statistic", "df", "p")
    return {**{name: finding.columns.get(name) for name in names}, "value": value}


EXHIBITS = (
    Exhibit(PAPER, "Table 1", "Can readers tell human from machine?", table_1, "ratings under `turing`; models"),
    Exhibit(PAPER, "Table 2", "The same by training", table_2, "readers of two conditions"),
    Exhibit(PAPER, "Table 3", "What readers went by", table_3, "coded comments (protocol `comments`)"),
    Exhibit(PAPER, "Table 4", "Codes with examples", table_4, "coded comments"),
    Exhibit(PAPER, "Table 5", "Beliefs about machines", table_5, "coded comments"),
    Exhibit(PAPER, "Figure 3", "Scores of readers, first model", figure_3, "ratings; models"),
    Exhibit(PAPER, "Figure 4", "Scores of readers, second model", figure_4, "ratings; two models"),
    Exhibit(PAPER, "Tests", "Tests between groups of readers", significance_tests, "two models, domains or conditions"),
)
