"""The researcher's first page: how far the study is, what it costs, how far people agree, and what they find."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import polars as pl

from finecomb.collection import pay
from finecomb.core.design import DesignCell, design_cells
from finecomb.core.estimate import Finding, Signature
from finecomb.core.frames import meta_entry
from finecomb.server.researchers.annotator_table import AnnotatorTable, compute_quartiles
from finecomb.server.researchers.schema import (
    AnnotatorRow,
    Figure,
    LabelRow,
    ModelRow,
    Overview,
    Quartiles,
    RecentChange,
    StudyProgress,
    WatchedFigure,
)
from finecomb.server.researchers.snapshot import Snapshot, label_looks
from finecomb.statistics.agreement.agreement import agree, most_influential_text_by_label
from finecomb.statistics.judges.monitored_means import monitored_means
from finecomb.statistics.judges.text_allocation import build_study_strata
from finecomb.statistics.measures.annotation_measures import measure
from finecomb.statistics.selection.view import ANY

PACE_WINDOW = timedelta(days=7)


def build_overview(snapshot: Snapshot, people: AnnotatorTable) -> Overview:
    """Everything on the page."""
    work, settings = snapshot.human_work.study.annotations, snapshot.study.settings
    done = dict(work.group_by("document").len().iter_rows())
    progress = _design_progress(snapshot) or _required_annotation_progress(
        snapshot.assigned_texts["id"], done, snapshot.annotators_per_document
    )
    findings = [] if snapshot.no_marks_reason else agree(snapshot.human_work, ["alpha"])
    alphas = [Figure.from_estimate(row.estimate) for row in findings if row.columns["label"] == ANY]
    pace = annotations_per_day(work["submitted"].drop_nulls().to_list(), snapshot.now)
    cost = _cost_per_text(snapshot)
    spent = pay.study_cost(settings, pay.compute_earnings(snapshot.study, (), snapshot.protocol)).total
    of_people = [row for row in people.rows if row.kind == "human"]
    return Overview(
        title=settings.title,
        state=snapshot.state,
        protocol=snapshot.protocol.id,
        looks=label_looks(snapshot.protocol),
        per_document=snapshot.annotators_per_document,
        documents=len(snapshot.assigned_texts),
        annotations=progress,
        drafts=sum(row.drafts for row in of_people),
        pace=pace,
        days=(progress.of - progress.done) / pace.value if pace.value else None,
        agreement=alphas[0] if alphas else Figure(value=None, why=snapshot.no_marks_reason),
        active=compute_quartiles(
            work["active_seconds"], "no times yet", "active-seconds", **snapshot.human_work.fields
        ),
        pay=_hourly_pay_quartiles(of_people, settings.price),
        spent=None if cost is None else spent,
        pay_floor=settings.pay_floor,
        budget=settings.budget or (None if cost is None else spent + cost * (progress.of - progress.done)),
        currency=settings.effective_currency,
        labels=tuple(_label_agreement_rows(snapshot, findings)),
        models=tuple(_model_rows(snapshot, done)),
        watched=tuple(_watched_figures(snapshot)),
        people=tuple(of_people),
        others=tuple(row for row in people.rows if row.kind != "human"),
        since=_changes_since_yesterday(snapshot),
        moved=_influential_text_by_figure(snapshot),
        as_of=snapshot.now,
    )


def _changes_since_yesterday(snapshot: Snapshot) -> RecentChange:
    """What was handed in within the last day, and how far people agreed before."""
    seen, first = snapshot.human_work, snapshot.now - timedelta(days=1)
    work = seen.study.annotations
    recent = work.filter(pl.col("submitted") > first)
    before = work.filter((pl.col("submitted") <= first) | pl.col("submitted").is_null())["annotator"].unique()
    was: float | None = None
    if len(recent) and not snapshot.no_marks_reason and len(before):
        earlier = seen.study.filter_annotations((pl.col("submitted") <= first) | pl.col("submitted").is_null())
        was = Figure.from_estimate(
            agree(replace(seen, study=earlier), ["alpha"], by_label=False, draws=0)[0].estimate
        ).value
    return RecentChange(
        annotations=len(recent),
        marks=int(seen.study.marks["annotation"].is_in(recent["id"].implode()).sum()),
        people=recent.filter(~pl.col("annotator").is_in(before.implode()))["annotator"].n_unique(),
        agreement=was,
    )


def _influential_text_by_figure(snapshot: Snapshot) -> dict[str, str]:
    """The text without which a figure would differ most, by the figure's name."""
    moved: dict[str, str] = {}
    if not snapshot.no_marks_reason and not snapshot.human_work.study.annotations.is_empty():
        for label, document in most_influential_text_by_label(snapshot.human_work).items():
            moved["agreement" if label == ANY else f"label/{label}"] = document
        moved |= dict(_influential_texts_for_rates(snapshot))
    return moved | dict(_influential_text_for_time(snapshot))


def _influential_texts_for_rates(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """Of each system's rate, and of the means over texts."""
    study = snapshot.human_work.study
    marks = study.marks.join(study.annotations.select(annotation="id", document="document"), on="annotation")
    texts = (
        study.annotations.group_by("document", maintain_order=True)
        .agg(readings=pl.len())
        .join(marks.group_by("document").agg(marks=pl.len()), on="document", how="left")
        .join(
            snapshot.assigned_texts.select(
                meta_entry("model"), document="id", words=pl.col("text").str.count_matches(r"\S+")
            ),
            on="document",
        )
        .with_columns(pl.col("marks").fill_null(0), words=pl.col("words") * pl.col("readings"))
    )
    for (model,), part in texts.partition_by("model", as_dict=True, maintain_order=True).items():
        whole, words = int(part["marks"].sum()), int(part["words"].sum())
        change = (whole - pl.col("marks")) / (words - pl.col("words")) - whole / max(1, words)
        yield from _most_influential_text(f"model/{model or ''}", part, change)
    mean = pl.col("marks") / pl.col("readings")
    yield from _most_influential_text("watched/marks per text", texts, mean - mean.mean())
    error = (pl.col("marks") > 0).cast(pl.Float64)
    yield from _most_influential_text("watched/texts with an error", texts, error - error.mean())


def _most_influential_text(name: str, texts: pl.DataFrame, change: pl.Expr) -> Iterator[tuple[str, str]]:
    """The name with the text of the greatest change; nothing where none changes anything."""
    ranked = texts.select("document", change=change.abs()).filter(pl.col("change").is_finite() & (pl.col("change") > 0))
    if len(texts) > 1 and len(ranked):
        yield name, str(ranked.sort("change", descending=True, maintain_order=True)["document"][0])


def _influential_text_for_time(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """Of the median time: the text whose own median lies farthest from it."""
    timed = snapshot.human_work.study.annotations.filter(pl.col("active_seconds").is_not_null())
    texts = timed.group_by("document", maintain_order=True).agg(pl.col("active_seconds").median())
    yield from _most_influential_text("active", texts, pl.col("active_seconds") - timed["active_seconds"].median())


def annotations_per_day(submitted: Sequence[datetime], now: datetime) -> Figure:
    """Annotations a day over the last week, or since the first one where that is later."""
    signature = str(Signature.from_fields(statistic="pace", per="day", window=f"{PACE_WINDOW.days} days"))
    recent = [time for time in submitted if time > now - PACE_WINDOW]
    if not recent:
        return Figure(value=None, why="nothing handed in for a week", signature=signature)
    span = now - max(min(submitted), now - PACE_WINDOW)
    if span < timedelta(hours=1):
        return Figure(value=None, why="less than an hour of work so far", signature=signature)
    return Figure(value=len(recent) / (span / timedelta(days=1)), signature=signature)


def _required_annotation_progress(documents: Iterable[str], done: dict[str, int], per_document: int) -> StudyProgress:
    """Places filled: a document with more annotations than it needs fills no more than it has."""
    filled = [min(done.get(id, 0), per_document) for id in documents]
    return StudyProgress(done=sum(filled), of=per_document * len(filled))


def _design_cells(snapshot: Snapshot) -> list[DesignCell]:
    """The cells of the study's design; none without one."""
    design = snapshot.study.settings.design
    return design_cells(design, snapshot.protocol) if design else []


def _design_progress(snapshot: Snapshot) -> StudyProgress | None:
    """Texts handed in out of those that all people of all cells read; None without a design."""
    cells = _design_cells(snapshot)
    if not cells:
        return None
    texts = {cell.name: cell.people * (cell.texts or len(snapshot.assigned_texts)) for cell in cells}
    people = snapshot.study.annotators.select(annotator="id", cell="cell")
    read = dict(snapshot.human_work.study.annotations.join(people, on="annotator").group_by("cell").len().iter_rows())
    return StudyProgress(done=sum(min(read.get(name, 0), of) for name, of in texts.items()), of=sum(texts.values()))


def _cost_per_text(snapshot: Snapshot) -> float | None:
    """What one more text costs with fees, on the average over the cells of a design; None where no pay is set."""
    settings = snapshot.study.settings
    paid = [
        (cell.pay, cell.people, cell.texts or len(snapshot.assigned_texts))
        for cell in _design_cells(snapshot)
        if cell.pay
    ]
    if paid:
        total = sum(pay * people for pay, people, _ in paid)
        return (1 + settings.fees) * total / sum(people * texts for _, people, texts in paid)
    return None if settings.price is None else settings.price * (1 + settings.fees)


def _hourly_pay_quartiles(people: Iterable[AnnotatorRow], price: float | None) -> Quartiles:
    why = "no price is set" if price is None else "no times yet"
    return compute_quartiles(
        pl.Series([person.pay for person in people], dtype=pl.Float64), why, "pay-per-hour", price=price
    )


def _label_agreement_rows(snapshot: Snapshot, findings: Iterable[Finding]) -> Iterator[LabelRow]:
    marks = dict(snapshot.human_work.study.marks.group_by("label").len().iter_rows())
    for row in findings:
        label = str(row.columns["label"])
        if label != ANY:
            yield LabelRow(label=label, marks=marks.get(label, 0), agreement=Figure.from_estimate(row.estimate))


def _model_rows(snapshot: Snapshot, done: dict[str, int]) -> Iterator[ModelRow]:
    models = snapshot.assigned_texts.select("id", meta_entry("model"))
    rates = (
        {}
        if snapshot.no_marks_reason
        else _mark_rate_by_model(snapshot)
        if models["model"].null_count() < len(models)
        else {None: _overall_mark_rate(snapshot)}
    )
    for (model,), part in models.partition_by("model", as_dict=True, maintain_order=True).items():
        teeth = sorted((done.get(id, 0) for id in part["id"]), reverse=True)
        rate = rates.get(model, Figure(value=None, why=snapshot.no_marks_reason or "no annotations yet"))
        yield ModelRow(
            model=model,
            teeth=tuple(teeth),
            progress=_required_annotation_progress(part["id"], done, snapshot.annotators_per_document),
            rate=rate,
        )


def _watched_figures(snapshot: Snapshot) -> Iterator[WatchedFigure]:
    """Means whose intervals may be watched while people work."""
    if snapshot.no_marks_reason:
        return
    allocation = snapshot.study.settings.allocation
    strata = build_study_strata(snapshot.study, allocation) if allocation else None
    for finding in monitored_means(snapshot.human_work, strata):
        yield WatchedFigure.model_validate({**finding.columns, "figure": Figure.from_estimate(finding.estimate)})


def _mark_rate_by_model(snapshot: Snapshot) -> dict[object, Figure]:
    """Marks per 100 words of each system that somebody has read."""
    if snapshot.human_work.study.annotations.is_empty():
        return {}
    findings = measure(snapshot.human_work, ["rate-1000"], ["model"], detail="any")
    return {
        finding.columns["model"]: Figure.from_estimate(finding.estimate, 0.1)
        for finding in findings
        if finding.columns["label"] == ANY
    }


def _overall_mark_rate(snapshot: Snapshot) -> Figure:
    findings = measure(snapshot.human_work, ["rate-1000"], detail="any")
    return Figure.from_estimate(next(finding.estimate for finding in findings if finding.columns["label"] == ANY), 0.1)
