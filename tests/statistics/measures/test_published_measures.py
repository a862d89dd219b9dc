from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytest

from finecomb import formats
from finecomb.core.results import Finding
from finecomb.formats import Options
from finecomb.statistics.measures.annotation_measures import measure
from finecomb.statistics.selection.view import Filters, view
from tests.golden import measures as golden

pytestmark = pytest.mark.long


def values(findings: Sequence[Finding]) -> dict[tuple[str, str], float]:
    return {(str(each.columns["model"]), str(each.columns["label"])): each.estimate.value for each in findings}


def test_snac_fractions_are_those_of_figure_4(data: Path) -> None:
    selection = view(formats.read(data / "snac" / "SNaC_data.json"))
    estimates = values(measure(selection, ["fraction"], ["model"], draws=10))
    for model, row in golden.SNAC_FRACTIONS.items():
        for label, value in zip(golden.SNAC_LABELS, row, strict=True):
            assert estimates[model, label] == pytest.approx(value, abs=6e-4)


@pytest.mark.parametrize("repeats", ["first", "kth"])
def test_snac_coverage_is_that_of_figure_4(data: Path, repeats: Literal["first", "kth"]) -> None:
    selection = view(formats.read(data / "snac" / "SNaC_data.json", options=Options(repeats=repeats)))
    estimates = values(measure(selection, ["coverage"], ["model"], tokens="whitespace", overlap="union", draws=10))
    kth = golden.SNAC_COVERAGE_KTH if repeats == "kth" else {}
    for model, row in golden.SNAC_COVERAGE.items():
        for label, value in zip(golden.SNAC_LABELS, row, strict=True):
            assert estimates[model, label] == pytest.approx(kth.get((model, label), value), abs=6e-5)
        if repeats == "first":
            assert estimates[model, "any"] == pytest.approx(golden.SNAC_ANY[model], abs=6e-4)
    pooled = values(
        measure(selection, by=["model"], detail="any", tokens="whitespace", overlap="union", average="pooled", draws=10)
    )
    for model, value in (golden.SNAC_ANY_POOLED if repeats == "first" else golden.SNAC_ANY_POOLED_KTH).items():
        assert pooled[model, "any"] == pytest.approx(value, abs=6e-4)


@pytest.mark.parametrize(
    ("antecedents", "expected"), [(False, golden.SCARECROW_COVERAGE), (True, golden.SCARECROW_WITH_ANTECEDENTS)]
)
def test_scarecrow_coverage_is_that_of_the_released_sample(
    data: Path, antecedents: bool, expected: dict[str, float]
) -> None:
    selection = view(formats.read(data / "thresh_samples" / "scarecrow.json"), Filters(drop=("grammar-usage:1",)))
    findings = measure(
        selection, by=["model"], detail="any", tokens="whitespace", overlap="union", antecedents=antecedents
    )
    assert {each.columns["model"]: round(each.estimate.value, 4) for each in findings} == expected


def test_mqm_scores_are_those_of_the_release(data: Path) -> None:
    selection = view(formats.read(data / "wmt_mqm_ted_ende" / "mqm_ted_ende.tsv"))
    findings = measure(selection, ["score"], ["model"], detail="any", draws=10)
    assert {each.columns["model"]: round(each.estimate.value, 2) for each in findings} == golden.MQM_SCORES
