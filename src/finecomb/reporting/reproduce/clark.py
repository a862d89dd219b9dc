"""Exhibits of Clark et al. (2021), "All That's 'Human' Is Not Gold"."""

from __future__ import annotations

import polars as pl

from finecomb.core.errors import FinecombError
from finecomb.core.results import Finding
from finecomb.core.study import document_meta_names
from finecomb.reporting.figures import paper_charts
from finecomb.reporting.reproduce.exhibits import (
    Exhibit,
    ExhibitRow,
    PaperStudy,
    RenderedExhibit,
    first_signature,
    point_row,
    require_exhibit_data,
)
from finecomb.statistics.comparisons.comment_codes import comment_code_shares
from finecomb.statistics.comparisons.human_or_machine import (
    evaluator_score_histogram,
    evaluator_score_tests,
    human_or_machine_findings,
)
from finecomb.statistics.selection.view import View, answer_text_expression

PAPER = "clark"
RATINGS_PROTOCOL, CODES_PROTOCOL = "turing", "comments"
NO_TRAINING_CONDITION = "none"
_COLUMN_TITLES = {
    "accuracy": "Acc.", "f1": "F1", "precision": "Prec.", "recall": "Recall", "alpha": "Kripp. α", "% human": "% human",
    "% confident": "% confident",
}  # fmt: skip


def _ratings_view(study: PaperStudy, *where: str) -> View:
    has_ratings = any(protocol.name == RATINGS_PROTOCOL for protocol in study.study.protocols.values())
    part = study.view(protocol=RATINGS_PROTOCOL if has_ratings else "", where=where)
    require_exhibit_data(len(part.study.annotations), "no text has a rating as human or machine")
    return part


def _available_grouping_columns(study: PaperStudy, *names: str) -> list[str]:
    columns = {*document_meta_names(study.study), "condition"}
    return [name for name in names if name in columns]


def _training_conditions(study: PaperStudy) -> list[str]:
    return [name for name in study.study.annotators["condition"].unique(maintain_order=True) if name]


def _untrained_ratings_view(study: PaperStudy) -> View:
    """Return the ratings of annotators without training, or all ratings if no condition is named `none`."""
    return _ratings_view(
        study,
        *([f'condition == "{NO_TRAINING_CONDITION}"'] if NO_TRAINING_CONDITION in _training_conditions(study) else []),
    )


def _accuracy_table(study: PaperStudy, part: View, *names: str) -> RenderedExhibit:
    """Return one row per group in the columns of the paper; a star marks an accuracy that differs from chance."""
    by = _available_grouping_columns(study, *names)
    findings = human_or_machine_findings(part, by, **study.resampling_options)
    rows: dict[tuple[object, ...], dict[str, object]] = {}
    for finding in findings:
        key = tuple(finding.columns.get(name) for name in by)
        row = rows.setdefault(key, {"row": " ".join(map(str, key)) or "all", **dict(zip(by, key, strict=True))})
        if name := _COLUMN_TITLES.get(str(finding.columns["measure"])):
            row[name] = point_row(finding.estimate)["value"]
            p = finding.columns.get("p_adjusted")
            row |= {"differs from chance": "*" if p < 0.05 else ""} if isinstance(p, float) else {}
    notes = [f"{note[0].upper()}{note[1:]}." for note in findings.notes]
    caption = " ".join(["Machine text is the positive class. P-values are Bonferroni-corrected over rows.", *notes])
    return RenderedExhibit(tuple(rows.values()), caption, signature=first_signature(findings))


def table_1(study: PaperStudy) -> RenderedExhibit:
    """Compute the accuracy of annotators without training at telling human from machine text, by model and domain."""
    return _accuracy_table(study, _untrained_ratings_view(study), "model", "domain")


def table_2(study: PaperStudy) -> RenderedExhibit:
    """Compute the accuracy at telling human from machine text, by training and domain."""
    conditions = _training_conditions(study)
    require_exhibit_data(len(conditions) > 1, f"at least 2 annotator conditions are needed, found {len(conditions)}")
    return _accuracy_table(study, _ratings_view(study), "condition", "domain")


def table_3(study: PaperStudy) -> RenderedExhibit:
    """Compute the shares of code groups in annotators' comments, by training."""
    by = ["condition"] if len(_training_conditions(study)) > 1 else []
    findings = comment_code_shares(study.study, by, **study.resampling_options)
    groups = [f for f in findings if f.columns.get("level") == "group"]
    rows: dict[str, dict[str, object]] = {}
    for finding in groups:
        name = str(finding.columns.get("condition", "all"))
        row = rows.setdefault(name, {"training": name})
        row[str(finding.columns.get("name"))] = point_row(finding.estimate)["value"]
    require_exhibit_data(rows, "no comment has a code")
    return RenderedExhibit(tuple(rows.values()), "Percentage of all codes.", signature=first_signature(findings))


def _coded_comments(study: PaperStudy) -> pl.DataFrame:
    """Return one row per code of a comment, with the comment."""
    has_codes = any(protocol.name == CODES_PROTOCOL for protocol in study.study.protocols.values())
    require_exhibit_data(has_codes, "no comment has a code; annotate comments under the protocol `comments`")
    work = study.study.submitted_work()
    codes = work.answers.filter((pl.col("of") == "annotation") & (pl.col("question") == "codes"))
    about = work.annotations.select("about", annotation="id")
    comments = work.annotations.select(
        about="id", comment=pl.coalesce(answer_text_expression("why"), answer_text_expression("change"))
    )
    rows = codes.join(about, on="annotation").join(comments, on="about").select("about", "comment", code="text")
    require_exhibit_data(len(rows), "no comment has a code")
    return rows.filter(pl.col("comment").is_not_null())


def table_4(study: PaperStudy) -> RenderedExhibit:
    """List every code with an example comment."""
    rows = _coded_comments(study).sort("code", "about").unique("code", keep="first", maintain_order=True)
    return RenderedExhibit(
        tuple(rows.select("code", example="comment").iter_rows(named=True)), "The first comment with each code."
    )


def table_5(study: PaperStudy) -> RenderedExhibit:
    """List comments about the capabilities of machines."""
    protocol = study.study.protocol(CODES_PROTOCOL)
    options = [option for question in protocol.document_questions for option in question.options if option.group]
    capabilities = [str(option.value) for option in options if "capab" in str(option.group).lower()]
    rows = _coded_comments(study).filter(pl.col("code").is_in(capabilities)).unique("about", maintain_order=True)
    require_exhibit_data(len(rows), "no comment has a code about the capabilities of machines")
    return RenderedExhibit(
        tuple(rows.select("code", "comment").head(12).iter_rows(named=True)), "Up to twelve comments."
    )


def _model_score_histogram(study: PaperStudy, number: int) -> RenderedExhibit:
    by = _available_grouping_columns(study, "model", "domain")
    require_exhibit_data("model" in by, "no document has `meta.model`")
    findings = evaluator_score_histogram(_untrained_ratings_view(study), by)
    models = sorted({str(f.columns["model"]) for f in findings})
    require_exhibit_data(len(models) > number, f"at least {number + 1} models are needed, found {len(models)}")
    chosen = [f for f in findings if f.columns["model"] == models[number]]
    rows: list[ExhibitRow] = [
        {"domain": f.columns.get("domain", "all"), "texts judged rightly": f.columns["score"],
         "value": f.columns["evaluators"]}
        for f in chosen
    ]  # fmt: skip
    chart = paper_charts.histogram(rows, "texts judged rightly", "evaluators", panel="domain")
    return RenderedExhibit(
        tuple(rows), f"Human text and text by {models[number]}.", chart, signature=first_signature(chosen)
    )


def figure_3(study: PaperStudy) -> RenderedExhibit:
    """Plot the number of annotators by number of correctly judged texts, for the first model."""
    return _model_score_histogram(study, 0)


def figure_4(study: PaperStudy) -> RenderedExhibit:
    """Plot the number of annotators by number of correctly judged texts, for the second model."""
    return _model_score_histogram(study, 1)


def significance_test_table(study: PaperStudy) -> RenderedExhibit:
    """Compute the significance tests reported in the body of the paper: accuracy by model, domain and training."""
    rows: list[ExhibitRow] = []
    findings: list[Finding] = []
    names = ("test", "a", "b", "statistic", "df", "p")
    for between in _available_grouping_columns(study, "model", "domain", "condition"):
        part = _untrained_ratings_view(study) if between != "condition" else _ratings_view(study)
        try:
            findings = evaluator_score_tests(part, between)
        except FinecombError:  # fewer than two groups to compare
            continue
        rows += [
            {"between": between, **{name: f.columns.get(name) for name in names}, "value": f.estimate.value}
            for f in findings
        ]
    require_exhibit_data(rows, "at least 2 models, domains or annotator conditions are needed")
    return RenderedExhibit(
        tuple(rows),
        "Annotator scores: analysis of variance, Tukey's test and Cohen's d.",
        signature=first_signature(findings),
    )


EXHIBITS = (
    Exhibit(PAPER, "Table 1", "Accuracy at telling human from machine text", table_1, "ratings under `turing`; models"),
    Exhibit(PAPER, "Table 2", "Accuracy by training", table_2, "annotators of two conditions"),
    Exhibit(PAPER, "Table 3", "Reasons given by annotators", table_3, "coded comments (protocol `comments`)"),
    Exhibit(PAPER, "Table 4", "Codes with examples", table_4, "coded comments"),
    Exhibit(PAPER, "Table 5", "Comments on machine capabilities", table_5, "coded comments"),
    Exhibit(PAPER, "Figure 3", "Annotator scores, first model", figure_3, "ratings; models"),
    Exhibit(PAPER, "Figure 4", "Annotator scores, second model", figure_4, "ratings; two models"),
    Exhibit(
        PAPER,
        "Tests",
        "Tests between groups of annotators",
        significance_test_table,
        "two models, domains or conditions",
    ),
)
