r"""What help does to helpers: how far people follow machine marks that were offered to them.

A random share of tasks shows no machine marks (`blind`), the others do. The effect is the mean of a value with help
less that without. Where a text was read both ways the two readings are compared with each other, so that hard texts
do not pass for an effect: with $n_1$ readings with and $n_0$ without help, a text's difference counts $n_1 n_0 / (n_1
+ n_0)$. Texts that were read in one way only are compared as groups. Both parts are put together by their variances.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError
from finecomb.core.estimate import Estimate, Finding, Signature
from finecomb.core.frames import parse_json_object
from finecomb.core.study import Study
from finecomb.statistics.inference.mean_interval import ErrorMoments, hall_interval, mean_error_moments
from finecomb.statistics.selection.view import Filters, View, view

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
MIN_TEXTS = 8


@dataclass(frozen=True, slots=True)
class AnchoringEffect:
    """The difference that help makes, with what it rests on."""

    value: float
    spread: ErrorMoments
    paired: int
    """Texts that were read both with and without help."""
    unpaired: int

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Both ends."""
        return hall_interval(self.value, self.spread, confidence, signed=True)


def estimate_anchoring_effect(values: Floats, helped: Bools, texts: Ints) -> AnchoringEffect:
    """The effect of help on `values`, (readings,), each of a text by number, read with help or without."""
    _, text = np.unique(texts, return_inverse=True)
    size = int(text.max(initial=-1)) + 1
    counts = [np.bincount(text[side], minlength=size).astype(np.float64) for side in (helped, ~helped)]
    sums = [np.bincount(text[side], values[side], size) for side in (helped, ~helped)]
    both = (counts[0] > 0) & (counts[1] > 0)
    if (not both.any() and (counts[0] > 0).sum() < MIN_TEXTS) or not helped.any() or helped.all():
        raise FinecombError("nothing to compare: machine marks were offered to everybody, or to nobody")
    means = [
        np.divide(total, count, out=np.zeros(size), where=count > 0) for total, count in zip(sums, counts, strict=True)
    ]
    parts = [_paired_difference(means, counts, both), _unpaired_difference(means, counts, ~both)]
    usable = [part for part in parts if part is not None]
    if not usable:
        raise FinecombError(
            f"too little to compare: {MIN_TEXTS} texts read with help and {MIN_TEXTS} without are needed"
        )
    weights = [1 / part[1].variance for part in usable]
    shares = [weight / sum(weights) for weight in weights]
    value = sum(share * part[0] for share, part in zip(shares, usable, strict=True))
    spread = ErrorMoments(0.0)
    for share, (_, part_spread) in zip(shares, usable, strict=True):
        spread += ErrorMoments(share**2 * part_spread.variance, share**3 * part_spread.third, part_spread.df)
    return AnchoringEffect(float(value), spread, int(both.sum()), int((~both).sum()))


def _paired_difference(
    means: Sequence[Floats], counts: Sequence[Floats], both: Bools
) -> tuple[float, ErrorMoments] | None:
    """Texts read both ways: the weighted mean of their differences."""
    if both.sum() < MIN_TEXTS:
        return None
    weight = (counts[0] * counts[1] / np.maximum(counts[0] + counts[1], 1))[both]
    difference = (means[0] - means[1])[both]
    share = weight / weight.sum()
    value = float(share @ difference)
    residual = share * (difference - value) / np.sqrt(1 - np.minimum(share, 0.99))
    if not (residual**2).sum() > 0:
        return None
    size = 1 / float((share**2).sum())
    return value, ErrorMoments(float((residual**2).sum()), float((residual**3).sum()), max(size - 1, 1.0))


def _unpaired_difference(
    means: Sequence[Floats], counts: Sequence[Floats], single: Bools
) -> tuple[float, ErrorMoments] | None:
    """Texts read in one way only: the difference of the two groups' means over texts."""
    sides = [mean[single & (count > 0)] for mean, count in zip(means, counts, strict=True)]
    if min(len(side) for side in sides) < MIN_TEXTS or max(np.ptp(side) for side in sides) == 0:
        return None
    return float(sides[0].mean() - sides[1].mean()), mean_error_moments(sides[0]) + -mean_error_moments(sides[1])


# --- of a study --------------------------------------------------------------------------------------------------


def anchoring_findings(study: Study | View, machine: str) -> list[Finding]:
    """The effect of offered marks on a study: on marks per text, on how much is marked, and on following the machine.

    `machine` is whose marks were offered. A task counts as with help when marks were offered, as without when they were
    held back; `followed` is the share of the machine's marks on the text with which a mark of the person shares a
    character. Rows: with help, without, and the difference, which is the anchoring.
    """
    work = study if isinstance(study, View) else _view_with_machines(study)
    rows = _reading_rows(work, machine)
    findings: list[Finding] = []
    for measure in ("marks", "followed"):
        measured = rows.filter(pl.col(measure).is_not_null())
        findings += _measure_findings(measured, measure, machine, work)
    return findings


def _view_with_machines(study: Study) -> View:
    """The study with machines too, which statistics leave out unless they are asked for."""
    return view(study, Filters(annotators=tuple(study.submitted_work().annotations["annotator"].unique().sort())))


def _reading_rows(work: View, machine: str) -> pl.DataFrame:
    """One row per reading of a text on which machine marks could be offered: document, helped, marks, followed."""
    study = work.study
    spans = study.spans.filter(pl.col("part") == "text")
    offered = _spans_by_column(spans.filter(pl.col("annotator") == machine), "document")
    read = set(study.annotations.filter(pl.col("annotator") == machine)["document"])
    mine = _spans_by_column(spans, "annotation")
    counts = dict(study.marks.group_by("annotation").len().iter_rows())
    rows = []
    for row in study.annotations.filter(pl.col("annotator") != machine).iter_rows(named=True):
        facts = parse_json_object(row["meta"])
        if row["document"] in read and ("offered" in facts or facts.get("blind")):
            followed = _followed_share(offered.get(row["document"], []), mine.get(row["id"], []))
            rows.append((row["document"], not facts.get("blind"), float(counts.get(row["id"], 0)), followed))
    columns = {"document": pl.String, "helped": pl.Boolean, "marks": pl.Float64, "followed": pl.Float64}
    return pl.DataFrame(rows, schema=columns, orient="row")


def _spans_by_column(spans: pl.DataFrame, column: str) -> dict[str, list[tuple[int, int]]]:
    result: dict[str, list[tuple[int, int]]] = {}
    for key, start, end in spans.select(column, "start", "end").iter_rows():
        result.setdefault(key, []).append((start, end))
    return result


def _followed_share(offered: Sequence[tuple[int, int]], marked: Sequence[tuple[int, int]]) -> float | None:
    """Share of offered marks that share a character with what was marked; None where nothing was offered."""
    if not offered:
        return None
    hits = sum(any(first < end and start < last for first, last in marked) for start, end in offered)
    return hits / len(offered)


def _measure_findings(rows: pl.DataFrame, measure: str, machine: str, work: View) -> list[Finding]:
    helped = rows["helped"].to_numpy().astype(np.bool_)
    values, texts = rows[measure].to_numpy(), rows["document"].rank("dense").to_numpy().astype(np.int64)
    fields = {"statistic": "anchoring", "measure": measure, "machine": machine, **work.fields}
    fields |= {"with": int(helped.sum()), "without": int((~helped).sum())}
    findings = []
    for name, side in (("with help", helped), ("without help", ~helped)):
        findings.append(
            Finding(
                {"measure": measure, "tasks": name}, _mean_over_texts(values[side], texts[side], fields | {"of": name})
            )
        )
    effect = estimate_anchoring_effect(values, helped, texts)
    low, high = effect.interval()
    signature = Signature.from_fields(**fields, of="difference", paired=effect.paired)
    findings.append(Finding({"measure": measure, "tasks": "difference"}, Estimate(effect.value, low, high, signature)))
    return findings


def _mean_over_texts(values: Floats, texts: Ints, fields: dict[str, object]) -> Estimate:
    """The mean over texts of their means."""
    signature = Signature.from_fields(**fields)
    if not len(values):
        return Estimate(math.nan, math.nan, math.nan, signature, "no task was given out this way")
    _, text = np.unique(texts, return_inverse=True)
    means = np.bincount(text, values) / np.bincount(text)
    return Estimate(float(means.mean()), *hall_interval(float(means.mean()), mean_error_moments(means)), signature)
