"""How many of the marks are right: a sample to judge, and counts corrected by what the judges found."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from scipy import stats

from finecomb.core.errors import FinecombError
from finecomb.core.estimate import Estimate, Finding, Signature
from finecomb.core.records import Annotation
from finecomb.core.study import Study
from finecomb.measure.counts import described
from finecomb.measure.reading import Floats, Reading, read_view
from finecomb.measure.resample import draw, percentiles
from finecomb.measure.view import View

Artefacts = Literal["leave-out", "not-legitimate"]


def audit_sample(view: View, per_cell: int = 10, by: Sequence[str] = ("model",), seed: int = 0) -> pl.DataFrame:
    """Up to `per_cell` marks of each label and each combination of the `by` columns, drawn at random, to be judged.

    Columns: mark, document, annotator, label, the `by` columns, quotes, explanation. It depends on the ids of the marks
    and the seed only, not on their order.
    """
    if per_cell < 1:
        raise FinecombError(f"an audit draws at least 1 mark of each label, not {per_cell}")
    groups = described(view.study, by).select(
        "annotation", *(each for each in by if each not in ("document", "annotator"))
    )
    explanation = pl.col("answers").str.json_path_match("$.explanation").alias("explanation")
    marks = view.study.marks.select("annotation", "document", "annotator", "label", "quotes", explanation, mark="id")
    marks = marks.join(groups, on="annotation", how="left").sort("mark")
    chance = pl.Series("chance", np.random.default_rng(seed).random(len(marks)))
    drawn = marks.with_columns(chance).filter(pl.col("chance").rank("ordinal").over("label", *by) <= per_cell)
    shown = ["mark", "document", "annotator", "label", *(each for each in by if each not in ("document", "annotator"))]
    return drawn.sort("chance").select(*shown, "quotes", "explanation")


def audit_annotations(sample: pl.DataFrame, auditor: str, protocol: str = "audit@1") -> Iterator[Annotation]:
    """The marks of a sample as drafts for one auditor: each is an annotation `about` one mark, still without a verdict."""
    for mark, document in sample.select("mark", "document").iter_rows():
        id = f"{protocol}/{auditor}/{mark}"
        yield Annotation(id=id, document=document, annotator=auditor, protocol=protocol, about=mark, status="draft")


def verdicts(audit: Study | View | Iterable[Annotation]) -> pl.DataFrame:
    """What auditors said of each mark: mark, legitimate, not_legitimate, artefact (how many said so).

    Only submitted work counts; a judgement without a verdict (`cannot_judge`) does not.
    """
    if isinstance(audit, View):
        audit = audit.study
    if isinstance(audit, Study):
        work = audit.work().annotations.filter(pl.col("about").is_not_null())
        rows = work.select(mark="about", verdict=pl.col("answers").str.json_path_match("$.verdict"))
    else:
        told = [
            (each.about, each.answers.get("verdict")) for each in audit if each.status == "submitted" and each.about
        ]
        rows = pl.DataFrame(told, schema={"mark": pl.String, "verdict": pl.String}, orient="row")
    said = [(pl.col("verdict") == name).sum().alias(name.replace("-", "_")) for name in VERDICTS]
    return rows.filter(pl.col("verdict").is_in(VERDICTS)).group_by("mark").agg(*said).sort("mark")


VERDICTS = ("legitimate", "not-legitimate", "artefact")


@dataclass(frozen=True, slots=True)
class _Audit:
    """What was judged in each category of one group, (categories,)."""

    share: Floats
    """p: share of the judged marks that are legitimate; NaN where none was judged."""
    judged: Floats
    """n: marks judged, without artefacts that are left out."""
    artefacts: Floats


def audited(
    view: View,
    audit: Study | View | Iterable[Annotation],
    by: Sequence[str] = ("model",),
    *,
    artefacts: Artefacts = "leave-out",
    draws: int = 1000,
    seed: int = 0,
) -> list[Finding]:
    r"""Marks per annotation times the share that auditors found legitimate, by label and `by` columns.

    Dou et al. (2022), appendix E.6 and Figure 16. `audited-count` of a label is $C_l p_l$, of `any` $\sum_l C_l p_l$;
    `legitimate` is $p_l$, and for `any` $\sum_l C_l p_l / \sum_l C_l$. A mark judged by several counts with the share of
    its judges; where half or more call it an artefact it is left out of p (or, if asked, counts as not legitimate).

    The interval joins both sources of error (Zou and Donner 2008): that of the counts, from drawing documents again with
    p fixed, and the Wilson intervals of p. NaN for a label without judged marks, and for `any` if it has marks.
    """
    reading = read_view(view, by, "document")
    counts, judged = reading.spread(), _judged(reading, verdicts(audit), artefacts)
    findings = []
    for columns, members in reading.groups(by):
        drawn = draw(
            reading.documents[members], reading.annotators[members], draws, np.random.default_rng(seed), "documents"
        )
        mine = counts[:-1, members] if len(counts) > 1 else counts[:, members]
        again = drawn.values(mine, np.ones_like(mine))  # C* of each draw, (draws, categories)
        cell = _cell(judged, members, len(mine))
        of = "+".join(f"{name}={value}" for name, value in columns.items()) or None
        said = {"artefacts": artefacts, "of": of, **view.fields, "documents": drawn.documents.shape[1]}
        labels = [(label, np.array([row])) for row, label in enumerate(reading.labels[: len(mine)])]
        whole = [("any", np.arange(len(mine)))] if len(counts) > 1 else []
        for label, rows in [*labels, *whole]:
            more = {"judged": int(cell.judged[rows].sum()), "artefacts": int(cell.artefacts[rows].sum())}
            for name, of_counts in (("audited-count", True), ("legitimate", False)):
                signature = Signature.of(
                    statistic=name, label=label, **said, judged=more["judged"], draws=draws, seed=seed
                )
                means = mine[rows].mean(axis=1) if len(members) else np.zeros(len(rows))
                estimate = _estimate(means, again[:, rows], cell, rows, reading.labels, of_counts, signature)
                findings.append(Finding({"measure": name, "label": label, **columns, **more}, estimate))
    return findings


def _judged(reading: Reading, said: pl.DataFrame, artefacts: Artefacts) -> pl.DataFrame:
    """One row per judged mark of the view: at (annotation), category, share (that call it legitimate), artefact."""
    rows = reading.marks.select("mark", "at", "category").join(said, on="mark", how="inner")
    legitimate, against, odd = (pl.col(name) for name in ("legitimate", "not_legitimate", "artefact"))
    is_artefact = odd * 2 >= legitimate + against + odd
    share = pl.when(is_artefact).then(0.0).otherwise(legitimate / (legitimate + against))
    left_out = is_artefact if artefacts == "leave-out" else pl.lit(value=False)
    return rows.select("at", "category", share=share, artefact=is_artefact, left_out=left_out)


def _cell(judged: pl.DataFrame, members: Floats | object, categories: int) -> _Audit:
    mine = judged.filter(pl.col("at").is_in(pl.Series(members).implode()))
    counted = mine.filter(~pl.col("left_out"))
    n = np.bincount(counted["category"], minlength=categories).astype(np.float64)
    right = np.bincount(counted["category"], counted["share"], categories)
    odd = np.bincount(mine.filter("artefact")["category"], minlength=categories).astype(np.float64)
    return _Audit(np.divide(right, n, out=np.full(categories, np.nan), where=n > 0), n, odd)


def wilson(share: Floats, n: Floats, level: float = 0.95) -> tuple[Floats, Floats]:
    """Wilson's interval of a share of n, which is honest also at 0 and 1.

    >>> low, high = wilson(np.array([0.0]), np.array([10.0]))
    >>> float(low[0]), round(float(high[0]), 4)
    (0.0, 0.2775)
    """
    z = stats.norm.ppf((1 + level) / 2)
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return np.maximum(0.0, centre - half), np.minimum(1.0, centre + half)


def _estimate(
    counts: Floats,
    again: Floats,
    cell: _Audit,
    rows: Floats | object,
    labels: Sequence[str],
    of_counts: bool,
    signature: Signature,
) -> Estimate:
    p, n = cell.share[rows], cell.judged[rows]  # type: ignore[index]
    used = counts > 0
    if why := _why(counts, n, np.asarray(labels)[rows], of_counts):  # type: ignore[index]
        return Estimate(math.nan, math.nan, math.nan, signature, why)
    if not used.any():
        return Estimate(0.0, math.nan, math.nan, signature, "nobody used this label, so no interval")
    counts, again, p, n = counts[used], again[:, used], p[used], n[used]
    low, high = wilson(p, n)
    weights, drawn = (counts, again @ p) if of_counts else (counts / counts.sum(), _mixed(again, p))
    value = float(weights @ p)
    if of_counts and len(again) and np.ptp(again) == 0:
        return Estimate(value, math.nan, math.nan, signature, "all documents give the same value, so no interval")
    from_counts = percentiles(drawn)
    below = math.hypot(value - from_counts[0], *(weights * (p - low)))
    above = math.hypot(from_counts[1] - value, *(weights * (high - p)))
    return Estimate(value, max(0.0, value - below), value + above, signature)


def _mixed(again: Floats, p: Floats) -> Floats:
    """Overall share of each draw: shares of labels mixed as often as labels come up."""
    total = again.sum(axis=1)
    return np.divide(again @ p, total, out=np.full(len(total), np.nan), where=total > 0)


def _why(counts: Floats, judged: Floats, labels: Sequence[str], of_counts: bool) -> str:
    missing = [str(label) for label, c, n in zip(labels, counts, judged, strict=True) if c > 0 and not n]
    if missing:
        return f"no judged marks of {', '.join(missing)}"
    return "no marks" if not of_counts and not counts.any() else ""
