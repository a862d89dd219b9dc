"""From a study to the content of its report: every figure, the answer, and what is missing and why."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from finecomb.collection.pay import compute_earnings, study_cost
from finecomb.core.errors import FinecombError, flag_style, param
from finecomb.core.estimate import Estimate, Finding, Signature
from finecomb.core.frames import meta_entry
from finecomb.core.palette import UNLABELLED_SLOT, LabelStyle, label_styles
from finecomb.core.records import Settings
from finecomb.core.study import Study
from finecomb.reporting.datasheet import DatasheetSource
from finecomb.reporting.figures.figure_model import (
    AnswerStatement,
    Axis,
    BarFigure,
    DotFigure,
    DotRow,
    LabelPanel,
    PanelFigure,
    Report,
    ReportAnswer,
    ReportFigure,
    TableRow,
    TextBar,
    TextBarFigure,
    build_axis,
    format_count,
)
from finecomb.reporting.site import headline as answers
from finecomb.reporting.site.exclusions import count_exclusion_reasons, describe_exclusions, restore_excluded
from finecomb.reporting.site.headline import ALL_TEXTS, HUMAN
from finecomb.reporting.site.report_sections import ExternalTable, build_external_figures
from finecomb.reporting.site.text_influence import TextInfluence, compute_influences
from finecomb.statistics.agreement.agreement import agree
from finecomb.statistics.gold.gold_merge import gold
from finecomb.statistics.gold.human_baseline import SINGLE_ANNOTATOR, single_annotator_baseline
from finecomb.statistics.gold.scores import Score, score
from finecomb.statistics.inference.resampling import Floats
from finecomb.statistics.judges.model_costs import ModelCost, model_costs
from finecomb.statistics.measures.annotation_measures import measure
from finecomb.statistics.measures.study_counts import counts_by_group, document_meta_names
from finecomb.statistics.selection.view import ANY, Filters, View, view

RATE_UNIT = "marks per 100 words"
HUMAN_KINDS = ("human", "pooled")
MACHINE_KINDS = ("llm", "detector", "checker")
_MIN_MARKS = 40  # marks below which a row says so


@dataclass(frozen=True, slots=True)
class ReportSource:
    """What a report is made from."""

    study: Study
    view: View
    """Marks of people, or of whoever there is."""
    by: str
    """The document meta that names the system; empty where there is none."""
    name: str
    """How the study is called on the command line."""
    draws: int
    seed: int
    gold: Study | None = None
    """A gold standard to judge against, where one was given."""
    verdicts: Mapping[str, str] = field(default_factory=dict)
    """What `calibrate --keep` said of a judge, by its name."""
    further: tuple[ExternalTable, ...] = ()
    """Tables of other commands that the report shows too."""
    filters: Filters = field(default_factory=Filters)
    """What `view` was read with."""
    replies: Mapping[str, str] = field(default_factory=dict)
    """Raw replies of language models, by the hash of the request."""
    licence: str = ""
    """Under which licence texts and annotations are shared."""

    def label_looks(self) -> Mapping[str | None, LabelStyle]:
        """How each label looks."""
        return label_styles(self.view.protocol) if self.view.protocol else {}

    def label_look(self, label: str) -> LabelStyle:
        """How one label looks; plain for one that the protocol does not have."""
        return self.label_looks().get(label) or LabelStyle(label, label, UNLABELLED_SLOT, label[:2].upper(), "")


def build_report_source(
    study: Study,
    name: str,
    by: str = "",
    gold_study: Study | None = None,
    draws: int = 1000,
    seed: int = 0,
    filters: Filters | None = None,
) -> ReportSource:
    """What to report on: people's marks where there are any, else everybody's; systems by `by` or the meta `model`."""
    kinds = set(study.annotators["kind"]) if len(study.annotators) else set()
    chosen = filters or Filters(kinds=tuple(kind for kind in HUMAN_KINDS if kind in kinds))
    system = by or ("model" if "model" in document_meta_names(study) else "")
    return ReportSource(study, view(study, chosen), system, name, draws, seed, gold_study, filters=chosen)


def build_report(made_from: ReportSource, date: str, page_of: Callable[[str], str]) -> Report:
    """The content of a report; `page_of` gives the page of a document by its id."""
    notes: list[str] = []
    systems = _rate_by_system(made_from)
    alpha = _overall_alpha(made_from)
    figures: list[ReportFigure] = []
    for make in (
        _systems_figure,
        _error_types_figure,
        _agreement_figure,
        _annotators_figure,
        _judges_figure,
        _costs_figure,
    ):
        figure = _try_figure(make, made_from, systems, notes)
        if figure is not None:
            figures.append(figure)
    figures += build_external_figures(made_from.further)
    figures.append(_texts_figure(made_from, page_of))
    numbered = tuple(replace(figure, title=f"{number} {figure.title}") for number, figure in enumerate(figures, 1))
    title = made_from.study.settings.title or made_from.name
    return Report(
        title,
        date,
        _describe_counts(made_from),
        _build_answer(made_from, systems, alpha),
        numbered,
        _provenance_facts(made_from),
        tuple(notes),
    )


def build_datasheet_source(made_from: ReportSource, content: Report) -> DatasheetSource:
    """What the datasheet of the study is written from."""
    signatures = [figure.signature for figure in content.figures if figure.signature]
    return DatasheetSource(
        made_from.study, made_from.view.protocol, _overall_alpha(made_from), signatures, made_from.licence
    )


FigureMaker = Callable[[ReportSource, Mapping[str, Estimate]], ReportFigure | None]


def _try_figure(
    make: FigureMaker, made_from: ReportSource, systems: Mapping[str, Estimate], notes: list[str]
) -> ReportFigure | None:
    """A figure, or a note why it could not be made: one that fails holds up no other."""
    try:
        figure = make(made_from, systems)
        return figure and _explain_empty_plot(figure)
    except FinecombError as error:
        reason = error.text(flag_style)  # notes are part of the page, which names commands
        title = make.__name__.strip("_").replace("_", " ").capitalize()
        notes.append(f"{title}: this figure could not be made: {reason}")
        return None


def _explain_empty_plot(figure: ReportFigure) -> ReportFigure:
    """A figure whose every number is undefined says why, in place of a plot without dots."""
    match figure:
        case DotFigure(rows=rows):
            drawn = rows
        case PanelFigure(panels=panels):
            drawn = tuple(row for panel in panels for row in panel.rows)
        case _:
            return figure
    if figure.empty or not drawn or any(math.isfinite(row.estimate.value) or row.second for row in drawn):
        return figure
    why = next((row.estimate.why for row in drawn if row.estimate.why), "every number is undefined")
    return replace(figure, empty=f"There is nothing to draw: {why}.")


def _describe_counts(made_from: ReportSource) -> str:
    study = made_from.study.submitted_work()
    kinds = dict(study.annotators.select("id", "kind").iter_rows())
    readers = [kinds.get(id, "") for id in study.annotations["annotator"].unique()]
    people, pools = (sum(kind == name for kind in readers) for name in HUMAN_KINDS)
    machines = sum(kind in MACHINE_KINDS for kind in readers)
    texts = study.annotations["document"].n_unique()
    gold_makers = sum(kind == "gold" for kind in readers)
    parts = [
        format_count(number, one, many)
        for number, one, many in (
            (people, "person", "people"),
            (pools, "pool of readers", "pools of readers"),
            (machines, "machine", ""),
            (gold_makers, "gold standard", ""),
        )
        if number and (one != "gold standard" or not people + pools)
    ]
    who = " and ".join(parts) or "nobody"
    return f"{format_count(texts, 'text')}, {format_count(len(study.annotations), 'annotation')} by {who}."


# --- systems -----------------------------------------------------------------------------------------------------


def _scale_estimate(estimate: Estimate, factor: float) -> Estimate:
    return replace(estimate, value=estimate.value * factor, low=estimate.low * factor, high=estimate.high * factor)


def _system_name(made_from: ReportSource, finding: Finding) -> str:
    return str(finding.columns[made_from.by]) if made_from.by else ALL_TEXTS


def _rate_by_system(made_from: ReportSource) -> dict[str, Estimate]:
    """Marks per 100 words by system, most first and human last."""
    if made_from.view.study.annotations.is_empty():
        return {}
    by = [made_from.by] if made_from.by else []
    findings = _rate_findings(made_from, by)
    rates = {
        _system_name(made_from, finding): _scale_estimate(finding.estimate, 0.1)
        for finding in findings
        if finding.columns["label"] == ANY and (not by or finding.columns[made_from.by] is not None)
    }
    return {name: rates[name] for name in answers.rank_systems(rates)}


def _rate_findings(made_from: ReportSource, by: Sequence[str]) -> Sequence[Finding]:
    """Marks per 1,000 words, mean over texts: every text counts as much, as in the difference and in its comb."""
    return measure(made_from.view, ["rate-1000"], by, draws=made_from.draws, seed=made_from.seed, average="document")


def _rate_command(made_from: ReportSource, by: str) -> str:
    by_words = ["--by", by] if by else []
    return _command_line(made_from, "measure", "--measure", "rate-1000", "--average", "document", *by_words)


def text_rates(made_from: ReportSource) -> pl.DataFrame:
    """Marks per 100 words of each text, mean over its readers: document, system, value."""
    study = made_from.view.study
    words = dict(
        zip(study.documents["id"], study.documents["text"].str.count_matches(r"\w+|[^\w\s]").to_list(), strict=True)
    )
    per = study.marks.group_by("annotation").agg(pl.len().alias("marks"))
    rows = study.annotations.select("document", pl.col("id").alias("annotation")).join(per, on="annotation", how="left")
    means = rows.group_by("document", maintain_order=True).agg(pl.col("marks").fill_null(0).mean())
    systems = system_by_document(made_from)
    values = [
        100 * count / words[document] if words.get(document) else math.nan
        for document, count in means.select("document", "marks").iter_rows()
    ]
    return pl.DataFrame(
        {"document": means["document"], "system": [systems.get(id, "") for id in means["document"]], "value": values},
        schema={"document": pl.String, "system": pl.String, "value": pl.Float64},
    ).filter(pl.col("value").is_not_nan())


def system_by_document(made_from: ReportSource) -> dict[str, str]:
    """The system of each document by its id; documents without one are absent."""
    if not made_from.by:
        return dict.fromkeys(made_from.study.documents["id"], ALL_TEXTS)
    rows = made_from.study.documents.select("id", meta_entry(made_from.by)).iter_rows()
    return {id: system for id, system in rows if system is not None}


def _command_line(made_from: ReportSource, *words: str) -> str:
    return " ".join(["finecomb", *words[:1], made_from.name, *words[1:]])


def _systems_figure(made_from: ReportSource, systems: Mapping[str, Estimate]) -> ReportFigure:
    texts = text_rates(made_from)
    read = (
        {row[0]: row for row in counts_by_group(made_from.view.study, [made_from.by]).iter_rows()}
        if made_from.by
        else {}
    )
    rows = []
    for name, estimate in systems.items():
        teeth = tuple(texts.filter(pl.col("system") == name)["value"].to_list())
        note = f"{read[name][1]:,} texts, {read[name][2]:,} annotations" if name in read else ""
        rows.append(DotRow(name, estimate, note, teeth=teeth if len(teeth) <= 200 else (), link="#texts"))
    estimates = [row.estimate for row in rows]
    teeth_too = [Estimate(tooth, tooth, tooth, Signature(())) for row in rows for tooth in row.teeth]
    scale = replace(build_axis([*estimates, *teeth_too]), digits=build_axis(estimates).digits)
    caption = "Marks per 100 words with 95% interval; below each, one tooth per text."
    band = systems.get(HUMAN)
    return DotFigure(
        "systems", "Systems", caption + (" The grey band is human text." if band else ""),
        tuple(_table_row("system", row) for row in rows), _first_signature(systems.values()),
        _rate_command(made_from, made_from.by),
        "" if rows else "Nobody has read these texts yet.", "#texts", tuple(rows), scale, band,
    )  # fmt: skip


def _table_row(head: str, row: DotRow) -> dict[str, object]:
    return {
        head: row.name,
        "value": row.estimate.value,
        "low": row.estimate.low,
        "high": row.estimate.high,
        "note": row.note or row.estimate.why,
    }


def _first_signature(estimates: Iterable[Estimate]) -> str:
    return next((str(estimate.signature) for estimate in estimates), "")


# --- kinds of error ----------------------------------------------------------------------------------------------


def _error_types_figure(made_from: ReportSource, systems: Mapping[str, Estimate]) -> ReportFigure | None:
    protocol = made_from.view.protocol
    if protocol is None or not protocol.labels:
        return None
    by = [made_from.by] if made_from.by else []
    findings = measure(made_from.view, ["coverage"], by, draws=made_from.draws, seed=made_from.seed)
    by_label: dict[str, dict[str, Estimate]] = {}
    for finding in findings:
        by_label.setdefault(str(finding.columns["label"]), {})[_system_name(made_from, finding)] = finding.estimate
    labels = [label.name for label in protocol.labels if label.name in by_label]
    short, texts = shorten_names(list(systems)), text_rates(made_from)
    read = {name: texts.filter(pl.col("system") == name).height for name in systems}
    panels = tuple(
        LabelPanel(
            made_from.label_look(label),
            tuple(
                _error_type_row(name, by_label[label][name], short[name], read.get(name, 0))
                for name in systems
                if name in by_label[label]
            ),
        )
        for label in labels
    )
    scale = build_axis([row.estimate for panel in panels for row in panel.rows], percent=True)
    table = tuple({"label": panel.look.label, **_table_row("system", row)} for panel in panels for row in panel.rows)
    names = f" {', '.join(systems)} from top to bottom." if len(systems) > 1 else ""
    return PanelFigure(
        "kinds", "Kinds of error",
        f"Share of words covered by each label, 95% interval, same axis in every panel.{names}",
        table, _first_signature([finding.estimate for finding in findings]),
        _command_line(made_from, "measure", "--measure", "coverage", *(["--by", made_from.by] if made_from.by else [])),
        "", "#texts", panels, scale,
    )  # fmt: skip


def shorten_names(names: Sequence[str]) -> dict[str, str]:
    """Names of systems without the beginning that all machines share, where that tells them apart.

    >>> shorten_names(["comb-small", "comb-large", "human"])
    {'comb-small': 'small', 'comb-large': 'large', 'human': 'human'}
    """
    machines = [name for name in names if name != HUMAN]
    first, last = (min(machines), max(machines)) if len(machines) > 1 else ("", "")
    length = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), 0)
    cut = max(first[:length].rfind(sign) for sign in "-_/ ") + 1
    return {name: (name[cut:] if name != HUMAN else name) or name for name in names}


def _error_type_row(name: str, estimate: Estimate, short: str, texts: int) -> DotRow:
    """Nothing found is not 0: the upper end of what it can still be is said, or in how many texts there was none."""
    if estimate.value != 0:
        return DotRow(name, estimate, short=short)
    is_known = math.isfinite(estimate.high) and estimate.high > 0
    nothing = f"none, at most {100 * estimate.high:.1f}" if is_known else f"none in {format_count(texts, 'text')}"
    return DotRow(name, estimate, nothing, short=short, nothing=nothing)


# --- trust -------------------------------------------------------------------------------------------------------


def _overall_alpha(made_from: ReportSource) -> Estimate | None:
    if made_from.view.study.annotations.is_empty():
        return None
    try:
        findings = agree(made_from.view, ["alpha"], by_label=False, draws=made_from.draws, seed=made_from.seed)
    except FinecombError:
        return None
    return next((finding.estimate for finding in findings if finding.columns.get("label", ANY) == ANY), None)


def _agreement_figure(made_from: ReportSource, systems: Mapping[str, Estimate]) -> ReportFigure | None:
    protocol = made_from.view.protocol
    if protocol is None or not protocol.labels:
        return None
    findings = agree(made_from.view, ["alpha", "f1"], draws=made_from.draws, seed=made_from.seed)
    alphas = {str(f.columns["label"]): f.estimate for f in findings if f.columns["measure"] == "alpha"}
    f1s = {str(f.columns["label"]): f.estimate for f in findings if f.columns["measure"] == "f1"}
    marks = dict(made_from.view.study.marks.group_by("label").len().iter_rows())
    rows = []
    for label in protocol.labels:
        if label.name not in alphas:
            continue
        used = marks.get(label.name, 0)
        note = (
            "never used"
            if not used
            else "do not compare"
            if used < _MIN_MARKS * 0.7
            else "few marks"
            if used < _MIN_MARKS
            else ""
        )
        rows.append(
            DotRow(
                made_from.label_look(label.name).title,
                alphas[label.name],
                f"{used:,}" + (f" {note}" if note else ""),
                made_from.label_look(label.name),
                second=f1s.get(label.name),
            )
        )
    known = [row.estimate for row in rows]
    if all(row.second is None or math.isnan(row.second.value) for row in rows):
        rows = [replace(row, second=None) for row in rows]  # nobody can be compared with anybody: no empty plot
    has_pairs = any(row.second for row in rows)
    table = tuple(
        {
            **_table_row("label", row),
            **({"f1": row.second.value, "f1_low": row.second.low, "f1_high": row.second.high} if row.second else {}),
        }
        for row in rows
    )
    return DotFigure(
        "trust", "How far to trust it",
        "Agreement between people; wide intervals mean few marks, not bad readers.", table, _first_signature(known),
        _command_line(made_from, "agree"), "", "#texts", tuple(rows),
        Axis(min(0.0, *(e.low for e in known if not math.isnan(e.low)), 0.0), 1, (0, 0.2, 0.4, 0.6, 0.8, 1), 2),
        None, ("Label", "Same words, Krippendorff’s α", "Same place, F1 between two readers", "Marks"),
        Axis(0, 1, (0, 0.5, 1), 2) if has_pairs else None, second_is_open=True,
    )  # fmt: skip


# --- readers ------------------------------------------------------------------------------------------------------


def _annotators_figure(made_from: ReportSource, systems: Mapping[str, Estimate]) -> ReportFigure | None:
    """How much each person marks, beside the others: several of them, and no more than fit a page."""
    people = _annotator_ids(made_from)
    if len(people) < 2:
        return None
    findings = _rate_findings(made_from, ["annotator"])
    study = made_from.view.study
    texts = dict(study.annotations.group_by("annotator").agg(pl.col("document").n_unique()).iter_rows())
    minutes = dict(study.annotations.group_by("annotator").agg(pl.col("seconds").median() / 60).iter_rows())
    rows = [
        DotRow(name, _scale_estimate(finding.estimate, 0.1), _annotator_note(texts.get(name, 0), minutes.get(name)))
        for finding in findings
        if finding.columns["label"] == ANY and (name := str(finding.columns["annotator"])) in people
    ]
    rows.sort(key=lambda row: (-row.estimate.value if math.isfinite(row.estimate.value) else math.inf, row.name))
    estimates = [row.estimate for row in rows]
    return DotFigure(
        "readers", "Readers",
        "Marks per 100 words of each person, 95% interval; their texts may differ.",
        tuple(_table_row("reader", row) for row in rows), _first_signature(estimates),
        _rate_command(made_from, "annotator"), "", "#texts", tuple(rows),
        build_axis(estimates),
    )  # fmt: skip


def _annotator_note(texts: int, minutes: float | None) -> str:
    time = f", {minutes:.1f} minutes each" if minutes is not None else ""
    return f"{format_count(texts, 'text')}{time}"


# --- judges ------------------------------------------------------------------------------------------------------


def _judges_figure(made_from: ReportSource, systems: Mapping[str, Estimate]) -> ReportFigure | None:
    """Machines against what people agree on; a gold standard that was given stands in for people."""
    study = made_from.study.submitted_work()
    kinds = dict(study.annotators.select("id", "kind").iter_rows())
    machines = [
        id for id in study.annotations["annotator"].unique(maintain_order=True) if kinds.get(id) in MACHINE_KINDS
    ]
    if not machines:
        return None
    if made_from.gold is None and not set(_counted_annotator_kinds(made_from)) & set(HUMAN_KINDS):
        raise FinecombError(f"nobody but machines has read these texts; name a gold standard with {param('against')}")
    standard = made_from.gold or gold(made_from.view).study
    scores = score(standard, study, match="optimal", by=(), judges=machines, draws=made_from.draws, seed=made_from.seed)
    rows = [row for row in scores.rows if row.columns.get("label") == ANY]
    if not rows:
        return None
    person = _human_baseline(made_from, study, machines)
    notes = _judge_notes(made_from, {name: kinds[name] for name in machines})
    drawn = tuple(
        DotRow(name, row.precision, notes[name], second=row.recall, open=name == SINGLE_ANNOTATOR)
        for row in ([person] if person else []) + rows
        if (name := str(row.columns["judge"]))
    )
    scale = Axis(0, 1, (0, 0.5, 1), 2)
    against = "the gold standard" if made_from.gold else "what people agree on"
    band = f" The grey band is one person against {'it' if made_from.gold else 'the others'}." if person else ""
    return DotFigure(
        "judges", "Judges", f"Each machine against {against}.{band or _NO_HUMAN_BASELINE}",
        tuple(_score_row(row) for row in (*([person] if person else []), *rows)),
        " ".join(dict.fromkeys(str(row.recall.signature) for row in (*rows[:1], *([person] if person else [])))),
        _command_line(made_from, "score"), "", "#texts", drawn, scale, person.precision if person else None,
        ("Judge", "Precision: of its marks, how many are confirmed", "Recall: of the errors, how many it finds",
         "Verdict" if any(row.name in made_from.verdicts for row in drawn) else ""),
        scale, person.recall if person else None,
    )  # fmt: skip


def _judge_notes(made_from: ReportSource, kinds: Mapping[str, str]) -> dict[str, str]:
    """What stands beside each judge: what `calibrate` said of it, else what it is; and what it cost."""
    settings = made_from.study.settings
    prices = {
        model.annotator: f", {_format_money(settings, model.cost)} for {format_count(model.texts, 'text')}"
        for model in model_costs(made_from.study)
        if model.cost
    }
    notes = {
        name: (made_from.verdicts.get(name) or _KIND_TITLES.get(kind, kind)) + prices.get(name, "")
        for name, kind in kinds.items()
    }
    return notes | {SINGLE_ANNOTATOR: "the yardstick"}


_KIND_TITLES = {"llm": "language model"}
_NO_HUMAN_BASELINE = " No text has three readers, so one person cannot be laid beside the others."


def _human_baseline(made_from: ReportSource, study: Study, machines: Sequence[str]) -> Score | None:
    """How one person fares on the texts that machines have read: the yardstick."""
    if not set(made_from.view.study.annotators["kind"]) & set(HUMAN_KINDS):
        return None
    texts = study.annotations.filter(pl.col("annotator").is_in(machines))["document"].unique().to_list()
    return single_annotator_baseline(made_from.view, texts, made_from.gold, draws=made_from.draws, seed=made_from.seed)


def _score_row(row: Score) -> dict[str, object]:
    return {name: value for name, value in row.row().items() if name != "signature"}


# --- cost and texts ----------------------------------------------------------------------------------------------


def _costs_figure(made_from: ReportSource, systems: Mapping[str, Estimate]) -> ReportFigure | None:
    """Pay to people beside what language models cost, where the study knows either."""
    settings, models = made_from.study.settings, model_costs(made_from.study)
    is_paid = settings.price is not None or bool(settings.base_pay)
    if made_from.view.protocol is None or not (is_paid or models):
        return None
    spent = study_cost(settings, compute_earnings(made_from.study, (), made_from.view.protocol))
    parts = [("Pay to people", spent.pay), ("Staff time", spent.staff), ("Fees", spent.fees), ("Bonuses", spent.bonus)]
    parts = [part for part in parts if part[1]] + [(model.annotator, model.cost) for model in models if model.cost]
    total, texts = (
        sum(amount for _, amount in parts),
        made_from.study.submitted_work().annotations["document"].n_unique(),
    )
    facts = [("per text", _format_money(settings, total / max(1, texts)))] if parts else []
    if spent.per_hour is not None:
        facts.append(("pay per hour, median", _format_money(settings, spent.per_hour)))
    if spent.total:
        facts.append(("half as wide an interval", f"about {settings.effective_currency} {3 * total:,.0f} more"))
    facts += [(model.annotator, _describe_tokens(model)) for model in models]
    return BarFigure(
        "costs", "What it cost",
        f"From the first text to this page, in {settings.effective_currency}."
        + (" Language models: the tokens of their replies at the price of their run." if models else ""),
        _cost_table(parts, models), f"costs|price:{settings.price}|models:{len(models)}",
        _command_line(made_from, "pay"), "" if parts or models else "Nothing was paid.", "",
        tuple((name, amount, _format_money(settings, amount)) for name, amount in parts), _format_money(settings,
        total),
        tuple(facts),
    )  # fmt: skip


def _format_money(settings: Settings, amount: float) -> str:
    """An amount with its currency; cents where it has any, and more digits below one of them."""
    digits = 2 if amount >= 0.01 or not amount else 4
    return f"{settings.effective_currency} {amount:,.{digits}f}"


def _describe_tokens(model: ModelCost) -> str:
    """What a model read and wrote, e.g. `12,000 tokens sent, 900 received, in 16 texts; no price is known`."""
    price = "" if model.cost is not None else "; no price is known"
    return f"{model.sent:,} tokens sent, {model.received:,} received, in {format_count(model.texts, 'text')}{price}"


def _cost_table(parts: Sequence[tuple[str, float]], models: Sequence[ModelCost]) -> tuple[TableRow, ...]:
    amounts = dict(parts)
    tokens = {model.annotator: {"tokens sent": model.sent, "tokens received": model.received} for model in models}
    names = dict.fromkeys([*amounts, *tokens])
    return tuple({"part": name, "amount": amounts.get(name), **tokens.get(name, {})} for name in names)


def _texts_figure(made_from: ReportSource, page_of: Callable[[str], str]) -> ReportFigure:
    rates = text_rates(made_from).sort("value", descending=True, maintain_order=True)
    order = list(_rate_by_system(made_from))
    combs = tuple(
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
    return TextBarFigure(
        "texts", "Texts",
        "One tooth per text, as long as its marks per 100 words; open one to read it with everybody’s marks.",
        table, f"statistic:marks per 100 words by text|texts:{len(rates)}",
        _rate_command(made_from, "document"),
        "" if len(rates) else "Nobody has read these texts yet.", "", combs,
    )  # fmt: skip


def text_influences(made_from: ReportSource) -> dict[str, tuple[TextInfluence, ...]]:
    """What each text does to the numbers of the report, by document."""
    systems = _rate_by_system(made_from)
    pair = answers.choose_compared_pair(list(systems)) if made_from.by else None
    return compute_influences(text_rates(made_from), systems, pair, RATE_UNIT)


# --- the answer --------------------------------------------------------------------------------------------------


def _build_answer(made_from: ReportSource, systems: Mapping[str, Estimate], alpha: Estimate | None) -> ReportAnswer:
    pair = answers.choose_compared_pair(list(systems)) if made_from.by else None
    scale = build_axis(list(systems.values()))
    if pair is None:
        statements = [_exclusion_statement(made_from, _describe_rate_with_excluded(made_from, scale))]
        return answers.build_answer(systems, None, None, None, alpha, RATE_UNIT, statements, "", scale)
    texts = text_rates(made_from)
    values = [_system_rates(texts, name) for name in pair]
    gap, ratio = answers.estimate_difference(values[0], values[1], made_from.draws, made_from.seed)
    if gap.value < 0:
        pair, values = (pair[1], pair[0]), values[::-1]
        gap, ratio = answers.estimate_difference(values[0], values[1], made_from.draws, made_from.seed)
    whole = _source_with_excluded(made_from)
    with_all = _gap_estimate(whole, pair) if whole else None
    left_out = _exclusion_statement(made_from, answers.describe_gap_with_excluded(with_all, scale) if with_all else "")
    statements = [*_answer_statements(made_from, pair, gap, values), left_out]
    command = _command_line(made_from, "test", "--by", made_from.by, "--statistic", "rate-1000")
    return answers.build_answer(systems, pair, gap, ratio, alpha, RATE_UNIT, statements, command, scale, with_all)


def _gap_estimate(made_from: ReportSource, pair: tuple[str, str]) -> Estimate:
    """The difference between two systems."""
    texts = text_rates(made_from)
    values = [_system_rates(texts, name) for name in pair]
    return answers.estimate_difference(values[0], values[1], made_from.draws, made_from.seed)[0]


def _system_rates(texts: pl.DataFrame, system: str) -> Floats:
    return texts.filter(pl.col("system") == system)["value"].to_numpy()


def _answer_statements(
    made_from: ReportSource, pair: tuple[str, str], gap: Estimate, values: Sequence[Floats]
) -> list[AnswerStatement]:
    if math.isnan(gap.value):
        return []
    rng = np.random.default_rng(made_from.seed)
    draws = [v[rng.integers(len(v), size=(made_from.draws, len(v)))].mean(axis=1) for v in values]
    share = float(((draws[1] - draws[0]) > 0).mean())
    left_out = [(reader, _gap_without_annotator(made_from, pair, reader)) for reader in _annotator_ids(made_from)]
    labels = {
        made_from.label_look(label).title: _label_gap(made_from, pair, label)
        for label in made_from.view.study.marks["label"].unique(maintain_order=True).drop_nulls()
    }
    return [answers.robustness_statement(gap, share, left_out), answers.exception_statement(labels)]


def _annotator_ids(made_from: ReportSource) -> list[str]:
    readers = made_from.view.study.annotations["annotator"].unique(maintain_order=True).to_list()
    return readers if len(readers) <= 50 else []


def _mean_gap(part: ReportSource, pair: tuple[str, str]) -> float:
    texts = text_rates(part)
    means = [float(_system_rates(texts, name).mean()) if len(_system_rates(texts, name)) else math.nan for name in pair]
    return means[1] - means[0]


def _gap_without_annotator(made_from: ReportSource, pair: tuple[str, str], reader: str) -> float:
    rest = replace(made_from.view, study=made_from.view.study.filter_annotations(pl.col("annotator") != reader))
    value = _mean_gap(replace(made_from, view=rest), pair)
    return value if not math.isnan(value) else math.inf


def _label_gap(made_from: ReportSource, pair: tuple[str, str], label: str) -> Estimate:
    study = made_from.view.study
    only = replace(made_from.view, study=replace(study, marks=study.marks.filter(pl.col("label") == label)))
    return _gap_estimate(replace(made_from, view=only), pair)


def _source_with_excluded(made_from: ReportSource) -> ReportSource | None:
    """The report's source with what was left out put back; None where that changes nothing."""
    if not count_exclusion_reasons(made_from.study):
        return None
    whole = view(restore_excluded(made_from.study, HUMAN_KINDS), made_from.filters)
    is_same = len(whole.study.annotations) == len(made_from.view.study.annotations)
    return None if is_same else replace(made_from, view=whole)


def _exclusion_statement(made_from: ReportSource, then: str) -> AnswerStatement:
    """How many annotations are not in the numbers, why, and what the answer would be with them."""
    if not count_exclusion_reasons(made_from.study):
        return AnswerStatement("Left out", "nothing: all annotations that were handed in count.")
    return AnswerStatement("Left out", f"{describe_exclusions(made_from.study)}. {then}".strip())


def _describe_rate_with_excluded(made_from: ReportSource, scale: Axis) -> str:
    """What the first system's rate would be with what was left out."""
    whole = _source_with_excluded(made_from)
    rates = _rate_by_system(whole) if whole else {}
    return next(
        (f"With them {name}: {scale.format_value(rate.value)} {RATE_UNIT}." for name, rate in rates.items()), ""
    )


def _counted_annotator_kinds(made_from: ReportSource) -> list[str]:
    """Whose marks are counted: kinds of annotators."""
    kinds = dict(made_from.study.annotators.select("id", "kind").iter_rows())
    readers = made_from.view.study.annotations["annotator"].unique(maintain_order=True)
    return list(dict.fromkeys(kinds.get(id, "unknown") for id in readers))


def _provenance_facts(made_from: ReportSource) -> tuple[tuple[str, str], ...]:
    protocol = made_from.view.protocol
    return (
        ("Measure", "marks per 100 words, mean over texts, each text the mean over its readers"),
        ("Interval", f"95%, {made_from.draws:,} resamples of whole texts, seed {made_from.seed}"),
        ("Protocol", protocol.id if protocol else "none"),
        ("Readers", ", ".join(_counted_annotator_kinds(made_from)) or "nobody"),
        ("Licence", made_from.licence or "none was named; ask before you use the texts or the annotations"),
    )
