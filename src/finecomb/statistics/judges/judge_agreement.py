r"""Agreement of a judge with people, compared with the agreement between people on the same units.

Of the $m$ people who annotated a unit, $k$ marked it, and $j$ is 1 if the judge did. Two random people disagree with
probability $2k(m-k) / (m(m-1))$, the judge and a random person with probability $(j(m-k) + (1-j)k) / m$. Alpha is 1
minus the mean of this probability over the value expected by chance from the same shares of marked units. If all units
have equally many annotators, alpha of people equals Krippendorff's alpha for many units. F1 and the leave-one-out
measures come from the same sums. In the leave-one-out measures, the judge replaces one person, so that judge and person
are both compared with m - 1 people.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finecomb.core.results import Estimate, Finding, Signature
from finecomb.statistics.inference.clusters import Clusters, find_clusters
from finecomb.statistics.inference.intervals import (
    IntervalSettings,
    StatisticKind,
    estimate_from_interval,
    weighted_intervals,
)
from finecomb.statistics.inference.resampling import ratio_or_nan
from finecomb.statistics.judges.text_values import PeopleAndJudges
from finecomb.statistics.measures.unit_grid import UnitLevel, build_unit_grid, count_unit_votes, locate_spans_on_grid
from finecomb.statistics.selection.view import ANY_LABEL

Floats = NDArray[np.float64]
LESS_AGREEMENT, NO_LESS_AGREEMENT, UNDECIDED = "less than people", "no less than people", "cannot tell"
LABEL_UNUSED = "never used by the judge"
NO_HUMAN_BASELINE = "cannot tell, people do not agree"


@dataclass(frozen=True)
class AgreementSums:
    """Sums over the units of each text, (labels, texts) each, from which all measures of agreement are computed."""

    labels: tuple[str, ...]
    texts: tuple[str, ...]
    units: Floats
    people: Floats
    """Share of people who marked a unit, summed over units."""
    judge: Floats
    """Number of units that the judge marked."""
    apart: Floats
    """Probability that two people disagree, summed over units."""
    judge_apart: Floats
    """Probability that the judge and a person disagree, summed over units."""
    both: Floats
    """Probability that two people both marked the unit, summed over units."""
    judge_both: Floats
    """Probability that the judge and a person both marked the unit, summed over units."""
    rest: Floats
    """Probability that at least one of the others marked the unit after one person is left out, summed over units."""
    hit: Floats
    """Probability that the person left out and at least one of the others marked the unit, summed over units."""
    judge_rest: Floats
    """Probability that any of the others marked the unit when the judge replaces one person, summed over units."""
    judge_hit: Floats


def compute_agreement_sums(
    sides: PeopleAndJudges, judge: str, level: UnitLevel = "token", tokens: str = "words"
) -> AgreementSums:
    """Compute the agreement sums over the units of the texts annotated by the judge and at least two people."""
    study = sides.seen.study
    grid = build_unit_grid(study, level, tokens)
    rows = locate_spans_on_grid(study, grid)
    labels = (ANY_LABEL, *(name for name in sides.seen.categories if name != ANY_LABEL))
    counted = []
    for names in (sides.people, (judge,)):
        work = study.filter_annotations(pl.col("annotator").is_in(list(names)))
        inside = rows.filter(pl.col("annotation").is_in(work.annotations["id"].implode()))
        both = [count_unit_votes(work, grid, which, inside) for which in (None, labels[1:])]
        counted.append((np.concatenate([counts.marked for counts in both]).astype(np.float64), both[0].readers))
    (marked, readers), (judged, judge_read) = counted
    chosen = (readers >= 2) & (judge_read >= 1)
    # Texts that are not chosen get 2 annotators to avoid a division by 0; they are dropped from the sums.
    m = np.repeat(np.where(chosen, readers, 2), grid.sizes).astype(np.float64)
    # Terms of each unit, (labels, units) each, in the order of `AgreementSums`
    k = np.minimum(marked, m)
    j = np.minimum(judged, 1.0)
    share = k / m
    # Probability that any of m - 1 random people marked the unit
    alone = np.where(k >= 2, 1.0, np.where(k >= 1, (m - 1) / m, 0.0))
    sums = [
        np.ones_like(k),
        share,
        j,
        2 * k * (m - k) / (m * (m - 1)),
        (j * (m - k) + (1 - j) * k) / m,
        k * (k - 1) / (m * (m - 1)),
        j * share,
        np.where(k >= 2, 1.0, (m - k) / m * (k >= 1)),
        np.where(k >= 2, share, 0.0),
        alone,
        j * alone,
    ]
    summed = [grid.sum_per_document(counts)[:, chosen] for counts in sums]
    texts = tuple(text for text, inside in zip(grid.documents, chosen, strict=True) if inside)
    return AgreementSums(labels, texts, *summed)


def _weighted_measures(sums: AgreementSums, weights: Floats) -> dict[str, tuple[Floats, Floats]]:
    """Return each measure for people and for the judge by weights of texts, (draws, labels) each."""

    def ratio(top: Floats, bottom: Floats) -> Floats:
        return ratio_or_nan(weights @ top.T, weights @ bottom.T)

    share, judged = ratio(sums.people, sums.units), ratio(sums.judge, sums.units)
    # Krippendorff's chance disagreement uses the pooled values of both sides.
    mixed = (share + judged) / 2
    return {
        "alpha": (
            1 - ratio_or_nan(ratio(sums.apart, sums.units), 2 * share * (1 - share)),
            1 - ratio_or_nan(ratio(sums.judge_apart, sums.units), 2 * mixed * (1 - mixed)),
        ),
        "f1": (
            ratio(sums.both, sums.people),
            ratio_or_nan(weights @ (2 * sums.judge_both).T, weights @ sums.people.T + weights @ sums.judge.T),
        ),
        "one-vs-rest-precision": (ratio(sums.hit, sums.people), ratio(sums.judge_hit, sums.judge)),
        "one-vs-rest-recall": (ratio(sums.hit, sums.rest), ratio(sums.judge_hit, sums.judge_rest)),
    }


def noninferiority_verdict(excess: float, high: float) -> str:
    """Return the verdict from the lower limit of judge - (1 - margin) people, and the upper limit of judge - people."""
    if excess > 0:
        return NO_LESS_AGREEMENT
    return LESS_AGREEMENT if high < 0 else UNDECIDED


def compare_judge_and_human_agreement(
    sides: PeopleAndJudges,
    judge: str,
    levels: Sequence[UnitLevel] = ("token",),
    margin: float = 0.2,
    tokens: str = "words",
    cluster: str = "",
) -> list[Finding]:
    """Compare the judge's agreement with people to the agreement between people, by level, measure and label.

    Each combination has the rows `people`, `judge` and `difference`. The difference has a verdict: `no less than
    people` if the judge reaches 1 - `margin` times people's agreement in a one-sided test of 5%, `less than people` if
    the interval of the difference lies below 0, otherwise `cannot tell`. The values are NaN for a label without marks.
    """
    findings: list[Finding] = []
    for level in levels:
        sums = compute_agreement_sums(sides, judge, level, tokens)
        clusters = find_text_clusters(sides, sums.texts, cluster)
        fields = {"level": level, "tokens": tokens, "judge": judge, "people": len(sides.people), **sides.seen.fields}
        fields |= {"who": None, "texts": len(sums.texts), "margin": margin, **clusters.signature_fields}
        measures = tuple(_weighted_measures(sums, np.ones((1, len(sums.texts)))))
        rows = [(measure, index) for measure in measures for index in range(len(sums.labels))]

        def evaluate(weights: Floats, sums: AgreementSums = sums) -> Floats:
            by_measure = _weighted_measures(sums, weights).values()
            people, judged = (np.concatenate([pair[side] for pair in by_measure], axis=1) for side in (0, 1))
            return np.concatenate([people, judged, judged - people, judged - (1 - margin) * people], axis=1)

        values = evaluate(np.ones((1, len(sums.texts))))[0].reshape(4, len(rows))
        # without draws, a coefficient has a jackknife-t interval within its bounds
        kinds: list[StatisticKind] = ["coefficient" if measure == "alpha" else "proportion" for measure, _ in rows] * 2
        kinds += ["number"] * (2 * len(rows))
        with np.errstate(invalid="ignore"):
            wide = weighted_intervals(evaluate, clusters, kinds, settings=IntervalSettings(draws=0))
            # both limits of a 90% interval are one-sided tests of 5%
            tests = weighted_intervals(evaluate, clusters, kinds, settings=IntervalSettings(draws=0, level=0.9))
        for at, (measure, index) in enumerate(rows):
            label = sums.labels[index]
            is_used = bool(sums.judge[index].any())
            why = "every unit is marked"
            if not is_used or not sums.people[index].any():
                who = "people" if is_used else "the judge"
                why = f"{who} marked nothing" if label == ANY_LABEL else f"{who} never used this label"
            estimates = {
                who: estimate_from_interval(
                    float(values[place, at]),
                    wide[place * len(rows) + at],
                    Signature.from_fields(statistic=measure, of=who, label=label, **fields),
                    why,
                )
                for place, who in enumerate(("people", "judge", "difference"))
            }
            columns = {"level": level, "measure": measure, "label": label}
            findings += judge_and_people_findings(columns, estimates, tests[3 * len(rows) + at].low, is_used)
    return findings


def find_text_clusters(sides: PeopleAndJudges, texts: Sequence[str], cluster: str = "") -> Clusters:
    """Find the clusters of some texts, in their order."""
    documents = sides.seen.study.documents
    position_by_id = {id: position for position, id in enumerate(documents["id"])}
    return find_clusters(documents[[position_by_id[text] for text in texts]], cluster)


def judge_and_people_findings(
    columns: Mapping[str, str], estimates: Mapping[str, Estimate], excess: float, is_used: bool = True
) -> list[Finding]:
    """Return the rows `people`, `judge` and `difference` of a measure; the last one has the verdict.

    `excess` is the lower limit of judge - (1 - margin) people. `is_used` is False if the judge never used the label.
    """
    verdict = noninferiority_verdict(excess, estimates["difference"].high)
    if not is_used:
        verdict = LABEL_UNUSED
    # A judge cannot be compared with people who agree only by chance.
    elif not estimates["people"].low > 0:
        verdict = NO_HUMAN_BASELINE
    return [
        *(Finding({**columns, "who": who}, estimates[who]) for who in ("people", "judge")),
        Finding({**columns, "who": "difference", "verdict": verdict}, estimates["difference"]),
    ]
