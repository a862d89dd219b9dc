"""Sample size planning with simulated studies, which have the variance components of a pilot.

A value y_ij of document i and annotator j (e.g. the coverage of one annotation) is modelled as

    y_ij = mu + D_i + A_j + e_ij

with independent parts of variance s_D (documents), s_A (lenient or strict annotators) and s_e (residual). Each
simulated study draws new documents and new annotators.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy  # submodules are imported on first use, which keeps start-up fast
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError
from finecomb.core.results import Estimate, Finding, Signature
from finecomb.core.study import Study
from finecomb.engine.partitions import ProgressWatcher, count_steps
from finecomb.statistics.comparisons.system_comparison import statistic_per_annotation
from finecomb.statistics.inference.resampling import percentile_interval, resampled_positions
from finecomb.statistics.selection.view import ANY_LABEL, View, as_view

Values = NDArray[np.float64]  # (documents, annotators), NaN without an annotation
SimulatedStudies = NDArray[np.float64]  # (runs, documents, annotators)
StudySampler = Callable[[int, int, int, np.random.Generator], SimulatedStudies]
"""Function that simulates studies. It takes the numbers of runs, documents and annotators, and a random generator."""
StudyStatistic = Callable[[SimulatedStudies], NDArray[np.float64]]
"""Function that returns one number per simulated study, (runs,)."""

_MAX_VALUES_IN_MEMORY = 2_000_000  # maximum number of simulated values held at once
_MAX_DOCUMENTS = 10_000


class VarianceComponents(NamedTuple):
    """Mean and variance components; NaN if they cannot be identified from the design."""

    mean: float
    document: float
    annotator: float
    residual: float


def estimate_variance_components(values: Values) -> VarianceComponents:
    """Estimate the variance components of a crossed design with possibly missing cells by Henderson's method 1.

    Henderson (1953); Searle et al. (1992). The sums of squares of all values, of document means, of annotator means and
    of the grand mean are set equal to their expectations under the model, which gives three linear equations. Without
    missing cells these are the usual estimates from the mean squares. Negative estimates become 0. The components are
    NaN if the equations have no unique solution: one document, one annotator, or no text with two annotators.
    """
    read = ~np.isnan(values)
    y, n_d, n_a, n = np.where(read, values, 0.0), read.sum(axis=1), read.sum(axis=0), int(read.sum())
    mean = float(y.sum() / n) if n else math.nan
    # Subtract the mean, which only affects rounding, and drop empty rows and columns.
    y = np.where(read, y - mean, 0.0)[n_d > 0][:, n_a > 0]
    n_d, n_a = n_d[n_d > 0], n_a[n_a > 0]
    docs, people = len(n_d), len(n_a)
    if docs < 2 or people < 2 or n <= docs or n <= people:
        return VarianceComponents(mean, math.nan, math.nan, math.nan)
    squares = (y**2).sum()
    by_document, by_annotator = (y.sum(axis=1) ** 2 / n_d).sum(), (y.sum(axis=0) ** 2 / n_a).sum()
    k_d, k_a = (n_d**2).sum() / n, (n_a**2).sum() / n
    # Coefficients of s_D, s_A and s_e in the expected sums of squares, minus those of the grand mean
    design = np.array([[n - k_d, docs - k_a, docs - 1], [people - k_d, n - k_a, people - 1], [n - k_d, n - k_a, n - 1]])
    # The three equations have no unique solution.
    if np.linalg.cond(design) > 1e10:
        return VarianceComponents(mean, math.nan, math.nan, math.nan)
    components = np.linalg.solve(design, np.array([by_document, by_annotator, squares]) - y.sum() ** 2 / n)
    return VarianceComponents(mean, *(max(0.0, float(component)) for component in components))


def build_normal_sampler(variance_components: VarianceComponents) -> StudySampler:
    """Build a sampler of studies in which all three components have a normal distribution."""

    def sample(runs: int, documents: int, annotators: int, rng: np.random.Generator) -> SimulatedStudies:
        parts = [
            math.sqrt(variance_components.document) * rng.standard_normal((runs, documents, 1)),
            math.sqrt(variance_components.annotator) * rng.standard_normal((runs, 1, annotators)),
            math.sqrt(variance_components.residual) * rng.standard_normal((runs, documents, annotators)),
        ]
        studies: SimulatedStudies = variance_components.mean + parts[0] + parts[1] + parts[2]
        return studies

    return sample


def grand_mean_per_study(studies: SimulatedStudies) -> NDArray[np.float64]:
    """Return the mean over documents and annotators of each study."""
    means: NDArray[np.float64] = studies.mean(axis=(1, 2))
    return means


@dataclass(frozen=True, slots=True)
class StudySimulator:
    """Simulator of studies of a given size, with the statistic to compute."""

    sampler: StudySampler
    statistic: StudyStatistic = grand_mean_per_study
    runs: int = 2000
    seed: int = 0

    def simulate_statistic(self, documents: int, annotators: int) -> NDArray[np.float64]:
        """Return the statistic of each simulated study of a given size."""
        return self._simulate(self.statistic, documents, annotators)

    def _simulate(
        self, result: Callable[[SimulatedStudies], NDArray[np.float64]], documents: int, annotators: int
    ) -> NDArray[np.float64]:
        # Seeding by size gives equal results for repeated calls with one size, which the search over sizes requires.
        rng = np.random.default_rng([self.seed, documents, annotators])
        max_runs = max(1, _MAX_VALUES_IN_MEMORY // (documents * annotators))
        sizes = [min(max_runs, self.runs - done) for done in range(0, self.runs, max_runs)]
        return np.concatenate([result(self.sampler(size, documents, annotators, rng)) for size in sizes])

    def half_width(self, documents: int, annotators: int) -> float:
        """Return half the width of the interval that contains the central 95% of the simulated statistic."""
        return float(_central_half_width(self.simulate_statistic(documents, annotators)))

    def half_width_interval(self, documents: int, annotators: int) -> tuple[float, float]:
        """Return a 95% bootstrap interval of the half-width, which shows the error of the simulation."""
        values = self.simulate_statistic(documents, annotators)
        positions = resampled_positions(len(values), 200, np.random.default_rng([self.seed, 1]))
        return percentile_interval(_central_half_width(values[positions]))

    def power(self, difference: float, documents: int, annotators: int, alpha: float = 0.05) -> float:
        """Return the power of a t-test on document means that compares two systems annotated by the same people."""

        def is_significant(studies: SimulatedStudies) -> NDArray[np.float64]:
            means = studies.mean(axis=2)
            first, second = means[:, :documents], means[:, documents:] + difference
            return (_two_sample_t_p_values(first, second) < alpha).astype(np.float64)

        return float(self._simulate(is_significant, 2 * documents, annotators).mean())


def _central_half_width(drawn: NDArray[np.float64]) -> NDArray[np.float64]:
    low, high = np.quantile(drawn, [0.025, 0.975], axis=-1)
    return np.asarray((high - low) / 2, dtype=np.float64)


def _two_sample_t_p_values(first: Values, second: Values) -> Values:
    """Return the p-values of two-sample t-tests along the last axis."""
    n, m = first.shape[-1], second.shape[-1]
    pooled = (first.var(axis=-1, ddof=1) * (n - 1) + second.var(axis=-1, ddof=1) * (m - 1)) / (n + m - 2)
    return _two_sided_t_p_values(
        first.mean(axis=-1) - second.mean(axis=-1), np.sqrt(pooled * (1 / n + 1 / m)), n + m - 2
    )


def _two_sided_t_p_values(effect: Values, error: Values, df: int) -> Values:
    """Return two-sided p-values; without variance, 1 for no effect and 0 otherwise."""
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(error > 0, effect / error, np.where(effect == 0, 0.0, np.inf))
    return np.asarray(2 * scipy.stats.t.sf(np.abs(t), df), dtype=np.float64)


def plan_from_pilot(
    study: Study | View,
    measure: str = "coverage",
    label: str = ANY_LABEL,
    half_width: float | None = None,
    difference: float | None = None,
    budget: int | None = None,
    annotators: Sequence[int] = (1, 2, 3, 5, 10),
    wanted: float = 0.8,
    statistic: StudyStatistic = grand_mean_per_study,
    sampler: Callable[[VarianceComponents], StudySampler] = build_normal_sampler,
    runs: int = 2000,
    seed: int = 0,
    watch: ProgressWatcher | None = None,
) -> list[Finding]:
    """Plan a study from a pilot: variance components, then the requested plan for each number of annotators.

    With `half_width`, return the documents required for an interval of that half-width. With `difference`, return the
    documents per system required to detect that difference with power `wanted`. With `budget`, return the half-width
    for that many annotations, spread over documents. By default, the budget is that of the pilot.
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
    planner = StudySimulator(sampler(findings), statistic, runs, seed)
    if budget is None and half_width is None and difference is None:
        budget = int((~np.isnan(values)).sum())
    goals = sum(goal is not None for goal in (half_width, difference, budget))
    with count_steps(goals * len(annotators), watch) as step:
        if half_width is not None:
            for number in annotators:
                rows.append(_required_documents_for_half_width(planner, half_width, number, fields))
                step()
        if difference is not None:
            for number in annotators:
                rows.append(_required_documents_for_difference(planner, difference, number, wanted, fields))
                step()
        if budget is not None:
            for number in annotators:
                rows += half_width_by_annotator_count(planner, budget, [number], fields)
                step()
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
        found = ", ".join(map(str, annotators)) or "none"
        raise FinecombError(f"annotators must be one or more numbers, each at least 1, found {found}")
    if half_width is not None and half_width <= 0:
        raise FinecombError(f"half-width must be more than 0, found {half_width}")
    if difference == 0:
        raise FinecombError("difference must not be 0")
    if budget is not None and budget < 1:
        raise FinecombError(f"budget must be at least 1 annotation, found {budget}")
    if not 0 < wanted < 1:
        raise FinecombError(f"power must be greater than 0 and less than 1, found {wanted}")
    if runs < 100:
        raise FinecombError(f"runs must be at least 100, found {runs}")


def pilot_annotation_values(pilot: View, measure: str = "coverage", label: str = ANY_LABEL) -> Values:
    """Return the measure per annotation, (documents, annotators), averaged over rounds; NaN without an annotation."""
    rows = statistic_per_annotation(pilot, measure, label)
    if rows.is_empty():
        raise FinecombError(f"the pilot has no annotation with a value of {measure}; use another measure or pilot")
    table = rows.pivot("annotator", index="document", values="value", aggregate_function="mean")
    return table.drop("document").to_numpy().astype(np.float64)


def variance_component_findings(
    values: Values, findings: VarianceComponents, fields: dict[str, object], draws: int = 200
) -> list[Finding]:
    """Return the mean and the standard deviation of each component, with parametric bootstrap intervals."""
    signature = Signature.from_fields(**fields, draws=draws)
    if math.isnan(findings.residual):
        why = "variance components are not identified; at least two annotators must share at least two documents"
        return [
            Finding(_plan_columns(f"sd of {name}"), Estimate(math.nan, math.nan, math.nan, signature, why))
            for name in ("documents", "annotators", "the rest")
        ]
    rng = np.random.default_rng([int(str(fields["seed"])), 2])
    missing, sample = np.isnan(values), build_normal_sampler(findings)
    documents, people = values.shape
    simulated = [
        estimate_variance_components(np.where(missing, np.nan, sample(1, documents, people, rng)[0]))
        for _ in range(draws)
    ]
    low, high = np.nanquantile(np.array(simulated), [0.025, 0.975], axis=0)
    rows = [Finding(_plan_columns("mean"), Estimate(findings.mean, float(low[0]), float(high[0]), signature))]
    for index, name in enumerate(("documents", "annotators", "the rest"), 1):
        sds = [math.sqrt(variance) for variance in (findings[index], low[index], high[index])]
        rows.append(Finding(_plan_columns(f"sd of {name}"), Estimate(sds[0], sds[1], sds[2], signature)))
    return rows


def _plan_columns(
    measure: str, documents: int | None = None, annotators: int | None = None, **more: Any
) -> dict[str, object]:
    total = documents * annotators if documents is not None and annotators is not None else None
    return {"measure": measure, "annotators": annotators, "documents": documents, "annotations": total, **more}


def half_width_by_annotator_count(
    planner: StudySimulator, budget: int, annotators: Sequence[int], fields: dict[str, object]
) -> list[Finding]:
    """Return the half-width for each number of annotators per document, with a fixed total number of annotations."""
    rows = []
    for number in annotators:
        documents = budget // number
        signature = Signature.from_fields(**fields, budget=budget)
        if documents < 1:
            estimate = Estimate(math.nan, math.nan, math.nan, signature, "the budget does not cover one document")
        else:
            low, high = planner.half_width_interval(documents, number)
            estimate = Estimate(planner.half_width(documents, number), low, high, signature)
        rows.append(Finding(_plan_columns("half-width", documents, number), estimate))
    return rows


def _required_documents_for_half_width(
    planner: StudySimulator, half_width: float, annotators: int, fields: dict[str, object]
) -> Finding:
    """Return the smallest number of documents for which the half-width is at most `half_width`."""
    width = functools.cache(lambda documents: planner.half_width(documents, annotators))
    signature = Signature.from_fields(**fields, half_width=half_width)
    why = f"more than {_MAX_DOCUMENTS:,} documents are needed; accept a wider interval or use more annotators"
    need = _smallest_sufficient_number(width, half_width)
    if need is None:
        return _required_documents_finding("documents needed", None, None, None, annotators, signature, why)
    noise = [edge / width(need) for edge in planner.half_width_interval(need, annotators)]  # error of the simulation
    low, high = (_smallest_sufficient_number(width, half_width / factor) for factor in noise)
    return _required_documents_finding("documents needed", need, low, high, annotators, signature, why)


def _required_documents_for_difference(
    planner: StudySimulator, difference: float, annotators: int, wanted: float, fields: dict[str, object]
) -> Finding:
    """Return the smallest number of documents per system at which the difference is detected with power `wanted`."""
    missed = functools.cache(lambda documents: 1 - planner.power(difference, documents, annotators))
    signature = Signature.from_fields(**fields, difference=difference, power=wanted, level=0.05)
    noise = 1.96 * math.sqrt(wanted * (1 - wanted) / planner.runs)
    chances = (1 - wanted + noise, 1 - wanted, max(1 - wanted - noise, 0))
    low, need, high = (_smallest_sufficient_number(missed, chance, minimum=2) for chance in chances)
    why = f"more than {_MAX_DOCUMENTS:,} documents per system are needed"
    return _required_documents_finding("documents per system needed", need, low, high, annotators, signature, why)


def _required_documents_finding(
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
    """Return the smallest number at which a decreasing function is at most `bound`, to within 2%, or None.

    The search doubles up to the maximum number of documents, then bisects.
    """
    high = minimum
    while falling(high) > bound:
        if high == _MAX_DOCUMENTS:
            return None
        high = min(2 * high, _MAX_DOCUMENTS)
    low = high // 2 if high > minimum else minimum - 1
    while high - low > max(1, high // 50):
        middle = (low + high) // 2
        low, high = (low, middle) if falling(middle) <= bound else (middle, high)
    return high


def human_or_machine_power(
    accuracies: Sequence[float] = (0.5, 0.52, 0.54, 0.56, 0.58, 0.6),
    evaluators: int = 130,
    texts: int = 5,
    spread: float = 0.0,
    other: float = 0.5,
    alpha: float = 0.05,
    runs: int = 10_000,
    seed: int = 0,
    watch: ProgressWatcher | None = None,
) -> list[Finding]:
    """Compute the power of the tests in a human-or-machine study, with one score per evaluator.

    Clark et al. (2021), 2.3. For each true accuracy, there is a one-sample t-test against .5, and a two-sample t-test
    against a second group of equal size with accuracy `other`. `spread` is the standard deviation of evaluators'
    accuracies (beta). If the accuracy equals the tested value, the result is the false positive rate. Intervals are
    Wilson's.
    """
    if evaluators < 2 or texts < 1:
        raise FinecombError(f"at least 2 evaluators and 1 text are required, found {evaluators} and {texts}")
    rows = []
    with count_steps(len(accuracies), watch) as step:
        for accuracy in accuracies:
            # The power at one accuracy does not depend on the other accuracies.
            rng = np.random.default_rng([seed, round(1e6 * accuracy)])
            first = _simulate_evaluator_scores(accuracy, evaluators, texts, spread, runs, rng)
            second = _simulate_evaluator_scores(other, evaluators, texts, spread, runs, rng)
            error = first.std(axis=-1, ddof=1) / math.sqrt(evaluators)
            tests = {
                "one-sample t against .5": _two_sided_t_p_values(first.mean(axis=-1) - 0.5, error, evaluators - 1),
                f"two-sample t against {other:g}": _two_sample_t_p_values(first, second),
            }
            for test, p in tests.items():
                signature = Signature.from_fields(
                    statistic="score-power", test=test, spread=spread, level=alpha, annotators=evaluators, texts=texts,
                    runs=runs, seed=seed,
                )  # fmt: skip
                hits = int((p < alpha).sum())
                low, high = scipy.stats.binomtest(hits, runs).proportion_ci(0.95, "wilson")
                columns = {"measure": "power", "test": test, "accuracy": accuracy}
                columns |= {"evaluators": evaluators, "texts": texts}
                rows.append(Finding(columns, Estimate(hits / runs, float(low), float(high), signature)))
            step()
    return rows


def _simulate_evaluator_scores(
    accuracy: float, evaluators: int, texts: int, spread: float, runs: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Simulate evaluators' scores, (runs, evaluators): binomial, or beta-binomial if evaluators differ in accuracy."""
    if not 0 <= accuracy <= 1:
        raise FinecombError(f"accuracy must be from 0 to 1, found {accuracy}")
    max_variance = accuracy * (1 - accuracy)
    if spread < 0 or (spread and spread**2 >= max_variance):
        raise FinecombError(
            f"spread must be 0 or a positive number below {math.sqrt(max_variance):.3g} "
            f"at an accuracy of {accuracy:g}, found {spread:g}"
        )
    skill: NDArray[np.float64] | float = accuracy
    if spread:
        total = max_variance / spread**2 - 1
        skill = rng.beta(accuracy * total, (1 - accuracy) * total, (runs, evaluators))
    return rng.binomial(texts, skill, (runs, evaluators)) / texts
