from __future__ import annotations

import math

import numpy as np
import pytest
from statsmodels.stats.power import TTestIndPower, TTestPower

from finecomb.annotators.simulated.demo_study import build_demo_study
from finecomb.core.errors import FinecombError
from finecomb.core.study import Study
from finecomb.statistics.power import (
    SimulatedStudies,
    StudySimulator,
    VarianceComponents,
    _smallest_sufficient_number,
    build_normal_sampler,
    estimate_variance_components,
    half_width_by_annotator_count,
    human_or_machine_power,
    plan_from_pilot,
)
from finecomb.statistics.selection.view import Filters, view

KNOWN = VarianceComponents(2.0, 1.0, 0.25, 0.5)


def slow_components(y: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> tuple[float, float, float]:
    """Compute variance components from the mean squares of a complete table."""
    d, a = y.shape
    ms_d = a * y.mean(axis=1).var(ddof=1)
    ms_a = d * y.mean(axis=0).var(ddof=1)
    rest = y - y.mean(axis=1, keepdims=True) - y.mean(axis=0) + y.mean()
    ms_e = (rest**2).sum() / ((d - 1) * (a - 1))
    return float((ms_d - ms_e) / a), float((ms_a - ms_e) / d), float(ms_e)


def test_without_missing_cells_components_are_those_of_the_mean_squares() -> None:
    y = build_normal_sampler(KNOWN)(1, 12, 5, np.random.default_rng(0))[0]
    assert estimate_variance_components(y)[1:] == pytest.approx([max(0.0, each) for each in slow_components(y)])


@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_components_are_right_on_average_also_with_missing_cells(missing: float) -> None:
    rng = np.random.default_rng(1)
    big = VarianceComponents(2.0, 1.0, 1.0, 0.5)  # far from 0, so that no component is cut off
    found = []
    for _ in range(300):
        y = build_normal_sampler(big)(1, 30, 12, rng)[0]
        found.append(estimate_variance_components(np.where(rng.random(y.shape) < missing, math.nan, y)))
    error = np.std(found, axis=0) / math.sqrt(len(found))
    assert (np.abs(np.mean(found, axis=0) - big) < 4 * error).all()


@pytest.mark.parametrize(
    "y",
    [
        np.ones((1, 4)),
        np.ones((4, 1)),
        np.array([[1.0, math.nan], [math.nan, 2.0]]),
        np.array(
            [[1.0, math.nan], [2.0, math.nan], [math.nan, 2.0], [math.nan, 5.0]]
        ),  # no two annotators share a text
        np.full((2, 2), math.nan),
    ],
)
def test_what_the_design_cannot_tell_apart_is_nan(y: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> None:
    assert math.isnan(estimate_variance_components(y).residual)


def test_equal_values_have_no_variance() -> None:
    assert estimate_variance_components(np.full((3, 3), 0.4)) == pytest.approx((0.4, 0, 0, 0))


def test_half_width_is_that_of_the_formula() -> None:
    planner = StudySimulator(build_normal_sampler(KNOWN), runs=20_000)
    for documents, annotators in ((10, 3), (40, 2)):
        variance = KNOWN.document / documents + KNOWN.annotator / annotators + KNOWN.residual / documents / annotators
        assert planner.half_width(documents, annotators) == pytest.approx(1.96 * math.sqrt(variance), rel=0.03)
        low, high = planner.half_width_interval(documents, annotators)
        assert low < 1.96 * math.sqrt(variance) < high


def test_power_is_that_of_statsmodels_when_annotators_do_not_matter() -> None:
    planner = StudySimulator(build_normal_sampler(VarianceComponents(0, 1, 0.3, 0)), runs=4000)
    oracle = TTestIndPower().power(effect_size=0.6, nobs1=40, alpha=0.05)
    assert planner.power(0.6, 40, 3) == pytest.approx(oracle, abs=0.025)


def test_ten_annotators_or_three_depends_on_what_varies() -> None:
    def widths(of: VarianceComponents) -> list[float]:
        rows = half_width_by_annotator_count(
            StudySimulator(build_normal_sampler(of), runs=3000), 60, [1, 3, 10], {"seed": 0}
        )
        assert [row.columns["documents"] for row in rows] == [60, 20, 6]
        return [row.estimate.value for row in rows]

    texts_differ, people_differ = widths(VarianceComponents(0, 1, 0, 0.5)), widths(VarianceComponents(0, 0.1, 1, 0.1))
    assert texts_differ == sorted(texts_differ)
    assert people_differ == sorted(people_differ, reverse=True)


def test_statistic_and_sampler_are_functions() -> None:
    def uniform(runs: int, documents: int, annotators: int, rng: np.random.Generator) -> SimulatedStudies:
        return rng.random((runs, documents, annotators))

    largest = StudySimulator(uniform, lambda studies: studies.max(axis=(1, 2)), runs=5000)
    drawn = largest.simulate_statistic(4, 1)  # the largest of four: Beta(4, 1)
    assert drawn.mean() == pytest.approx(0.8, abs=0.01)


def test_a_plan_from_the_demo_names_documents_and_keeps_its_word() -> None:
    pilot = view(Study.from_items(build_demo_study(5, 0)))
    found = plan_from_pilot(pilot, half_width=0.08, difference=0.2, budget=60, annotators=[1, 3], runs=500)
    by = {(row.columns["measure"], row.columns["annotators"]): row for row in found}
    assert {"mean", "sd of documents", "sd of annotators", "sd of the rest"} <= {each for each, _ in by}
    need = by["documents needed", 3].estimate
    assert need.low <= need.value <= need.high
    assert by["documents needed", 3].columns["annotations"] == 3 * need.value
    mean, *sds = (
        by[name, None].estimate.value for name in ("mean", "sd of documents", "sd of annotators", "sd of the rest")
    )
    planner = StudySimulator(build_normal_sampler(VarianceComponents(mean, *(sd**2 for sd in sds))), runs=4000, seed=9)
    assert planner.half_width(int(need.value), 3) == pytest.approx(0.08, rel=0.15)
    enough = by["documents per system needed", 1].estimate.value
    assert planner.power(0.2, int(enough), 1) == pytest.approx(0.8, abs=0.06)
    assert by["half-width", 3].columns["documents"] == 20
    assert found == plan_from_pilot(pilot, half_width=0.08, difference=0.2, budget=60, annotators=[1, 3], runs=500)


def test_too_few_annotators_can_never_be_enough() -> None:
    from finecomb.statistics.power import _required_documents_for_half_width

    found = _required_documents_for_half_width(
        StudySimulator(build_normal_sampler(VarianceComponents(0, 0.01, 1, 0.01)), runs=100), 0.5, 2, {"seed": 0}
    )
    assert math.isnan(found.estimate.value)
    assert found.estimate.why == "more than 10,000 documents are needed; accept a wider interval or use more annotators"


def test_one_annotator_is_no_pilot() -> None:
    study = Study.from_items(build_demo_study(5, 0))
    found = plan_from_pilot(view(study, Filters(annotators=("reader-1",))), budget=10)
    assert all(
        math.isnan(row.estimate.value) and "variance components are not identified" in row.estimate.why for row in found
    )


def test_wishes_that_cannot_be_met_are_refused() -> None:
    pilot = view(Study.from_items(build_demo_study(5, 0)))
    for wish, message in (
        ({"half_width": 0.0}, "half-width must be more than 0"),
        ({"difference": 0.0}, "difference must not be 0"),
        ({"budget": 0}, "budget must be at least 1 annotation, found 0"),
        ({"annotators": [0]}, "numbers, each at least 1, found 0"),
        ({"annotators": []}, "must be one or more numbers, each at least 1, found none"),
        ({"wanted": 1.0}, "power must be greater than 0 and less than 1"),
        ({"runs": 10}, "runs must be at least 100, found 10"),
        ({"measure": "covrage"}, "did you mean 'coverage'"),
    ):
        with pytest.raises(FinecombError, match=message):
            plan_from_pilot(pilot, **wish)


def test_130_evaluators_with_5_texts_have_the_power_of_the_formula() -> None:
    sd = math.sqrt(0.25 / 5)  # standard deviation of a score at an accuracy of .5
    for row in human_or_machine_power([0.5, 0.55, 0.58], runs=4000):
        effect = (float(str(row.columns["accuracy"])) - 0.5) / sd
        if str(row.columns["test"]).startswith("one"):
            oracle = TTestPower().power(effect, nobs=130, alpha=0.05) if effect else 0.05
        else:
            oracle = TTestIndPower().power(effect, nobs1=130, alpha=0.05) if effect else 0.05
        assert row.estimate.value == pytest.approx(oracle, abs=0.025)
        assert row.estimate.low <= row.estimate.value <= row.estimate.high


def test_evaluators_who_differ_in_skill_leave_less_power() -> None:
    alike, apart = (human_or_machine_power([0.58], spread=spread, runs=2000)[0].estimate.value for spread in (0, 0.2))
    assert apart < alike


def test_impossible_scores_are_refused() -> None:
    with pytest.raises(FinecombError, match="accuracy must be from 0 to 1"):
        human_or_machine_power([1.2])
    with pytest.raises(FinecombError, match=r"spread must be 0 or a positive number below 0\.5 at an accuracy of 0\.5"):
        human_or_machine_power([0.5], spread=0.6)
    with pytest.raises(FinecombError, match=r"positive number below 0\.5 at an accuracy of 0\.5, found -0\.1"):
        human_or_machine_power([0.5], spread=-0.1)
    with pytest.raises(FinecombError, match="at least 2 evaluators and 1 text are required, found 1 and 5"):
        human_or_machine_power([0.5], evaluators=1)


def test_the_search_reaches_the_maximum_number_of_documents() -> None:
    need = _smallest_sufficient_number(lambda number: 1 / number, 1 / 9000)
    assert need is not None
    assert 9000 <= need <= 9000 * 1.02
    assert _smallest_sufficient_number(lambda number: 1 / number, 1 / 10_001) is None
