from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

import finecomb as fc
from finecomb.core.results import Estimate, Finding, Findings, Signature
from finecomb.statistics.measures.annotation_measures import measure as compute_measures


def findings() -> Findings:
    return compute_measures(fc.demo(readers=2), "coverage", "model", draws=20)


def test_a_frame_has_a_row_for_each_finding() -> None:
    frame = findings().to_polars()
    assert frame.columns[:4] == ["measure", "level", "label", "model"]
    assert frame["value"].to_list() == [finding.estimate.value for finding in findings()]
    assert frame["signature"].str.contains("statistic:coverage").all()


def test_names_may_be_one_text_with_commas() -> None:
    study = fc.demo(readers=2)
    one, several = (
        compute_measures(study, "coverage,count", "model", draws=0),
        compute_measures(study, ["coverage", "count"], ["model"], draws=0),
    )
    assert [row.estimate.value for row in one] == [row.estimate.value for row in several]
    assert len(fc.agree(study, measure="alpha", draws=0, by="model")) == len(
        fc.agree(study, measure=["alpha"], draws=0, by=("model",))
    )


def test_pandas_needs_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    table = findings().to_pandas()
    assert list(table["value"]) == findings().to_polars()["value"].to_list()


def test_a_page_shows_numbers_with_their_intervals_and_escapes_words() -> None:
    page = findings()._repr_html_()
    estimate = findings()[0].estimate
    assert f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]" in page
    odd = Findings([Finding({"label": "<b>"}, Estimate(1.0, 0.5, 1.5, Signature.from_fields(statistic="x")))])
    assert "<b>" not in odd._repr_html_()
    assert "no rows" in Findings()._repr_html_()


def test_a_plot_has_a_dot_for_each_value(tmp_path: Path) -> None:
    result = findings()
    picture = result.plot(tmp_path / "plot.svg")
    defined = [finding for finding in result if not math.isnan(finding.estimate.value)]
    assert picture._repr_svg_().count("<circle") >= len(defined) > 0
    assert (tmp_path / "plot.svg").read_text(encoding="utf-8").startswith("<svg")


def test_a_result_prints_at_most_fifteen_lines_and_finds_its_rows() -> None:
    result = findings()
    assert len(repr(result).splitlines()) <= 15
    row = result.find(label="any", model="human", measure="coverage")
    assert row.value == row["value"]
    with pytest.raises(fc.FinecombError, match="no row has label='redundent'; pass label with one of"):
        result.find(label="redundent")
    with pytest.raises(fc.FinecombError, match="also give"):
        result.find(label="any")
    assert result.to_latex().count("tabular") == 2
    assert result.to_markdown().startswith("**")
