from __future__ import annotations

import os
from pathlib import Path

import pytest

from finecomb import demo, formats
from finecomb.reporting.reproduce.exhibits import PaperStudy
from finecomb.reporting.reproduce.printed_values import (
    compare_with_printed,
    find_contradictions,
    is_paper_data,
    printed_rows,
)
from finecomb.reporting.reproduce.registry import PAPERS, find_paper

DATA = Path(os.environ.get("FINECOMB_DATA", ""))


def test_contradictions_are_found_in_what_is_printed_and_nowhere_else() -> None:
    found = {name: [(row.where, row.says) for row in find_contradictions(name)] for name in PAPERS}
    assert found["scarecrow"] == [("Table 5", "the coefficient of variation of Total errors is 19.72%")]
    assert [says for _, says in found["thomson-reiter"]] == [
        f"there are {count} errors of type {label}" for count, label in ((184, "number"), (105, "name"), (80, "word"))
    ]  # fmt: skip
    assert found["clark"] == [("Table 1", "the accuracy of gpt3 news is 0.51")]
    assert found["deng"] == [("Table 1", "the latent PPL of the transformer is 64.80")]
    assert found["snac"] == []


def test_a_cell_agrees_when_ours_rounds_to_the_printed_digits() -> None:
    rows = [{"error": "number", "total": 184, "rate": 9.29}, {"error": "name", "total": 104, "rate": 5.29}]
    cells = compare_with_printed(
        rows, {"number": {"total": "184", "rate": "9.3"}, "Name": {"total": "105", "rate": "5.1"}}
    )
    assert [(cell.row, cell.column, cell.agrees) for cell in cells] == [
        ("number", "total", True), ("number", "rate", True), ("name", "total", False), ("name", "rate", False)
    ]  # fmt: skip
    thousands = compare_with_printed([{"of": "all", "spans": 3074}], {"all": {"spans": "3.1k"}})
    assert [cell.agrees for cell in thousands] == [True]


def test_every_printed_exhibit_is_one_of_the_registry() -> None:
    for name, paper in PAPERS.items():
        kept = [exhibit for exhibit in paper.exhibits if printed_rows(name, exhibit.number)]
        assert kept, name


def test_other_studies_are_not_taken_for_the_papers_data() -> None:
    assert not any(is_paper_data(name, demo()) for name in PAPERS)


@pytest.mark.skipif(not (DATA / "snac").is_dir(), reason="needs FINECOMB_DATA")
def test_thomson_and_reiters_table_1_comes_out_cell_for_cell() -> None:
    study = formats.read(DATA / "no_licence_stated/thomson_reiter_2020/participants_and_annotations.xlsx")
    assert is_paper_data("thomson-reiter", study)
    made = find_paper("thomson-reiter").find_exhibit("Table 1").make(PaperStudy(study, draws=0))
    cells = compare_with_printed(made.table, printed_rows("thomson-reiter", "Table 1"))
    assert len(cells) == 64
    assert all(cell.agrees for cell in cells)
