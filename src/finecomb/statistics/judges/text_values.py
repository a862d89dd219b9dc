"""A measure of every text by people and by judges, side by side: what estimates and calibration read."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError, ParameterError, did_you_mean, param
from finecomb.core.frames import meta_entry, parse_json_object
from finecomb.core.study import Study
from finecomb.statistics.comparisons.system_comparison import numeric_answer_per_annotation, resolve_statistic
from finecomb.statistics.inference.resampling import ratio_or_nan
from finecomb.statistics.judges.text_allocation import TextStrata, build_study_strata
from finecomb.statistics.measures.annotation_matrix import build_annotation_matrix
from finecomb.statistics.measures.annotation_measures import MEASURES, MeasureOptions
from finecomb.statistics.selection.view import ANY, Filters, View, view

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


TRAINED_ON_KEY = "trained_on"
"""Name in an annotator's meta: ids of the documents that a judge was fitted on."""


def training_documents(study: Study, judge: str) -> set[str]:
    """Ids of the documents that a judge was fitted on, as far as its annotator says so."""
    cell = dict(study.annotators.select("id", "meta").iter_rows()).get(judge)
    return {str(document) for document in parse_json_object(cell).get(TRAINED_ON_KEY) or ()}


@dataclass(frozen=True)
class PeopleAndJudges:
    """People on one side and judges on the other, on the same study."""

    seen: View
    """Annotations of people and judges only."""
    people: tuple[str, ...]
    judges: tuple[str, ...]
    allocation: TextStrata | None = None
    """The strata from which the study's server drew texts, where it did."""

    @functools.cached_property
    def documents(self) -> tuple[str, ...]:
        """Ids of all texts that are spoken of, in the order of the study."""
        return tuple(self.seen.study.documents["id"])

    def documents_read_by(self, annotator: str) -> set[str]:
        """Ids of the texts that somebody annotated."""
        annotations = self.seen.study.annotations
        return set(annotations.filter(pl.col("annotator") == annotator)["document"])

    def meta_rows(self, names: Sequence[str]) -> list[tuple[str, ...]]:
        """The values of document meta of every text, in the order of `documents`; empty where there is none."""
        present = {name for cell in self.seen.study.documents["meta"] for name in parse_json_object(cell)}
        for name in names:
            if name not in present:
                raise FinecombError(f"documents have no meta {name!r}{did_you_mean(name, sorted(present))}")
        frame = self.seen.study.documents.select(meta_entry(name).fill_null("").alias(name) for name in names)
        return [tuple(str(cell) for cell in row) for row in frame.iter_rows()]

    def has_meta(self, name: str) -> bool:
        """Whether any text has meta of that name."""
        return any(name in parse_json_object(cell) for cell in self.seen.study.documents["meta"])


def select_people_and_judges(
    study: Study, judges: Sequence[str], people: Sequence[str] = (), filters: Filters | None = None
) -> PeopleAndJudges:
    """The judges by name, and the people: those named, else everybody human, else gold where nobody is."""
    filters = filters or Filters()
    work = study.submitted_work()
    kinds = dict(work.annotators.select("id", "kind").iter_rows())
    present = set(work.annotations["annotator"])
    for name in (*judges, *people):
        if name not in present:
            raise FinecombError(f"no annotator called {name!r} has handed in work{did_you_mean(name, sorted(present))}")
    both = sorted(set(judges) & set(people))
    if both:
        raise FinecombError(f"{both[0]} is named as judge and among people; nobody can be compared with themselves")
    others = sorted(present - set(judges))
    humans = list(people) or [name for name in others if kinds.get(name) == "human"]
    humans = humans or [name for name in others if kinds.get(name) == "gold"]
    if not humans:
        raise ParameterError(
            f"no people: nobody of kind human has handed in work; name people with {param('people')}",
            parameter="people",
        )
    chosen = Filters(
        protocol=filters.protocol, labels=filters.labels, drop=filters.drop, where=filters.where,
        annotators=(*humans, *judges), rounds=filters.rounds, back_off=filters.back_off, merge=filters.merge,
    )  # fmt: skip
    drawn = None if study.settings.allocation is None else build_study_strata(study, study.settings.allocation)
    return PeopleAndJudges(
        _drop_attention_checks(view(study, chosen), study, filters), tuple(humans), tuple(judges), drawn
    )


def _drop_attention_checks(work: View, study: Study, filters: Filters) -> View:
    """Texts without attention checks; where texts were drawn by a design, also those that nobody has read yet."""
    checks = list(study.settings.attention_checks)
    work = (
        work.restrict_to_documents(work.study.documents.filter(~pl.col("id").is_in(checks))["id"]) if checks else work
    )
    if study.settings.allocation is None or filters.where:
        return work
    every = study.documents.filter(~pl.col("id").is_in(checks))
    return replace(work, study=replace(work.study, documents=every))


@dataclass(frozen=True)
class MeasuredTexts:
    """Amounts of one measure by label, annotator and text: a text's value is top / bottom."""

    labels: tuple[str, ...]
    """The last is `any`."""
    documents: tuple[str, ...]
    top: Mapping[str, Floats]
    """By annotator, (labels, documents); NaN where not read or without a value."""
    bottom: Mapping[str, Floats]

    def people_means(self, names: Sequence[str], label: str) -> tuple[Floats, Floats]:
        """Mean amounts over those who read each text, (documents,); NaN where nobody did."""
        row = self.labels.index(label)
        tops, bottoms = (np.stack([side[name][row] for name in names]) for side in (self.top, self.bottom))
        counts = np.isfinite(tops).sum(axis=0).astype(np.float64)
        return tuple(ratio_or_nan(np.nan_to_num(table).sum(axis=0), counts) for table in (tops, bottoms))  # type: ignore[return-value]


def measure_texts(sides: PeopleAndJudges, measure: str, tokens: str = "words") -> MeasuredTexts:
    """A measure by name, or `answer:NAME`, of everybody on every text; several passes over a text are averaged."""
    work = sides.seen
    kind, _, question = measure.partition(":")
    if kind == "answer":
        values = numeric_answer_per_annotation(work, question)
        amounts = np.array(values["value"].to_list(), dtype=np.float64)[None]
        return _amounts_by_annotator(sides, (ANY,), values["annotation"], amounts, np.ones_like(amounts))
    resolve_statistic(measure)  # refuses a name that is none, with the nearest
    reading = build_annotation_matrix(work, tokens=tokens)
    amount = MEASURES[measure].amounts(reading, MeasureOptions(tokens=tokens))
    _reject_missing_values(measure, amount.lacking)
    bottom = amount.bottom if amount.counts is None else np.where(amount.counts, amount.bottom, np.nan)
    return _amounts_by_annotator(sides, reading.labels, reading.rows["annotation"], amount.top, bottom)


def _reject_missing_values(measure: str, lacking: Floats | None) -> None:
    kind = MEASURES[measure]
    if kind.strict and lacking is not None and (count := int(lacking[-1].sum())):
        raise FinecombError(
            f"{measure}: {count} marks have no {kind.needs}; leave their labels out, or estimate counts"
        )


def _amounts_by_annotator(
    sides: PeopleAndJudges, labels: Sequence[str], annotations: pl.Series, top: Floats, bottom: Floats
) -> MeasuredTexts:
    """Amounts of annotations, (labels, annotations), put where their annotator and text are."""
    places = {document: place for place, document in enumerate(sides.documents)}
    owners = {row[0]: row[1:] for row in sides.seen.study.annotations.select("id", "annotator", "document").iter_rows()}
    who = [owners[annotation] for annotation in annotations]
    annotator = np.array([name for name, _ in who])
    document = np.array([places[text] for _, text in who], dtype=np.int64)
    tops, bottoms = {}, {}
    for name in (*sides.people, *sides.judges):
        rows = (
            np.flatnonzero((annotator == name) & np.isfinite(bottom[-1])) if len(annotator) else np.zeros(0, np.int64)
        )
        counts = np.bincount(document[rows], minlength=len(places)).astype(np.float64)
        tops[name], bottoms[name] = (
            np.stack([ratio_or_nan(_sum_by_text(document[rows], row[rows], len(places)), counts) for row in amounts])
            for amounts in (top, bottom)
        )
    return MeasuredTexts(tuple(labels), sides.documents, tops, bottoms)


def _sum_by_text(places: Ints, values: Floats, size: int) -> Floats:
    return np.bincount(places, values, size).astype(np.float64)  # counts come back as integers when empty


def linearise_ratio(top: Floats, bottom: Floats) -> Floats:
    """Values whose mean is the ratio of sums: top / bottom where all bottoms are the same, else linearised about it."""
    if not len(bottom) or np.ptp(bottom) == 0:
        return ratio_or_nan(top, bottom)
    if not bottom.sum() > 0:
        return np.full(len(top), np.nan)
    whole = top.sum() / bottom.sum()
    return np.asarray(whole + (top - whole * bottom) / bottom.mean(), dtype=np.float64)
