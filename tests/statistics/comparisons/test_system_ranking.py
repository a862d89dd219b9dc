from __future__ import annotations

import math

import pytest

from finecomb.core.results import Estimate, Finding, Signature
from finecomb.statistics.comparisons.system_ranking import BestValue, significantly_lowest_values, sort_groups_by_value
from finecomb.statistics.measures.annotation_measures import measure
from tests.statistics.comparisons.test_system_comparison import small

MANY = (range(12), range(12))
FEW, OFTEN = [0, 0, 0, 1] * 3, [2, 3, 2, 3] * 3


def test_the_lowest_value_is_best_where_the_difference_is_beyond_chance() -> None:
    view = small(FEW, OFTEN, MANY)
    findings = measure(view, ["count"], ["model"], draws=0)
    assert significantly_lowest_values(view, findings, "model") == {
        BestValue("count", label, "x") for label in ("red", "any")
    }


@pytest.mark.parametrize(("first", "second"), [([1, 2, 0, 1] * 3, [1, 1, 1, 2] * 3), (FEW, FEW)])
def test_nothing_is_best_where_it_could_be_chance(first: list[int], second: list[int]) -> None:
    view = small(first, second, MANY)
    assert significantly_lowest_values(view, measure(view, ["count"], ["model"], draws=0), "model") == set()


def test_of_what_is_not_better_or_worse_nothing_is_best() -> None:
    view = small([1] * 6 + [2] * 6, OFTEN, MANY)
    assert significantly_lowest_values(view, measure(view, ["span-length"], ["model"], draws=0), "model") == set()


def finding(name: str, model: str, label: str, value: float) -> Finding:
    why = "nothing to measure" if math.isnan(value) else ""
    estimate = Estimate(value, math.nan, math.nan, Signature.from_fields(statistic=name), why)
    return Finding({"measure": name, "label": label, "model": model}, estimate)


def test_systems_come_in_the_order_of_the_first_measure() -> None:
    values = {"a": 3.0, "b": 1.0, "c": math.nan, "d": 2.0}
    rows = [
        finding(name, model, label, value)
        for name in ("count", "coverage")
        for model, value in values.items()
        for label in ("red", "any")
    ]
    ordered = sort_groups_by_value(rows, ["model"])
    assert [row.columns["model"] for row in ordered if row.columns["label"] == "any"] == [*"bdac", *"bdac"]
    assert [row.columns["label"] for row in ordered[:2]] == ["red", "any"]
