"""Annotators two at a time and one against the rest: overlap F1, Cohen's kappa, Pearson of counts, P and R."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
import scipy  # its parts load when first used: start-up stays quick
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError, param
from finecomb.core.study import Study
from finecomb.statistics.agreement.alpha import Distance
from finecomb.statistics.agreement.coincidences import Floats, Ints, Weights, pool_sums_per_draw, sum_by_document
from finecomb.statistics.agreement.kappa import cohen_from_confusion
from finecomb.statistics.agreement.rating_matrix import UnitRatings
from finecomb.statistics.inference.resampling import ratio_or_nan
from finecomb.statistics.measures.unit_grid import UnitGrid, UnitVotes, locate_spans_on_grid, remove_range_overlaps

Overlap = Literal["add", "union"]
RestMode = Literal["union", "majority"]
_MAX_VALUES_IN_MEMORY = 4_000_000  # numbers held while draws are worked through
_MAX_LABELS = 62


# --- who marked what ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MarkDepths:
    """Every annotation on its own stretch of a line: how deep its marks lie on each unit of its document."""

    depth: NDArray[np.int16]
    """(categories, cells)."""
    bounds: Ints
    """(annotations + 1,): annotation i has the cells `bounds[i]` to `bounds[i + 1]`."""
    documents: Ints
    """(annotations,): positions of their documents, in order."""
    annotators: Ints
    """(annotations,): positions among `names`."""
    names: tuple[str, ...]

    def iter_shared_documents(self) -> Iterator[tuple[int, slice]]:
        """Documents that two or more have read, each with its annotations."""
        edges = np.searchsorted(self.documents, np.arange(self.documents.max(initial=-1) + 2))
        for document in np.flatnonzero(np.diff(edges) >= 2):
            yield int(document), slice(int(edges[document]), int(edges[document + 1]))


def compute_mark_depths(
    study: Study,
    grid: UnitGrid,
    categories: Sequence[str],
    overlap: Overlap = "union",
    rows: pl.DataFrame | None = None,
) -> MarkDepths:
    """Depth of each annotation's marks for any label (first row) and each category; pooled annotations are left out.

    `union` counts a unit once however many marks of that category cover it, `add` once for each.
    `rows` are those of `placed`, where they are at hand.
    """
    crowds = study.annotators.filter(pl.col("kind") == "pooled")["id"]
    annotations = study.annotations.filter(~pl.col("annotator").is_in(crowds.implode()))
    annotations = annotations.select(
        "id", "annotator", place=pl.Series(grid.document_positions(annotations["document"]), dtype=pl.Int64)
    )
    annotations = annotations.sort("place", "annotator", maintain_order=True).with_row_index("at")
    bounds = np.concatenate([[0], np.cumsum(grid.sizes[annotations["place"].to_numpy()])]).astype(np.int64)
    names = annotations["annotator"].unique().sort()
    people = annotations["annotator"].replace_strict(names, pl.int_range(len(names), eager=True), return_dtype=pl.Int64)
    depth = _accumulate_depth(
        locate_spans_on_grid(study, grid) if rows is None else rows, annotations, bounds, grid, categories, overlap
    )
    return MarkDepths(depth, bounds, annotations["place"].to_numpy(), people.to_numpy(), tuple(names))


def _accumulate_depth(
    rows: pl.DataFrame,
    annotations: pl.DataFrame,
    bounds: Ints,
    grid: UnitGrid,
    categories: Sequence[str],
    overlap: Overlap,
) -> NDArray[np.int16]:
    keys = ["annotation", "label"] if overlap == "union" else ["annotation", "label", "mark"]
    both = pl.concat([rows.with_columns(label=pl.lit("\0any")), rows])
    places = annotations.select(annotation="id", at="at")
    cut = remove_range_overlaps(both, keys).join(places, on="annotation", how="inner", maintain_order="left")
    codes = {"\0any": 0, **{name: row for row, name in enumerate(categories, 1)}}
    row = cut["label"].replace_strict(codes, default=-1, return_dtype=pl.Int64).to_numpy()
    cut, row = cut.filter(pl.Series(row >= 0)), row[row >= 0]
    shift = bounds[cut["at"].to_numpy()] - grid.bounds[cut["document"].to_numpy()]
    change = np.zeros((len(categories) + 1, bounds[-1] + 1), dtype=np.int16)
    np.add.at(change, (row, shift + cut["first"].to_numpy()), 1)
    np.add.at(change, (row, shift + cut["last"].to_numpy()), -1)
    return np.cumsum(change, axis=1, dtype=np.int16)[:, :-1]


# --- pairs -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AnnotatorPairs:
    """One row per document and pair of annotators who both read it, with sums of each."""

    documents: Ints
    """(N,): positions."""
    pair: Ints
    """(N,): which pair of annotators, as a position among `names`."""
    names: tuple[tuple[str, str], ...]
    sums: Floats
    """(categories, N, K)."""

    def iter_pooled_sums(self, weights: Weights) -> Iterator[tuple[slice, Floats]]:
        """Sums of each pair over the documents drawn, (draws, categories, pairs, K), some draws at a time."""
        rows, _, width = self.sums.shape
        tables = [self._document_pair_table(sums, weights.shape[1]) for sums in self.sums]
        step = max(1, _MAX_VALUES_IN_MEMORY // max(rows * len(self.names) * width, 1))
        for start in range(0, len(weights), step):
            some = slice(start, start + step)
            pair_sums = [np.asarray(weights[some] @ table) for table in tables]
            yield some, np.stack(pair_sums, axis=1).reshape(len(pair_sums[0]), rows, len(self.names), width)

    def _document_pair_table(self, sums: Floats, documents: int) -> Floats | scipy.sparse.csr_array:
        """Sums of one category by document and pair, (documents, pairs x K); sparse where most of it is 0."""
        width = sums.shape[1]
        document, which = np.nonzero(sums)
        size = len(self.names) * width
        places = self.documents[document], self.pair[document] * width + which
        table = scipy.sparse.csr_array((sums[document, which], places), shape=(documents, size))
        return table if table.nnz < 0.1 * documents * size else table.toarray()


def _number_annotator_pairs(names: Sequence[str], one: Ints, other: Ints) -> tuple[Ints, tuple[tuple[str, str], ...]]:
    """AnnotatorPairs of annotators as positions, and their names."""
    low, high = np.minimum(one, other), np.maximum(one, other)
    keys, pair = np.unique(low * max(len(names), 1) + high, return_inverse=True)
    first, second = np.divmod(keys, max(len(names), 1))
    return pair, tuple((names[a], names[b]) for a, b in zip(first, second, strict=True))


def annotator_pair_overlaps(cells: MarkDepths) -> AnnotatorPairs:
    """Of each pair and document: what both marked (product of depths), what each marked, and the units: K = 4."""
    documents, one, other, sums = [], [], [], [np.zeros((len(cells.depth), 0, 4))]
    for document, some in cells.iter_shared_documents():
        first, last = cells.bounds[some.start], cells.bounds[some.stop]
        people = cells.annotators[some]
        depth = cells.depth[:, first:last].reshape(len(cells.depth), len(people), -1).astype(np.float64)
        a, b = np.triu_indices(len(people), 1)
        apart = people[a] != people[b]  # a second pass over a text is not another reader
        a, b = a[apart], b[apart]
        both, marked = depth @ depth.transpose(0, 2, 1), depth.sum(axis=2)
        units = np.full((len(depth), len(a)), depth.shape[2])
        sums.append(np.stack([both[:, a, b], marked[:, a], marked[:, b], units], axis=-1))
        documents.append(np.full(len(a), document))
        one.append(people[a])
        other.append(people[b])
    none = [np.zeros(0, dtype=np.int64)]
    pair, names = _number_annotator_pairs(cells.names, np.concatenate([*none, *one]), np.concatenate([*none, *other]))
    return AnnotatorPairs(np.concatenate([*none, *documents]), pair, names, np.concatenate(sums, axis=1))


def pairwise_rating_confusions(rated: UnitRatings, values: Floats) -> AnnotatorPairs:
    """Of each pair and document: how often each pair of values was given, one row, K = V squared."""
    people, size = len(rated.annotators), len(values)
    codes = np.where(np.isnan(rated.matrix), -1, np.searchsorted(values, rated.matrix))
    place = np.repeat(np.arange(len(rated.documents)), np.diff(rated.bounds))
    documents, pairs, sums = [], [], [np.zeros((0, size * size))]
    for number, (a, b) in enumerate(zip(*np.triu_indices(people, 1), strict=True)):
        both = (codes[a] >= 0) & (codes[b] >= 0)
        cell = codes[a][both] * size + codes[b][both]
        texts, inverse = np.unique(place[both], return_inverse=True)
        table = np.bincount(inverse * size * size + cell, minlength=len(texts) * size * size)
        documents.append(texts)
        pairs.append(np.full(len(texts), number))
        sums.append(table.reshape(len(texts), size * size).astype(np.float64))
    none = [np.zeros(0, dtype=np.int64)]
    used, pair = np.unique(np.concatenate([*none, *pairs]), return_inverse=True)
    first, second = np.triu_indices(people, 1)
    names = tuple((rated.annotators[first[at]], rated.annotators[second[at]]) for at in used)
    return AnnotatorPairs(np.concatenate([*none, *documents]), pair, names, np.concatenate(sums)[None])


def micro_f1(pairs: AnnotatorPairs, weights: Weights) -> Floats:
    r"""Micro F1 over pairs of annotators and documents: $2 \sum o / \sum (a + b)$, (draws, categories).

    NaN when nobody marked anything.
    """
    sums = _pool_over_pairs(pairs, weights, pairs.sums[..., :3])
    return ratio_or_nan(2 * sums[..., 0], sums[..., 1] + sums[..., 2])


def typed_micro_f1(pairs: AnnotatorPairs, weights: Weights) -> Floats:
    """Micro F1 where only marks of one category match: overlaps and lengths of all categories added up, (draws, 1)."""
    sums = _pool_over_pairs(pairs, weights, pairs.sums[1:, :, :3]).sum(axis=1, keepdims=True)
    return ratio_or_nan(2 * sums[..., 0], sums[..., 1] + sums[..., 2])


def macro_f1(pairs: AnnotatorPairs, weights: Weights) -> Floats:
    """Mean over pairs and documents of their own F1, 1 where neither marked anything, (draws, categories)."""
    return _macro_f1_from_sums(pairs, weights, pairs.sums)


def typed_macro_f1(pairs: AnnotatorPairs, weights: Weights) -> Floats:
    """The same where only marks of one category match, (draws, 1)."""
    return _macro_f1_from_sums(pairs, weights, pairs.sums[1:].sum(axis=0, keepdims=True))


def _macro_f1_from_sums(pairs: AnnotatorPairs, weights: Weights, sums: Floats) -> Floats:
    lengths = sums[..., 1] + sums[..., 2]
    scores = np.where(lengths > 0, 2 * sums[..., 0] / np.where(lengths > 0, lengths, 1), 1.0)
    both = _pool_over_pairs(pairs, weights, np.stack([scores, np.ones_like(scores)], axis=-1))
    return ratio_or_nan(both[..., 0], both[..., 1])


def _pool_over_pairs(pairs: AnnotatorPairs, weights: Weights, sums: Floats) -> Floats:
    """Summed over pairs and the documents drawn, (draws, categories, K)."""
    rows, _, width = sums.shape
    document_sums = np.zeros((weights.shape[1], rows, width))
    np.add.at(document_sums, pairs.documents, sums.transpose(1, 0, 2))
    return pool_sums_per_draw(weights, document_sums)


def cohen_kappa_per_pair(pairs: AnnotatorPairs, weights: Weights) -> Floats:
    """Cohen's kappa of each pair of annotators over what both read, (draws, categories, pairs)."""
    result = np.full((len(weights), len(pairs.sums), len(pairs.names)), np.nan)
    for some, sums in pairs.iter_pooled_sums(weights):
        result[some] = cohen_from_confusion(_reshape_confusion(sums))
    return result


def pairwise_mark_confusions(pairs: AnnotatorPairs) -> AnnotatorPairs:
    """Units marked by both, by one and by neither, in place of the sums of `annotator_pair_overlaps`: K = 4."""
    both, one, other, units = np.moveaxis(pairs.sums, -1, 0)
    return AnnotatorPairs(
        pairs.documents,
        pairs.pair,
        pairs.names,
        np.stack([units - one - other + both, other - both, one - both, both], axis=-1),
    )


def _reshape_confusion(sums: Floats) -> Floats:
    size = round(sums.shape[-1] ** 0.5)
    return sums.reshape(*sums.shape[:-1], size, size)


def nan_mean(values: Floats) -> Floats:
    """Mean over the last axis of what is defined; NaN where nothing is."""
    defined = np.isfinite(values)
    return ratio_or_nan(np.where(defined, values, 0.0).sum(axis=-1), defined.sum(axis=-1).astype(np.float64))


# --- counts ------------------------------------------------------------------------------------------------------


def pairwise_mark_count_moments(study: Study, cells: MarkDepths, categories: Sequence[str]) -> AnnotatorPairs:
    """Of each pair and document: 1, x, y, xx, yy, xy of their numbers of marks, any label first: K = 6."""
    paired = annotator_pair_overlaps(_mark_counts_as_depths(study, cells, categories))
    both, one, other, _ = np.moveaxis(paired.sums, -1, 0)
    sums = np.stack([np.ones_like(both), one, other, one * one, other * other, both], axis=-1)
    return AnnotatorPairs(paired.documents, paired.pair, paired.names, sums)


def _mark_counts_as_depths(study: Study, cells: MarkDepths, categories: Sequence[str]) -> MarkDepths:
    """One cell per annotation: its number of marks, placed or not. The product of two cells is x y."""
    crowds = study.annotators.filter(pl.col("kind") == "pooled")["id"]
    order = study.annotations.filter(~pl.col("annotator").is_in(crowds.implode()))
    places = study.documents.select(document="id").with_row_index("place")
    order = order.join(places, on="document").sort("place", "annotator", maintain_order=True).with_row_index("at")
    marks = study.marks.join(order.select("at", annotation="id"), on="annotation", how="inner")
    row = marks["label"].replace_strict(
        {name: at for at, name in enumerate(categories, 1)}, default=0, return_dtype=pl.Int64
    )
    depth = np.zeros((len(categories) + 1, len(order)), dtype=np.int16)
    np.add.at(depth, (row.to_numpy(), marks["at"].to_numpy()), 1)
    depth[0] = np.bincount(marks["at"].to_numpy(), minlength=len(order))
    return MarkDepths(depth, np.arange(len(order) + 1), cells.documents, cells.annotators, cells.names)


def mark_count_pearson_per_pair(pairs: AnnotatorPairs, weights: Weights) -> Floats:
    """Pearson's r of each pair's numbers of marks over the texts both read, (draws, categories, pairs).

    NaN for a pair whose counts do not vary.
    """
    result = np.full((len(weights), len(pairs.sums), len(pairs.names)), np.nan)
    for some, sums in pairs.iter_pooled_sums(weights):
        n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
        spread = (n * xx - x * x) * (n * yy - y * y)
        result[some] = ratio_or_nan(n * xy - x * y, np.sqrt(np.where(spread > 1e-9, spread, 0.0)))
    return result


# --- one against the rest ----------------------------------------------------------------------------------------


def one_vs_rest_sums(tallies: UnitVotes, rest: RestMode = "union") -> Floats:
    """Units that one and the rest marked, that one marked, that the rest marked: summed over all who could be the one.

    (documents, categories, 3). Votes are enough: of m readers k marked the unit, so that k of the choices leave k - 1
    marks among the rest and m - k choices leave k. Texts with fewer than two readers add nothing.
    """
    k, m = tallies.marked.astype(np.float64), tallies.annotators_per_unit.astype(np.float64)
    least = _rest_vote_threshold(m, rest)
    hit, missed = k * (k - 1 >= least), (m - k) * (k >= least)
    units = [np.where(m >= 2, one, 0.0) for one in (hit, k, hit + missed)]
    return np.stack([sum_by_document(one, tallies.grid.bounds).T for one in units], axis=-1)


def _rest_vote_threshold(readers: Floats, rest: RestMode) -> Floats:
    """How many of the others must have marked a unit for the rest to have marked it."""
    return np.ones_like(readers) if rest == "union" else np.floor((readers - 1) / 2) + 1


def annotator_vs_rest_sums(cells: MarkDepths, rest: RestMode = "union") -> AnnotatorPairs:
    """The same sums for each annotator and document; each annotator is `paired` with the rest: K = 3."""
    documents, people, sums = [], [], [np.zeros((len(cells.depth), 0, 3))]
    for document, some in cells.iter_shared_documents():
        first, last = cells.bounds[some.start], cells.bounds[some.stop]
        readers = some.stop - some.start
        one = (cells.depth[:, first:last] > 0).reshape(len(cells.depth), readers, -1)
        others = one.sum(axis=1, keepdims=True) - one >= _rest_vote_threshold(np.array(float(readers)), rest)
        sums.append(
            np.stack([(one & others).sum(axis=2), one.sum(axis=2), others.sum(axis=2)], axis=-1).astype(np.float64)
        )
        documents.append(np.full(readers, document))
        people.append(cells.annotators[some])
    none = [np.zeros(0, dtype=np.int64)]
    used, pair = np.unique(np.concatenate([*none, *people]), return_inverse=True)
    names = tuple((cells.names[at], "the rest") for at in used)
    return AnnotatorPairs(np.concatenate([*none, *documents]), pair, names, np.concatenate(sums, axis=1))


def precision_recall_f1(sums: Floats) -> dict[str, Floats]:
    """Precision, recall and F1 from sums of hits, of what one marked and of what the rest marked, (..., 3)."""
    hits, one, rest = np.moveaxis(sums, -1, 0)
    return {
        "precision": ratio_or_nan(hits, one),
        "recall": ratio_or_nan(hits, rest),
        "f1": ratio_or_nan(2 * hits, one + rest),
    }


def one_vs_rest_scores(pairs: AnnotatorPairs, weights: Weights, score: str) -> Floats:
    """Each annotator's precision, recall or F1 against the rest, (draws, categories, annotators)."""
    result = np.full((len(weights), len(pairs.sums), len(pairs.names)), np.nan)
    for some, sums in pairs.iter_pooled_sums(weights):
        result[some] = precision_recall_f1(sums)[score]
    return result


# --- sets of labels ----------------------------------------------------------------------------------------------


def label_set_disagreement_sums(
    cells: MarkDepths,
    categories: Sequence[str],
    documents: int,
    distance: Callable[[Sequence[frozenset[str]]], Distance],
) -> tuple[list[frozenset[str]], Floats, Floats]:
    """The sets of labels that one annotator gave to one unit; disagreement, (documents,), and n_c, (documents, V).

    Alpha needs no more than these where the distance does not depend on how often sets occur.
    """
    if len(categories) > _MAX_LABELS:
        way = f"use {param('back_off', 'group')}"
        raise FinecombError(f"sets of labels are for up to {_MAX_LABELS} labels, not {len(categories)}; {way}")
    bits = (cells.depth[1:] > 0).T @ (1 << np.arange(len(categories), dtype=np.int64))
    patterns, codes = np.unique(bits, return_inverse=True)
    sets = [frozenset(name for at, name in enumerate(categories) if pattern >> at & 1) for pattern in patterns.tolist()]
    delta = distance(sets)(np.arange(len(sets), dtype=np.float64), np.ones(len(sets)))
    observed, totals = np.zeros(documents), np.zeros((documents, len(sets)))
    for document, some in cells.iter_shared_documents():
        readers = some.stop - some.start
        patterns_of_readers = codes[cells.bounds[some.start] : cells.bounds[some.stop]].reshape(readers, -1)
        cell = np.arange(patterns_of_readers.shape[1]) * len(sets) + patterns_of_readers
        n = np.bincount(cell.ravel(), minlength=patterns_of_readers.shape[1] * len(sets)).astype(np.float64)
        n = n.reshape(patterns_of_readers.shape[1], len(sets))
        observed[document] = ((n @ delta) * n).sum() / (readers - 1)  # the distance of a set to itself is 0
        totals[document] = n.sum(axis=0)
    return sets, observed, totals
