r"""Anchoring effect of machine suggestions: the extent to which people follow marks that are offered to them.

A random share of tasks shows no machine marks (`blind`). The effect is the mean of a value with suggestions minus the
mean without. Texts annotated both ways are compared with themselves, so that difficult texts are not mistaken for an
effect. With $n_1$ annotations with suggestions and $n_0$ without, the difference of a text has the weight
$n_1 n_0 / (n_1 + n_0)$. Texts annotated in one way only are compared as two groups. The two results are combined with
inverse-variance weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError
from finecomb.core.frames import parse_json_object
from finecomb.core.results import Estimate, Finding, Signature
from finecomb.core.study import Study
from finecomb.statistics.inference.mean_interval import ErrorMoments, hall_interval, mean_error_moments
from finecomb.statistics.selection.view import Filters, View, view

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
MIN_TEXTS = 8


@dataclass(frozen=True, slots=True)
class AnchoringEffect:
    """Estimated difference between annotations with and without suggestions."""

    value: float
    spread: ErrorMoments
    paired: int
    """Number of texts annotated both with and without suggestions."""
    unpaired: int

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the confidence interval as (low, high)."""
        return hall_interval(self.value, self.spread, confidence, signed=True)


def estimate_anchoring_effect(values: Floats, helped: Bools, texts: Ints) -> AnchoringEffect:
    """Estimate the effect of machine suggestions on `values`, (annotations,).

    `helped` is True for annotations with suggestions, and `texts` holds a number that identifies the text of each
    annotation.
    """
    _, text = np.unique(texts, return_inverse=True)
    size = int(text.max(initial=-1)) + 1
    counts = [np.bincount(text[side], minlength=size).astype(np.float64) for side in (helped, ~helped)]
    sums = [np.bincount(text[side], values[side], size) for side in (helped, ~helped)]
    both = (counts[0] > 0) & (counts[1] > 0)
    if not len(helped):
        raise FinecombError("no task offered or withheld machine marks; the comparison requires tasks of both kinds")
    if not helped.any() or helped.all():
        which = "all" if helped.any() else "none"
        raise FinecombError(
            f"machine marks were offered in {which} of the {len(helped)} tasks; the comparison requires tasks with and "
            "without them"
        )
    means = [
        np.divide(total, count, out=np.zeros(size), where=count > 0) for total, count in zip(sums, counts, strict=True)
    ]
    usable = _paired_and_unpaired_differences(means, counts, both)
    if not usable:
        single = min(int((~both & (count > 0)).sum()) for count in counts)
        if max(int(both.sum()), single) < MIN_TEXTS:
            raise FinecombError(
                f"too few texts to compare; annotate {MIN_TEXTS} texts both with and without suggestions, "
                f"or {MIN_TEXTS} texts only with and {MIN_TEXTS} only without"
            )
        raise FinecombError(
            "the anchoring effect cannot be estimated, because values do not vary between texts; annotate more texts"
        )
    # The two parts have no text in common, so their errors are independent.
    weights = [1 / part[1].variance for part in usable]
    shares = [weight / sum(weights) for weight in weights]
    value = sum(share * part[0] for share, part in zip(shares, usable, strict=True))
    spread = ErrorMoments(0.0)
    for share, (_, part_spread) in zip(shares, usable, strict=True):
        spread += ErrorMoments(share**2 * part_spread.variance, share**3 * part_spread.third, part_spread.df)
    return AnchoringEffect(float(value), spread, int(both.sum()), int((~both).sum()))


def _paired_and_unpaired_differences(
    means: Sequence[Floats], counts: Sequence[Floats], both: Bools
) -> list[tuple[float, ErrorMoments]]:
    """Estimate the effect from texts annotated both ways and from those annotated one way, if there are enough."""
    differences = []
    weight = (counts[0] * counts[1] / np.maximum(counts[0] + counts[1], 1))[both]
    if len(weight) >= MIN_TEXTS:
        difference = (means[0] - means[1])[both]
        share = weight / weight.sum()
        value = float(share @ difference)
        # Leverage-corrected residuals (HC2); the limit avoids a division by 0 if one text has all the weight.
        residual = share * (difference - value) / np.sqrt(1 - np.minimum(share, 0.99))
        # Effective number of texts under unequal weights.
        size = 1 / float((share**2).sum())
        moments = ErrorMoments(float((residual**2).sum()), float((residual**3).sum()), max(size - 1, 1.0))
        if moments.variance > 0:
            differences.append((value, moments))
    sides = [mean[~both & (count > 0)] for mean, count in zip(means, counts, strict=True)]
    if min(len(side) for side in sides) >= MIN_TEXTS and max(np.ptp(side) for side in sides) > 0:
        moments = mean_error_moments(sides[0]) + -mean_error_moments(sides[1])
        differences.append((float(sides[0].mean() - sides[1].mean()), moments))
    return differences


# --- a whole study -----------------------------------------------------------------------------------------------


def anchoring_findings(study: Study | View, machine: str) -> list[Finding]:
    """Estimate the effect of suggestions on marks per text and on the share of machine marks that people follow.

    `machine` is the annotator whose marks were offered. A task is `with help` if marks were offered, and `without help`
    if they were withheld. `followed` is the share of the machine's marks on the text that overlap a mark
    of the person. Rows: with help, without help, and their difference, which is the anchoring effect.
    """
    work = (
        study
        if isinstance(study, View)
        else view(study, Filters(annotators=tuple(study.submitted_work().annotations["annotator"].unique().sort())))
    )
    rows = _annotation_rows_by_help(work, machine)
    findings: list[Finding] = []
    for measure in ("marks", "followed"):
        measured = rows.filter(pl.col(measure).is_not_null())
        helped = measured["helped"].to_numpy().astype(np.bool_)
        values, texts = measured[measure].to_numpy(), measured["document"].rank("dense").to_numpy().astype(np.int64)
        fields = {"statistic": "anchoring", "measure": measure, "machine": machine, **work.fields}
        fields |= {"with": int(helped.sum()), "without": int((~helped).sum())}
        for name, side in (("with help", helped), ("without help", ~helped)):
            signature = Signature.from_fields(**fields, of=name)
            estimate = Estimate(math.nan, math.nan, math.nan, signature, "no such tasks")
            if side.any():
                _, text = np.unique(texts[side], return_inverse=True)
                means = np.bincount(text, values[side]) / np.bincount(text)
                mean = float(means.mean())
                estimate = Estimate(mean, *hall_interval(mean, mean_error_moments(means)), signature)
            findings.append(Finding({"measure": measure, "tasks": name}, estimate))
        effect = estimate_anchoring_effect(values, helped, texts)
        signature = Signature.from_fields(**fields, of="difference", paired=effect.paired)
        estimate = Estimate(effect.value, *effect.interval(), signature)
        findings.append(Finding({"measure": measure, "tasks": "difference"}, estimate))
    return findings


def _annotation_rows_by_help(work: View, machine: str) -> pl.DataFrame:
    """Return one row per annotation of a text that has suggestions to offer: document, helped, marks, followed."""
    study = work.study
    spans = study.spans.filter(pl.col("part") == "text")
    offered = _spans_by_column(spans.filter(pl.col("annotator") == machine), "document")
    read = set(study.annotations.filter(pl.col("annotator") == machine)["document"])
    spans_by_annotation = _spans_by_column(spans, "annotation")
    counts = dict(study.marks.group_by("annotation").len().iter_rows())
    rows = []
    for row in study.annotations.filter(pl.col("annotator") != machine).iter_rows(named=True):
        meta = parse_json_object(row["meta"])
        # A text that the machine did not annotate has no suggestions to show or to withhold.
        if row["document"] in read and ("offered" in meta or meta.get("blind")):
            suggestions, marked = offered.get(row["document"], []), spans_by_annotation.get(row["id"], [])
            followed = [any(first < end and start < last for first, last in marked) for start, end in suggestions]
            share = sum(followed) / len(followed) if followed else None
            rows.append((row["document"], not meta.get("blind"), float(counts.get(row["id"], 0)), share))
    columns = {"document": pl.String, "helped": pl.Boolean, "marks": pl.Float64, "followed": pl.Float64}
    return pl.DataFrame(rows, schema=columns, orient="row")


def _spans_by_column(spans: pl.DataFrame, column: str) -> dict[str, list[tuple[int, int]]]:
    result: dict[str, list[tuple[int, int]]] = {}
    for key, start, end in spans.select(column, "start", "end").iter_rows():
        result.setdefault(key, []).append((start, end))
    return result
