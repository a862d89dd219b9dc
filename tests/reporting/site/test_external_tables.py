from __future__ import annotations

import json

import pytest

from finecomb.core.errors import FinecombError, format_as_flag
from finecomb.reporting.figures.figure_model import DotFigure, TableFigure
from finecomb.reporting.site.external_tables import build_external_figures, parse_external_table


def test_estimates_are_dots_and_other_rows_a_table() -> None:
    rows = [
        {"metric": "chrf", "value": 0.4, "low": 0.3, "high": 0.5},
        {"metric": "bleu", "value": None, "why": "no reference"},
    ]
    drawn, plain = build_external_figures(
        [
            parse_external_table("stress.json", json.dumps({"table": rows, "signature": "statistic:fall"})),
            parse_external_table("critics-of-mine.csv", "critic,verdict\nsections,kept\n"),
        ]
    )
    assert isinstance(drawn, DotFigure)
    assert [(row.name, row.estimate.short(1)) for row in drawn.rows] == [
        ("chrf", "0.4 [0.3, 0.5]"),
        ("bleu", "no reference"),
    ]
    assert drawn.signature == "statistic:fall"
    assert isinstance(plain, TableFigure)
    assert (plain.title, plain.table) == ("Critics of mine", ({"critic": "sections", "verdict": "kept"},))


def test_numbers_that_are_none_are_never_an_empty_chart() -> None:
    (figure,) = build_external_figures([parse_external_table("a.csv", "name,value\nx,nan\n")])
    assert figure.empty == "All values are undefined."


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", "{", "--with a.json: cannot be read"),
        ("a.json", '{"rows": 3}', "not a list of rows"),
        ("a.json", "[]", "has no rows"),
        ("a.csv", "", "has no rows"),
        ("a.csv", "a,b\n1\n", "line 2 has 1 cells; the header has 2"),
    ],
)
def test_a_file_that_is_no_table_is_one_line(name: str, text: str, message: str) -> None:
    with pytest.raises(FinecombError) as caught:
        parse_external_table(name, text)
    assert message in caught.value.format_message(format_as_flag)
    assert "\n" not in str(caught.value)
