"""How many documents and annotators? Planned by simulation from what a pilot shows to vary.

A value y_ij of document i and annotator j (e.g. the coverage of one annotation) is taken to be

    y_ij = mu + D_i + A_j + e_ij

with independent parts of variance s_D (documents differ), s_A (annotators are lenient or strict) and s_e (the rest).
Both documents and annotators are drawn anew in each simulated study.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy  # its parts load when first used: start-up stays quick
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError
from finecomb.core.estimate import Estimate, Finding, Signature
from finecomb.core.study import Study
from finecomb.statistics.comparisons.system_comparison import statistic_per_annotation
from finecomb.statistics.inference.resampling import percentile_interval, resampled_positions
from finecomb.statistics.selection.view import ANY, View, as_view

Values = NDArray[np.float64]  # (documents, annotators), NaN where not read
Studies = NDArray[np.float64]  # (runs, documents, annotators)
Sampler = Callable[[int, int, int, np.random.Generator], Studies]
"""Simulated studies from runs, documents, annotators and a generator."""
Statistic = Callable[[Studies], NDArray[np.float64]]
"""One number for each simulated study, (runs,)."""

_MAX_VALUES_IN_MEMORY = 2_000_000  # numbers held at once
_MAX_DOCUMENTS = 10_000


class VarianceComponents(NamedTuple):
    """Mean and variances of the parts; NaN where the design cannot tell them apart."""

    mean: float
    document: float
    annotator: float
    residual: float


def estimate_variance_components(values: Values) -> VarianceComponents:
    """Variance components of a crossed design, cells may be missing: Henderson's method 1 (1953; Searle et al. 1992).

    The sums of squares of all values, of document means, of annotator means and of the grand mean are set equal to what
    they are on average under the model, which gives three linear equations; without missing cells these are the usual
    estimates from the mean squares. Negative estimates become 0. NaN where the equations have no single solution: one
    document, one annotator, or no text with two readers.
    """
    read = ~np.isnan(values)
    y, n_d, n_a, n = np.where(read, values, 0.0), read.sum(axis=1), read.sum(axis=0), int(read.sum())
    mean = float(y.sum() / n) if n else math.nan
    y, n_d, n_a, docs, people = _centre_values(y, read, mean, n_d, n_a)
    if docs < 2 or people < 2 or n <= docs or n <= people:
        return VarianceComponents(mean, math.nan, math.nan, math.nan)
    squares = (y**2).sum()
    by_document, by_annotator = (y.sum(axis=1) ** 2 / n_d).sum(), (y.sum(axis=0) ** 2 / n_a).sum()
    k_d, k_a = (n_d**2).sum() / n, (n_a**2).sum() / n
    # Coefficients of s_D, s_A and s_e in the mean of each sum of squares less that of the grand mean.
    design = np.array([[n - k_d, docs - k_a, docs - 1], [people - k_d, n - k_a, people - 1], [n - k_d, n - k_a, n - 1]])
    if np.linalg.cond(design) > 1e10:
        return VarianceComponents(mean, math.nan, math.nan, math.nan)
    components = np.linalg.solve(design, np.array([by_document, by_annotator, squares]) - y.sum() ** 2 / n)
    return VarianceComponents(mean, *(max(0.0, float(component)) for component in components))


def _centre_values(
    y: Values, read: NDArray[np.bool_], mean: float, n_d: NDArray[np.int64], n_a: NDArray[np.int64]
) -> tuple[Values, NDArray[np.int64], NDArray[np.int64], int, int]:
    """Without the mean (which changes nothing but rounding), and without empty rows and columns."""
    centred = np.where(read, y - mean, 0.0)[n_d > 0][:, n_a > 0]
    return centred, n_d[n_d > 0], n_a[n_a > 0], int((n_d > 0).sum()), int((n_a > 0).sum())


def build_normal_sampler(variance_components: VarianceComponents) -> Sampler:
    """Studies in which all three parts are normal."""

    def sample(runs: int, documents: int, annotators: int, rng: np.random.Generator) -> Studies:
        parts = [
            math.sqrt(variance_components.document) * rng.standard_normal((runs, documents, 1)),
            math.sqrt(variance_components.annotator) * rng.standard_normal((runs, 1, annotators)),
            math.sqrt(variance_components.residual) * rng.standard_normal((runs, documents, annotators)),
        ]
        studies: Studies = variance_components.mean + parts[0] + parts[1] + parts[2]
        return studies

    return sample


def grand_mean_per_study(studies: Studies) -> NDArray[np.float64]:
    """Mean over annotators and documents of each study."""
    means: NDArray[np.float64] = studies.mean(axis=(1, 2))
    return means


@dataclass(frozen=True, slots=True)
class Planner:
    """What to simulate, and how often."""

    sampler: Sampler
    statistic: Statistic = grand_mean_per_study
    runs: int = 2000
    seed: int = 0

    def simulate_statistic(self, documents: int, annotators: int) -> NDArray[np.float64]:
        """The statistic of simulated studies of one size."""
        return self._simulate(self.statistic, documents, annotators)

    def _simulate(
        self, result: Callable[[Studies], NDArray[np.float64]], documents: int, annotators: int
    ) -> NDArray[np.float64]:
        rng = np.random.default_rng([self.seed, documents, annotators])
        most = max(1, _MAX_VALUES_IN_MEMORY // (documents * annotators))
        sizes = [min(most, self.runs - done) for done in range(0, self.runs, most)]
        return np.concatenate([result(self.sampler(size, documents, annotators, rng)) for size in sizes])

    def half_width(self, documents: int, annotators: int) -> float:
        """Half the width of the middle 95% of the statistic."""
        return float(_half_width(self.simulate_statistic(documents, annotators)))

    def half_width_interval(self, documents: int, annotators: int) -> tuple[float, float]:
        """How far that half-width depends on which studies were simulated: resampled, 95%."""
        drawn = self.simulate_statistic(documents, annotators)
        positions = resampled_positions(len(drawn), 200, np.random.default_rng([self.seed, 1]))
        return percentile_interval(_half_width(drawn[positions]))

    def power(self, difference: float, documents: int, annotators: int, alpha: float = 0.05) -> float:
        """Chance that a t-test on document means finds a difference between two systems read by the same annotators."""

        def is_significant(studies: Studies) -> NDArray[np.float64]:
            means = studies.mean(axis=2)
            first, second = means[:, :documents], means[:, documents:] + difference
            return (_two_sample_t_p_values(first, second) < alpha).astype(np.float64)

        return float(self._simulate(is_significant, 2 * documents, annotators).mean())


def _half_width(drawn: NDArray[np.float64]) -> NDArray[np.float64]:
    low, high = np.quantile(drawn, [0.025, 0.975], axis=-1)
    return np.asarray((high - low) / 2, dtype=np.float64)


def _two_sample_t_p_values(first: Values, second: Values) -> Values:
    """Two-sample t-test along the last axis."""
    n, m = first.shape[-1], second.shape[-1]
    pooled = (first.var(axis=-1, ddof=1) * (n - 1) + second.var(axis=-1, ddof=1) * (m - 1)) / (n + m - 2)
    return _two_sided_t_p_values(
        first.mean(axis=-1) - second.mean(axis=-1), np.sqrt(pooled * (1 / n + 1 / m)), n + m - 2
    )


def _one_sample_t_p_values(values: Values, chance: float) -> Values:
    """One-sample t-test along the last axis."""
    n = values.shape[-1]
    return _two_sided_t_p_values(values.mean(axis=-1) - chance, values.std(axis=-1, ddof=1) / math.sqrt(n), n - 1)


def _two_sided_t_p_values(effect: Values, error: Values, df: int) -> Values:
    """Two-sided p; without any spread 1 for no effect and 0 for one."""
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(error > 0, effect / error, np.where(effect == 0, 0.0, np.inf))
    return np.asarray(2 * scipy.stats.t.sf(np.abs(t), df), dtype=np.float64)


def power(
    study: Study | View,
    measure: str = "coverage",
    label: str = ANY,
    half_width: float | None = None,
    difference: float | None = None,
    budget: int | None = None,
    annotators: Sequence[int] = (1, 2, 3, 5, 10),
    wanted: float = 0.8,
    statistic: Statistic = grand_mean_per_study,
    sampler: Callable[[VarianceComponents], Sampler] = build_normal_sampler,
    runs: int = 2000,
    seed: int = 0,
) -> list[Finding]:
    """Plan a study from a pilot: variance components first, then what was asked for, for each number of annotators.

    With `half_width`, documents needed for an interval of that half-width; with `difference`, documents per system
    needed to find it with chance `wanted`; with `budget`, the half-width when so many annotations are spread over
    documents ("ten annotators or three?"). Without any of them the budget is that of the pilot.
    """
    _check_plan_options(half_width, difference, budget, annotators, wanted, runs)
    pilot = as_view(study)
    values = pilot_annotation_values(pilot, measure, label)
    findings = estimate_variance_components(values)
    fields = {"statistic": "power", "measure": measure, "label": label, **pilot.fields}
    fields |= {"annotators": values.shape[1], "documents": values.shape[0], "runs": runs, "seed": seed}
    rows = variance_component_findings(values, findings, fields)
    if math.isnan(findings.residual):
        return rows
    planner = Planner(sampler(findings), statistic, runs, seed)
    if half_width is not None:
        rows += [_documents_for_half_width(planner, half_width, number, fields) for number in annotators]
    if difference is not None:
        rows += [_documents_for_difference(planner, difference, number, wanted, fields) for number in annotators]
    if budget is not None or (half_width is None and difference is None):
        rows += half_width_curve(planner, budget or int((~np.isnan(values)).sum()), annotators, fields)
    return rows


def _check_plan_options(
    half_width: float | None,
    difference: float | None,
    budget: int | None,
    annotators: Sequence[int],
    wanted: float,
    runs: int,
) -> None:
    if any(number < 1 for number in annotators) or not annotators:
        raise FinecombError("numbers of annotators are 1 or more")
    if half_width is not None and half_width <= 0:
        raise FinecombError(f"a half-width is more than 0, not {half_width}")
    if difference == 0:
        raise FinecombError("a difference of 0 cannot be found")
    if budget is not None and budget < 1:
        raise FinecombError(f"a budget is at least one annotation, not {budget}")
    if not 0 < wanted < 1:
        raise FinecombError(f"the wanted power lies between 0 and 1, not {wanted}")
    if runs < 100:
        raise FinecombError(f"fewer than 100 simulated studies say little; {runs} were asked for")


def pilot_annotation_values(pilot: View, measure: str = "coverage", label: str = ANY) -> Values:
    """The measure of each annotation, (documents, annotators), NaN where not read; rounds are averaged."""
    rows = statistic_per_annotation(pilot, measure, label)
    if rows.is_empty():
        raise FinecombError("the pilot has no annotations with a value")
    table = rows.pivot("annotator", index="document", values="value", aggregate_function="mean")
    return table.drop("document").to_numpy().astype(np.float64)


def variance_component_findings(
    values: Values, findings: VarianceComponents, fields: dict[str, object], draws: int = 200
) -> list[Finding]:
    """Mean and the standard deviation of each part, with intervals over studies like the pilot, simulated anew."""
    signature = Signature.from_fields(**fields, draws=draws)
    if math.isnan(findings.residual):
        why = "documents, annotators and the rest cannot be told apart: two annotators must share two documents or more"
        return [
            Finding(_plan_columns(f"sd of {name}"), Estimate(math.nan, math.nan, math.nan, signature, why))
            for name in ("documents", "annotators", "the rest")
        ]
    rng = np.random.default_rng([int(str(fields["seed"])), 2])
    missing, sample = np.isnan(values), build_normal_sampler(findings)
    documents, people = values.shape
    drawn = [
        estimate_variance_components(np.where(missing, np.nan, sample(1, documents, people, rng)[0]))
        for _ in range(draws)
    ]
    low, high = np.nanquantile(np.array(drawn), [0.025, 0.975], axis=0)
    rows = [Finding(_plan_columns("mean"), Estimate(findings.mean, float(low[0]), float(high[0]), signature))]
    for at, name in enumerate(("documents", "annotators", "the rest"), 1):
        sds = [math.sqrt(variance) for variance in (findings[at], low[at], high[at])]
        rows.append(Finding(_plan_columns(f"sd of {name}"), Estimate(sds[0], sds[1], sds[2], signature)))
    return rows


def _plan_columns(
    measure: str, documents: int | None = None, annotators: int | None = None, **more: Any
) -> dict[str, object]:
    total = documents * annotators if documents is not None and annotators is not None else None
    return {"measure": measure, "annotators": annotators, "documents": documents, "annotations": total, **more}


def half_width_curve(
    planner: Planner, budget: int, annotators: Sequence[int], fields: dict[str, object]
) -> list[Finding]:
    """Half-width against the number of annotators of each document when the number of annotations is fixed."""
    rows = []
    for number in annotators:
        documents = budget // number
        signature = Signature.from_fields(**fields, budget=budget)
        if documents < 1:
            estimate = Estimate(math.nan, math.nan, math.nan, signature, "the budget is less than one text")
        else:
            low, high = planner.half_width_interval(documents, number)
            estimate = Estimate(planner.half_width(documents, number), low, high, signature)
        rows.append(Finding(_plan_columns("half-width", documents, number), estimate))
    return rows


def _documents_for_half_width(
    planner: Planner, half_width: float, annotators: int, fields: dict[str, object]
) -> Finding:
    """Fewest documents whose half-width is small enough."""
    width = functools.cache(lambda documents: planner.half_width(documents, annotators))
    signature = Signature.from_fields(**fields, half_width=half_width)
    why = f"{_MAX_DOCUMENTS:,} documents are not enough; ask for a wider interval or take more annotators"
    need = _smallest_sufficient_number(width, half_width)
    if need is None:
        return _needed_documents_finding("documents needed", None, None, None, annotators, signature, why)
    noise = [edge / width(need) for edge in planner.half_width_interval(need, annotators)]  # of the simulation
    low, high = (_smallest_sufficient_number(width, half_width / factor) for factor in noise)
    return _needed_documents_finding("documents needed", need, low, high, annotators, signature, why)


def _documents_for_difference(
    planner: Planner, difference: float, annotators: int, wanted: float, fields: dict[str, object]
) -> Finding:
    """Fewest documents per system with which a difference is found often enough."""
    missed = functools.cache(lambda documents: 1 - planner.power(difference, documents, annotators))
    signature = Signature.from_fields(**fields, difference=difference, power=wanted, level=0.05)
    noise = 1.96 * math.sqrt(wanted * (1 - wanted) / planner.runs)
    chances = (1 - wanted + noise, 1 - wanted, max(1 - wanted - noise, 0))
    low, need, high = (_smallest_sufficient_number(missed, chance, minimum=2) for chance in chances)
    why = f"more than {_MAX_DOCUMENTS:,} documents per system"
    return _needed_documents_finding("documents per system needed", need, low, high, annotators, signature, why)


def _needed_documents_finding(
    measure: str,
    need: int | None,
    low: int | None,
    high: int | None,
    annotators: int,
    signature: Signature,
    why: str,
) -> Finding:
    value, *ends = (math.nan if number is None else float(number) for number in (need, low, high))
    estimate = Estimate(value, ends[0], ends[1], signature, why if need is None else "")
    return Finding(_plan_columns(measure, need, annotators), estimate)


def _smallest_sufficient_number(falling: Callable[[int], float], bound: float, minimum: int = 1) -> int | None:
    """The smallest number at which a function is at most `bound`, by doubling and halving; within 2%."""
    high = minimum
    while falling(high) > bound:
        high *= 2
        if high > _MAX_DOCUMENTS:
            return None
    low = high // 2 if high > minimum else minimum - 1
    while high - low > max(1, high // 50):
        middle = (low + high) // 2
        low, high = (low, middle) if falling(middle) <= bound else (middle, high)
    return high


def score_power(
    accuracies: Sequence[float] = (0.5, 0.52, 0.54, 0.56, 0.58, 0.6),
    evaluators: int = 130,
    texts: int = 5,
    spread: float = 0.0,
    other: float = 0.5,
    alpha: float = 0.05,
    runs: int = 10_000,
    seed: int = 0,
) -> list[Finding]:
    """Power of the tests of a human-or-machine study (Clark et al. 2021, 2.3), the evaluator's score being the unit.

    For each true accuracy: a one-sample t-test against .5, and a two-sample t-test against a second group of as many
    evaluators with accuracy `other`. `spread` is the standard deviation of evaluators' own accuracies (beta). At an
    accuracy equal to what it is tested against, this is the share of false alarms. Intervals are Wilson's.
    """
    if evaluators < 2 or texts < 1:
        raise FinecombError("a test needs two evaluators and one text")
    rows = []
    for accuracy in accuracies:
        rng = np.random.default_rng([seed, round(1e6 * accuracy)])
        first = _simulate_evaluator_scores(accuracy, evaluators, texts, spread, runs, rng)
        second = _simulate_evaluator_scores(other, evaluators, texts, spread, runs, rng)
        tests = {
            "one-sample t against .5": _one_sample_t_p_values(first, 0.5),
            f"two-sample t against {other:g}": _two_sample_t_p_values(first, second),
        }
        for test, p in tests.items():
            signature = Signature.from_fields(
                statistic="score-power", test=test, spread=spread, level=alpha, annotators=evaluators, texts=texts,
                runs=runs, seed=seed,
            )  # fmt: skip
            hits = int((p < alpha).sum())
            low, high = scipy.stats.binomtest(hits, runs).proportion_ci(0.95, "wilson")
            columns = {"measure": "power", "test": test, "accuracy": accuracy, "evaluators": evaluators, "texts": texts}
            rows.append(Finding(columns, Estimate(hits / runs, float(low), float(high), signature)))
    return rows


def _simulate_evaluator_scores(
    accuracy: float, evaluators: int, texts: int, spread: float, runs: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Evaluators' scores, (runs, evaluators): binomial, or beta-binomial when they differ in skill."""
    if not 0 <= accuracy <= 1:
        raise FinecombError(f"an accuracy lies between 0 and 1, not {accuracy}")
    most = accuracy * (1 - accuracy)
    if spread < 0 or (spread and spread**2 >= most):
        raise FinecombError(
            f"a spread of {spread:g} is not possible around {accuracy:g}; it is less than {math.sqrt(most):.3g}"
        )
    skill: NDArray[np.float64] | float = accuracy
    if spread:
        total = most / spread**2 - 1
        skill = rng.beta(accuracy * total, (1 - accuracy) * total, (runs, evaluators))
    return rng.binomial(texts, skill, (runs, evaluators)) / texts
