"""How many marks lie on a token, and whether what is worse is noticed by more readers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl

from finecomb.core.estimate import Estimate, Finding, Signature
from finecomb.statistics.inference.resampling import (
    Resamples,
    draw_document_resamples,
    estimate_with_interval,
    few_documents_reason,
    no_interval_reason,
    ratio_or_nan,
    undefined_estimate,
)
from finecomb.statistics.measures.annotation_matrix import AnnotationMatrix, Floats, build_annotation_matrix
from finecomb.statistics.measures.unit_grid import Ints, Level, count_unit_votes, remove_range_overlaps
from finecomb.statistics.selection.view import View

DepthUnit = Literal["annotators", "marks"]


def mark_depth_shares(
    view: View,
    by: Sequence[str] = (),
    *,
    of: DepthUnit = "annotators",
    level: Level = "token",
    tokens: str = "words",
    draws: int = 1000,
    seed: int = 0,
) -> list[Finding]:
    """Share of the tokens that 0, 1, 2, ... annotators marked; or, with `of="marks"`, marks of one annotator.

    With `of="annotators"` each token counts once; with `of="marks"` once for everybody who read it, so depth 2 says how
    often one person put two marks on the same word (Dou et al. 2022, footnote 8). Columns: measure, label, depth, the
    `by` columns. Values of a label add up to 1. NaN when no text that was read has a token.
    """
    findings = []
    for columns, part in view.split(by):
        reading = build_annotation_matrix(part, (), level, tokens)
        fields: dict[str, Any] = {
            "of": of,
            "tokens": tokens,
            "unit": level if level != "token" else None,
            **view.fields,
        }
        fields |= {"where": _where_signature_field(view, columns), "draws": draws, "seed": seed}
        resampled = draw_document_resamples(len(reading.grid.documents), draws, seed)
        for label, table in zip(reading.labels, _DEPTHS[of](reading), strict=True):
            for deep, estimate in enumerate(_depth_share_estimates(table, resampled, {"label": label, **fields})):
                findings.append(Finding({"measure": "depth", "label": label, "depth": deep, **columns}, estimate))
    return findings


def _depth_share_estimates(table: Floats, resampled: Resamples, fields: dict[str, Any]) -> Iterator[Estimate]:
    """The share of each depth, from counts of shape (depths, documents)."""
    below = np.broadcast_to(table.sum(axis=0), table.shape)
    numbers = resampled.resampled_ratios(table, below)
    for deep in range(len(table)):
        signature = Signature.from_fields(statistic="depth", depth=deep, **fields)
        yield _share_estimate(table[deep], below[deep], numbers[:, deep], signature)


def _where_signature_field(view: View, columns: dict[str, str | None]) -> str | None:
    pairs = [f"{name}={value}" for name, value in columns.items()]
    fields = view.fields.get("where")
    return "+".join([*([str(fields)] if fields else []), *pairs]) or None


def _share_estimate(top: Floats, bottom: Floats, resampled: Floats, signature: Signature) -> Estimate:
    if not bottom.sum():
        return undefined_estimate(signature, "no text that was read has a token")
    return estimate_with_interval(
        float(top.sum() / bottom.sum()),
        resampled,
        signature,
        missing_interval_reason=no_interval_reason(ratio_or_nan(top, bottom)),
    )


def _annotator_depth_histograms(reading: AnnotationMatrix) -> list[Floats]:
    """For each label, how many tokens of each document so many annotators marked, (depths, documents)."""
    grid, study = reading.grid, reading.view.study
    document = np.repeat(np.arange(len(grid.documents)), grid.sizes)
    rows = np.concatenate(
        [count_unit_votes(study, grid, reading.labels[:-1]).marked, count_unit_votes(study, grid, None).marked]
    )
    return [_document_histogram(row, document, len(grid.documents)) for row in rows]


def _mark_depth_histograms(reading: AnnotationMatrix) -> list[Floats]:
    """Likewise, how many marks each reader put on each token."""
    grid = reading.grid
    sizes = grid.sizes[reading.document_positions]
    starts = np.cumsum(sizes) - sizes  # readings of a text laid end to end
    document = np.repeat(reading.document_positions, sizes)
    ranges = remove_range_overlaps(reading.grid_spans, ["row"])
    shift = (starts - grid.bounds[reading.document_positions])[ranges["at"].to_numpy()]
    first, last = ranges["first"].to_numpy() + shift, ranges["last"].to_numpy() + shift
    category = ranges["category"].to_numpy()
    masks = [category == row for row in range(len(reading.labels) - 1)] + [np.ones(len(category), dtype=bool)]
    deep = [_covering_range_counts(first[mask], last[mask], len(document)) for mask in masks]
    return [_document_histogram(layers, document, len(grid.documents)) for layers in deep]


_DEPTHS = {"annotators": _annotator_depth_histograms, "marks": _mark_depth_histograms}


def _covering_range_counts(first: Ints, last: Ints, size: int) -> Ints:
    """How many of the ranges [first, last) cover each place, (size,)."""
    edges = np.bincount(first, minlength=size + 1) - np.bincount(last, minlength=size + 1)
    return np.cumsum(edges)[:-1].astype(np.int64)


def _document_histogram(values: Ints, document: Ints, documents: int) -> Floats:
    """How often each value from 0 to the largest occurs in each document, (values, documents)."""
    most = int(values.max(initial=0)) + 1
    cells = np.bincount(document * most + values, minlength=documents * most)
    return cells.reshape(documents, most).T.astype(np.float64)


def vote_share_by_severity(
    view: View, by: Sequence[str] = (), *, tokens: str = "words", draws: int = 1000, seed: int = 0
) -> list[Finding]:
    """How many of the other readers marked the same words, by how severe the mark is, and the correlation of the two.

    For every token of a mark, the share of the others who read the text and marked the token with the same label (for
    `any`: with any label). `vote-share` is its mean over the tokens of marks of a severity (column severity, `all` for
    all of them); `vote-share-r` is Pearson's r with severity over those tokens. Marks without a severity count under
    `all` only. NaN when no text has two readers; pooled readers are left out.
    """
    findings = []
    for columns, part in view.split(by):
        reading = build_annotation_matrix(part, (), "token", tokens)
        fields = {
            "tokens": tokens,
            **view.fields,
            "where": _where_signature_field(view, columns),
            "draws": draws,
            "seed": seed,
        }
        resampled, pairs = draw_document_resamples(len(reading.grid.documents), draws, seed), _mark_tokens(reading)
        for row, label in enumerate(reading.labels):
            for severity, estimate in _vote_share_estimates(reading, pairs, row, resampled, {"label": label, **fields}):
                name = "vote-share-r" if severity == "r" else "vote-share"
                about = {"measure": name, "label": label, "severity": "all" if severity == "r" else severity, **columns}
                findings.append(Finding(about, estimate))
    return findings


class _MarkTokens(NamedTuple):
    """Every token of every mark on a text with two readers."""

    document: Ints
    category: Ints
    severity: Floats
    by_label: Floats
    """Share of the other readers who marked the token with the same label."""
    by_any: Floats
    """Share of the other readers who marked it at all."""


def _mark_tokens(reading: AnnotationMatrix) -> _MarkTokens:
    ranges = remove_range_overlaps(reading.grid_spans.filter(~pl.col("pooled")), ["row"])
    first, size = ranges["first"].to_numpy(), (ranges["last"] - ranges["first"]).to_numpy()
    unit = np.repeat(first - (np.cumsum(size) - size), size) + np.arange(size.sum())
    row, category = (np.repeat(ranges[name].to_numpy(), size) for name in ("row", "category"))
    study, grid = reading.view.study, reading.grid
    any_ = count_unit_votes(study, grid, None)
    marked = np.concatenate(
        [count_unit_votes(study, grid, reading.labels[:-1]).marked, any_.marked]
    )  # k, (labels, units)
    two = any_.annotators_per_unit[unit] >= 2
    unit, row, category = unit[two], row[two], category[two]
    others = any_.annotators_per_unit[unit] - 1
    document = np.searchsorted(grid.bounds, unit, side="right") - 1
    shares = [(marked[label, unit] - 1) / others for label in (category, -1)]  # without one's own vote
    return _MarkTokens(document, category, reading.severities[row], *shares)


def _vote_share_estimates(
    reading: AnnotationMatrix, pairs: _MarkTokens, row: int, resampled: Resamples, fields: dict[str, Any]
) -> list[tuple[str, Estimate]]:
    """Estimates of one label: all its marks, each severity, and the correlation."""
    last = row == len(reading.labels) - 1
    mine = np.ones(len(pairs.category), dtype=bool) if last else pairs.category == row
    share = (pairs.by_any if last else pairs.by_label)[mine]
    severity, document = pairs.severity[mine], pairs.document[mine]
    size = len(reading.grid.documents)
    estimates = []
    for name, mask in _severity_masks(severity):
        signature = Signature.from_fields(statistic="vote-share", severity=name, **fields)
        top, bottom = (_sum_by_document(document[mask], values[mask], size) for values in (share, np.ones_like(share)))
        estimates.append((name, _mean_vote_share_estimate(top, bottom, resampled, signature)))
    has_severity = np.isfinite(severity)
    products = correlation_sums(severity[has_severity], share[has_severity], document[has_severity], size)
    signature = Signature.from_fields(statistic="vote-share-r", **fields)
    return [*estimates, ("r", estimate_pearson(products, resampled, signature))]


def _severity_masks(severity: Floats) -> list[tuple[str, Any]]:
    levels = np.unique(severity[np.isfinite(severity)])
    return [("all", np.ones(len(severity), dtype=bool)), *((f"{level:g}", severity == level) for level in levels)]


def _mean_vote_share_estimate(top: Floats, bottom: Floats, resampled: Resamples, signature: Signature) -> Estimate:
    if not bottom.sum():
        return undefined_estimate(signature, "no mark on a text that two annotators read")
    return _share_estimate(top, bottom, resampled.resampled_ratios(top[None], bottom[None])[:, 0], signature)


def _sum_by_document(document: Ints, values: Floats, documents: int) -> Floats:
    return np.bincount(document, values, documents).astype(np.float64)  # counts come back as integers when empty


def correlation_sums(x: Floats, y: Floats, document: Ints, documents: int) -> Floats:
    """n, sum x, sum y, sum xx, sum yy and sum xy of each document, (6, documents): all that Pearson's r needs."""
    products = (np.ones_like(x), x, y, x * x, y * y, x * y)
    return np.stack([_sum_by_document(document, values, documents) for values in products])


def pearson_from_sums(sums: Floats) -> Floats:
    """Pearson's r from the sums of `correlation_sums`, (..., 6); NaN where x or y does not vary."""
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    spread = np.maximum(n * xx - x * x, 0) * np.maximum(n * yy - y * y, 0)
    flat = (n * xx - x * x <= 1e-9 * n * xx) | (n * yy - y * y <= 1e-9 * n * yy)
    r = ratio_or_nan(n * xy - x * y, np.where(flat, 0.0, np.sqrt(spread)))
    return r.clip(-1, 1)


def estimate_pearson(sums: Floats, resampled: Resamples, signature: Signature) -> Estimate:
    """Pearson's r with an interval over documents."""
    total = sums.sum(axis=1)
    if total[0] < 3:
        return undefined_estimate(signature, "fewer than three pairs")
    values, without = pearson_from_sums(resampled.documents @ sums.T), few_documents_reason(int((sums[0] > 0).sum()))
    return estimate_with_interval(
        float(pearson_from_sums(total)), values, signature, "one of the two does not vary", without
    )
