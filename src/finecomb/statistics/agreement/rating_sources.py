"""Sources of ratings for agreement measures: marks on units of text, labels of items, or answers to a question."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import polars as pl

from finecomb.core import study as studies
from finecomb.core.errors import FinecombError
from finecomb.statistics.agreement import alpha as alphas
from finecomb.statistics.agreement import pairwise
from finecomb.statistics.agreement.agreement_options import AgreeOptions, AlignmentOptions, ItemOptions, UnitMarkOptions
from finecomb.statistics.agreement.alpha import AgreementTally, sum_by_document, tally_binary_votes, tally_value_counts
from finecomb.statistics.agreement.boundary_merging import widen_overlapping_spans
from finecomb.statistics.agreement.gamma import pooled_gamma as gammas
from finecomb.statistics.agreement.gamma.text_gamma import TextGamma
from finecomb.statistics.agreement.mark_alignment import align_marks
from finecomb.statistics.agreement.minimal_repairs import apply_repair_mode, reject_repairs_with_item_alignment
from finecomb.statistics.agreement.rating_matrix import (
    NO_ERROR,
    UnitRatings,
    document_answer_ratings,
    item_label_ratings,
    mark_answer_ratings,
    unit_answer_ratings,
)
from finecomb.statistics.inference.resampling import Floats, Ints, Weights
from finecomb.statistics.measures.unit_grid import (
    UnitGrid,
    UnitVotes,
    annotators_per_document,
    build_unit_grid,
    count_unit_votes,
    locate_spans_on_grid,
    max_annotators_per_document,
)
from finecomb.statistics.selection.view import ANY_LABEL, View


@dataclass(frozen=True)
class UnitMarks:
    """Marks on units of text; expensive properties are computed on first use and cached."""

    view: View
    options: AgreeOptions
    noun: ClassVar[str] = "marks on units of text"
    options_type: ClassVar[type] = UnitMarkOptions

    @functools.cached_property
    def labels(self) -> tuple[str, ...]:
        """Row names: `any` for all marks, then each category, unless all labels are backed off to `any`."""
        categories = self.view.categories if self.options.by_label else ()
        return (ANY_LABEL, *(name for name in categories if name != ANY_LABEL))

    @property
    def categories(self) -> tuple[str, ...]:
        """Categories that have their own row."""
        return self.labels[1:]

    @functools.cached_property
    def grid(self) -> UnitGrid:
        """Unit grid of all texts."""
        level = self.options.level
        return build_unit_grid(self.view.study, level if level != "item" else "token", self.options.tokens)

    @functools.cached_property
    def grid_spans(self) -> pl.DataFrame:
        """Spans on the grid, one row per span."""
        return locate_spans_on_grid(self.view.study, self.grid)

    @functools.cached_property
    def votes(self) -> UnitVotes:
        """Number of annotators who marked each unit."""
        anyone = count_unit_votes(self.view.study, self.grid, None, self.grid_spans)
        labelled = count_unit_votes(self.view.study, self.grid, self.labels[1:], self.grid_spans)
        return UnitVotes(self.grid, self.labels, np.concatenate([anyone.marked, labelled.marked]), anyone.readers)

    @functools.cached_property
    def tallies(self) -> list[AgreementTally]:
        """A single tally that has all labels as rows."""
        if len(self.view.study.documents) > studies.DOCUMENTS_PER_PART:
            return [self._sums_of_parts[0]]
        readers = np.repeat(self.votes.readers, np.diff(self.grid.bounds))
        return [tally_binary_votes(self.labels, self.votes.marked, readers, self.grid.bounds)]

    def two_agree_sums(self) -> Floats:
        """Return the numbers of units marked by at least two annotators and by at least one, (documents, rows, 2)."""
        if len(self.view.study.documents) > studies.DOCUMENTS_PER_PART:
            return self._sums_of_parts[1]
        return np.swapaxes(alphas.two_agree_sums(self.votes), 0, 1)

    @functools.cached_property
    def _sums_of_parts(self) -> tuple[AgreementTally, Floats]:
        """Tally and two-agree sums of a large study, computed a few documents at a time to limit memory use."""
        level = self.options.level
        raters = max_annotators_per_document(
            self.view.study, level if level != "item" else "token", self.options.tokens
        )
        tallies, twos = [], []
        for study in self.view.study.iter_parts():
            part = replace(self, view=replace(self.view, study=study))
            readers = np.repeat(part.votes.readers, np.diff(part.grid.bounds))
            tallies.append(tally_binary_votes(self.labels, part.votes.marked, readers, part.grid.bounds, raters))
            twos.append(part.two_agree_sums())
        return alphas.concatenate_tallies(tallies), np.concatenate(twos)

    @functools.cached_property
    def mark_depths(self) -> pairwise.MarkDepths:
        """Marks of each annotation on units; a unit counts once per category."""
        return pairwise.compute_mark_depths(self.view.study, self.grid, self.categories, "union", self.grid_spans)

    @functools.cached_property
    def annotator_overlaps(self) -> pairwise.AnnotatorPairSums:
        """Overlap sums of annotator pairs for F1, with all categories, which typed F1 requires."""
        labels = [name for name in self.view.categories if name != ANY_LABEL]
        return pairwise.annotator_pair_overlaps(
            pairwise.compute_mark_depths(self.view.study, self.grid, labels, self.options.overlap, self.grid_spans)
        )

    @functools.cached_property
    def annotator_confusions(self) -> list[pairwise.AnnotatorPairSums]:
        """Confusion counts of annotator pairs for Cohen's kappa."""
        return [pairwise.pairwise_mark_confusions(pairwise.annotator_pair_overlaps(self.mark_depths))]

    @functools.cached_property
    def text_gammas(self) -> list[TextGamma]:
        """Gamma results of all texts."""
        options = self.options
        return gammas.measure_gamma_of_texts(self.view, options.gamma, options.seed, options.spread, options.watch)

    def undefined_reason(self, label: str) -> str:
        """Return the reason why agreement on a label is undefined."""
        row = self.labels.index(label) if label in self.labels else 0
        is_marked = bool(self.two_agree_sums()[:, row, 1].any())
        return alphas.undefined_agreement_reason(annotators_per_document(self.view.study), is_marked, row > 0)


@dataclass(frozen=True)
class RatingMatrixSource:
    """A matrix of ratings: labels of items, or answers to a question."""

    view: View
    options: AgreeOptions
    rated: UnitRatings

    @property
    def labels(self) -> tuple[str, ...]:
        """Row names: `any` for all values, then each label against all other values."""
        return (ANY_LABEL, *self.categories)

    @property
    def categories(self) -> tuple[str, ...]:
        """Labels that have their own row; empty for answers."""
        return ()

    @functools.cached_property
    def value_counts(self) -> tuple[Floats, Ints]:
        """Distinct values, and their counts per unit."""
        return alphas.value_counts_per_unit(self.rated.matrix)

    @functools.cached_property
    def category_counts(self) -> Ints:
        """Number of ratings of each category per unit, (categories, units)."""
        counts = [(self.rated.matrix == self.category_code(name)).sum(axis=0) for name in self.categories]
        return np.array(counts, dtype=np.int64).reshape(len(counts), self.rated.matrix.shape[1])

    def category_code(self, name: str) -> float:
        """Return the code of a value name."""
        return float(self.rated.names.index(name))

    @functools.cached_property
    def tallies(self) -> list[AgreementTally]:
        """A tally of all values, followed by one tally per label, which compares the label with all other values."""
        values, counts = self.value_counts
        overall = tally_value_counts(ANY_LABEL, values, counts, self.rated.bounds)
        if not self.categories:
            return [overall]
        return [
            overall,
            tally_binary_votes(self.categories, self.category_counts, counts.sum(axis=1), self.rated.bounds),
        ]

    def two_agree_sums(self) -> Floats:
        """Return the numbers of items marked by at least two annotators and by at least one, (documents, rows, 2)."""
        marked = ~np.isnan(self.rated.matrix) & (self.rated.matrix != self.category_code(NO_ERROR))
        k = np.concatenate([marked.sum(axis=0)[None], self.category_counts])
        return np.stack(
            [sum_by_document((k >= least).astype(np.float64), self.rated.bounds).T for least in (2, 1)], axis=-1
        )

    @functools.cached_property
    def annotator_confusions(self) -> list[pairwise.AnnotatorPairSums]:
        """Confusion counts of annotator pairs for Cohen's kappa: all values, then each label against all others."""
        confusions = [pairwise.pairwise_rating_confusions(self.rated, self.value_counts[0])]
        for name in self.categories:
            ratings = (self.rated.matrix == self.category_code(name)).astype(np.float64)
            binary = np.where(np.isnan(self.rated.matrix), np.nan, ratings)
            confusions.append(
                pairwise.pairwise_rating_confusions(replace(self.rated, matrix=binary), np.array([0.0, 1.0]))
            )
        return confusions

    def undefined_reason(self, label: str) -> str:
        """Return the reason why agreement on a label is undefined."""
        values, counts = self.value_counts
        if not len(values):
            return "no ratings"
        if (counts.sum(axis=1) < 2).all():
            return "no unit was rated by two annotators"
        return (
            "only one value occurs among the ratings compared"
            if label == ANY_LABEL
            else "either none or all of the ratings compared have this label"
        )


@dataclass(frozen=True)
class ItemLabels(RatingMatrixSource):
    """Labels of the items found by `align_marks`."""

    noun: ClassVar[str] = "labels of items (level item)"
    options_type: ClassVar[type] = ItemOptions

    @property
    def categories(self) -> tuple[str, ...]:
        """Labels of the view, each of which has its own row; empty without rows per label."""
        return self.view.categories if self.options.by_label else ()


@dataclass(frozen=True)
class AnswerRatings(RatingMatrixSource):
    """Answers to a question."""

    noun: ClassVar[str] = "answers to a question"
    options_type: ClassVar[type] = AlignmentOptions


RatingSource = UnitMarks | ItemLabels | AnswerRatings
RATING_SOURCES: tuple[type[RatingSource], ...] = (UnitMarks, ItemLabels, AnswerRatings)


def rating_source_type(options: AgreeOptions) -> type[RatingSource]:
    """Return the type of rating source that the options request."""
    if options.question:
        return AnswerRatings
    return ItemLabels if options.level == "item" else UnitMarks


def build_rating_source(view: View, options: AgreeOptions) -> RatingSource:
    """Build the source of ratings for the requested level or question."""
    if options.boundaries == "union":
        view = widen_overlapping_spans(view)
    if options.question:
        return AnswerRatings(view, options, _read_answer_ratings(view, options))
    if options.level == "item":
        reject_repairs_with_item_alignment(options.repairs, options.align)
        view = apply_repair_mode(view, options.repairs)
        return ItemLabels(view, options, item_label_ratings(view, align_marks(view, options.align), options.convention))
    return UnitMarks(view, options)


def _read_answer_ratings(view: View, options: AgreeOptions) -> UnitRatings:
    match options.level:
        case "document":
            return document_answer_ratings(view, options.question)
        case "sentence" | "segment":
            return unit_answer_ratings(view, options.question)
        case "item":
            return mark_answer_ratings(view, align_marks(view, options.align), options.question)
    raise FinecombError(f"a question requires level document, sentence, segment or item, found {options.level}")


@dataclass(frozen=True, slots=True)
class MeasureResult:
    """Rows of a measure with their values per draw; the first draw is the study itself."""

    columns: Sequence[Mapping[str, object]]
    values: Floats
    """(draws, rows): value of each row per draw."""
    whys: Sequence[str] = ()
    """Reasons for undefined rows, if the measure provides them."""


def build_tally_measure(
    statistic: Callable[[AgreementTally, Weights], Floats],
) -> Callable[[RatingSource, Weights], MeasureResult]:
    """Build a measure that applies a statistic to each tally of the source and returns one value per tally row."""

    def run(source: RatingSource, weights: Weights) -> MeasureResult:
        values = [statistic(tally, weights) for tally in source.tallies]
        return MeasureResult(
            [{"label": row} for tally in source.tallies for row in tally.rows], np.concatenate(values, axis=1)
        )

    return run
