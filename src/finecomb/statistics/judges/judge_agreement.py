r"""A judge among people: its agreement with a person beside that of two people with each other, from the same units.

Of the $m$ people who read a unit, $k$ marked it, and $j$ is 1 where the judge did. Two people drawn at random disagree
with chance $2k(m-k) / (m(m-1))$, the judge and a person drawn at random with chance $(j(m-k) + (1-j)k) / m$. Alpha is 1
less the mean of that over what chance would give with the same shares of marked units. With equally many readers,
that of people is Krippendorff's alpha for many units. F1 and one against the rest come from the same sums, so that
the judge sits in a person's chair: it is compared with one person less than there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finecomb.core.estimate import Estimate, Finding, Signature
from finecomb.statistics.inference.resampling import estimate_with_interval, ratio_or_nan, study_and_resample_weights
from finecomb.statistics.judges.text_values import PeopleAndJudges
from finecomb.statistics.measures.unit_grid import Level, build_grid, count_unit_votes, locate_spans_on_grid
from finecomb.statistics.selection.view import ANY

Floats = NDArray[np.float64]
LESS_AGREEMENT, NO_LESS_AGREEMENT, UNDECIDED, LABEL_UNUSED = (
    "less than people",
    "no less than people",
    "cannot tell",
    "never used by the judge",
)
NO_HUMAN_BASELINE = "cannot tell, people do not agree"


@dataclass(frozen=True)
class AgreementSums:
    """Sums of each text, from which every measure of agreement follows; all (labels, texts)."""

    labels: tuple[str, ...]
    texts: tuple[str, ...]
    units: Floats
    people: Floats
    """Share of people who marked a unit, summed over units."""
    judge: Floats
    """Units that the judge marked."""
    apart: Floats
    """Chance that two people disagree, summed."""
    judge_apart: Floats
    """Chance that the judge and a person disagree, summed."""
    both: Floats
    """Chance that two people marked a unit, summed."""
    judge_both: Floats
    """Chance that the judge and a person did, summed."""
    rest: Floats
    """Chance that one of the rest marked it, a person being in the chair, summed."""
    hit: Floats
    """Chance that the person in the chair and one of the rest did, summed."""
    judge_rest: Floats
    """The same with the judge in the chair of one person."""
    judge_hit: Floats


def compute_agreement_sums(
    sides: PeopleAndJudges, judge: str, level: Level = "token", tokens: str = "words"
) -> AgreementSums:
    """Sums over the units of the texts that two people and the judge have read."""
    study = sides.seen.study
    grid = build_grid(study, level, tokens)
    rows = locate_spans_on_grid(study, grid)
    labels = (ANY, *(name for name in sides.seen.categories if name != ANY))
    counted = []
    for names in (sides.people, (judge,)):
        work = study.filter_annotations(pl.col("annotator").is_in(list(names)))
        inside = rows.filter(pl.col("annotation").is_in(work.annotations["id"].implode()))
        both = [count_unit_votes(work, grid, which, inside) for which in (None, labels[1:])]
        counted.append((np.concatenate([counts.marked for counts in both]).astype(np.float64), both[0].readers))
    (marked, readers), (judged, judge_read) = counted
    chosen = (readers >= 2) & (judge_read >= 1)
    m = np.repeat(np.where(chosen, readers, 2), grid.sizes).astype(np.float64)
    sums = _agreement_sums_per_unit(np.minimum(marked, m), m, np.minimum(judged, 1.0))
    summed = [grid.sum_per_document(counts)[:, chosen] for counts in sums]
    texts = tuple(text for text, inside in zip(grid.documents, chosen, strict=True) if inside)
    return AgreementSums(labels, texts, *summed)


def _agreement_sums_per_unit(k: Floats, m: Floats, j: Floats) -> list[Floats]:
    """What each unit adds, in the order of `AgreementSums`, (labels, units) each."""
    share = k / m
    alone = np.where(k >= 2, 1.0, np.where(k >= 1, (m - 1) / m, 0.0))  # one of m - 1 marked it
    return [
        np.ones_like(k), share, j, 2 * k * (m - k) / (m * (m - 1)), (j * (m - k) + (1 - j) * k) / m,
        k * (k - 1) / (m * (m - 1)), j * share,
        np.where(k >= 2, 1.0, (m - k) / m * (k >= 1)), np.where(k >= 2, share, 0.0), alone, j * alone,
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class _ResampledMeasures:
    """Alpha, F1 and one against the rest of people and judge in every resample, (draws, labels) each."""

    people: dict[str, Floats]
    judge: dict[str, Floats]


def _resampled_measures(sums: AgreementSums, weights: Floats) -> _ResampledMeasures:
    drawn = {
        name: weights @ getattr(sums, name).T
        for name in (
            "units", "people", "judge", "apart", "judge_apart", "both", "judge_both", "rest", "hit", "judge_rest",
            "judge_hit",
        )
    }  # fmt: skip
    share, judged = ratio_or_nan(drawn["people"], drawn["units"]), ratio_or_nan(drawn["judge"], drawn["units"])
    mixed = (share + judged) / 2
    people = {
        "alpha": 1 - ratio_or_nan(ratio_or_nan(drawn["apart"], drawn["units"]), 2 * share * (1 - share)),
        "f1": ratio_or_nan(drawn["both"], drawn["people"]),
        "one-vs-rest-precision": ratio_or_nan(drawn["hit"], drawn["people"]),
        "one-vs-rest-recall": ratio_or_nan(drawn["hit"], drawn["rest"]),
    }
    judge = {
        "alpha": 1 - ratio_or_nan(ratio_or_nan(drawn["judge_apart"], drawn["units"]), 2 * mixed * (1 - mixed)),
        "f1": ratio_or_nan(2 * drawn["judge_both"], drawn["people"] + drawn["judge"]),
        "one-vs-rest-precision": ratio_or_nan(drawn["judge_hit"], drawn["judge"]),
        "one-vs-rest-recall": ratio_or_nan(drawn["judge_hit"], drawn["judge_rest"]),
    }
    return _ResampledMeasures(people, judge)


def noninferiority_verdict(low: float, high: float, margin: float) -> str:
    """What the interval of judge less people says: the margin is set beforehand."""
    if low > -margin:
        return NO_LESS_AGREEMENT
    return LESS_AGREEMENT if high < 0 else UNDECIDED


def judge_agreement(
    sides: PeopleAndJudges,
    judge: str,
    levels: Sequence[Level] = ("token",),
    margin: float = 0.1,
    tokens: str = "words",
    draws: int = 1000,
    seed: int = 0,
) -> list[Finding]:
    """Agreement of judge and people by level, measure and label; rows `people`, `judge` and their `difference`.

    The difference carries the verdict: `no less than people` where its interval lies above the margin, `less than
    people` where it lies below 0, else `cannot tell`. NaN where nobody marked anything with a label.
    """
    findings: list[Finding] = []
    for level in levels:
        sums = compute_agreement_sums(sides, judge, level, tokens)
        weights = study_and_resample_weights(len(sums.texts), draws, seed)
        measures = _resampled_measures(sums, weights)
        fields = {"level": level, "tokens": tokens, "judge": judge, "people": len(sides.people), **sides.seen.fields}
        fields |= {"who": None, "texts": len(sums.texts), "margin": margin, "draws": draws, "seed": seed}
        for measure in measures.people:
            both = measures.people[measure], measures.judge[measure]
            findings += _agreement_findings(sums, measure, both, fields, margin)
    return findings


def _agreement_findings(
    sums: AgreementSums, measure: str, both: tuple[Floats, Floats], fields: dict[str, object], margin: float
) -> list[Finding]:
    rows = []
    for at, label in enumerate(sums.labels):
        why = "the judge never used this label" if not sums.judge[at].sum() else "nobody marked anything here"
        columns = {"level": fields["level"], "measure": measure, "label": label}
        values = {"people": both[0][:, at], "judge": both[1][:, at], "difference": (both[1] - both[0])[:, at]}
        estimates = {
            who: estimate_with_interval(
                float(resampled[0]),
                resampled[1:],
                Signature.from_fields(statistic=measure, of=who, label=label, **fields),
                why,
            )
            for who, resampled in values.items()
        }
        rows += [Finding({**columns, "who": who}, estimates[who]) for who in ("people", "judge")]
        verdict_column = {"verdict": difference_verdict(estimates, not sums.judge[at].sum(), margin)}
        rows.append(Finding({**columns, "who": "difference", **verdict_column}, estimates["difference"]))
    return rows


def difference_verdict(estimates: Mapping[str, Estimate], unused: bool, margin: float) -> str:
    """The verdict of one label; people who do not agree with each other beyond chance are no yardstick."""
    if unused:
        return LABEL_UNUSED
    if not estimates["people"].low > 0:
        return NO_HUMAN_BASELINE
    return noninferiority_verdict(estimates["difference"].low, estimates["difference"].high, margin)
