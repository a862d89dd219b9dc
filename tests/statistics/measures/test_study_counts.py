"""Counts of marks by label and by any column."""

from __future__ import annotations

import polars as pl
import pytest

import finecomb as fc
from finecomb.statistics.measures.study_counts import counts_by_group, mark_counts_by_label


@pytest.mark.parametrize("column", ["model", "annotator", "document", "kind"])
def test_labels_are_counted_by_any_column(column: str) -> None:
    """Columns of annotations used to raise an unhandled exception."""
    study = fc.demo()
    table = mark_counts_by_label(study, [column])
    groups = table.select(pl.exclude("label", "marks"))
    assert len(groups.columns) == counts_by_group(study, [column]).height
    assert groups.sum_horizontal().to_list() == table["marks"].to_list()
    assert table["marks"].sum() == study.marks.height
