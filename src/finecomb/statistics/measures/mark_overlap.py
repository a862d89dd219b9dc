"""Overlap of marks on tokens, and the share of annotators who mark the same error, by severity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl

from finecomb.core.results import Estimate, Finding, Signature
from finecomb.statistics.inference.resampling import (
    Resamples,
    draw_document_resamples,
    estimate_with_interval,
    few_documents_reason,
    ratio_or_nan,
    undefined_estimate,
)
from finecomb.statistics.measures.unit_grid import (
    AnnotationMatrix,
    Floats,
    Ints,
    UnitLevel,
    build_annotation_matrix,
    count_unit_votes,
    remove_range_overlaps,
)
from finecomb.statistics.selection.view import View

DepthUnit = Literal["annotators", "marks"]


def mark_depth_shares(
    view: View,
    by: Sequence[str] = (),
    *,
    of: DepthUnit = "annotators",
    level: UnitLevel = "token",
    tokens: str = "words",
    draws: int = 1000,
    seed: int = 0,
) -> list[Finding]:
    """Compute the share of tokens marked by 0, 1, 2, ... annotators, or covered by that many marks of one annotator.

    With `of="annotators"` each token counts once. With `of="marks"` it counts once per annotator of its text, so depth
    2 is the share of tokens on which one person placed two marks (Dou et al. 2022, footnote 8). Columns: measure,
    label, depth, the `by` columns. The values of a label add up to 1. Values are NaN if no annotated text contains a
    token.
    """
    findings = []
    for columns, part in view.split_by_columns(by):
        matrix = build_annotation_matrix(part, (), level, tokens)
        fields: dict[str, Any] = {
            "of": of,
            "tokens": tokens,
            "unit": level if level != "token" else None,
            **view.fields,
        }
        fields |= {"where": _where_signature_field(view, columns), "draws": draws, "seed": seed}
        resampled = draw_document_resamples(len(matrix.grid.documents), draws, seed)
        for label, table in zip(matrix.labels, _DEPTH_HISTOGRAMS_BY_UNIT[of](matrix), strict=True):
            for depth, estimate in enumerate(_depth_share_estimates(table, resampled, {"label": label, **fields})):
                findings.append(Finding({"measure": "depth", "label": label, "depth": depth, **columns}, estimate))
    return findings


def _depth_share_estimates(table: Floats, resampled: Resamples, fields: dict[str, Any]) -> Iterator[Estimate]:
    """Yield an estimate of the share of each depth, from counts of shape (depths, documents)."""
    totals = np.broadcast_to(table.sum(axis=0), table.shape)
    numbers = resampled.resampled_ratios(table, totals)
    for depth in range(len(table)):
        signature = Signature.from_fields(statistic="depth", depth=depth, **fields)
        yield _share_estimate(table[depth], totals[depth], numbers[:, depth], signature)


def _where_signature_field(view: View, columns: dict[str, str | None]) -> str | None:
    pairs = [f"{name}={value}" for name, value in columns.items()]
    fields = view.fields.get("where")
    return "+".join([*([str(fields)] if fields else []), *pairs]) or None


def _share_estimate(top: Floats, bottom: Floats, resampled: Floats, signature: Signature) -> Estimate:
    if not bottom.sum():
        return undefined_estimate(signature, "no annotated text contains a token")
    return estimate_with_interval(
        float(top.sum() / bottom.sum()),
        resampled,
        signature,
        document_values=ratio_or_nan(top, bottom),
    )


def _annotator_depth_histograms(matrix: AnnotationMatrix) -> list[Floats]:
    """Count tokens per document by the number of annotators who marked them, (depths, documents) for each label."""
    grid, study = matrix.grid, matrix.view.study
    document = np.repeat(np.arange(len(grid.documents)), grid.sizes)
    rows = np.concatenate(
        [count_unit_votes(study, grid, matrix.labels[:-1]).marked, count_unit_votes(study, grid, None).marked]
    )
    return [_document_histogram(row, document, len(grid.documents)) for row in rows]


def _mark_depth_histograms(matrix: AnnotationMatrix) -> list[Floats]:
    """Count tokens per document and annotator by the number of marks on them, (depths, documents) for each label."""
    grid = matrix.grid
    sizes = grid.sizes[matrix.document_positions]
    starts = np.cumsum(sizes) - sizes  # texts are concatenated once per annotation
    document = np.repeat(matrix.document_positions, sizes)
    ranges = remove_range_overlaps(matrix.grid_spans, ["row"])
    shift = (starts - grid.bounds[matrix.document_positions])[ranges["at"].to_numpy()]
    first, last = ranges["first"].to_numpy() + shift, ranges["last"].to_numpy() + shift
    category = ranges["category"].to_numpy()
    masks = [category == row for row in range(len(matrix.labels) - 1)] + [np.ones(len(category), dtype=bool)]
    depths = [_covering_range_counts(first[mask], last[mask], len(document)) for mask in masks]
    return [_document_histogram(depth, document, len(grid.documents)) for depth in depths]


_DEPTH_HISTOGRAMS_BY_UNIT = {"annotators": _annotator_depth_histograms, "marks": _mark_depth_histograms}


def _covering_range_counts(first: Ints, last: Ints, size: int) -> Ints:
    """Count the ranges [first, last) that cover each position, (size,)."""
    edges = np.bincount(first, minlength=size + 1) - np.bincount(last, minlength=size + 1)
    return np.cumsum(edges)[:-1].astype(np.int64)


def _document_histogram(values: Ints, document: Ints, documents: int) -> Floats:
    """Count how often each value from 0 to the maximum occurs per document, (values, documents)."""
    most = int(values.max(initial=0)) + 1
    cells = np.bincount(document * most + values, minlength=documents * most)
    return cells.reshape(documents, most).T.astype(np.float64)


def vote_share_by_severity(
    view: View, by: Sequence[str] = (), *, tokens: str = "words", draws: int = 1000, seed: int = 0
) -> list[Finding]:
    """Compute the share of other annotators who marked the same tokens, by severity, and its correlation with severity.

    The share of a token in a mark is that of the text's other annotators who marked the token with the same label (for
    `any`, with any label). `vote-share` is the mean over the tokens of all marks with one severity (column severity,
    `all` for all marks). `vote-share-r` is Pearson's r between share and severity over the tokens of marks that have a
    severity. Marks without a severity count under `all` only. Values are NaN if no text has two annotators. Pooled
    annotators are excluded.
    """
    findings = []
    for columns, part in view.split_by_columns(by):
        matrix = build_annotation_matrix(part, (), "token", tokens)
        fields = {
            "tokens": tokens,
            **view.fields,
            "where": _where_signature_field(view, columns),
            "draws": draws,
            "seed": seed,
        }
        resampled, pairs = draw_document_resamples(len(matrix.grid.documents), draws, seed), _mark_tokens(matrix)
        for row, label in enumerate(matrix.labels):
            for severity, estimate in _vote_share_estimates(matrix, pairs, row, resampled, {"label": label, **fields}):
                name = "vote-share-r" if severity == "r" else "vote-share"
                row_columns = {
                    "measure": name,
                    "label": label,
                    "severity": "all" if severity == "r" else severity,
                    **columns,
                }
                findings.append(Finding(row_columns, estimate))
    return findings


class _MarkTokens(NamedTuple):
    """Tokens of all marks on texts with at least two annotators."""

    document: Ints
    category: Ints
    severity: Floats
    by_label: Floats
    """Share of the other annotators who marked the token with the same label."""
    by_any: Floats
    """Share of the other annotators who marked the token with any label."""


def _mark_tokens(matrix: AnnotationMatrix) -> _MarkTokens:
    ranges = remove_range_overlaps(matrix.grid_spans.filter(~pl.col("pooled")), ["row"])
    first, size = ranges["first"].to_numpy(), (ranges["last"] - ranges["first"]).to_numpy()
    unit = np.repeat(first - (np.cumsum(size) - size), size) + np.arange(size.sum())
    row, category = (np.repeat(ranges[name].to_numpy(), size) for name in ("row", "category"))
    study, grid = matrix.view.study, matrix.grid
    any_ = count_unit_votes(study, grid, None)
    marked = np.concatenate(
        [count_unit_votes(study, grid, matrix.labels[:-1]).marked, any_.marked]
    )  # k, (labels, units)
    has_two_annotators = any_.annotators_per_unit[unit] >= 2
    unit, row, category = unit[has_two_annotators], row[has_two_annotators], category[has_two_annotators]
    others = any_.annotators_per_unit[unit] - 1
    document = np.searchsorted(grid.bounds, unit, side="right") - 1
    shares = [(marked[label, unit] - 1) / others for label in (category, -1)]  # excluding the annotator's own vote
    return _MarkTokens(document, category, matrix.severities[row], *shares)


def _vote_share_estimates(
    matrix: AnnotationMatrix, pairs: _MarkTokens, row: int, resampled: Resamples, fields: dict[str, Any]
) -> list[tuple[str, Estimate]]:
    """Estimate the vote shares of one label: for all marks, per severity, and the correlation with severity."""
    is_any = row == len(matrix.labels) - 1
    of_label = np.ones(len(pairs.category), dtype=bool) if is_any else pairs.category == row
    share = (pairs.by_any if is_any else pairs.by_label)[of_label]
    severity, document = pairs.severity[of_label], pairs.document[of_label]
    size = len(matrix.grid.documents)
    estimates = []
    levels = np.unique(severity[np.isfinite(severity)])
    for name, mask in [
        ("all", np.ones(len(severity), dtype=bool)),
        *((f"{level:g}", severity == level) for level in levels),
    ]:
        signature = Signature.from_fields(statistic="vote-share", severity=name, **fields)
        top, bottom = (_sum_by_document(document[mask], values[mask], size) for values in (share, np.ones_like(share)))
        estimates.append((name, _mean_vote_share_estimate(top, bottom, resampled, signature)))
    has_severity = np.isfinite(severity)
    products = correlation_sums(severity[has_severity], share[has_severity], document[has_severity], size)
    signature = Signature.from_fields(statistic="vote-share-r", **fields)
    return [*estimates, ("r", estimate_pearson(products, resampled, signature))]


def _mean_vote_share_estimate(top: Floats, bottom: Floats, resampled: Resamples, signature: Signature) -> Estimate:
    if not bottom.sum():
        return undefined_estimate(signature, "no marks on texts with two or more annotators")
    return _share_estimate(top, bottom, resampled.resampled_ratios(top[None], bottom[None])[:, 0], signature)


def _sum_by_document(document: Ints, values: Floats, documents: int) -> Floats:
    return np.bincount(document, values, documents).astype(np.float64)  # bincount of an empty array returns integers


def correlation_sums(x: Floats, y: Floats, document: Ints, documents: int) -> Floats:
    """Return n, sum x, sum y, sum xx, sum yy and sum xy per document, (6, documents), sufficient for Pearson's r."""
    products = (np.ones_like(x), x, y, x * x, y * y, x * y)
    return np.stack([_sum_by_document(document, values, documents) for values in products])


def pearson_from_sums(sums: Floats) -> Floats:
    """Compute Pearson's r from the sums of `correlation_sums`, (..., 6); NaN where x or y does not vary."""
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    spread = np.maximum(n * xx - x * x, 0) * np.maximum(n * yy - y * y, 0)
    # relative tolerance, since the differences of sums lose digits to cancellation
    flat = (n * xx - x * x <= 1e-9 * n * xx) | (n * yy - y * y <= 1e-9 * n * yy)
    r = ratio_or_nan(n * xy - x * y, np.where(flat, 0.0, np.sqrt(spread)))
    return r.clip(-1, 1)


def estimate_pearson(sums: Floats, resampled: Resamples, signature: Signature) -> Estimate:
    """Estimate Pearson's r with a bootstrap interval over documents."""
    total = sums.sum(axis=1)
    if total[0] < 3:
        return undefined_estimate(signature, "fewer than three pairs")
    values, without = pearson_from_sums(resampled.documents @ sums.T), few_documents_reason(int((sums[0] > 0).sum()))
    return estimate_with_interval(
        float(pearson_from_sums(total)), values, signature, "one of the two variables does not vary", without
    )
