from __future__ import annotations

import math
import sys

import pytest

import finecomb as fc
from finecomb.core.estimate import Estimate, Finding, Signature
from finecomb.core.findings import Findings


def findings() -> Findings:
    return fc.measures(fc.demo(readers=2), "coverage", "model", draws=20)


def test_a_frame_has_a_row_for_each_finding() -> None:
    frame = findings().frame
    assert frame.columns[:4] == ["measure", "level", "label", "model"]
    assert frame["value"].to_list() == [finding.estimate.value for finding in findings()]
    assert frame["signature"].str.contains("statistic:coverage").all()


def test_names_may_be_one_text_with_commas() -> None:
    study = fc.demo(readers=2)
    one, several = (
        fc.measures(study, "coverage,count", "model", draws=0),
        fc.measures(study, ["coverage", "count"], ["model"], draws=0),
    )
    assert [row.estimate.value for row in one] == [row.estimate.value for row in several]
    assert len(fc.agree(study, "alpha", draws=0, by="model")) == len(fc.agree(study, ["alpha"], draws=0, by=("model",)))


def test_pandas_needs_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    table = findings().to_pandas()
    assert list(table["value"]) == findings().frame["value"].to_list()


def test_a_page_shows_numbers_with_their_intervals_and_escapes_words() -> None:
    page = findings()._repr_html_()
    estimate = findings()[0].estimate
    assert f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]" in page
    odd = Findings([Finding({"label": "<b>"}, Estimate(1.0, 0.5, 1.5, Signature.from_fields(statistic="x")))])
    assert "<b>" not in odd._repr_html_()
    assert "No findings" in Findings()._repr_html_()


def test_a_chart_has_a_point_for_each_value() -> None:
    chart = findings().chart().to_dict()
    layers = chart.get("layer") or chart["spec"]["layer"]
    defined = [finding for finding in findings() if not math.isnan(finding.estimate.value)]
    (values,) = chart["datasets"].values()
    assert len(values) == len(defined)
    assert len(layers) == 2
