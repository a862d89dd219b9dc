"""The researcher's first page: how far the study is, what it costs, how far people agree, and what they find."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

import polars as pl

from finecomb.agreement.agree import agree
from finecomb.core.estimate import Finding, Signature
from finecomb.core.frames import meta
from finecomb.measure.measures import measure
from finecomb.measure.view import ANY
from finecomb.people import pay
from finecomb.server.researchers.people import People, middle
from finecomb.server.researchers.schema import Figure, LabelRow, Middle, ModelRow, Overview, Person, StudyProgress
from finecomb.server.researchers.snapshot import Snapshot, shown

WINDOW = timedelta(days=7)


def overview(now: Snapshot, people: People) -> Overview:
    """Everything on the page."""
    work, settings = now.seen.study.annotations, now.study.settings
    done = dict(work.group_by("document").len().iter_rows())
    progress = _progress(now.texts["id"], done, now.per_document)
    found = [] if now.no_marks else agree(now.seen, ["alpha"])
    alphas = [Figure.of(each.estimate) for each in found if each.columns["label"] == ANY]
    pace = pace_of(work["submitted"].drop_nulls().to_list(), now.now)
    cost = None if settings.price is None else settings.price * (1 + settings.fees)
    spent = pay.cost(settings, pay.earned(now.study, (), now.protocol)).total
    of_people = [each for each in people.rows if each.kind == "human"]
    return Overview(
        title=settings.title,
        state=now.state,
        protocol=now.protocol.id,
        looks=shown(now.protocol),
        per_document=now.per_document,
        documents=len(now.texts),
        annotations=progress,
        drafts=sum(each.drafts for each in of_people),
        pace=pace,
        days=(progress.of - progress.done) / pace.value if pace.value else None,
        agreement=alphas[0] if alphas else Figure(value=None, why=now.no_marks),
        active=middle(work["active_seconds"], "no times yet", "active-seconds", **now.seen.fields),
        pay=_pay(of_people, settings.price),
        spent=None if cost is None else spent,
        budget=None if cost is None else spent + cost * (progress.of - progress.done),
        currency=settings.currency,
        labels=tuple(_labels(now, found)),
        models=tuple(_models(now, done)),
        people=tuple(of_people),
        others=tuple(each for each in people.rows if each.kind != "human"),
        as_of=now.now,
    )


def pace_of(submitted: Sequence[datetime], now: datetime) -> Figure:
    """Annotations a day over the last week, or since the first one where that is later."""
    signature = str(Signature.of(statistic="pace", per="day", window=f"{WINDOW.days} days"))
    recent = [time for time in submitted if time > now - WINDOW]
    if not recent:
        return Figure(value=None, why="nothing was handed in during the last week", signature=signature)
    span = now - max(min(submitted), now - WINDOW)
    if span < timedelta(hours=1):
        return Figure(value=None, why="less than an hour of work so far", signature=signature)
    return Figure(value=len(recent) / (span / timedelta(days=1)), signature=signature)


def _progress(documents: Iterable[str], done: dict[str, int], per_document: int) -> StudyProgress:
    """Places filled: a document with more annotations than it needs fills no more than it has."""
    filled = [min(done.get(id, 0), per_document) for id in documents]
    return StudyProgress(done=sum(filled), of=per_document * len(filled))


def _pay(people: Iterable[Person], price: float | None) -> Middle:
    why = "no price is set" if price is None else "no times yet"
    return middle(pl.Series([each.pay for each in people], dtype=pl.Float64), why, "pay-per-hour", price=price)


def _labels(now: Snapshot, found: Iterable[Finding]) -> Iterator[LabelRow]:
    marks = dict(now.seen.study.marks.group_by("label").len().iter_rows())
    for row in found:
        label = str(row.columns["label"])
        if label != ANY:
            yield LabelRow(label=label, marks=marks.get(label, 0), agreement=Figure.of(row.estimate))


def _models(now: Snapshot, done: dict[str, int]) -> Iterator[ModelRow]:
    models = now.texts.select("id", meta("model"))
    rates = {} if now.no_marks else _rates(now) if models["model"].null_count() < len(models) else {None: _rate(now)}
    for (model,), part in models.partition_by("model", as_dict=True, maintain_order=True).items():
        teeth = sorted((done.get(id, 0) for id in part["id"]), reverse=True)
        rate = rates.get(model, Figure(value=None, why=now.no_marks or "no annotations yet"))
        yield ModelRow(
            model=model, teeth=tuple(teeth), progress=_progress(part["id"], done, now.per_document), rate=rate
        )


def _rates(now: Snapshot) -> dict[object, Figure]:
    """Marks per 100 words of each system that somebody has read."""
    if now.seen.study.annotations.is_empty():
        return {}
    found = measure(now.seen, ["rate-1000"], ["model"], detail="any")
    return {each.columns["model"]: Figure.of(each.estimate, 0.1) for each in found if each.columns["label"] == ANY}


def _rate(now: Snapshot) -> Figure:
    found = measure(now.seen, ["rate-1000"], detail="any")
    return Figure.of(next(each.estimate for each in found if each.columns["label"] == ANY), 0.1)
