"""No cell of ours runs in a spreadsheet, and every cell comes back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finecomb.core.spreadsheet_cells import escape_cell, unescape_cell


@given(st.text("'=+-@\t\rab1.", max_size=6))
def test_a_cell_comes_back_and_begins_harmlessly(cell: str) -> None:
    written = escape_cell(cell)
    assert unescape_cell(written) == cell
    if written[:1] in tuple("=+-@\t\r"):
        float(written)


@pytest.mark.parametrize("cell", ["=cmd|' /C calc'!A0", "@SUM(A1)", "+1-2", "-1+1", "\t=1"])
def test_formulas_are_escaped(cell: str) -> None:
    assert escape_cell(cell) == f"'{cell}"
