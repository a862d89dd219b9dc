from __future__ import annotations

import json
import math

from finecomb.reporting.tables import BestNumber, BestText, Row, format_table

ROWS: list[Row] = [
    {"model": "a_1", "value": BestNumber(0.5), "low": 0.25, "high": 0.75},
    {"model": "b", "value": 0.75, "low": math.nan, "high": math.nan},
    {"model": "c", "value": BestText("1 | 2"), "low": None, "high": None},
]


def test_the_best_number_is_bold_with_its_interval() -> None:
    markdown, latex = format_table(ROWS, "markdown"), format_table(ROWS, "latex")
    assert "| a_1 | **0.500 [0.250, 0.750]** |" in markdown
    assert r"a\_1 & \textbf{0.500 [0.250, 0.750]} \\" in latex
    assert "| b | 0.750 |" in markdown
    assert r"| c | **1 \| 2** |" in markdown


def test_programs_read_numbers_as_they_are() -> None:
    assert json.loads(format_table(ROWS, "json"))["table"][0]["value"] == 0.5
    assert format_table(ROWS, "csv").splitlines()[1] == "a_1,0.5,0.25,0.75"
