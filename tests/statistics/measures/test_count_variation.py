from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError
from finecomb.core.study import Study
from finecomb.statistics.measures.count_variation import mark_count_variation
from finecomb.statistics.selection.view import view
from tests.golden import measures as golden
from tests.statistics.measures.measure_studies import make_measure_study, single_column, single_estimate

TEXT = " ".join(["w"] * 40)


def counted(counts: NDArray[np.int64]) -> Study:
    """Build one text per count of marks, half of them by each of two annotators."""
    texts = {f"d{number}": TEXT for number in range(len(counts))}
    read = []
    for id, count in zip(texts, counts, strict=True):
        own = [("a", at, at + 1) for at in range(int(count))]
        read += [(id, "p", own[::2]), (id, "q", own[1::2])]
    return make_measure_study(texts, read)


COUNTS = np.random.default_rng(0).poisson(np.random.default_rng(1).gamma(2, 3, 60))


@pytest.mark.long
@pytest.mark.parametrize("replace", [True, False])
def test_the_coefficient_is_what_repeated_drawing_gives(replace: bool) -> None:
    rng = np.random.default_rng(2)
    sums = np.array([rng.choice(COUNTS, 20, replace=replace).sum() for _ in range(20_000)])
    findings = mark_count_variation(view(counted(COUNTS)), [20], replace=replace)
    assert single_estimate(findings, label="a").value == pytest.approx(sums.std() / sums.mean(), rel=0.03)
    assert single_column(findings, "mean", label="a") == pytest.approx(sums.mean(), rel=0.01)
    assert single_column(findings, "sd", label="a") == pytest.approx(sums.std(), rel=0.03)
    assert single_estimate(findings, label="a").signature["replace"] == ("yes" if replace else "no")


def test_it_falls_with_the_root_of_the_number_of_documents() -> None:
    findings = mark_count_variation(view(counted(COUNTS)), [10, 40])
    few, many = (single_estimate(findings, label="a", documents=size) for size in (10, 40))
    assert few.value == pytest.approx(2 * many.value)
    assert few.low < few.value < few.high


def test_all_documents_without_replacement_leave_nothing_to_vary() -> None:
    estimate = single_estimate(mark_count_variation(view(counted(COUNTS)), [60], replace=False), label="a")
    assert math.isnan(estimate.value)
    assert estimate.why == "60 documents drawn without replacement from 60 have no variation"


def test_a_label_nobody_used_and_a_single_document_are_undefined() -> None:
    findings = mark_count_variation(view(counted(COUNTS)), [5])
    assert single_estimate(findings, label="b").why == "no marks"
    assert (
        single_estimate(mark_count_variation(view(counted(COUNTS[:1]))), label="a").why
        == "a single document has no variation"
    )
    assert (
        single_estimate(mark_count_variation(view(make_measure_study({"d": TEXT}, []))), label="any").why
        == "no annotations"
    )


def test_a_size_below_one_is_refused() -> None:
    with pytest.raises(FinecombError, match="at least 1"):
        mark_count_variation(view(counted(COUNTS)), [0])


def test_scarecrow_prints_a_total_that_contradicts_itself() -> None:
    """Every row of Table 5 has c.v. = sd / mean except the last, which repeats the value of self-contradiction."""
    for mean, sd, printed in golden.SCARECROW_VARIATION.values():
        assert 100 * sd / mean == pytest.approx(printed, abs=0.1)
    mean, sd, printed = golden.SCARECROW_VARIATION_TOTAL
    assert 100 * sd / mean == pytest.approx(4.38, abs=0.01)
    contradiction = golden.SCARECROW_VARIATION["self-contradiction"]
    assert 100 * contradiction[1] / contradiction[0] == pytest.approx(printed, abs=0.005)
    assert sum(each[0] for each in golden.SCARECROW_VARIATION.values()) == pytest.approx(1210.94)  # not 1268.48
