from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import finecomb as fc
from finecomb.core.errors import FinecombError
from finecomb.core.study import Study
from finecomb.reporting.site.report_content import build_report_source, text_rates
from finecomb.reporting.site.report_folder import write_change_page
from finecomb.reporting.site.study_changes import estimate_changes

STUDY = fc.demo()


def without(study: Study, label: str) -> Study:
    return replace(study, marks=study.marks.filter(pl.col("label") != label))


def test_a_study_and_itself_do_not_differ() -> None:
    findings = estimate_changes(build_report_source(STUDY, "a", draws=50), build_report_source(STUDY, "b", draws=50))
    assert all(finding.estimate.value == 0 for finding in findings)
    assert all(finding.columns["p_adjusted"] == 1 for finding in findings)


def test_the_change_is_the_difference_of_the_means() -> None:
    before, after = (
        build_report_source(STUDY, "a", draws=50),
        build_report_source(without(STUDY, "redundant"), "b", draws=50),
    )
    findings = estimate_changes(before, after)
    means = [text_rates(part)["value"].to_numpy().mean() for part in (before, after)]
    assert findings[0].columns["system"] == "all texts"
    assert findings[0].estimate.value == pytest.approx(means[1] - means[0])
    by_label = {f.columns["label"]: f.estimate.value for f in findings if f.columns["system"] == "all texts"}
    assert by_label["redundant"] < 0
    assert by_label["off-prompt"] == 0


def test_other_texts_are_two_groups_and_empty_studies_are_refused(tmp_path: Path) -> None:
    half = STUDY.filter_annotations(pl.col("document").is_in(STUDY.documents["id"][:8].implode()))
    findings = estimate_changes(build_report_source(STUDY, "a", draws=50), build_report_source(half, "b", draws=50))
    assert findings[0].columns["texts"] == 8
    write_change_page(findings, ("a", "b"), tmp_path / "changes")
    assert "Changes between studies" in (tmp_path / "changes/index.html").read_text()
    with pytest.raises(FinecombError, match="requires submitted annotations in both studies"):
        estimate_changes(
            build_report_source(STUDY, "a"), build_report_source(STUDY.filter_annotations(pl.lit(value=False)), "b")
        )
