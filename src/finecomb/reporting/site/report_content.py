"""Content of a report, computed from a study: figures, headline, and reasons for missing figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from finecomb.collection.pay import compute_earnings, study_cost_so_far
from finecomb.core.errors import FinecombError, format_as_flag, param
from finecomb.core.frames import meta_entry
from finecomb.core.palette import UNLABELLED_SLOT, LabelStyle, label_styles
from finecomb.core.records import Settings
from finecomb.core.results import Estimate, Finding, Signature
from finecomb.core.study import Study, document_meta_names
from finecomb.plugins import Registry
from finecomb.reporting.datasheet import DatasheetSource
from finecomb.reporting.figures.figure_model import (
    MAX_TEXT_BARS,
    Axis,
    BarFigure,
    BaseFigure,
    DotFigure,
    DotRow,
    HeadlineStatement,
    LabelPanel,
    PanelFigure,
    Report,
    ReportHeadline,
    TextBar,
    TextBarFigure,
    build_axis,
    format_count_with_noun,
)
from finecomb.reporting.site import headline
from finecomb.reporting.site.exclusions import count_exclusion_reasons, describe_exclusions, restore_excluded
from finecomb.reporting.site.external_tables import ExternalTable, build_external_figures
from finecomb.reporting.site.headline import ALL_TEXTS_GROUP, HUMAN_SYSTEM
from finecomb.reporting.site.text_influence import TextInfluence, compute_influences
from finecomb.statistics.agreement.agreement import agree
from finecomb.statistics.gold.gold_merge import merge_into_gold
from finecomb.statistics.gold.human_baseline import SINGLE_ANNOTATOR_NAME, single_annotator_baseline
from finecomb.statistics.gold.scores import score_judges_against_gold
from finecomb.statistics.inference.resampling import Floats
from finecomb.statistics.judges.model_costs import model_costs
from finecomb.statistics.measures.annotation_measures import measure
from finecomb.statistics.measures.study_counts import counts_by_group
from finecomb.statistics.measures.unit_grid import words_per_document
from finecomb.statistics.selection.view import ANY_LABEL, Filters, View, view

RATE_UNIT = "marks per 100 words"
HUMAN_KINDS = ("human", "pooled")
MACHINE_KINDS = ("llm", "detector", "checker")
_MIN_LABEL_MARKS = 40  # minimum marks per label; labels with fewer get a note
_MAX_TICKS = 200  # per system; more ticks would merge into a line
_MAX_ANNOTATORS = 50  # leave-one-out recomputes the difference for each annotator, and a figure has one row for each


@dataclass(frozen=True, slots=True)
class ReportSource:
    """Inputs of a report.

    `view` has the marks of people or, if there are none, of all annotators, and `filters` are its filters. `by` is the
    document meta field that names the system; it is empty if there is none. `name` is the path of the study on the
    command line. Judges are scored against `gold`, if given. `verdicts` are those stored by `calibrate --keep`, by
    judge. `further` are tables of other commands, and `replies` the raw replies of language models by request hash.
    `licence` is that of the texts and annotations.
    """

    study: Study
    view: View
    by: str
    name: str
    draws: int
    seed: int
    gold: Study | None = None
    verdicts: Mapping[str, str] = field(default_factory=dict)
    further: tuple[ExternalTable, ...] = ()
    filters: Filters = field(default_factory=Filters)
    replies: Mapping[str, str] = field(default_factory=dict)
    licence: str = ""

    def label_styles(self) -> Mapping[str | None, LabelStyle]:
        """Return the style of each label."""
        return label_styles(self.view.protocol) if self.view.protocol else {}

    def label_style(self, label: str) -> LabelStyle:
        """Return the style of a label, or a plain one if the protocol does not have the label."""
        return self.label_styles().get(label) or LabelStyle(label, label, UNLABELLED_SLOT, label[:2].upper(), "")

    def filter_label(self, label: str) -> ReportSource:
        """Return the inputs with only the marks of one label."""
        study = self.view.study
        marks = study.marks.filter(pl.col("label") == label)
        return replace(self, view=replace(self.view, study=replace(study, marks=marks)))


def build_report_source(
    study: Study,
    name: str,
    by: str = "",
    gold_study: Study | None = None,
    draws: int = 1000,
    seed: int = 0,
    filters: Filters | None = None,
) -> ReportSource:
    """Select the data of a report: marks of people, or all marks if there are none, grouped by `by` or `meta.model`."""
    kinds = set(study.annotators["kind"]) if len(study.annotators) else set()
    chosen = filters or Filters(kinds=tuple(kind for kind in HUMAN_KINDS if kind in kinds))
    system = by or ("model" if "model" in document_meta_names(study) else "")
    return ReportSource(study, view(study, chosen), system, name, draws, seed, gold_study, filters=chosen)


def build_report(source: ReportSource, date: str, page_of: Callable[[str], str]) -> Report:
    """Build the content of a report; `page_of` returns the page of a document by its ID."""
    notes: list[str] = []
    systems = _rate_by_system(source)
    figures: list[BaseFigure] = []
    for name in FIGURES:
        try:
            if (figure := FIGURES[name](source, systems)) is not None:
                figures.append(_explain_empty_plot(figure))
        except Exception as error:  # the other figures are still built
            if isinstance(error, FinecombError):
                reason = error.format_message(format_as_flag)  # the page shows commands, so the message names options
            elif name in FIGURES.built_in:
                raise
            else:  # an error of a plugin must not prevent the report
                reason = f"{type(error).__name__}: {error}"
            notes.append(f"{name.replace('-', ' ').capitalize()} figure not available: {reason}")
    figures += build_external_figures(source.further)
    figures.append(_texts_figure(source, page_of))
    protocol = source.view.protocol
    return Report(
        source.study.settings.title or source.name,
        date,
        _describe_study_size(source),
        _build_report_headline(source, systems, _overall_alpha(source)),
        tuple(replace(figure, title=f"{number} {figure.title}") for number, figure in enumerate(figures, 1)),
        (
            ("Measure", "marks per 100 words, averaged over annotators within each text, then over texts"),
            ("Interval", f"95%, {source.draws:,} resamples of texts, seed {source.seed}"),
            ("Protocol", protocol.id if protocol else "none"),
            ("Annotators", ", ".join(_counted_annotator_kinds(source)) or "none"),
            ("Licence", source.licence or "not specified; ask the authors before using the texts or annotations"),
        ),
        tuple(notes),
    )


def build_datasheet_source(source: ReportSource, content: Report) -> DatasheetSource:
    """Return the inputs of the datasheet of a study."""
    signatures = [figure.signature for figure in content.figures if figure.signature]
    return DatasheetSource(source.study, source.view.protocol, _overall_alpha(source), signatures, source.licence)


FigureMaker = Callable[[ReportSource, Mapping[str, Estimate]], BaseFigure | None]
"""Function from a report's inputs and each system's marks per 100 words to a figure, or None if there is no data."""


def _explain_empty_plot(figure: BaseFigure) -> BaseFigure:
    """Replace a plot whose values are all undefined with a sentence that gives the reason."""
    panels = figure.panels if isinstance(figure, PanelFigure) else ()
    drawn = figure.rows if isinstance(figure, DotFigure) else [row for panel in panels for row in panel.rows]
    if figure.empty or not drawn or any(math.isfinite(row.estimate.value) or row.second for row in drawn):
        return figure
    why = next((row.estimate.why for row in drawn if row.estimate.why), "all values are undefined")
    return replace(figure, empty=f"Nothing to draw: {why}.")


def _describe_study_size(source: ReportSource) -> str:
    study = source.study.submitted_work()
    kinds = dict(study.annotators.select("id", "kind").iter_rows())
    annotation_counts: dict[str, int] = dict(study.annotations.group_by("annotator").len().iter_rows())
    parts: list[str] = []
    annotations = 0
    for noun, plural, group in (
        ("person", "people", ("human",)),
        ("pooled annotator", "", ("pooled",)),
        ("machine", "", MACHINE_KINDS),
        ("gold standard", "", ("gold",)),
    ):
        members = [count for id, count in annotation_counts.items() if kinds.get(id, "") in group]
        if noun == "gold standard" and parts:
            continue  # gold is merged from the annotations that are already counted
        if members:
            parts.append(format_count_with_noun(len(members), noun, plural))
            annotations += sum(members)
    texts = format_count_with_noun(study.annotations["document"].n_unique(), "text")
    annotators = f" by {' and '.join(parts)}" if parts else ""
    return f"{texts}, {format_count_with_noun(annotations, 'annotation')}{annotators}."


# --- systems -----------------------------------------------------------------------------------------------------


def _scale_estimate(estimate: Estimate, factor: float) -> Estimate:
    return replace(estimate, value=estimate.value * factor, low=estimate.low * factor, high=estimate.high * factor)


def _system_name(source: ReportSource, finding: Finding) -> str:
    return str(finding.columns[source.by]) if source.by else ALL_TEXTS_GROUP


def _rate_by_system(source: ReportSource) -> dict[str, Estimate]:
    """Return marks per 100 words by system, highest first and human text last."""
    if source.view.study.annotations.is_empty():
        return {}
    by = [source.by] if source.by else []
    rates = {
        _system_name(source, finding): _scale_estimate(finding.estimate, 0.1)
        for finding in _rate_findings(source, by)
        if finding.columns["label"] == ANY_LABEL and (not by or finding.columns[source.by] is not None)
    }
    values = {name: -math.inf if math.isnan(rate.value) else rate.value for name, rate in rates.items()}
    return {name: rates[name] for name in sorted(rates, key=lambda name: (name == HUMAN_SYSTEM, -values[name]))}


def _rate_findings(source: ReportSource, by: Sequence[str]) -> Sequence[Finding]:
    """Compute marks per 1,000 words with equal weight per text, as the headline and the bars of texts do."""
    return measure(source.view, ["rate-1000"], by, draws=source.draws, seed=source.seed, average="document")


def _rate_command(source: ReportSource, by: str) -> str:
    by_words = ["--by", by] if by else []
    return _finecomb_command(source, "measure", "--measure", "rate-1000", "--average", "document", *by_words)


def text_rates(source: ReportSource) -> pl.DataFrame:
    """Return the marks per 100 words of each text, averaged over annotators, as columns document, system and value."""
    study = source.view.study
    words = dict(zip(study.documents["id"], words_per_document(study).tolist(), strict=True))
    per = study.marks.group_by("annotation").agg(pl.len().alias("marks"))
    rows = study.annotations.select("document", pl.col("id").alias("annotation")).join(per, on="annotation", how="left")
    means = rows.group_by("document", maintain_order=True).agg(pl.col("marks").fill_null(0).mean())
    systems = system_by_document(source)
    values = [
        100 * count / words[document] if words.get(document) else math.nan
        for document, count in means.select("document", "marks").iter_rows()
    ]
    return pl.DataFrame(
        {"document": means["document"], "system": [systems.get(id, "") for id in means["document"]], "value": values},
        schema={"document": pl.String, "system": pl.String, "value": pl.Float64},
    ).filter(pl.col("value").is_not_nan())


def system_by_document(source: ReportSource) -> dict[str, str]:
    """Return the system of each document by its ID; documents without a system are omitted."""
    if not source.by:
        return dict.fromkeys(source.study.documents["id"], ALL_TEXTS_GROUP)
    rows = source.study.documents.select("id", meta_entry(source.by)).iter_rows()
    return {id: system for id, system in rows if system is not None}


def _finecomb_command(source: ReportSource, *words: str) -> str:
    return " ".join(["finecomb", *words[:1], source.name, *words[1:]])


def _systems_figure(source: ReportSource, systems: Mapping[str, Estimate]) -> BaseFigure:
    """Plot the marks per 100 words of each system."""
    texts = text_rates(source)
    read = {row[0]: row for row in counts_by_group(source.view.study, [source.by]).iter_rows()} if source.by else {}
    rows = []
    for name, estimate in systems.items():
        text_values = tuple(texts.filter(pl.col("system") == name)["value"].to_list())
        note = (
            f"{format_count_with_noun(read[name][1], 'text')}, {format_count_with_noun(read[name][2], 'annotation')}"
            if name in read
            else ""
        )
        rows.append(
            DotRow(
                name, estimate, note, text_values=text_values if len(text_values) <= _MAX_TICKS else (), link="#texts"
            )
        )
    estimates = [row.estimate for row in rows]
    ticks = [Estimate(value, value, value, Signature(())) for row in rows for value in row.text_values]
    scale = replace(build_axis([*estimates, *ticks]), digits=build_axis(estimates).digits)
    caption = "Marks per 100 words with 95% intervals."
    caption += " Each tick is one text." if any(row.text_values for row in rows) else ""
    band = systems.get(HUMAN_SYSTEM)
    return DotFigure(
        "systems", "Systems", caption + (" The grey band is human text." if band else ""),
        tuple(_dot_table_row("system", row) for row in rows), _first_signature(systems.values()),
        _rate_command(source, source.by),
        "" if rows else "No annotations yet.", "#texts", tuple(rows), scale, band,
    )  # fmt: skip


def _dot_table_row(head: str, row: DotRow) -> dict[str, object]:
    return {
        head: row.name,
        "value": row.estimate.value,
        "low": row.estimate.low,
        "high": row.estimate.high,
        "note": row.note or row.estimate.why,
    }


def _first_signature(estimates: Iterable[Estimate]) -> str:
    return next((str(estimate.signature) for estimate in estimates), "")


# --- error types -------------------------------------------------------------------------------------------------


def _error_types_figure(source: ReportSource, systems: Mapping[str, Estimate]) -> BaseFigure | None:
    """Plot the coverage of each label, by system."""
    protocol = source.view.protocol
    if protocol is None or not protocol.labels:
        return None
    by = [source.by] if source.by else []
    findings = measure(source.view, ["coverage"], by, draws=source.draws, seed=source.seed)
    by_label: dict[str, dict[str, Estimate]] = {}
    for finding in findings:
        by_label.setdefault(str(finding.columns["label"]), {})[_system_name(source, finding)] = finding.estimate
    labels = [label.name for label in protocol.labels if label.name in by_label]
    short, texts = shorten_names(list(systems)), text_rates(source)
    read = {name: texts.filter(pl.col("system") == name).height for name in systems}
    panels = tuple(
        LabelPanel(
            source.label_style(label),
            tuple(
                _error_type_row(name, by_label[label][name], short[name], read.get(name, 0))
                for name in systems
                if name in by_label[label]
            ),
        )
        for label in labels
    )
    scale = build_axis([row.estimate for panel in panels for row in panel.rows], percent=True)
    table = tuple(
        {"label": panel.style.label, **_dot_table_row("system", row)} for panel in panels for row in panel.rows
    )
    names = f" Systems from top to bottom: {', '.join(systems)}." if len(systems) > 1 else ""
    return PanelFigure(
        "kinds",
        "Error types",
        f"Share of words covered by each label, with 95% intervals. All panels share one axis.{names}",
        table,
        _first_signature([finding.estimate for finding in findings]),
        _finecomb_command(source, "measure", "--measure", "coverage", *(["--by", source.by] if source.by else [])),
        "",
        "#texts",
        panels,
        scale,
    )


def shorten_names(names: Sequence[str]) -> dict[str, str]:
    """Return system names without the prefix that all machines share.

    >>> shorten_names(["comb-small", "comb-large", "human"])
    {'comb-small': 'small', 'comb-large': 'large', 'human': 'human'}
    """
    machines = [name for name in names if name != HUMAN_SYSTEM]
    first, last = (min(machines), max(machines)) if len(machines) > 1 else ("", "")
    length = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), 0)
    cut = max(first[:length].rfind(sign) for sign in "-_/ ") + 1
    return {name: (name[cut:] if name != HUMAN_SYSTEM else name) or name for name in names}


def _error_type_row(name: str, estimate: Estimate, short: str, texts: int) -> DotRow:
    """Build the row of an error type; if it has no marks, show the upper limit or the number of texts instead of 0."""
    if estimate.value != 0:
        return DotRow(name, estimate, short=short)
    is_known = math.isfinite(estimate.high) and estimate.high > 0
    nothing = (
        f"none, at most {100 * estimate.high:.1f}" if is_known else f"none in {format_count_with_noun(texts, 'text')}"
    )
    return DotRow(name, estimate, nothing, short=short, nothing=nothing)


# --- inter-annotator agreement -----------------------------------------------------------------------------------


def _overall_alpha(source: ReportSource) -> Estimate | None:
    if source.view.study.annotations.is_empty():
        return None
    try:
        findings = agree(source.view, ["alpha"], by_label=False, draws=source.draws, seed=source.seed)
    except FinecombError:
        return None
    return next(
        (finding.estimate for finding in findings if finding.columns.get("label", ANY_LABEL) == ANY_LABEL), None
    )


def _agreement_figure(source: ReportSource, systems: Mapping[str, Estimate]) -> BaseFigure | None:
    """Plot alpha and F1 of each label."""
    protocol = source.view.protocol
    if protocol is None or not protocol.labels:
        return None
    findings = agree(source.view, ["alpha", "f1"], draws=source.draws, seed=source.seed)
    alphas = {str(f.columns["label"]): f.estimate for f in findings if f.columns["measure"] == "alpha"}
    f1s = {str(f.columns["label"]): f.estimate for f in findings if f.columns["measure"] == "f1"}
    marks = dict(source.view.study.marks.group_by("label").len().iter_rows())
    rows = []
    for label in protocol.labels:
        if label.name not in alphas:
            continue
        used = marks.get(label.name, 0)
        note = (
            "unused"
            if not used
            else "too few"
            if used < _MIN_LABEL_MARKS * 0.7
            else "few"
            if used < _MIN_LABEL_MARKS
            else ""
        )
        rows.append(
            DotRow(
                source.label_style(label.name).title,
                alphas[label.name],
                f"{used:,}" + (f" ({note})" if note else ""),
                source.label_style(label.name),
                second=f1s.get(label.name),
            )
        )
    known = [row.estimate for row in rows]
    if all(row.second is None or math.isnan(row.second.value) for row in rows):
        rows = [replace(row, second=None) for row in rows]  # no two annotators can be compared: omit the empty plot
    has_pairs = any(row.second for row in rows)
    table = tuple(
        {
            **_dot_table_row("label", row),
            **({"f1": row.second.value, "f1_low": row.second.low, "f1_high": row.second.high} if row.second else {}),
        }
        for row in rows
    )
    return DotFigure(
        "trust", "Inter-annotator agreement",
        "Agreement by label with 95% intervals. A wide interval indicates few marks.", table, _first_signature(known),
        _finecomb_command(source, "agree"), "", "#texts", tuple(rows),
        Axis(min(0.0, *(e.low for e in known if not math.isnan(e.low)), 0.0), 1, (0, 0.2, 0.4, 0.6, 0.8, 1), 2),
        None, ("Label", "Words: Krippendorff’s α", "Words: F1 between two annotators", "Marks"),
        Axis(0, 1, (0, 0.5, 1), 2) if has_pairs else None, second_is_open=True,
    )  # fmt: skip


# --- annotators --------------------------------------------------------------------------------------------------


def _annotators_figure(source: ReportSource, systems: Mapping[str, Estimate]) -> BaseFigure | None:
    """Plot each annotator's marks per 100 words; return None for one annotator, or for more than fit on a page."""
    people = _annotator_ids(source)
    if len(people) < 2:
        return None
    by_annotator = source.view.study.annotations.group_by("annotator")
    counts = by_annotator.agg(pl.col("document").n_unique(), pl.col("seconds").median() / 60)
    notes = {
        id: format_count_with_noun(texts, "text")
        + (f", median {minutes:.1f} min per text" if minutes is not None else "")
        for id, texts, minutes in counts.iter_rows()
    }
    rows = [
        DotRow(name, _scale_estimate(finding.estimate, 0.1), notes[name])
        for finding in _rate_findings(source, ["annotator"])
        if finding.columns["label"] == ANY_LABEL and (name := str(finding.columns["annotator"])) in people
    ]
    rows.sort(key=lambda row: (-row.estimate.value if math.isfinite(row.estimate.value) else math.inf, row.name))
    estimates = [row.estimate for row in rows]
    return DotFigure(
        "readers", "Annotators",
        "Marks per 100 words by annotator, with 95% intervals. Annotators may have different texts.",
        tuple(_dot_table_row("reader", row) for row in rows), _first_signature(estimates),
        _rate_command(source, "annotator"), "", "#texts", tuple(rows),
        build_axis(estimates),
    )  # fmt: skip


# --- judges ------------------------------------------------------------------------------------------------------


def _judges_figure(source: ReportSource, systems: Mapping[str, Estimate]) -> BaseFigure | None:
    """Score machines against gold, which is merged from people unless a gold standard was given."""
    study = source.study.submitted_work()
    kinds = dict(study.annotators.select("id", "kind").iter_rows())
    machines = [
        id for id in study.annotations["annotator"].unique(maintain_order=True) if kinds.get(id) in MACHINE_KINDS
    ]
    if not machines:
        return None
    if source.gold is None and not set(_counted_annotator_kinds(source)) & set(HUMAN_KINDS):
        raise FinecombError(
            f"the judges cannot be scored, because no person has annotated the texts; pass gold with {param('against')}"
        )
    standard = source.gold or merge_into_gold(source.view).study
    scores = score_judges_against_gold(
        standard, study, match="optimal", by=(), judges=machines, draws=source.draws, seed=source.seed
    )
    judges = [row for row in scores.rows if row.columns.get("label") == ANY_LABEL]
    if not judges:
        return None
    person = None
    if set(source.view.study.annotators["kind"]) & set(HUMAN_KINDS):
        # the human baseline: one person at a time on the texts that machines have annotated
        texts = study.annotations.filter(pl.col("annotator").is_in(machines))["document"].unique().to_list()
        person = single_annotator_baseline(source.view, texts, source.gold, draws=source.draws, seed=source.seed)
    rows = [person, *judges] if person else judges
    notes = _judge_notes(source, {name: kinds[name] for name in machines})
    drawn = tuple(
        DotRow(name, row.precision, notes[name], second=row.recall, open=name == SINGLE_ANNOTATOR_NAME)
        for row in rows
        if (name := str(row.columns["judge"]))
    )
    scale = Axis(0, 1, (0, 0.5, 1), 2)
    against, others, missing = (
        ("the gold standard", "the gold standard", "No person annotated these texts, so a")
        if source.gold
        else ("errors that people agree on", "the other people",
              "No text was annotated by three people, so a leave-one-out")
    )  # fmt: skip
    baseline = (
        f"The grey band is one person compared with {others}."
        if person
        else f"{missing} human baseline is not available."
    )
    return DotFigure(
        "judges", "Judges", f"Machines compared with {against}, with 95% intervals. {baseline}",
        tuple({name: value for name, value in row.row().items() if name != "signature"} for row in rows),
        " ".join(dict.fromkeys(str(row.recall.signature) for row in (judges[0], *rows[:1]))),
        _finecomb_command(source, "score"), "", "#texts", drawn, scale, person.precision if person else None,
        ("Judge", "Precision: share of correct marks", "Recall: share of errors found",
         "Verdict" if any(row.name in source.verdicts for row in drawn) else ""),
        scale, person.recall if person else None,
    )  # fmt: skip


def _judge_notes(source: ReportSource, kinds: Mapping[str, str]) -> dict[str, str]:
    """Return the note of each judge: the verdict of `calibrate` or else its kind, and its cost."""
    settings = source.study.settings
    prices = {
        model.annotator: f", {_format_money(settings, model.cost)} for {format_count_with_noun(model.texts, 'text')}"
        for model in model_costs(source.study)
        if model.cost
    }
    return {
        name: (source.verdicts.get(name) or kind.replace("llm", "language model")) + prices.get(name, "")
        for name, kind in kinds.items()
    } | {SINGLE_ANNOTATOR_NAME: "human baseline"}


# --- cost and texts ----------------------------------------------------------------------------------------------


def _costs_figure(source: ReportSource, systems: Mapping[str, Estimate]) -> BaseFigure | None:
    """Plot pay of people and cost of language models, if the study contains either."""
    settings, models = source.study.settings, model_costs(source.study)
    is_paid = settings.price is not None or bool(settings.base_pay)
    if source.view.protocol is None or not (is_paid or models):
        return None
    spent = study_cost_so_far(settings, compute_earnings(source.study, (), source.view.protocol))
    parts = [("Annotator pay", spent.pay), ("Staff time", spent.staff), ("Fees", spent.fees), ("Bonuses", spent.bonus)]
    parts = [part for part in parts if part[1]] + [(model.annotator, model.cost) for model in models if model.cost]
    amounts = dict(parts)
    total, texts = sum(amount for _, amount in parts), source.study.submitted_work().annotations["document"].n_unique()
    facts = [("per text", _format_money(settings, total / max(1, texts)))] if parts else []
    if spent.per_hour is not None:
        facts.append(("median pay per hour", _format_money(settings, spent.per_hour)))
    if spent.total:
        # halving the width requires four times as many texts, so three times the cost in addition
        facts.append(("interval half as wide", f"costs about {settings.effective_currency} {3 * total:,.0f} more"))
    facts += [
        (
            model.annotator,
            f"{model.sent:,} tokens sent, {model.received:,} received, in {format_count_with_noun(model.texts, 'text')}"
            + ("" if model.cost is not None else "; price unknown"),
        )
        for model in models
    ]
    tokens = {model.annotator: {"tokens sent": model.sent, "tokens received": model.received} for model in models}
    return BarFigure(
        "costs", "Cost",
        f"Total cost of the study in {settings.effective_currency}."
        + (" Language models: tokens of all replies at the price of their run." if models else ""),
        tuple({"part": name, "amount": amounts.get(name), **tokens.get(name, {})} for name in amounts | tokens),
        f"costs|price:{settings.price}|models:{len(models)}",
        _finecomb_command(source, "pay"), "" if parts or models else "No costs are recorded.", "",
        tuple((name, amount, _format_money(settings, amount)) for name, amount in parts),
        _format_money(settings, total), tuple(facts),
    )  # fmt: skip


def _format_money(settings: Settings, amount: float) -> str:
    """Format an amount with its currency, with four decimals below 0.01."""
    digits = 2 if amount >= 0.01 or not amount else 4
    return f"{settings.effective_currency} {amount:,.{digits}f}"


def _texts_figure(source: ReportSource, page_of: Callable[[str], str]) -> BaseFigure:
    rates = text_rates(source).sort("value", descending=True, maintain_order=True)
    order = list(_rate_by_system(source))
    groups = tuple(
        (
            name,
            tuple(
                TextBar(id, value, page_of(id))
                for id, value in rates.filter(pl.col("system") == name).select("document", "value").iter_rows()
            ),
        )
        for name in order
    )
    table = tuple(
        {"text": id, "system": system, "marks per 100 words": value} for id, system, value in rates.iter_rows()
    )
    merged = f" (at most {MAX_TEXT_BARS} per system, each the mean of several texts)"
    is_merged = any(len(bars) > MAX_TEXT_BARS for _, bars in groups)
    return TextBarFigure(
        "texts", "Texts",
        f"One bar per text{merged if is_merged else ''}; its length is marks per 100 words. "
        "Select a bar to read the text with the marks of all annotators.",
        table, f"statistic:marks per 100 words by text|texts:{len(rates)}",
        _rate_command(source, "document"),
        "" if len(rates) else "No annotations yet.", "", groups,
    )  # fmt: skip


def text_influences_by_document(source: ReportSource) -> dict[str, tuple[TextInfluence, ...]]:
    """Compute the effect of each text on the numbers of the report, by document."""
    systems = _rate_by_system(source)
    pair = headline.choose_compared_pair(list(systems)) if source.by else None
    return compute_influences(text_rates(source), systems, pair, RATE_UNIT)


# --- headline ----------------------------------------------------------------------------------------------------


def _build_report_headline(
    source: ReportSource, systems: Mapping[str, Estimate], alpha: Estimate | None
) -> ReportHeadline:
    pair = headline.choose_compared_pair(list(systems)) if source.by else None
    scale = build_axis(list(systems.values()))
    with_excluded = None
    if count_exclusion_reasons(source.study):
        whole = view(restore_excluded(source.study, HUMAN_KINDS), source.filters)
        if len(whole.study.annotations) != len(source.view.study.annotations):
            with_excluded = replace(source, view=whole)
    if pair is None:
        rates = _rate_by_system(with_excluded) if with_excluded else {}
        effect = "".join(
            f"Including them, the rate of {name} is {scale.format_value(rate.value)} {RATE_UNIT}."
            for name, rate in list(rates.items())[:1]
        )
        statements = [_exclusion_statement(source, effect)]
        return headline.build_headline(systems, None, None, None, alpha, RATE_UNIT, statements, "", scale)
    rates_of_pair = _system_rates(source, pair)
    gap, ratio = headline.estimate_difference(*rates_of_pair, source.draws, source.seed)
    if gap.value < 0:
        pair, rates_of_pair = (pair[1], pair[0]), rates_of_pair[::-1]
        gap, ratio = headline.estimate_difference(*rates_of_pair, source.draws, source.seed)
    with_all, effect = _gap_estimate(with_excluded, pair) if with_excluded else None, ""
    if with_all and not math.isnan(with_all.value):
        value, low, high = map(scale.format_value, (with_all.value, with_all.low, with_all.high))
        effect = f"Including them, the difference is {value} [{low}, {high}]."
    statements = [] if math.isnan(gap.value) else _headline_statements(source, pair, gap, rates_of_pair)
    statements.append(_exclusion_statement(source, effect))
    command = _finecomb_command(source, "test", "--by", source.by, "--statistic", "rate-1000")
    return headline.build_headline(systems, pair, gap, ratio, alpha, RATE_UNIT, statements, command, scale, with_all)


def _gap_estimate(source: ReportSource, pair: tuple[str, str]) -> Estimate:
    """Estimate the difference in marks per 100 words between two systems."""
    return headline.estimate_difference(*_system_rates(source, pair), source.draws, source.seed)[0]


def _system_rates(source: ReportSource, pair: tuple[str, str]) -> tuple[Floats, Floats]:
    """Return the marks per 100 words of each text, for the first and for the second system."""
    texts = text_rates(source)
    first, second = (texts.filter(pl.col("system") == name)["value"].to_numpy() for name in pair)
    return first, second


def _headline_statements(
    source: ReportSource, pair: tuple[str, str], gap: Estimate, values: tuple[Floats, Floats]
) -> list[HeadlineStatement]:
    """State how robust the difference is to resampling and to leaving out annotators, and how it varies by label."""
    rng = np.random.default_rng(source.seed)
    draws = [v[rng.integers(len(v), size=(source.draws, len(v)))].mean(axis=1) for v in values]
    share = float(((draws[1] - draws[0]) > 0).mean())
    left_out = []
    for annotator in _annotator_ids(source):
        study = source.view.study.filter_annotations(pl.col("annotator") != annotator)
        rates = _system_rates(replace(source, view=replace(source.view, study=study)), pair)
        known = all(map(len, rates))  # without any text of a system, the sign does not change
        left_out.append((annotator, float(rates[1].mean()) - float(rates[0].mean()) if known else math.inf))
    labels = {
        source.label_style(label).title: _gap_estimate(source.filter_label(label), pair)
        for label in source.view.study.marks["label"].unique(maintain_order=True).drop_nulls()
    }
    return [headline.robustness_statement(gap, share, left_out), headline.exception_statement(labels)]


def _annotator_ids(source: ReportSource) -> list[str]:
    annotators = source.view.study.annotations["annotator"].unique(maintain_order=True).to_list()
    return annotators if len(annotators) <= _MAX_ANNOTATORS else []


def _exclusion_statement(source: ReportSource, effect: str) -> HeadlineStatement:
    """State how many annotations are excluded, why, and the result that includes them."""
    if not count_exclusion_reasons(source.study):
        return HeadlineStatement("Exclusions", "None. All submitted annotations are included.")
    return HeadlineStatement("Exclusions", f"{describe_exclusions(source.study)}. {effect}".strip())


def _counted_annotator_kinds(source: ReportSource) -> list[str]:
    """Return the kinds of annotators whose marks the report counts."""
    kinds = dict(source.study.annotators.select("id", "kind").iter_rows())
    annotators = source.view.study.annotations["annotator"].unique(maintain_order=True)
    return list(dict.fromkeys(kinds.get(id, "unknown") for id in annotators))


FIGURES = Registry[FigureMaker](
    "figures",
    Callable,  # type: ignore[arg-type]  # a function has no other type
    {
        "systems": _systems_figure,
        "error-types": _error_types_figure,
        "agreement": _agreement_figure,
        "annotators": _annotators_figure,
        "judges": _judges_figure,
        "costs": _costs_figure,
    },
)
"""Figures of a report by name, in their order; the figure of all texts comes last."""
