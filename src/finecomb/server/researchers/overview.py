"""The researcher's first page: how far the study is, what it costs, how far people agree, and what they find."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import polars as pl

from finecomb.collection import pay
from finecomb.core.design import DesignCell, design_cells
from finecomb.core.estimate import Finding, Signature
from finecomb.core.frames import meta
from finecomb.server.researchers.annotator_table import People, middle
from finecomb.server.researchers.schema import (
    Figure,
    LabelRow,
    Middle,
    ModelRow,
    Overview,
    Person,
    RecentChange,
    StudyProgress,
    WatchedFigure,
)
from finecomb.server.researchers.snapshot import Snapshot, shown
from finecomb.statistics.agreement.agreement import agree, most_moving_texts
from finecomb.statistics.judges.monitored_means import watched_means
from finecomb.statistics.judges.text_allocation import study_strata
from finecomb.statistics.measures.annotation_measures import measure
from finecomb.statistics.selection.view import ANY

WINDOW = timedelta(days=7)


def overview(snapshot: Snapshot, people: People) -> Overview:
    """Everything on the page."""
    work, settings = snapshot.seen.study.annotations, snapshot.study.settings
    done = dict(work.group_by("document").len().iter_rows())
    progress = _design_progress(snapshot) or _progress(snapshot.texts["id"], done, snapshot.per_document)
    findings = [] if snapshot.no_marks else agree(snapshot.seen, ["alpha"])
    alphas = [Figure.of(row.estimate) for row in findings if row.columns["label"] == ANY]
    pace = pace_of(work["submitted"].drop_nulls().to_list(), snapshot.now)
    cost = _cost_of_text(snapshot)
    spent = pay.cost(settings, pay.earned(snapshot.study, (), snapshot.protocol)).total
    of_people = [row for row in people.rows if row.kind == "human"]
    return Overview(
        title=settings.title,
        state=snapshot.state,
        protocol=snapshot.protocol.id,
        looks=shown(snapshot.protocol),
        per_document=snapshot.per_document,
        documents=len(snapshot.texts),
        annotations=progress,
        drafts=sum(row.drafts for row in of_people),
        pace=pace,
        days=(progress.of - progress.done) / pace.value if pace.value else None,
        agreement=alphas[0] if alphas else Figure(value=None, why=snapshot.no_marks),
        active=middle(work["active_seconds"], "no times yet", "active-seconds", **snapshot.seen.fields),
        pay=_pay(of_people, settings.price),
        spent=None if cost is None else spent,
        pay_floor=settings.pay_floor,
        budget=settings.budget or (None if cost is None else spent + cost * (progress.of - progress.done)),
        currency=settings.money,
        labels=tuple(_labels(snapshot, findings)),
        models=tuple(_models(snapshot, done)),
        watched=tuple(_watched(snapshot)),
        people=tuple(of_people),
        others=tuple(row for row in people.rows if row.kind != "human"),
        since=_since_yesterday(snapshot),
        moved=_moved(snapshot),
        as_of=snapshot.now,
    )


def _since_yesterday(snapshot: Snapshot) -> RecentChange:
    """What was handed in within the last day, and how far people agreed before."""
    seen, first = snapshot.seen, snapshot.now - timedelta(days=1)
    work = seen.study.annotations
    recent = work.filter(pl.col("submitted") > first)
    before = work.filter((pl.col("submitted") <= first) | pl.col("submitted").is_null())["annotator"].unique()
    was: float | None = None
    if len(recent) and not snapshot.no_marks and len(before):
        earlier = seen.study.only((pl.col("submitted") <= first) | pl.col("submitted").is_null())
        was = Figure.of(agree(replace(seen, study=earlier), ["alpha"], by_label=False, draws=0)[0].estimate).value
    return RecentChange(
        annotations=len(recent),
        marks=int(seen.study.marks["annotation"].is_in(recent["id"].implode()).sum()),
        people=recent.filter(~pl.col("annotator").is_in(before.implode()))["annotator"].n_unique(),
        agreement=was,
    )


def _moved(snapshot: Snapshot) -> dict[str, str]:
    """The text without which a figure would differ most, by the figure's name."""
    moved: dict[str, str] = {}
    if not snapshot.no_marks and not snapshot.seen.study.annotations.is_empty():
        for label, document in most_moving_texts(snapshot.seen).items():
            moved["agreement" if label == ANY else f"label/{label}"] = document
        moved |= dict(_moved_rates(snapshot))
    return moved | dict(_moved_time(snapshot))


def _moved_rates(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """Of each system's rate, and of the means over texts."""
    study = snapshot.seen.study
    marks = study.marks.join(study.annotations.select(annotation="id", document="document"), on="annotation")
    texts = (
        study.annotations.group_by("document", maintain_order=True)
        .agg(readings=pl.len())
        .join(marks.group_by("document").agg(marks=pl.len()), on="document", how="left")
        .join(
            snapshot.texts.select(meta("model"), document="id", words=pl.col("text").str.count_matches(r"\S+")),
            on="document",
        )
        .with_columns(pl.col("marks").fill_null(0), words=pl.col("words") * pl.col("readings"))
    )
    for (model,), part in texts.partition_by("model", as_dict=True, maintain_order=True).items():
        whole, words = int(part["marks"].sum()), int(part["words"].sum())
        change = (whole - pl.col("marks")) / (words - pl.col("words")) - whole / max(1, words)
        yield from _named(f"model/{model or ''}", part, change)
    mean = pl.col("marks") / pl.col("readings")
    yield from _named("watched/marks per text", texts, mean - mean.mean())
    error = (pl.col("marks") > 0).cast(pl.Float64)
    yield from _named("watched/texts with an error", texts, error - error.mean())


def _named(name: str, texts: pl.DataFrame, change: pl.Expr) -> Iterator[tuple[str, str]]:
    """The name with the text of the greatest change; nothing where none changes anything."""
    ranked = texts.select("document", change=change.abs()).filter(pl.col("change").is_finite() & (pl.col("change") > 0))
    if len(texts) > 1 and len(ranked):
        yield name, str(ranked.sort("change", descending=True, maintain_order=True)["document"][0])


def _moved_time(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """Of the median time: the text whose own median lies farthest from it."""
    timed = snapshot.seen.study.annotations.filter(pl.col("active_seconds").is_not_null())
    texts = timed.group_by("document", maintain_order=True).agg(pl.col("active_seconds").median())
    yield from _named("active", texts, pl.col("active_seconds") - timed["active_seconds"].median())


def pace_of(submitted: Sequence[datetime], now: datetime) -> Figure:
    """Annotations a day over the last week, or since the first one where that is later."""
    signature = str(Signature.of(statistic="pace", per="day", window=f"{WINDOW.days} days"))
    recent = [time for time in submitted if time > now - WINDOW]
    if not recent:
        return Figure(value=None, why="nothing handed in for a week", signature=signature)
    span = now - max(min(submitted), now - WINDOW)
    if span < timedelta(hours=1):
        return Figure(value=None, why="less than an hour of work so far", signature=signature)
    return Figure(value=len(recent) / (span / timedelta(days=1)), signature=signature)


def _progress(documents: Iterable[str], done: dict[str, int], per_document: int) -> StudyProgress:
    """Places filled: a document with more annotations than it needs fills no more than it has."""
    filled = [min(done.get(id, 0), per_document) for id in documents]
    return StudyProgress(done=sum(filled), of=per_document * len(filled))


def _cells(snapshot: Snapshot) -> list[DesignCell]:
    """The cells of the study's design; none without one."""
    design = snapshot.study.settings.design
    return design_cells(design, snapshot.protocol) if design else []


def _design_progress(snapshot: Snapshot) -> StudyProgress | None:
    """Texts handed in out of those that all people of all cells read; None without a design."""
    cells = _cells(snapshot)
    if not cells:
        return None
    texts = {cell.name: cell.people * (cell.texts or len(snapshot.texts)) for cell in cells}
    people = snapshot.study.annotators.select(annotator="id", cell="cell")
    read = dict(snapshot.seen.study.annotations.join(people, on="annotator").group_by("cell").len().iter_rows())
    return StudyProgress(done=sum(min(read.get(name, 0), of) for name, of in texts.items()), of=sum(texts.values()))


def _cost_of_text(snapshot: Snapshot) -> float | None:
    """What one more text costs with fees, on the average over the cells of a design; None where no pay is set."""
    settings = snapshot.study.settings
    paid = [(cell.pay, cell.people, cell.texts or len(snapshot.texts)) for cell in _cells(snapshot) if cell.pay]
    if paid:
        total = sum(pay * people for pay, people, _ in paid)
        return (1 + settings.fees) * total / sum(people * texts for _, people, texts in paid)
    return None if settings.price is None else settings.price * (1 + settings.fees)


def _pay(people: Iterable[Person], price: float | None) -> Middle:
    why = "no price is set" if price is None else "no times yet"
    return middle(pl.Series([person.pay for person in people], dtype=pl.Float64), why, "pay-per-hour", price=price)


def _labels(snapshot: Snapshot, findings: Iterable[Finding]) -> Iterator[LabelRow]:
    marks = dict(snapshot.seen.study.marks.group_by("label").len().iter_rows())
    for row in findings:
        label = str(row.columns["label"])
        if label != ANY:
            yield LabelRow(label=label, marks=marks.get(label, 0), agreement=Figure.of(row.estimate))


def _models(snapshot: Snapshot, done: dict[str, int]) -> Iterator[ModelRow]:
    models = snapshot.texts.select("id", meta("model"))
    rates = (
        {}
        if snapshot.no_marks
        else _rates(snapshot)
        if models["model"].null_count() < len(models)
        else {None: _rate(snapshot)}
    )
    for (model,), part in models.partition_by("model", as_dict=True, maintain_order=True).items():
        teeth = sorted((done.get(id, 0) for id in part["id"]), reverse=True)
        rate = rates.get(model, Figure(value=None, why=snapshot.no_marks or "no annotations yet"))
        yield ModelRow(
            model=model, teeth=tuple(teeth), progress=_progress(part["id"], done, snapshot.per_document), rate=rate
        )


def _watched(snapshot: Snapshot) -> Iterator[WatchedFigure]:
    """Means whose intervals may be watched while people work."""
    if snapshot.no_marks:
        return
    allocation = snapshot.study.settings.allocation
    strata = study_strata(snapshot.study, allocation) if allocation else None
    for finding in watched_means(snapshot.seen, strata):
        yield WatchedFigure.model_validate({**finding.columns, "figure": Figure.of(finding.estimate)})


def _rates(snapshot: Snapshot) -> dict[object, Figure]:
    """Marks per 100 words of each system that somebody has read."""
    if snapshot.seen.study.annotations.is_empty():
        return {}
    findings = measure(snapshot.seen, ["rate-1000"], ["model"], detail="any")
    return {
        finding.columns["model"]: Figure.of(finding.estimate, 0.1)
        for finding in findings
        if finding.columns["label"] == ANY
    }


def _rate(snapshot: Snapshot) -> Figure:
    findings = measure(snapshot.seen, ["rate-1000"], detail="any")
    return Figure.of(next(finding.estimate for finding in findings if finding.columns["label"] == ANY), 0.1)
