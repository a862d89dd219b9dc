"""Pairwise and one-vs-rest agreement: overlap F1, Cohen's kappa, Pearson's r of counts, precision and recall."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
import scipy  # submodules load on first use, which keeps start-up fast
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError, param
from finecomb.core.study import Study
from finecomb.statistics.agreement.alpha import Distance, pool_sums_per_draw, sum_by_document
from finecomb.statistics.agreement.kappa import cohen_from_confusion
from finecomb.statistics.agreement.rating_matrix import UnitRatings
from finecomb.statistics.inference.resampling import Floats, Ints, Weights, ratio_or_nan
from finecomb.statistics.measures.unit_grid import UnitGrid, UnitVotes, locate_spans_on_grid, remove_range_overlaps

OverlapMode = Literal["add", "union"]
RestMode = Literal["union", "majority"]
_MAX_VALUES_IN_MEMORY = 4_000_000  # numbers in memory per batch of draws
_MAX_LABELS_IN_SETS = 62  # label sets are bit masks of 64-bit integers


# --- marks per annotation ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MarkDepths:
    """Number of marks on each unit, per annotation; the units of all annotations are concatenated."""

    depth: NDArray[np.int16]
    """(categories, cells): number of marks on each unit of each annotation."""
    bounds: Ints
    """(annotations + 1,): annotation i has the cells from `bounds[i]` up to, but not including, `bounds[i + 1]`."""
    documents: Ints
    """(annotations,): position of the annotation's document, ascending."""
    annotators: Ints
    """(annotations,): annotator, as a position in `names`."""
    names: tuple[str, ...]

    def iter_documents_with_several_annotations(self) -> Iterator[tuple[int, slice]]:
        """Yield each document with two or more annotations, with the slice of its annotations."""
        edges = np.searchsorted(self.documents, np.arange(self.documents.max(initial=-1) + 2))
        for document in np.flatnonzero(np.diff(edges) >= 2):
            yield int(document), slice(int(edges[document]), int(edges[document + 1]))


def compute_mark_depths(
    study: Study,
    grid: UnitGrid,
    categories: Sequence[str],
    overlap: OverlapMode = "union",
    rows: pl.DataFrame | None = None,
) -> MarkDepths:
    """Count the marks on each unit per annotation, for any label (first row) and each category.

    Pooled annotations are excluded. `union` counts a unit at most once per category, `add` once for each mark. `rows`
    is the result of `locate_spans_on_grid`, if already computed.
    """
    crowds = study.annotators.filter(pl.col("kind") == "pooled")["id"]
    annotations = study.annotations.filter(~pl.col("annotator").is_in(crowds.implode()))
    annotations = annotations.select(
        "id", "annotator", place=pl.Series([grid.documents[id] for id in annotations["document"]], dtype=pl.Int64)
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
    overlap: OverlapMode,
) -> NDArray[np.int16]:
    keys = ["annotation", "label"] if overlap == "union" else ["annotation", "label", "mark"]
    labelled_rows = pl.concat([rows.with_columns(label=pl.lit("\0any")), rows])
    positions = annotations.select(annotation="id", at="at")
    cut = remove_range_overlaps(labelled_rows, keys).join(
        positions, on="annotation", how="inner", maintain_order="left"
    )
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
class AnnotatorPairSums:
    """Sums per document and pair of annotators who both annotated it."""

    documents: Ints
    """(N,): position of the document."""
    pair: Ints
    """(N,): pair of annotators, as a position in `names`."""
    names: tuple[tuple[str, str], ...]
    sums: Floats
    """(categories, N, K): sums of each document and pair; K depends on the measure."""

    def iter_pooled_sums(self, weights: Weights) -> Iterator[tuple[slice, Floats]]:
        """Yield, in batches of draws, the sums of each pair of annotators over the documents of each draw.

        A batch has the shape (draws, categories, pairs, K).
        """
        rows, _, width = self.sums.shape
        tables = [self._document_pair_table(sums, weights.shape[1]) for sums in self.sums]
        step = max(1, _MAX_VALUES_IN_MEMORY // max(rows * len(self.names) * width, 1))
        for start in range(0, len(weights), step):
            batch = slice(start, start + step)
            pair_sums = [np.asarray(weights[batch] @ table) for table in tables]
            yield batch, np.stack(pair_sums, axis=1).reshape(len(pair_sums[0]), rows, len(self.names), width)

    def _document_pair_table(self, sums: Floats, documents: int) -> Floats | scipy.sparse.csr_array:
        """Return the sums of one category by document and pair, (documents, pairs x K); sparse if most sums are 0."""
        width = sums.shape[1]
        document, column = np.nonzero(sums)
        size = len(self.names) * width
        cells = self.documents[document], self.pair[document] * width + column
        table = scipy.sparse.csr_array((sums[document, column], cells), shape=(documents, size))
        return table if table.nnz < 0.1 * documents * size else table.toarray()


def _number_annotator_pairs(names: Sequence[str], one: Ints, other: Ints) -> tuple[Ints, tuple[tuple[str, str], ...]]:
    """Return the number of each pair of annotators, and the names of the pairs."""
    low, high = np.minimum(one, other), np.maximum(one, other)
    keys, pair = np.unique(low * max(len(names), 1) + high, return_inverse=True)
    first, second = np.divmod(keys, max(len(names), 1))
    return pair, tuple((names[a], names[b]) for a, b in zip(first, second, strict=True))


def annotator_pair_overlaps(cells: MarkDepths) -> AnnotatorPairSums:
    """Compute per pair and document: overlap, marks of each annotator, number of units (K = 4).

    The overlap on a unit is the smaller of the two numbers of marks, so that F1, precision and recall are at most 1.
    """
    documents, firsts, seconds, sums = [], [], [], [np.zeros((len(cells.depth), 0, 4))]
    for document, members in cells.iter_documents_with_several_annotations():
        first, last = cells.bounds[members.start], cells.bounds[members.stop]
        people = cells.annotators[members]
        depth = cells.depth[:, first:last].reshape(len(cells.depth), len(people), -1).astype(np.float64)
        a, b = np.triu_indices(len(people), 1)
        is_pair = people[a] != people[b]  # a second pass over a text does not count as another annotator
        a, b = a[is_pair], b[is_pair]
        overlap, marked = _shared_depth(depth, a, b), depth.sum(axis=2)
        units = np.full((len(depth), len(a)), depth.shape[2])
        sums.append(np.stack([overlap, marked[:, a], marked[:, b], units], axis=-1))
        documents.append(np.full(len(a), document))
        firsts.append(people[a])
        seconds.append(people[b])
    none = [np.zeros(0, dtype=np.int64)]
    pair, names = _number_annotator_pairs(
        cells.names, np.concatenate([*none, *firsts]), np.concatenate([*none, *seconds])
    )
    return AnnotatorPairSums(np.concatenate([*none, *documents]), pair, names, np.concatenate(sums, axis=1))


def _shared_depth(depth: Floats, a: Ints, b: Ints) -> Floats:
    """Return the sum over units of the smaller depth of each pair of annotators, (categories, pairs)."""
    # Each layer is binary: a unit with at least that many marks. The layers' products add up to the minimum.
    layers = (depth >= least for least in range(1, int(depth.max(initial=0)) + 1))
    shared = np.zeros((len(depth), depth.shape[1], depth.shape[1]))
    for layer in layers:
        marked = layer.astype(np.float64)
        shared += marked @ marked.transpose(0, 2, 1)
    return shared[:, a, b]


def pairwise_rating_confusions(rated: UnitRatings, values: Floats) -> AnnotatorPairSums:
    """Count, per pair of annotators and document, how often each pair of values occurs: one row, K = V squared."""
    people, size = len(rated.annotators), len(values)
    codes = np.where(np.isnan(rated.matrix), -1, np.searchsorted(values, rated.matrix))
    document_of_unit = np.repeat(np.arange(len(rated.documents)), np.diff(rated.bounds))
    documents, pairs, sums = [], [], [np.zeros((0, size * size))]
    for number, (a, b) in enumerate(zip(*np.triu_indices(people, 1), strict=True)):
        rated_by_both = (codes[a] >= 0) & (codes[b] >= 0)
        cell = codes[a][rated_by_both] * size + codes[b][rated_by_both]
        texts, inverse = np.unique(document_of_unit[rated_by_both], return_inverse=True)
        table = np.bincount(inverse * size * size + cell, minlength=len(texts) * size * size)
        documents.append(texts)
        pairs.append(np.full(len(texts), number))
        sums.append(table.reshape(len(texts), size * size).astype(np.float64))
    none = [np.zeros(0, dtype=np.int64)]
    pair_numbers, pair = np.unique(np.concatenate([*none, *pairs]), return_inverse=True)
    first, second = np.triu_indices(people, 1)
    names = tuple(
        (rated.annotators[first[pair_number]], rated.annotators[second[pair_number]]) for pair_number in pair_numbers
    )
    return AnnotatorPairSums(np.concatenate([*none, *documents]), pair, names, np.concatenate(sums)[None])


def micro_f1(pairs: AnnotatorPairSums, weights: Weights) -> Floats:
    r"""Compute micro F1 over pairs of annotators and documents, $2 \sum o / \sum (a + b)$, (draws, categories).

    The value is NaN if there are no marks.
    """
    sums = _pool_over_pairs(pairs, weights, pairs.sums[..., :3])
    return ratio_or_nan(2 * sums[..., 0], sums[..., 1] + sums[..., 2])


def typed_micro_f1(pairs: AnnotatorPairSums, weights: Weights) -> Floats:
    """Compute micro F1 in which only marks of the same category match, summed over all categories, (draws, 1)."""
    sums = _pool_over_pairs(pairs, weights, pairs.sums[1:, :, :3]).sum(axis=1, keepdims=True)
    return ratio_or_nan(2 * sums[..., 0], sums[..., 1] + sums[..., 2])


def macro_f1(pairs: AnnotatorPairSums, weights: Weights) -> Floats:
    """Compute the mean F1 over pairs and documents, (draws, categories). F1 is 1 if neither annotator has marks."""
    return _macro_f1_from_sums(pairs, weights, pairs.sums)


def typed_macro_f1(pairs: AnnotatorPairSums, weights: Weights) -> Floats:
    """Compute the mean F1 over pairs and documents, where only marks of the same category match, (draws, 1)."""
    return _macro_f1_from_sums(pairs, weights, pairs.sums[1:].sum(axis=0, keepdims=True))


def _macro_f1_from_sums(pairs: AnnotatorPairSums, weights: Weights, sums: Floats) -> Floats:
    lengths = sums[..., 1] + sums[..., 2]
    scores = np.where(lengths > 0, 2 * sums[..., 0] / np.where(lengths > 0, lengths, 1), 1.0)
    sums_and_counts = _pool_over_pairs(pairs, weights, np.stack([scores, np.ones_like(scores)], axis=-1))
    return ratio_or_nan(sums_and_counts[..., 0], sums_and_counts[..., 1])


def _pool_over_pairs(pairs: AnnotatorPairSums, weights: Weights, sums: Floats) -> Floats:
    """Sum over pairs and over the documents of each draw, (draws, categories, K)."""
    rows, _, width = sums.shape
    document_sums = np.zeros((weights.shape[1], rows, width))
    np.add.at(document_sums, pairs.documents, sums.transpose(1, 0, 2))
    return pool_sums_per_draw(weights, document_sums)


def cohen_kappa_per_pair(pairs: AnnotatorPairSums, weights: Weights) -> Floats:
    """Compute Cohen's kappa of each pair over the texts that both annotated, (draws, categories, pairs)."""
    result = np.full((len(weights), len(pairs.sums), len(pairs.names)), np.nan)
    for batch, sums in pairs.iter_pooled_sums(weights):
        size = round(sums.shape[-1] ** 0.5)
        result[batch] = cohen_from_confusion(sums.reshape(*sums.shape[:-1], size, size))
    return result


def pairwise_mark_confusions(pairs: AnnotatorPairSums) -> AnnotatorPairSums:
    """Convert the sums of `annotator_pair_overlaps` to units marked by neither, one, the other or both (K = 4)."""
    both, first, second, units = np.moveaxis(pairs.sums, -1, 0)
    return AnnotatorPairSums(
        pairs.documents,
        pairs.pair,
        pairs.names,
        np.stack([units - first - second + both, second - both, first - both, both], axis=-1),
    )


def nan_mean(values: Floats) -> Floats:
    """Compute the mean of the defined values over the last axis; NaN if none is defined."""
    defined = np.isfinite(values)
    return ratio_or_nan(np.where(defined, values, 0.0).sum(axis=-1), defined.sum(axis=-1).astype(np.float64))


# --- counts ------------------------------------------------------------------------------------------------------


def pairwise_mark_count_moments(study: Study, cells: MarkDepths, categories: Sequence[str]) -> AnnotatorPairSums:
    """Compute 1, x, y, xx, yy, xy of the mark counts x and y per pair and document: K = 6. The first row is `any`."""
    # Store each annotation's number of marks, located or not, as its only cell
    crowds = study.annotators.filter(pl.col("kind") == "pooled")["id"]
    order = study.annotations.filter(~pl.col("annotator").is_in(crowds.implode()))
    positions = study.documents.select(document="id").with_row_index("place")
    order = order.join(positions, on="document").sort("place", "annotator", maintain_order=True).with_row_index("at")
    marks = study.marks.join(order.select("at", annotation="id"), on="annotation", how="inner")
    row = marks["label"].replace_strict(
        {name: code for code, name in enumerate(categories, 1)}, default=0, return_dtype=pl.Int64
    )
    depth = np.zeros((len(categories) + 1, len(order)), dtype=np.int16)
    np.add.at(depth, (row.to_numpy(), marks["at"].to_numpy()), 1)
    depth[0] = np.bincount(marks["at"].to_numpy(), minlength=len(order))
    pairs = annotator_pair_overlaps(
        MarkDepths(depth, np.arange(len(order) + 1), cells.documents, cells.annotators, cells.names)
    )
    _, first, second, _ = np.moveaxis(pairs.sums, -1, 0)
    sums = np.stack([np.ones_like(first), first, second, first * first, second * second, first * second], axis=-1)
    return AnnotatorPairSums(pairs.documents, pairs.pair, pairs.names, sums)


def mark_count_pearson_per_pair(pairs: AnnotatorPairSums, weights: Weights) -> Floats:
    """Compute Pearson's r of each pair's numbers of marks over their shared texts, (draws, categories, pairs).

    The result is NaN for a pair whose counts do not vary.
    """
    result = np.full((len(weights), len(pairs.sums), len(pairs.names)), np.nan)
    for batch, sums in pairs.iter_pooled_sums(weights):
        n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
        spread = (n * xx - x * x) * (n * yy - y * y)
        result[batch] = ratio_or_nan(n * xy - x * y, np.sqrt(np.where(spread > 1e-9, spread, 0.0)))
    return result


# --- one vs rest -------------------------------------------------------------------------------------------------


def one_vs_rest_sums(tallies: UnitVotes, rest: RestMode = "union") -> Floats:
    """Count the units marked by both an annotator and the rest, by the annotator, and by the rest, over annotators.

    Shape (documents, categories, 3). Vote counts are sufficient: if k of m annotators marked a unit, leaving one out
    leaves k - 1 votes in k cases and k votes in m - k cases. Texts with fewer than two annotators count 0.
    """
    k, m = tallies.marked.astype(np.float64), tallies.annotators_per_unit.astype(np.float64)
    least = _rest_vote_threshold(m, rest)
    hit, missed = k * (k - 1 >= least), (m - k) * (k >= least)
    units = [np.where(m >= 2, counts, 0.0) for counts in (hit, k, hit + missed)]
    return np.stack([sum_by_document(counts, tallies.grid.bounds).T for counts in units], axis=-1)


def _rest_vote_threshold(readers: Floats, rest: RestMode) -> Floats:
    """Return how many of the other annotators must have marked a unit for it to count as marked by the rest."""
    return np.ones_like(readers) if rest == "union" else np.floor((readers - 1) / 2) + 1


def annotator_vs_rest_sums(cells: MarkDepths, rest: RestMode = "union") -> AnnotatorPairSums:
    """Count the units as in `one_vs_rest_sums`, but for each annotator and document separately: K = 3."""
    documents, people, sums = [], [], [np.zeros((len(cells.depth), 0, 3))]
    for document, members in cells.iter_documents_with_several_annotations():
        first, last = cells.bounds[members.start], cells.bounds[members.stop]
        readers = members.stop - members.start
        is_marked = (cells.depth[:, first:last] > 0).reshape(len(cells.depth), readers, -1)
        is_marked_by_rest = is_marked.sum(axis=1, keepdims=True) - is_marked >= _rest_vote_threshold(
            np.array(float(readers)), rest
        )
        sums.append(
            np.stack(
                [(is_marked & is_marked_by_rest).sum(axis=2), is_marked.sum(axis=2), is_marked_by_rest.sum(axis=2)],
                axis=-1,
            ).astype(np.float64)
        )
        documents.append(np.full(readers, document))
        people.append(cells.annotators[members])
    none = [np.zeros(0, dtype=np.int64)]
    annotator_numbers, pair = np.unique(np.concatenate([*none, *people]), return_inverse=True)
    names = tuple((cells.names[number], "the rest") for number in annotator_numbers)
    return AnnotatorPairSums(np.concatenate([*none, *documents]), pair, names, np.concatenate(sums, axis=1))


def precision_recall_f1(sums: Floats) -> dict[str, Floats]:
    """Compute precision, recall and F1 from sums of hits, marks by one annotator and marks by the rest, (..., 3)."""
    hits, one, rest = np.moveaxis(sums, -1, 0)
    return {
        "precision": ratio_or_nan(hits, one),
        "recall": ratio_or_nan(hits, rest),
        "f1": ratio_or_nan(2 * hits, one + rest),
    }


def annotator_vs_rest_scores(pairs: AnnotatorPairSums, weights: Weights, score: str) -> Floats:
    """Compute each annotator's precision, recall or F1 against the rest, (draws, categories, annotators)."""
    result = np.full((len(weights), len(pairs.sums), len(pairs.names)), np.nan)
    for batch, sums in pairs.iter_pooled_sums(weights):
        result[batch] = precision_recall_f1(sums)[score]
    return result


# --- label sets --------------------------------------------------------------------------------------------------


def label_set_disagreement_sums(
    cells: MarkDepths,
    categories: Sequence[str],
    documents: int,
    distance: Callable[[Sequence[frozenset[str]]], Distance],
) -> tuple[list[frozenset[str]], Floats, Floats]:
    """Return the label sets that occur on units, their disagreement, (documents,), and counts n_c, (documents, V).

    The disagreement and the counts are sufficient for alpha if the distance does not depend on how often sets occur.
    """
    if len(categories) > _MAX_LABELS_IN_SETS:
        fix = f"use {param('back_off', 'group')}"
        raise FinecombError(f"label sets support at most {_MAX_LABELS_IN_SETS} labels, found {len(categories)}; {fix}")
    bits = (cells.depth[1:] > 0).T @ (1 << np.arange(len(categories), dtype=np.int64))
    patterns, codes = np.unique(bits, return_inverse=True)
    sets = [
        frozenset(name for bit, name in enumerate(categories) if pattern >> bit & 1) for pattern in patterns.tolist()
    ]
    delta = distance(sets)(np.arange(len(sets), dtype=np.float64), np.ones(len(sets)))
    observed, totals = np.zeros(documents), np.zeros((documents, len(sets)))
    for document, members in cells.iter_documents_with_several_annotations():
        readers = members.stop - members.start
        patterns_of_readers = codes[cells.bounds[members.start] : cells.bounds[members.stop]].reshape(readers, -1)
        cell = np.arange(patterns_of_readers.shape[1]) * len(sets) + patterns_of_readers
        n = np.bincount(cell.ravel(), minlength=patterns_of_readers.shape[1] * len(sets)).astype(np.float64)
        n = n.reshape(patterns_of_readers.shape[1], len(sets))
        observed[document] = ((n @ delta) * n).sum() / (readers - 1)  # the distance of a set to itself is 0
        totals[document] = n.sum(axis=0)
    return sets, observed, totals
