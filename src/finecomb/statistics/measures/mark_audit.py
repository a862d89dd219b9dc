"""Audit of marks: random samples that auditors judge, and mark counts corrected by the auditors' verdicts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl
import scipy  # submodules load on first use, which keeps start-up fast

from finecomb.core.errors import FinecombError
from finecomb.core.frames import json_entry
from finecomb.core.records import Annotation
from finecomb.core.results import Estimate, Finding, Signature
from finecomb.core.study import Study, annotation_rows_with_groups
from finecomb.statistics.inference.resampling import (
    NO_RESAMPLES_REASON,
    draw_annotation_resamples,
    few_documents_reason,
    percentile_interval,
    ratio_or_nan,
    undefined_estimate,
)
from finecomb.statistics.measures.unit_grid import AnnotationMatrix, Floats, Ints, build_annotation_matrix
from finecomb.statistics.selection.view import ANY_LABEL, View

ArtefactMode = Literal["leave-out", "not-legitimate"]


def draw_audit_sample(view: View, per_cell: int = 10, by: Sequence[str] = ("model",), seed: int = 0) -> pl.DataFrame:
    """Draw up to `per_cell` marks at random per label and combination of the `by` columns, for auditors to judge.

    Columns: mark, document, annotator, label, the `by` columns, quotes, explanation. The sample depends only on the IDs
    of the marks and the seed, not on their order.
    """
    if per_cell < 1:
        raise FinecombError(f"the number of marks per label must be at least 1, found {per_cell}")
    groups = annotation_rows_with_groups(view.study, by).select(
        "annotation", *(name for name in by if name not in ("document", "annotator"))
    )
    explanation = json_entry("answers", "explanation")
    marks = view.study.marks.select("annotation", "document", "annotator", "label", "quotes", explanation, mark="id")
    marks = marks.join(groups, on="annotation", how="left").sort("mark")
    chance = pl.Series("chance", np.random.default_rng(seed).random(len(marks)))
    sample = marks.with_columns(chance).filter(pl.col("chance").rank("ordinal").over("label", *by) <= per_cell)
    columns = [
        "mark",
        "document",
        "annotator",
        "label",
        *(name for name in by if name not in ("document", "annotator")),
    ]
    return sample.sort("chance").select(*columns, "quotes", "explanation")


def draft_audit_annotations(sample: pl.DataFrame, auditor: str, protocol: str = "audit@1") -> Iterator[Annotation]:
    """Yield a sample of marks as draft annotations for one auditor, each `about` one mark and without a verdict."""
    for mark, document in sample.select("mark", "document").iter_rows():
        id = f"{protocol}/{auditor}/{mark}"
        yield Annotation(id=id, document=document, annotator=auditor, protocol=protocol, about=mark, status="draft")


def verdict_counts_by_mark(audit: Study | View | Iterable[Annotation]) -> pl.DataFrame:
    """Count the verdicts on each mark: columns mark, legitimate, not_legitimate, artefact.

    Only submitted annotations count, and annotations without a verdict (`cannot_judge`) are skipped.
    """
    if isinstance(audit, View):
        audit = audit.study
    if isinstance(audit, Study):
        work = audit.submitted_work().annotations.filter(pl.col("about").is_not_null())
        rows = work.select(mark="about", verdict=json_entry("answers", "verdict"))
    else:
        judgements = [
            (annotation.about, annotation.answers.get("verdict"))
            for annotation in audit
            if annotation.status == "submitted" and annotation.about
        ]
        rows = pl.DataFrame(judgements, schema={"mark": pl.String, "verdict": pl.String}, orient="row")
    fields = [(pl.col("verdict") == name).sum().alias(name.replace("-", "_")) for name in VERDICTS]
    return rows.filter(pl.col("verdict").is_in(VERDICTS)).group_by("mark").agg(*fields).sort("mark")


VERDICTS = ("legitimate", "not-legitimate", "artefact")


class _AuditCells(NamedTuple):
    """Counts and verdicts of one group. "Categories" below are cells, one per stratum and category."""

    labels: tuple[str, ...]
    counts: Floats
    """C, (categories,): number of marks per annotation."""
    again: Floats
    """C in each resample of documents, (draws, categories)."""
    share: Floats
    """p, (categories,): share of judged marks that are legitimate; NaN where no mark was judged."""
    judged: Floats
    """n, (categories,): number of judged marks without excluded artefacts."""
    artefacts: Floats
    """(categories,): number of marks judged to be artefacts."""
    documents: int


def audited_counts(
    view: View,
    audit: Study | View | Iterable[Annotation],
    by: Sequence[str] = ("model",),
    strata: Sequence[str] | None = None,
    *,
    artefacts: ArtefactMode = "leave-out",
    draws: int = 1000,
    seed: int = 0,
) -> list[Finding]:
    r"""Estimate the number of legitimate marks per annotation, by label and the `by` columns.

    Dou et al. (2022), appendix E.6 and Figure 16. With C marks per annotation and a share p of legitimate marks,
    `audited-count` is $C_l p_l$ for a label and $\sum_l C_l p_l$ for `any`. `legitimate` is $p_l$, and for `any`
    $\sum_l C_l p_l / \sum_l C_l$. A mark judged by several auditors counts with the share of auditors who call it
    legitimate. If half or more call it an artefact, it is excluded from p, or, with `not-legitimate`, counts as not
    legitimate.

    The interval combines two sources of error (Zou and Donner 2008): the resampling of documents with p fixed, and the
    Wilson interval of p. A label with marks but no judged marks is NaN, and then `any` is NaN as well.

    `strata` are the columns by which the sample was drawn (default: `by`). If they include columns that are not in
    `by`, as with a sample by model and a result for all models, each stratum has its own p and is weighted by its
    number of marks.
    """
    strata = tuple(by) if strata is None else tuple(strata)
    matrix = build_annotation_matrix(view, tuple(dict.fromkeys((*by, *strata))), "document")
    counts, judged = matrix.sum_by_category(), _judged_marks(matrix, verdict_counts_by_mark(audit), artefacts)
    stratum = np.zeros(len(matrix), dtype=np.int64)
    for number, (_, positions) in enumerate(matrix.groups(strata)):
        stratum[positions] = number
    findings = []
    for columns, positions in matrix.groups(by):
        cells = _tally_audit_cells(matrix, counts, judged, stratum, positions, np.random.default_rng(seed), draws)
        group = "+".join(f"{name}={value}" for name, value in columns.items()) or None
        fields: dict[str, Any] = {
            "artefacts": artefacts,
            "strata": "+".join(strata) or None,
            "of": group,
            **view.fields,
        }
        fields |= {"documents": cells.documents}
        for label, members in _cells_by_label(cells.labels).items():
            verdict_columns = {
                "judged": int(cells.judged[members].sum()),
                "artefacts": int(cells.artefacts[members].sum()),
            }
            signature_fields = {**fields, "judged": verdict_columns["judged"], "draws": draws, "seed": seed}
            for name in ("audited-count", "legitimate"):
                estimate = _audit_estimate(
                    cells, members, name, Signature.from_fields(statistic=name, label=label, **signature_fields)
                )
                findings.append(Finding({"measure": name, "label": label, **columns, **verdict_columns}, estimate))
    return findings


def _cells_by_label(labels: Sequence[str]) -> dict[str, Ints]:
    """Return the cells that belong to each label; all cells belong to `any`."""
    rows = {label: np.flatnonzero([name == label for name in labels]) for label in dict.fromkeys(labels)}
    return rows | {ANY_LABEL: np.arange(len(labels))}


def _judged_marks(matrix: AnnotationMatrix, fields: pl.DataFrame, artefacts: ArtefactMode) -> pl.DataFrame:
    """Return one row per judged mark: at (annotation), category, share (of legitimate verdicts), artefact, left_out."""
    rows = matrix.marks.select("mark", "at", "category").join(fields, on="mark", how="inner")
    legitimate, against, artefact = (
        pl.col(name).cast(pl.Int64) for name in ("legitimate", "not_legitimate", "artefact")
    )
    is_artefact = artefact * 2 >= legitimate + against + artefact
    share = pl.when(is_artefact).then(0.0).otherwise(legitimate / (legitimate + against))
    left_out = is_artefact if artefacts == "leave-out" else pl.lit(value=False)
    return rows.select("at", "category", share=share, artefact=is_artefact, left_out=left_out)


def _tally_audit_cells(
    matrix: AnnotationMatrix,
    counts: Floats,
    judged: pl.DataFrame,
    stratum: Ints,
    at: Ints,
    rng: np.random.Generator,
    draws: int,
) -> _AuditCells:
    labels = matrix.labels[:-1] or matrix.labels
    present, strata = np.unique(stratum[at], return_inverse=True)
    size = max(1, len(present)) * len(labels)  # cells: strata times labels
    rows = strata * len(labels) + np.arange(len(labels))[:, None]
    cell_counts = np.zeros((size, len(at)))
    cell_counts[rows, np.arange(len(at))] = counts[: len(labels), at]
    n, right, artefacts = _tally_verdicts(
        judged, dict(zip(at.tolist(), (strata * len(labels)).tolist(), strict=True)), size
    )
    resampled = draw_annotation_resamples(
        matrix.document_positions[at], matrix.annotator_positions[at], draws, rng, "documents"
    )
    means = cell_counts.mean(axis=1) if len(at) else np.zeros(size)
    resampled_counts = resampled.resampled_ratios(cell_counts, np.ones_like(cell_counts))
    names = labels * (size // len(labels))
    return _AuditCells(
        names, means, resampled_counts, ratio_or_nan(right, n), n, artefacts, resampled.documents.shape[1]
    )


def _tally_verdicts(judged: pl.DataFrame, first: dict[int, int], size: int) -> tuple[Floats, Floats, Floats]:
    """Count the judged marks, legitimate marks and artefacts in each cell.

    `first` maps each annotation to the first cell of its stratum.
    """
    group_judgements = judged.filter(pl.col("at").is_in(list(first)))
    start = pl.col("at").replace_strict(first, return_dtype=pl.Int64) if first else pl.col("at")
    group_judgements = group_judgements.with_columns(cell=start + pl.col("category"))
    judgements, artefact_rows = group_judgements.filter(~pl.col("left_out")), group_judgements.filter("artefact")
    n, right, artefacts = (
        np.bincount(rows["cell"], weights, size).astype(np.float64)
        for rows, weights in ((judgements, None), (judgements, judgements["share"]), (artefact_rows, None))
    )
    return n, right, artefacts


def wilson_interval(share: Floats, n: Floats, level: float = 0.95) -> tuple[Floats, Floats]:
    """Compute Wilson's interval of a share of n, which is also valid at 0 and 1.

    >>> low, high = wilson_interval(np.array([0.0]), np.array([10.0]))
    >>> float(low[0]), round(float(high[0]), 4)
    (0.0, 0.2775)
    """
    z = scipy.stats.norm.ppf((1 + level) / 2)
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return np.maximum(0.0, centre - half), np.minimum(1.0, centre + half)


def _audit_estimate(cells: _AuditCells, rows: Ints, name: str, signature: Signature) -> Estimate:
    """Estimate the audited count or the legitimate share over the given cells."""
    if why := _undefined_reason(cells, rows, name):
        return undefined_estimate(signature, why)
    marked_rows = rows[cells.counts[rows] > 0]
    if not len(marked_rows):
        return Estimate(0.0, math.nan, math.nan, signature, "no marks, so there is no interval")
    counts, resampled, p = (
        cells.counts[marked_rows],
        cells.again[:, marked_rows],
        cells.share[marked_rows],
    )  # C_l, (draws, l), p_l
    low, high = wilson_interval(p, cells.judged[marked_rows])
    if name == "legitimate":
        counts, resampled = (
            counts / counts.sum(),
            ratio_or_nan(resampled, np.broadcast_to(resampled.sum(axis=1)[:, None], resampled.shape)),
        )
    value = float(counts @ p)
    if why := few_documents_reason(cells.documents) or (NO_RESAMPLES_REASON if not len(resampled) else ""):
        return Estimate(value, math.nan, math.nan, signature, why)
    from_counts = percentile_interval(resampled @ p)
    below = math.hypot(value - from_counts[0], *(counts * (p - low)))
    above = math.hypot(from_counts[1] - value, *(counts * (high - p)))
    most = 1.0 if name == "legitimate" else math.inf
    return Estimate(value, max(0.0, value - below), min(most, value + above), signature)


def _undefined_reason(cells: _AuditCells, rows: Ints, name: str) -> str:
    if math.isnan(cells.counts.sum()) or not cells.documents:
        return "no annotations"
    missing = dict.fromkeys(cells.labels[row] for row in rows if cells.counts[row] > 0 and not cells.judged[row])
    if missing:
        return f"no marks with label {', '.join(missing)} were judged"
    return "no marks" if name == "legitimate" and not cells.counts[rows].any() else ""
