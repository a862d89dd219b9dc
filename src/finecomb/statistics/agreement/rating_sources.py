"""What measures of agreement read: marks on the units of texts, errors found by several, or answers to a question."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import polars as pl

from finecomb.core.errors import FinecombError
from finecomb.statistics.agreement import alpha as alphas
from finecomb.statistics.agreement import pairwise
from finecomb.statistics.agreement.agreement_options import AgreeOptions, AlignmentOptions, ItemOptions, UnitMarkOptions
from finecomb.statistics.agreement.boundary_merging import widen_overlapping_spans
from finecomb.statistics.agreement.coincidences import (
    Floats,
    Ints,
    Tally,
    concatenate_tallies,
    sum_by_document,
    tally_binary_votes,
    tally_value_counts,
)
from finecomb.statistics.agreement.gamma import pooled_gamma as gammas
from finecomb.statistics.agreement.gamma.text_gamma import TextGamma
from finecomb.statistics.agreement.mark_alignment import align
from finecomb.statistics.agreement.minimal_repairs import apply_repair_mode, reject_repairs_with_item_alignment
from finecomb.statistics.agreement.rating_matrix import (
    NO_ERROR,
    UnitRatings,
    document_answer_ratings,
    item_label_ratings,
    mark_answer_ratings,
    unit_answer_ratings,
)
from finecomb.statistics.measures.unit_grid import Level as GridLevel
from finecomb.statistics.measures.unit_grid import (
    UnitGrid,
    UnitVotes,
    annotators_per_document,
    build_grid,
    count_unit_votes,
    locate_spans_on_grid,
    max_annotators_per_document,
)
from finecomb.statistics.selection.view import ANY, View


@dataclass(frozen=True)
class UnitMarks:
    """Marks on the units of texts; what is slow to make is made once, and only when a measure asks for it."""

    view: View
    options: AgreeOptions
    noun: ClassVar[str] = "marks on the units of a text"
    options_type: ClassVar[type] = UnitMarkOptions

    @property
    def labels(self) -> tuple[str, ...]:
        """The rows: any mark at all, then each category."""
        return (ANY, *self.categories)

    @property
    def categories(self) -> tuple[str, ...]:
        """Those judged apart; backed off to `any` there are none."""
        return tuple(name for name in self.view.categories if name != ANY) if self.options.by_label else ()

    @functools.cached_property
    def grid(self) -> UnitGrid:
        """The units of all texts."""
        return build_grid(self.view.study, self._level, self.options.tokens)

    @property
    def _level(self) -> GridLevel:
        return self.options.level if self.options.level != "item" else "token"

    @functools.cached_property
    def grid_spans(self) -> pl.DataFrame:
        """One row per span."""
        return locate_spans_on_grid(self.view.study, self.grid)

    @functools.cached_property
    def votes(self) -> UnitVotes:
        """How many marked each unit."""
        anyone = count_unit_votes(self.view.study, self.grid, None, self.grid_spans)
        labelled = count_unit_votes(self.view.study, self.grid, self.categories, self.grid_spans)
        return UnitVotes(self.grid, self.labels, np.concatenate([anyone.marked, labelled.marked]), anyone.readers)

    @functools.cached_property
    def document_sums(self) -> tuple[Tally, Floats]:
        """Tallies of all labels, and what `two` gives, made from some documents at a time."""
        raters = max_annotators_per_document(self.view.study, self._level, self.options.tokens)
        parts = (self if part.study is self.view.study else replace(self, view=part) for part in self.view.parts())
        tallies, twos = zip(*(part.partial_document_sums(raters) for part in parts), strict=True)
        return concatenate_tallies(tallies), np.concatenate(twos)

    def partial_document_sums(self, raters: int) -> tuple[Tally, Floats]:
        """What `sums` gives for these documents alone; `raters` are the most readers that a unit of any has."""
        tally = tally_binary_votes(
            self.labels, self.votes.marked, self.votes.annotators_per_unit, self.grid.bounds, raters
        )
        return tally, np.swapaxes(alphas.two_agree_sums(self.votes), 0, 1)

    @property
    def tallies(self) -> list[Tally]:
        """All labels in one."""
        return [self.document_sums[0]]

    def two_agree_sums(self) -> Floats:
        """Units marked by two or more, and by any, (documents, rows, 2)."""
        return self.document_sums[1]

    @functools.cached_property
    def mark_depths(self) -> pairwise.MarkDepths:
        """Who marked what, each unit once."""
        return pairwise.compute_mark_depths(self.view.study, self.grid, self.categories, "union", self.grid_spans)

    @functools.cached_property
    def annotator_overlaps(self) -> pairwise.AnnotatorPairs:
        """Pairs for F1; all categories, since typed F1 needs them."""
        labels = [name for name in self.view.categories if name != ANY]
        return pairwise.annotator_pair_overlaps(
            pairwise.compute_mark_depths(self.view.study, self.grid, labels, self.options.overlap, self.grid_spans)
        )

    @functools.cached_property
    def annotator_confusions(self) -> list[pairwise.AnnotatorPairs]:
        """Pairs for Cohen's kappa."""
        return [pairwise.pairwise_mark_confusions(pairwise.annotator_pair_overlaps(self.mark_depths))]

    @functools.cached_property
    def text_gammas(self) -> list[TextGamma]:
        """Gamma of each text."""
        options = self.options
        return gammas.measure_gamma_of_texts(self.view, options.gamma, options.seed, options.spread, options.watch)

    def undefined_reason(self, label: str) -> str:
        """Why something about a label has no value."""
        row = self.labels.index(label) if label in self.labels else 0
        is_marked = bool(self.two_agree_sums()[:, row, 1].any())
        return alphas.undefined_agreement_reason(annotators_per_document(self.view.study), is_marked)


@dataclass(frozen=True)
class RatingMatrix:
    """A matrix of ratings: labels of items, or answers."""

    view: View
    options: AgreeOptions
    rated: UnitRatings

    @property
    def labels(self) -> tuple[str, ...]:
        """The rows: the values as they are, then each label against all other values."""
        return (ANY, *self.categories)

    @property
    def categories(self) -> tuple[str, ...]:
        """Labels rated apart; answers have none."""
        return ()

    @functools.cached_property
    def value_counts(self) -> tuple[Floats, Ints]:
        """Values, and how often each was given to each unit."""
        return alphas.value_counts_per_unit(self.rated.matrix)

    @functools.cached_property
    def category_counts(self) -> Ints:
        """How often each category was given to each unit, (categories, units)."""
        counts = [(self.rated.matrix == self.category_code(name)).sum(axis=0) for name in self.categories]
        return np.array(counts, dtype=np.int64).reshape(len(counts), self.rated.matrix.shape[1])

    def category_code(self, name: str) -> float:
        """The number that stands for a name."""
        return float(self.rated.names.index(name))

    @functools.cached_property
    def tallies(self) -> list[Tally]:
        """All values together, then each label against the rest."""
        values, counts = self.value_counts
        whole = tally_value_counts(ANY, values, counts, self.rated.bounds)
        if not self.categories:
            return [whole]
        return [whole, tally_binary_votes(self.categories, self.category_counts, counts.sum(axis=1), self.rated.bounds)]

    def two_agree_sums(self) -> Floats:
        """Items marked by two or more, and by any, (documents, rows, 2)."""
        marked = ~np.isnan(self.rated.matrix) & (self.rated.matrix != self.category_code(NO_ERROR))
        k = np.concatenate([marked.sum(axis=0)[None], self.category_counts])
        return np.stack(
            [sum_by_document((k >= least).astype(np.float64), self.rated.bounds).T for least in (2, 1)], axis=-1
        )

    @functools.cached_property
    def annotator_confusions(self) -> list[pairwise.AnnotatorPairs]:
        """Pairs for Cohen's kappa, with all values and with each label against the rest."""
        whole = [pairwise.pairwise_rating_confusions(self.rated, self.value_counts[0])]
        for name in self.categories:
            ratings = (self.rated.matrix == self.category_code(name)).astype(np.float64)
            binary = np.where(np.isnan(self.rated.matrix), np.nan, ratings)
            whole.append(pairwise.pairwise_rating_confusions(replace(self.rated, matrix=binary), np.array([0.0, 1.0])))
        return whole

    def undefined_reason(self, label: str) -> str:
        """Why something about a label has no value."""
        values, counts = self.value_counts
        if not len(values):
            return "nothing was rated"
        if (counts.sum(axis=1) < 2).all():
            return "nothing was rated by two annotators"
        return "only one value was given" if label == ANY else "nobody gave this label, or everybody"


@dataclass(frozen=True)
class ItemLabels(RatingMatrix):
    """What annotators called the errors that `align` found."""

    noun: ClassVar[str] = "errors (level item)"
    options_type: ClassVar[type] = ItemOptions

    @property
    def categories(self) -> tuple[str, ...]:
        """The labels of errors."""
        return self.view.categories if self.options.by_label else ()


@dataclass(frozen=True)
class AnswerRatings(RatingMatrix):
    """Answers to a question."""

    noun: ClassVar[str] = "answers to a question"
    options_type: ClassVar[type] = AlignmentOptions


Source = UnitMarks | ItemLabels | AnswerRatings
SOURCES: tuple[type[Source], ...] = (UnitMarks, ItemLabels, AnswerRatings)


def rating_source_type(options: AgreeOptions) -> type[Source]:
    """Which of the sources the options ask for."""
    if options.question:
        return AnswerRatings
    return ItemLabels if options.level == "item" else UnitMarks


def build_rating_source(view: View, options: AgreeOptions) -> Source:
    """What the measures of one level read."""
    if options.boundaries == "union":
        view = widen_overlapping_spans(view)
    kind = rating_source_type(options)
    if kind is AnswerRatings:
        return AnswerRatings(view, options, _read_answer_ratings(view, options))
    if kind is ItemLabels:
        reject_repairs_with_item_alignment(options.repairs, options.align)
        view = apply_repair_mode(view, options.repairs)
        return ItemLabels(view, options, item_label_ratings(view, align(view, options.align), options.convention))
    return UnitMarks(view, options)


def _read_answer_ratings(view: View, options: AgreeOptions) -> UnitRatings:
    match options.level:
        case "document":
            return document_answer_ratings(view, options.question)
        case "sentence" | "segment":
            return unit_answer_ratings(view, options.question)
        case "item":
            return mark_answer_ratings(view, align(view, options.align), options.question)
    raise FinecombError(f"a question is about a document, sentence, segment or item, not about a {options.level}")
