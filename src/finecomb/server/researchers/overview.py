"""Overview page for researchers: progress, cost, agreement and results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import polars as pl

from finecomb.api.monitoring import monitor_means, most_influential_text_by_label
from finecomb.api.statistics import agree, measure
from finecomb.collection import pay
from finecomb.core.design import DesignCell, design_cells
from finecomb.core.frames import meta_entry
from finecomb.core.results import Signature
from finecomb.server.researchers.annotator_table import AnnotatorTable, compute_quartiles
from finecomb.server.researchers.schema import (
    Figure,
    LabelRow,
    ModelRow,
    Overview,
    RecentChange,
    StudyProgress,
    WatchedFigure,
)
from finecomb.server.researchers.snapshot import Snapshot, label_looks
from finecomb.statistics.selection.view import ANY_LABEL

PACE_WINDOW = timedelta(days=7)


def build_overview(snapshot: Snapshot, people: AnnotatorTable) -> Overview:
    """Build the overview page."""
    work, settings = snapshot.human_work.study.annotations, snapshot.study.settings
    done = dict(work.group_by("document").len().iter_rows())
    progress = _design_progress(snapshot) or _required_annotation_progress(
        snapshot.texts_without_attention_checks["id"], done, snapshot.annotators_per_document
    )
    findings = [] if snapshot.no_marks_reason else agree(snapshot.human_work, measure="alpha")
    alphas = [Figure.from_estimate(row.estimate) for row in findings if row.columns["label"] == ANY_LABEL]
    watched = [] if snapshot.no_marks_reason else monitor_means(snapshot.study, snapshot.human_work)
    pace = annotations_per_day(work["submitted"].drop_nulls().to_list(), snapshot.now)
    cost = _cost_per_text(snapshot)
    spent = pay.study_cost_so_far(settings, pay.compute_earnings(snapshot.study, (), snapshot.protocol)).total
    marks = dict(snapshot.human_work.study.marks.group_by("label").len().iter_rows())
    of_people = [row for row in people.rows if row.kind == "human"]
    return Overview(
        title=settings.title,
        state=snapshot.state,
        protocol=snapshot.protocol.id,
        looks=label_looks(snapshot.protocol),
        per_document=snapshot.annotators_per_document,
        documents=len(snapshot.texts_without_attention_checks),
        annotations=progress,
        drafts=sum(row.drafts for row in of_people),
        pace=pace,
        days=(progress.of - progress.done) / pace.value if pace.value else None,
        agreement=alphas[0] if alphas else Figure(value=None, why=snapshot.no_marks_reason),
        active=compute_quartiles(
            work["active_seconds"], "no times recorded yet", "active-seconds", **snapshot.human_work.fields
        ),
        pay=compute_quartiles(
            pl.Series([row.pay for row in of_people], dtype=pl.Float64),
            "no price is set" if settings.price is None else "no times recorded yet",
            "pay-per-hour",
            price=settings.price,
        ),
        spent=None if cost is None else spent,
        pay_floor=settings.pay_floor,
        budget=settings.budget or (None if cost is None else spent + cost * (progress.of - progress.done)),
        currency=settings.effective_currency,
        labels=tuple(
            LabelRow(
                label=str(row.columns["label"]),
                marks=marks.get(row.columns["label"], 0),
                agreement=Figure.from_estimate(row.estimate),
            )
            for row in findings
            if row.columns["label"] != ANY_LABEL
        ),
        models=tuple(_model_rows(snapshot, done)),
        watched=tuple(
            WatchedFigure.model_validate({**finding.columns, "figure": Figure.from_estimate(finding.estimate)})
            for finding in watched
        ),
        people=tuple(of_people),
        others=tuple(row for row in people.rows if row.kind != "human"),
        since=_changes_since_yesterday(snapshot),
        moved=_influential_text_by_figure(snapshot),
        as_of=snapshot.now,
    )


def _changes_since_yesterday(snapshot: Snapshot) -> RecentChange:
    """Return the work submitted within the last day, and the agreement before that work."""
    human_work, first = snapshot.human_work, snapshot.now - timedelta(days=1)
    work = human_work.study.annotations
    recent = work.filter(pl.col("submitted") > first)
    before = work.filter((pl.col("submitted") <= first) | pl.col("submitted").is_null())["annotator"].unique()
    was: float | None = None
    if len(recent) and not snapshot.no_marks_reason and len(before):
        earlier = human_work.study.filter_annotations((pl.col("submitted") <= first) | pl.col("submitted").is_null())
        was = Figure.from_estimate(
            agree(replace(human_work, study=earlier), measure="alpha", each_label=False, draws=0)[0].estimate
        ).value
    return RecentChange(
        annotations=len(recent),
        marks=int(human_work.study.marks["annotation"].is_in(recent["id"].implode()).sum()),
        people=recent.filter(~pl.col("annotator").is_in(before.implode()))["annotator"].n_unique(),
        agreement=was,
    )


def _influential_text_by_figure(snapshot: Snapshot) -> dict[str, str]:
    """Return the text whose removal would change each figure most, by name of the figure."""
    moved: dict[str, str] = {}
    if not snapshot.no_marks_reason and not snapshot.human_work.study.annotations.is_empty():
        for label, document in most_influential_text_by_label(snapshot.human_work).items():
            moved["agreement" if label == ANY_LABEL else f"label/{label}"] = document
        moved |= dict(_influential_texts_for_rates(snapshot))
    timed = snapshot.human_work.study.annotations.filter(pl.col("active_seconds").is_not_null())
    texts = timed.group_by("document", maintain_order=True).agg(pl.col("active_seconds").median())
    distance = pl.col("active_seconds") - timed["active_seconds"].median()
    return moved | dict(_most_influential_text("active", texts, distance))


def _influential_texts_for_rates(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """Yield the most influential text for each system's mark rate, and for the means over texts."""
    study = snapshot.human_work.study
    marks = study.marks.join(study.annotations.select(annotation="id", document="document"), on="annotation")
    texts = (
        study.annotations.group_by("document", maintain_order=True)
        .agg(readings=pl.len())
        .join(marks.group_by("document").agg(marks=pl.len()), on="document", how="left")
        .join(
            snapshot.texts_without_attention_checks.select(
                meta_entry("model"), document="id", words=pl.col("text").str.count_matches(r"\S+")
            ),
            on="document",
        )
        .with_columns(pl.col("marks").fill_null(0), words=pl.col("words") * pl.col("readings"))
    )
    for (model,), part in texts.partition_by("model", as_dict=True, maintain_order=True).items():
        mark_count, word_count = int(part["marks"].sum()), int(part["words"].sum())
        change = (mark_count - pl.col("marks")) / (word_count - pl.col("words")) - mark_count / max(1, word_count)
        yield from _most_influential_text(f"model/{model or ''}", part, change)
    mean = pl.col("marks") / pl.col("readings")
    yield from _most_influential_text("watched/marks per text", texts, mean - mean.mean())
    error = (pl.col("marks") > 0).cast(pl.Float64)
    yield from _most_influential_text("watched/texts with an error", texts, error - error.mean())


def _most_influential_text(name: str, texts: pl.DataFrame, change: pl.Expr) -> Iterator[tuple[str, str]]:
    """Yield the figure's name and its most influential text, or nothing when no text has an influence."""
    ranked = texts.select("document", change=change.abs()).filter(pl.col("change").is_finite() & (pl.col("change") > 0))
    if len(texts) > 1 and len(ranked):
        yield name, str(ranked.sort("change", descending=True, maintain_order=True)["document"][0])


def annotations_per_day(submitted: Sequence[datetime], now: datetime) -> Figure:
    """Return the number of annotations per day in the last week, or since the first annotation if that is later."""
    signature = str(Signature.from_fields(statistic="pace", per="day", window=f"{PACE_WINDOW.days} days"))
    recent = [time for time in submitted if time > now - PACE_WINDOW]
    if not recent:
        return Figure(value=None, why="no submissions in the last week", signature=signature)
    span = now - max(min(submitted), now - PACE_WINDOW)
    if span < timedelta(hours=1):
        return Figure(value=None, why="less than one hour of data so far", signature=signature)
    return Figure(value=len(recent) / (span / timedelta(days=1)), signature=signature)


def _required_annotation_progress(documents: Iterable[str], done: dict[str, int], per_document: int) -> StudyProgress:
    """Return the progress over all documents. Annotations beyond the required number do not count."""
    filled = [min(done.get(id, 0), per_document) for id in documents]
    return StudyProgress(done=sum(filled), of=per_document * len(filled))


def _design_cells(snapshot: Snapshot) -> list[DesignCell]:
    """Return the cells of the study's design, or an empty list."""
    design = snapshot.study.settings.design
    return design_cells(design, snapshot.protocol) if design else []


def _design_progress(snapshot: Snapshot) -> StudyProgress | None:
    """Return the number of submitted texts and the number required by all design cells, or None without a design."""
    cells = _design_cells(snapshot)
    if not cells:
        return None
    texts = {cell.name: cell.people * (cell.texts or len(snapshot.texts_without_attention_checks)) for cell in cells}
    people = snapshot.study.annotators.select(annotator="id", cell="cell")
    read = dict(snapshot.human_work.study.annotations.join(people, on="annotator").group_by("cell").len().iter_rows())
    return StudyProgress(done=sum(min(read.get(name, 0), of) for name, of in texts.items()), of=sum(texts.values()))


def _cost_per_text(snapshot: Snapshot) -> float | None:
    """Return the cost of one more text including fees, or None without pay. In a design, average over its cells."""
    settings = snapshot.study.settings
    paid = [
        (cell.pay, cell.people, cell.texts or len(snapshot.texts_without_attention_checks))
        for cell in _design_cells(snapshot)
        if cell.pay
    ]
    if paid:
        total = sum(pay * people for pay, people, _ in paid)
        return (1 + settings.fees) * total / sum(people * texts for _, people, texts in paid)
    return None if settings.price is None else settings.price * (1 + settings.fees)


def _model_rows(snapshot: Snapshot, done: dict[str, int]) -> Iterator[ModelRow]:
    models = snapshot.texts_without_attention_checks.select("id", meta_entry("model"))
    # Marks per 100 words of each annotated system, or of all texts when no text has a model
    has_models, is_empty = models["model"].null_count() < len(models), snapshot.human_work.study.annotations.is_empty()
    rates: dict[object, Figure] = {}
    if not snapshot.no_marks_reason and not (has_models and is_empty):
        by = "model" if has_models else "none"
        findings = measure(snapshot.human_work, measure="rate-1000", by=by, each_label=False)
        rates = {
            finding.columns["model"] if has_models else None: Figure.from_estimate(finding.estimate, 0.1)
            for finding in findings
            if finding.columns["label"] == ANY_LABEL
        }
    for (model,), part in models.partition_by("model", as_dict=True, maintain_order=True).items():
        teeth = sorted((done.get(id, 0) for id in part["id"]), reverse=True)
        rate = rates.get(model, Figure(value=None, why=snapshot.no_marks_reason or "no annotations yet"))
        yield ModelRow(
            model=model,
            teeth=tuple(teeth),
            progress=_required_annotation_progress(part["id"], done, snapshot.annotators_per_document),
            rate=rate,
        )
