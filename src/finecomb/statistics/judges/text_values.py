"""Values of a measure per text, by people and by judges, as the input of estimates and calibration."""

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
from finecomb.statistics.comparisons.system_comparison import resolve_statistic
from finecomb.statistics.inference.resampling import ratio_or_nan
from finecomb.statistics.judges.text_allocation import TextStrata, build_study_strata
from finecomb.statistics.measures.annotation_measures import ANNOTATION_MEASURES, MeasureOptions
from finecomb.statistics.measures.numeric_answers import numeric_answer_values
from finecomb.statistics.measures.unit_grid import build_annotation_matrix
from finecomb.statistics.selection.view import ANY_LABEL, Filters, View, view

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


TRAINED_ON_KEY = "trained_on"
"""Key in an annotator's meta that holds the IDs of the documents on which a judge was trained."""


def training_documents(study: Study, judge: str) -> set[str]:
    """Return the IDs of the documents on which a judge was trained, as given in its annotator's meta."""
    cell = dict(study.annotators.select("id", "meta").iter_rows()).get(judge)
    return {str(document) for document in parse_json_object(cell).get(TRAINED_ON_KEY) or ()}


@dataclass(frozen=True)
class PeopleAndJudges:
    """People and judges who annotated the same study."""

    seen: View
    """View that contains only the annotations of people and judges."""
    people: tuple[str, ...]
    judges: tuple[str, ...]
    allocation: TextStrata | None = None
    """Strata from which the server drew texts, if the study has an allocation."""

    @functools.cached_property
    def documents(self) -> tuple[str, ...]:
        """IDs of all texts in the order of the study."""
        return tuple(self.seen.study.documents["id"])

    def documents_read_by(self, annotator: str) -> set[str]:
        """Return the IDs of the texts that an annotator annotated."""
        annotations = self.seen.study.annotations
        return set(annotations.filter(pl.col("annotator") == annotator)["document"])

    def meta_rows(self, names: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the values of document meta for each text, in the order of `documents`; "" for missing values."""
        present = {name for cell in self.seen.study.documents["meta"] for name in parse_json_object(cell)}
        for name in names:
            if name not in present:
                raise FinecombError(f"no document has the meta field {name!r}{did_you_mean(name, sorted(present))}")
        frame = self.seen.study.documents.select(meta_entry(name).fill_null("").alias(name) for name in names)
        return [tuple(str(cell) for cell in row) for row in frame.iter_rows()]

    def has_meta(self, name: str) -> bool:
        """Return True if any text has the meta field `name`."""
        return any(name in parse_json_object(cell) for cell in self.seen.study.documents["meta"])


def select_people_and_judges(
    study: Study, judges: Sequence[str], people: Sequence[str] = (), filters: Filters | None = None
) -> PeopleAndJudges:
    """Select the annotations of the named judges and people; by default, all humans or, without humans, gold."""
    filters = filters or Filters()
    work = study.submitted_work()
    kinds = dict(work.annotators.select("id", "kind").iter_rows())
    present = set(work.annotations["annotator"])
    for name in (*judges, *people):
        if name not in present:
            raise FinecombError(f"annotator {name!r} has no submitted annotations{did_you_mean(name, sorted(present))}")
    both = sorted(set(judges) & set(people))
    if both:
        raise FinecombError(f"{both[0]!r} is named as a judge and as a person; name it only once")
    others = sorted(present - set(judges))
    humans = list(people) or [name for name in others if kinds.get(name) == "human"]
    humans = humans or [name for name in others if kinds.get(name) == "gold"]
    if not humans:
        raise ParameterError(
            f"no annotator of kind human or gold is left to compare with; name people with {param('people')}",
            parameter="people",
        )
    chosen = Filters(
        protocol=filters.protocol, labels=filters.labels, drop=filters.drop, where=filters.where,
        annotators=(*humans, *judges), rounds=filters.rounds, back_off=filters.back_off, merge=filters.merge,
    )  # fmt: skip
    strata = None if study.settings.allocation is None else build_study_strata(study, study.settings.allocation)
    seen = view(study, chosen)
    checks = list(study.settings.attention_checks)
    if checks:
        seen = seen.restrict_to_documents(seen.study.documents.filter(~pl.col("id").is_in(checks))["id"])
    # With an allocation, texts that no annotator has seen yet belong to the sample as well.
    if strata is not None and not filters.where:
        every = study.documents.filter(~pl.col("id").is_in(checks))
        seen = replace(seen, study=replace(seen.study, documents=every))
    return PeopleAndJudges(seen, tuple(humans), tuple(judges), strata)


@dataclass(frozen=True)
class MeasuredTexts:
    """Amounts of one measure by label, annotator and text; the value of a text is top / bottom."""

    labels: tuple[str, ...]
    """Names of the labels, ending with `any`."""
    documents: tuple[str, ...]
    top: Mapping[str, Floats]
    """Numerators by annotator, (labels, documents); NaN without an annotation or a value."""
    bottom: Mapping[str, Floats]

    def people_means(self, names: Sequence[str], label: str) -> tuple[Floats, Floats]:
        """Return the mean amounts over the people who annotated each text, (documents,); NaN if no person did."""
        row = self.labels.index(label)
        tops, bottoms = (np.stack([side[name][row] for name in names]) for side in (self.top, self.bottom))
        counts = np.isfinite(tops).sum(axis=0).astype(np.float64)
        return tuple(ratio_or_nan(np.nan_to_num(table).sum(axis=0), counts) for table in (tops, bottoms))  # type: ignore[return-value]


def measure_texts(sides: PeopleAndJudges, measure: str, tokens: str = "words") -> MeasuredTexts:
    """Compute a measure, or `answer:NAME`, per annotator and text, averaging several passes over a text."""
    work = sides.seen
    kind, _, question = measure.partition(":")
    if kind == "answer":
        values = numeric_answer_values(work, question)
        amounts = np.array(values["value"].to_list(), dtype=np.float64)[None]
        return _amounts_by_annotator(sides, (ANY_LABEL,), values["annotation"], amounts, np.ones_like(amounts))
    resolve_statistic(measure)  # raises the error for an unknown name
    reading = build_annotation_matrix(work, tokens=tokens)
    definition = ANNOTATION_MEASURES[measure]
    amount = definition.amounts(reading, MeasureOptions(tokens=tokens))
    if definition.strict and amount.lacking is not None and (count := int(amount.lacking[-1].sum())):
        needs = f"{measure}: {count} marks have no {definition.needs}"
        raise FinecombError(f"{needs}; exclude their labels or estimate counts")
    bottom = amount.bottom if amount.counts is None else np.where(amount.counts, amount.bottom, np.nan)
    return _amounts_by_annotator(sides, reading.labels, reading.rows["annotation"], amount.top, bottom)


def _amounts_by_annotator(
    sides: PeopleAndJudges, labels: Sequence[str], annotations: pl.Series, top: Floats, bottom: Floats
) -> MeasuredTexts:
    """Arrange the amounts of annotations, (labels, annotations), by annotator and text."""
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
            np.stack(
                [
                    ratio_or_nan(np.bincount(document[rows], row[rows], len(places)).astype(np.float64), counts)
                    for row in amounts
                ]
            )
            for amounts in (top, bottom)
        )
    return MeasuredTexts(tuple(labels), sides.documents, tops, bottoms)


def linearise_ratio(top: Floats, bottom: Floats) -> Floats:
    """Return values whose mean is sum(top) / sum(bottom): top / bottom if bottoms are equal, otherwise linearised."""
    if not len(bottom) or np.ptp(bottom) == 0:
        return ratio_or_nan(top, bottom)
    if not bottom.sum() > 0:
        return np.full(len(top), np.nan)
    ratio = top.sum() / bottom.sum()
    return np.asarray(ratio + (top - ratio * bottom) / bottom.mean(), dtype=np.float64)
