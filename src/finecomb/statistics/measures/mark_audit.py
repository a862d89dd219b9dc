"""How many of the marks are right: a sample to judge, and counts corrected by what the judges found."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl
import scipy  # its parts load when first used: start-up stays quick

from finecomb.core.errors import FinecombError
from finecomb.core.estimate import Estimate, Finding, Signature
from finecomb.core.frames import json_entry
from finecomb.core.records import Annotation
from finecomb.core.study import Study
from finecomb.statistics.inference.resampling import (
    NO_RESAMPLES,
    draw_annotation_resamples,
    few_documents_reason,
    percentile_interval,
    ratio_or_nan,
    undefined_estimate,
)
from finecomb.statistics.measures.annotation_matrix import AnnotationMatrix, Floats, build_annotation_matrix
from finecomb.statistics.measures.study_counts import annotation_rows_with_groups
from finecomb.statistics.measures.unit_grid import Ints
from finecomb.statistics.selection.view import ANY, View

Artefacts = Literal["leave-out", "not-legitimate"]


def audit_sample(view: View, per_cell: int = 10, by: Sequence[str] = ("model",), seed: int = 0) -> pl.DataFrame:
    """Up to `per_cell` marks of each label and each combination of the `by` columns, drawn at random, to be judged.

    Columns: mark, document, annotator, label, the `by` columns, quotes, explanation. It depends on the ids of the marks
    and the seed only, not on their order.
    """
    if per_cell < 1:
        raise FinecombError(f"an audit draws at least 1 mark of each label, not {per_cell}")
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


def audit_annotations(sample: pl.DataFrame, auditor: str, protocol: str = "audit@1") -> Iterator[Annotation]:
    """The marks of a sample as drafts for one auditor: annotations `about` one mark each, still without a verdict."""
    for mark, document in sample.select("mark", "document").iter_rows():
        id = f"{protocol}/{auditor}/{mark}"
        yield Annotation(id=id, document=document, annotator=auditor, protocol=protocol, about=mark, status="draft")


def verdict_counts_by_mark(audit: Study | View | Iterable[Annotation]) -> pl.DataFrame:
    """What auditors said of each mark: mark, legitimate, not_legitimate, artefact (how many said so).

    Only submitted work counts; a judgement without a verdict (`cannot_judge`) does not.
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
    """Counts and verdicts of one group, by stratum and category; "categories" below are these cells."""

    labels: tuple[str, ...]
    counts: Floats
    """C: marks per annotation, (categories,)"""
    again: Floats
    """C of each draw of documents, (draws, categories)"""
    share: Floats
    """p: share of the judged marks that are legitimate, (categories,); NaN where none was judged."""
    judged: Floats
    """n: marks judged, without artefacts that are left out, (categories,)"""
    artefacts: Floats
    """(categories,)"""
    documents: int


def audited_counts(
    view: View,
    audit: Study | View | Iterable[Annotation],
    by: Sequence[str] = ("model",),
    strata: Sequence[str] | None = None,
    *,
    artefacts: Artefacts = "leave-out",
    draws: int = 1000,
    seed: int = 0,
) -> list[Finding]:
    r"""Marks per annotation times the share that auditors found legitimate, by label and `by` columns.

    Dou et al. (2022), appendix E.6 and Figure 16. `audited-count` of a label is $C_l p_l$, of `any` $\sum_l C_l p_l$;
    `legitimate` is $p_l$, and for `any` $\sum_l C_l p_l / \sum_l C_l$. A mark judged by several counts with the share
    of its judges; where half or more call it an artefact it is left out of p (or counts as not legitimate, if asked).

    The interval joins both sources of error (Zou and Donner 2008): that of the counts, from drawing documents again
    with p fixed, and the Wilson intervals of p. NaN for labels that have marks and no judged ones, and then for `any`.

    `strata` are the columns by which the sample was drawn, those of `by` unless said. Where they are more, as in a
    sample by model and a result for all models, each stratum has its own p and counts as often as it has marks.
    """
    strata = tuple(by) if strata is None else tuple(strata)
    reading = build_annotation_matrix(view, tuple(dict.fromkeys((*by, *strata))), "document")
    counts, judged = reading.sum_by_category(), _judged_marks(reading, verdict_counts_by_mark(audit), artefacts)
    stratum = np.zeros(len(reading), dtype=np.int64)
    for number, (_, at) in enumerate(reading.groups(strata)):
        stratum[at] = number
    findings = []
    for columns, at in reading.groups(by):
        cells = _tally_audit_cells(reading, counts, judged, stratum, at, np.random.default_rng(seed), draws)
        of = "+".join(f"{name}={value}" for name, value in columns.items()) or None
        fields: dict[str, Any] = {"artefacts": artefacts, "strata": "+".join(strata) or None, "of": of, **view.fields}
        fields |= {"documents": cells.documents}
        for label, members in _cells_by_label(cells.labels).items():
            more = {"judged": int(cells.judged[members].sum()), "artefacts": int(cells.artefacts[members].sum())}
            signature_fields = {**fields, "judged": more["judged"], "draws": draws, "seed": seed}
            for name in ("audited-count", "legitimate"):
                estimate = _audit_estimate(
                    cells, members, name, Signature.from_fields(statistic=name, label=label, **signature_fields)
                )
                findings.append(Finding({"measure": name, "label": label, **columns, **more}, estimate))
    return findings


def _cells_by_label(labels: Sequence[str]) -> dict[str, Ints]:
    """Which cells belong to each label, and to `any`."""
    rows = {label: np.flatnonzero([name == label for name in labels]) for label in dict.fromkeys(labels)}
    return rows | {ANY: np.arange(len(labels))}


def _judged_marks(reading: AnnotationMatrix, fields: pl.DataFrame, artefacts: Artefacts) -> pl.DataFrame:
    """One row per judged mark of the view: at (annotation), category, share (that call it legitimate), artefact."""
    rows = reading.marks.select("mark", "at", "category").join(fields, on="mark", how="inner")
    legitimate, against, odd = (pl.col(name).cast(pl.Int64) for name in ("legitimate", "not_legitimate", "artefact"))
    is_artefact = odd * 2 >= legitimate + against + odd
    share = pl.when(is_artefact).then(0.0).otherwise(legitimate / (legitimate + against))
    left_out = is_artefact if artefacts == "leave-out" else pl.lit(value=False)
    return rows.select("at", "category", share=share, artefact=is_artefact, left_out=left_out)


def _tally_audit_cells(
    reading: AnnotationMatrix,
    counts: Floats,
    judged: pl.DataFrame,
    stratum: Ints,
    at: Ints,
    rng: np.random.Generator,
    draws: int,
) -> _AuditCells:
    labels = reading.labels[:-1] or reading.labels
    present, strata = np.unique(stratum[at], return_inverse=True)
    size = max(1, len(present)) * len(labels)  # cells: strata times labels
    rows = strata * len(labels) + np.arange(len(labels))[:, None]
    mine = np.zeros((size, len(at)))
    mine[rows, np.arange(len(at))] = counts[: len(labels), at]
    n, right, artefacts = _tally_verdicts(
        judged, dict(zip(at.tolist(), (strata * len(labels)).tolist(), strict=True)), size
    )
    resampled = draw_annotation_resamples(
        reading.document_positions[at], reading.annotator_positions[at], draws, rng, "documents"
    )
    means = mine.mean(axis=1) if len(at) else np.zeros(size)
    again = resampled.resampled_ratios(mine, np.ones_like(mine))
    names = labels * (size // len(labels))
    return _AuditCells(names, means, again, ratio_or_nan(right, n), n, artefacts, resampled.documents.shape[1])


def _tally_verdicts(judged: pl.DataFrame, first: dict[int, int], size: int) -> tuple[Floats, Floats, Floats]:
    """Marks judged, legitimate and artefacts in each cell; `first` is the first cell of each annotation's stratum."""
    mine = judged.filter(pl.col("at").is_in(list(first)))
    start = pl.col("at").replace_strict(first, return_dtype=pl.Int64) if first else pl.col("at")
    mine = mine.with_columns(cell=start + pl.col("category"))
    judgements, odd = mine.filter(~pl.col("left_out")), mine.filter("artefact")
    n, right, artefacts = (
        np.bincount(rows["cell"], weights, size).astype(np.float64)
        for rows, weights in ((judgements, None), (judgements, judgements["share"]), (odd, None))
    )
    return n, right, artefacts


def wilson_interval(share: Floats, n: Floats, level: float = 0.95) -> tuple[Floats, Floats]:
    """Wilson's interval of a share of n, which is honest also at 0 and 1.

    >>> low, high = wilson_interval(np.array([0.0]), np.array([10.0]))
    >>> float(low[0]), round(float(high[0]), 4)
    (0.0, 0.2775)
    """
    z = scipy.stats.norm.ppf((1 + level) / 2)
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return np.maximum(0.0, centre - half), np.minimum(1.0, centre + half)


def _audit_estimate(cells: _AuditCells, rows: Ints, name: str, signature: Signature) -> Estimate:
    """One label, or several taken together."""
    if why := _undefined_reason(cells, rows, name):
        return undefined_estimate(signature, why)
    used = rows[cells.counts[rows] > 0]
    if not len(used):
        return Estimate(0.0, math.nan, math.nan, signature, "nobody marked anything, so no interval")
    counts, again, p = cells.counts[used], cells.again[:, used], cells.share[used]  # C_l, (draws, l), p_l
    low, high = wilson_interval(p, cells.judged[used])
    if name == "legitimate":
        counts, again = (
            counts / counts.sum(),
            ratio_or_nan(again, np.broadcast_to(again.sum(axis=1)[:, None], again.shape)),
        )
    value = float(counts @ p)
    if why := few_documents_reason(cells.documents) or (NO_RESAMPLES if not len(again) else ""):
        return Estimate(value, math.nan, math.nan, signature, why)
    from_counts = percentile_interval(again @ p)
    below = math.hypot(value - from_counts[0], *(counts * (p - low)))
    above = math.hypot(from_counts[1] - value, *(counts * (high - p)))
    most = 1.0 if name == "legitimate" else math.inf
    return Estimate(value, max(0.0, value - below), min(most, value + above), signature)


def _undefined_reason(cells: _AuditCells, rows: Ints, name: str) -> str:
    if math.isnan(cells.counts.sum()) or not cells.documents:
        return "no annotations"
    missing = dict.fromkeys(cells.labels[row] for row in rows if cells.counts[row] > 0 and not cells.judged[row])
    if missing:
        return f"no judged marks of {', '.join(missing)}"
    return "no marks" if name == "legitimate" and not cells.counts[rows].any() else ""
