r"""Replacement test: is a judge's agreement with people at least 80% of people's agreement with each other?

Agreement is Krippendorff's alpha, pooled over the units of all texts: tokens for marks, texts for answers. With the
mean disagreement $D$ of two annotators and the disagreement $E$ expected from their pooled values, it is $1 - D / E$;
for the judge, one of the two is a person. Both are functions of sums over clusters, so leaving out each cluster
(jackknife) gives their covariance. The interval of the ratio judge / people is Fieller's (1954): it contains each
ratio $r$ that a t-test of judge $- r$ people does not reject. The judge is non-inferior if the lower limit of the 90%
interval, a one-sided test of 5%, is above 1 - margin.

The judge must also agree with people better than each simple baseline. Pooled alpha of a judge that marks nothing is
slightly below 0, whereas the mean F1 over texts counts two empty texts as 1 and rewards silence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError
from finecomb.core.results import Estimate, Signature
from finecomb.statistics.inference.clusters import FEW_CLUSTERS, Clusters
from finecomb.statistics.inference.intervals import (
    Interval,
    count_reason,
    estimate_from_interval,
    few_clusters_note,
    missing_interval,
    t_quantile,
)
from finecomb.statistics.judges.text_values import PeopleAndJudges
from finecomb.statistics.judges.validity import Verdict
from finecomb.statistics.measures.unit_grid import build_unit_grid, count_unit_votes, locate_spans_on_grid

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MIN_TEXTS = 60
"""Minimum number of texts annotated by the judge and two people for a decision."""
MIN_HUMAN_AGREEMENT = 0.2
"""Minimum F1 between people (alpha for answers) for a decision."""
RATIO_LEVEL = 0.9
"""Level of the interval of the ratio, whose lower limit is a one-sided test of 5%."""
RANDOM_DRAWS = 50
MARKS_NOTHING, MARKS_EVERYTHING, RANDOM_MARKS = "marks nothing", "marks everything", "random marks at the same rate"
COMMON_ANSWER, RANDOM_ANSWERS = "always the most common answer", "random answers at the same rate"
_JUDGE = "judge"


@dataclass(frozen=True)
class Disagreement:
    """Values of one annotator and disagreement with people, summed over the units of each text."""

    moments: Floats
    """(texts, moments): sums of the values that give the expected disagreement, e.g. the number of marked units."""
    apart: Floats
    """(texts,): probability of disagreement with a random person (for answers in numbers: the squared difference)."""


@dataclass(frozen=True)
class DisagreementSums:
    """Sums per text from which alpha of people, of the judge and of baselines is computed."""

    units: Floats
    people: Disagreement
    """Mean over people; disagreement of two random people."""
    candidates: Mapping[str, Disagreement]
    """The judge, under `judge`, and the baselines."""
    expected: Callable[[Floats], Floats]
    """Expected disagreement of two values drawn from a distribution with these moments, (..., moments) to (...)."""
    human_f1: float = math.nan
    """Pooled F1 of two random people; NaN for answers."""
    is_constant: bool = False
    """True if the judge marks nothing or everything, or always gives the same answer."""

    def evaluate(self, texts: Callable[[Floats], Floats]) -> Floats:
        """Return alpha of people and of each candidate, (rows, 1 + candidates); `texts` sums values over texts."""
        units = texts(self.units)
        moments = texts(self.people.moments) / units[..., None]
        columns = [1 - _divide(texts(self.people.apart) / units, self.expected(moments))]
        for candidate in self.candidates.values():
            pooled = (moments + texts(candidate.moments) / units[..., None]) / 2
            columns.append(1 - _divide(texts(candidate.apart) / units, self.expected(pooled)))
        return np.stack(columns, axis=-1)


def _divide(top: Floats, bottom: Floats) -> Floats:
    result: Floats = np.divide(top, bottom, out=np.full(np.shape(top), np.nan), where=bottom > 0)
    return result


@dataclass(frozen=True, slots=True)
class BaselineComparison:
    """Agreement of a simple baseline with people, and the judge's agreement minus it."""

    name: str
    agreement: Estimate
    difference: Estimate

    @property
    def is_beaten(self) -> bool:
        """True if the interval of the difference lies above 0."""
        return bool(self.difference.low > 0)

    def row(self) -> dict[str, object]:
        """Return the comparison as a flat table row."""
        estimate, difference = self.agreement, self.difference
        columns: dict[str, object] = {"baseline": self.name, "alpha": estimate.value}
        columns |= {"alpha_low": estimate.low, "alpha_high": estimate.high, "judge above it": difference.value}
        columns |= {"judge above it_low": difference.low, "judge above it_high": difference.high}
        return columns | {"beaten": self.is_beaten}


@dataclass(frozen=True, slots=True)
class ReplacementTest:
    """Result of the replacement test, with the verdict and its reason."""

    people: Estimate
    """Alpha between two people."""
    judge: Estimate
    """Alpha between the judge and a person."""
    ratio: Estimate
    """Judge's alpha divided by people's, with a 90% interval."""
    baselines: tuple[BaselineComparison, ...]
    margin: float
    texts: int
    clusters: int
    human_f1: float
    is_constant: bool

    @property
    def is_noninferior(self) -> bool:
        """True if the interval of the ratio lies above 1 - margin."""
        return bool(self.ratio.low > 1 - self.margin)

    @property
    def beats_baselines(self) -> bool:
        """True if the judge agrees with people better than each baseline."""
        return all(baseline.is_beaten for baseline in self.baselines)

    @property
    def undecided_reason(self) -> str:
        """Reason why the data cannot decide; empty if they can."""
        if self.texts < MIN_TEXTS:
            return f"{self.texts} texts were annotated by the judge and two people, but {MIN_TEXTS} are required"
        if self.clusters < FEW_CLUSTERS:
            return f"the texts form {self.clusters} clusters, but {FEW_CLUSTERS} are required"
        name, agreement = ("alpha", self.people.value) if math.isnan(self.human_f1) else ("F1", self.human_f1)
        if not agreement >= MIN_HUMAN_AGREEMENT:
            found = "undefined" if math.isnan(agreement) else f"{agreement:.2f}"
            return f"{name} between people is {found}, but {MIN_HUMAN_AGREEMENT:g} is required"
        return ""

    @property
    def verdict(self) -> Verdict:
        """Verdict by fixed rules.

        A judge that always gives the same answer cannot be used, however few texts there are.
        """
        if self.is_constant:
            return "cannot be used for this"
        if self.undecided_reason:
            return "too few texts to decide"
        if not self.beats_baselines:
            return "cannot be used for this"
        return "can replace people" if self.is_noninferior else "can assist but not replace people"

    def row(self) -> dict[str, object]:
        """Return the comparison of judge and people as a flat table row."""
        row: dict[str, object] = {}
        for name, estimate in (("people", self.people), ("judge", self.judge), ("judge / people", self.ratio)):
            row |= {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
        return row | {"required": 1 - self.margin, "non-inferior": self.is_noninferior}


def run_replacement_test(
    sums: DisagreementSums, clusters: Clusters, margin: float = 0.2, fields: Mapping[str, object] | None = None
) -> ReplacementTest:
    """Test whether the judge's agreement with people is at least 1 - `margin` times that between people."""
    count = clusters.count
    value = sums.evaluate(lambda values: values.sum(axis=0))

    def leave_one_out(values: Floats) -> Floats:
        by_cluster = clusters.sum_documents(values)
        result: Floats = by_cluster.sum(axis=0) - by_cluster
        return result

    with np.errstate(invalid="ignore", divide="ignore"):
        left_out = sums.evaluate(leave_one_out)
    signature = Signature.from_fields(
        statistic="alpha", **(fields or {}), **clusters.signature_fields, texts=len(sums.units)
    )

    def estimate(weights: Sequence[float], what: str, why: str = "no unit differs") -> Estimate:
        columns = np.array(weights)
        with np.errstate(invalid="ignore"):
            interval = _jackknife_interval(float(value @ columns), left_out @ columns, count)
        return estimate_from_interval(float(value @ columns), interval, signature.insert(of=what), why)

    one = np.eye(len(value))
    # NaN of a baseline that is undefined must not reach the other columns
    is_defined = np.isfinite(value)
    value, left_out = np.where(is_defined, value, 0.0), np.where(is_defined, left_out, 0.0)
    undefined = Estimate(math.nan, math.nan, math.nan, signature, "no two units differ")
    comparisons = []
    for place, name in enumerate(sums.candidates):
        if name == _JUDGE:
            continue
        own = estimate(one[place + 1], name) if is_defined[place + 1] else undefined
        # A judge that is undefined equals the baseline that marks nothing, so nothing is shown.
        both = is_defined[1] and is_defined[place + 1]
        difference = estimate(one[1] - one[place + 1], f"judge less {name}") if both else undefined
        comparisons.append(BaselineComparison(name, own, difference))
    people, judge = (
        estimate(one[at], what) if is_defined[at] else undefined for at, what in enumerate(("people", _JUDGE))
    )
    ratio = undefined
    if is_defined[:2].all() and value[0] > 0:
        limits = _ratio_interval(value[:2], left_out[:, :2], count)
        named = signature.insert(of="judge / people", margin=margin, level=RATIO_LEVEL)
        ratio = estimate_from_interval(float(value[1] / value[0]), limits, named)
    return ReplacementTest(
        people, judge, ratio, tuple(comparisons), margin, len(sums.units), count, sums.human_f1, sums.is_constant
    )


def _jackknife_interval(value: float, left_out: Floats, count: int) -> Interval:
    if why := count_reason(count):
        return missing_interval(why)
    if not np.isfinite(left_out).all():
        return missing_interval("the value depends on one cluster, so no interval")
    changes = left_out - left_out.mean()
    error = math.sqrt((count - 1) / count * float(changes @ changes))
    if error <= 1e-12:
        return missing_interval(f"all {count} clusters give the same value, so no interval")
    reach = t_quantile(count - 1) * error
    return Interval(value - reach, value + reach, "jackknife-t", few_clusters_note(count))


def _ratio_interval(value: Floats, left_out: Floats, count: int) -> Interval:
    """Return Fieller's interval of judge / people from their values and those without each cluster."""
    if why := count_reason(count):
        return missing_interval(why)
    if not np.isfinite(left_out).all():
        return missing_interval("the value depends on one cluster, so no interval")
    changes = left_out - left_out.mean(axis=0)
    covariance = (count - 1) / count * changes.T @ changes
    t2 = t_quantile(count - 1, RATIO_LEVEL) ** 2
    people, judge = value
    # roots of (judge - r people)^2 = t^2 var(judge - r people)
    a = people**2 - t2 * covariance[0, 0]
    b = people * judge - t2 * covariance[0, 1]
    c = judge**2 - t2 * covariance[1, 1]
    root = b * b - a * c
    if a <= 0 or root < 0:
        return missing_interval("people do not agree beyond chance, so the ratio has no interval")
    low, high = ((b + side * math.sqrt(root)) / a for side in (-1, 1))
    if high - low <= 1e-12:
        return missing_interval(f"all {count} clusters give the same value, so no interval")
    return Interval(low, high, "fieller", few_clusters_note(count))


# --- marks -------------------------------------------------------------------------------------------------------


def sum_mark_disagreement(
    bounds: Ints, marked: Floats, readers: Floats, judged: Floats, runs: tuple[Ints, Ints], seed: int = 0
) -> DisagreementSums:
    """Sum the disagreement of marks over the units of each text, with three baselines.

    Text i has the units `bounds[i]` to `bounds[i + 1]`. `marked`, (units,), is the number of people who marked a unit,
    `readers` the number who read it, `judged` is 1 if the judge marked it. `runs` are the first unit of each of the
    judge's marks and the unit after it.
    """
    share = marked / readers

    def per_text(values: Floats) -> Floats:
        total = np.concatenate([np.zeros(1), np.cumsum(values)])
        result: Floats = total[bounds[1:]] - total[bounds[:-1]]
        return result

    units, people = np.diff(bounds).astype(np.float64), per_text(share)

    def against_people(marks: Floats, both: Floats) -> Disagreement:
        return Disagreement(marks[:, None], people + marks - 2 * both)

    drawn = _mean_of_random_marks(bounds, runs[1] - runs[0], seed)
    both = per_text(marked * (marked - 1) / (readers * (readers - 1)))
    # F1 of two random people, as a ratio of sums
    human_f1 = float(both.sum() / people.sum()) if people.any() else math.nan
    return DisagreementSums(
        units,
        Disagreement(people[:, None], 2 * (people - both)),
        {
            _JUDGE: against_people(per_text(judged), per_text(judged * share)),
            MARKS_NOTHING: against_people(np.zeros_like(units), np.zeros_like(units)),
            MARKS_EVERYTHING: against_people(units, people),
            RANDOM_MARKS: against_people(per_text(drawn), per_text(drawn * share)),
        },
        lambda moments: 2 * moments[..., 0] * (1 - moments[..., 0]),
        0.0 if math.isnan(human_f1) else human_f1,
        is_constant=bool((judged == judged[:1]).all()),
    )


def _mean_of_random_marks(bounds: Ints, lengths: Ints, seed: int) -> Floats:
    """Return the share of draws in which each unit is marked, if marks of these lengths are placed at random."""
    sizes, rng = np.diff(bounds), np.random.default_rng(seed)
    total = np.zeros(bounds[-1])
    lengths = lengths[lengths > 0]
    if not len(lengths):
        return total
    for _ in range(RANDOM_DRAWS):
        text = np.searchsorted(bounds, rng.integers(bounds[-1], size=len(lengths)), side="right") - 1
        fitted = np.minimum(lengths, sizes[text])
        first = bounds[text] + rng.integers(0, sizes[text] - fitted + 1)
        edges = np.bincount(first, minlength=bounds[-1] + 1) - np.bincount(first + fitted, minlength=bounds[-1] + 1)
        total += np.cumsum(edges[:-1]) > 0
    return total / RANDOM_DRAWS


def read_mark_disagreement(
    sides: PeopleAndJudges, judge: str, tokens: str = "words", seed: int = 0
) -> tuple[DisagreementSums, list[str]]:
    """Sum the disagreement of marks in a study, by token and regardless of labels; also return the texts."""
    study = sides.seen.study
    grid = build_unit_grid(study, "token", tokens)
    rows = locate_spans_on_grid(study, grid)
    counts = []
    for names in (sides.people, (judge,)):
        work = study.filter_annotations(pl.col("annotator").is_in(list(names)))
        inside = rows.filter(pl.col("annotation").is_in(work.annotations["id"].implode()))
        counts.append((count_unit_votes(work, grid, None, inside), inside))
    (people, _), (judged, own) = counts
    chosen = (people.readers >= 2) & (judged.readers >= 1) & (grid.sizes > 0)
    if not chosen.any():
        raise FinecombError(f"no text with words was annotated by {judge} and at least two people")
    kept = np.repeat(chosen, grid.sizes)
    bounds = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(grid.sizes[chosen])])
    inside = own.filter(pl.Series(chosen[own["document"].to_numpy()]))
    sums = sum_mark_disagreement(
        bounds,
        people.marked[0][kept].astype(np.float64),
        np.repeat(people.readers[chosen], grid.sizes[chosen]).astype(np.float64),
        (judged.marked[0][kept] > 0).astype(np.float64),
        (inside["first"].to_numpy(), inside["last"].to_numpy()),
        seed,
    )
    return sums, [text for text, is_chosen in zip(grid.documents, chosen, strict=True) if is_chosen]


# --- answers -----------------------------------------------------------------------------------------------------


def sum_answer_disagreement(
    people: Sequence[Sequence[Any]], judge: Sequence[Any], is_numeric: bool = False, seed: int = 0
) -> DisagreementSums:
    """Sum the disagreement of answers, given for each text by at least two people and by the judge.

    Answers disagree if they are different; with `is_numeric`, by the square of their difference.
    """
    names = sorted({str(answer) for answers in (*people, judge) for answer in answers})
    position = {name: place for place, name in enumerate(names)}

    def moments(answers: Sequence[Any]) -> Floats:
        if is_numeric:
            numbers = np.array([float(answer) for answer in answers])
            return np.stack([numbers, numbers**2], axis=1)
        return np.eye(len(names))[[position[str(answer)] for answer in answers]]

    every = [moments(answers) for answers in people]
    sizes = np.array([len(answers) for answers in people], dtype=np.float64)
    mean = np.array([values.mean(axis=0) for values in every])

    def distance(mine: Floats) -> Floats:
        """Return the mean disagreement of an annotator with the people of each text, (texts,)."""
        if is_numeric:
            result: Floats = mine[:, 1] - 2 * mine[:, 0] * mean[:, 0] + mean[:, 1]
        else:
            result = 1 - (mine * mean).sum(axis=1)
        return result

    own = moments(judge)
    # the disagreement with all people includes that of a person with themselves, which is 0
    apart = distance(mean) if not is_numeric else 2 * (mean[:, 1] - mean[:, 0] ** 2)
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(len(judge)) for _ in range(RANDOM_DRAWS)]
    pooled = mean.mean(axis=0)
    if is_numeric:
        common = np.tile([pooled[0], pooled[0] ** 2], (len(judge), 1))
    else:
        common = np.tile(np.eye(len(names))[int(pooled.argmax())], (len(judge), 1))
    return DisagreementSums(
        np.ones(len(judge)),
        Disagreement(mean, apart * sizes / (sizes - 1)),
        {
            _JUDGE: Disagreement(own, distance(own)),
            COMMON_ANSWER: Disagreement(common, distance(common)),
            RANDOM_ANSWERS: Disagreement(
                np.mean([own[order] for order in orders], axis=0),
                np.mean([distance(own[order]) for order in orders], axis=0),
            ),
        },
        (lambda m: 2 * (m[..., 1] - m[..., 0] ** 2)) if is_numeric else (lambda m: 1 - (m**2).sum(axis=-1)),
        is_constant=len(set(map(str, judge))) == 1,
    )
