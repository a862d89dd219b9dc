"""Cells of a CSV file that no spreadsheet takes for a formula, and the way back."""

from __future__ import annotations

import re

_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def escape_cell(cell: str) -> str:
    """A cell with an apostrophe before what a spreadsheet would run; numbers stay numbers.

    >>> escaped("=1+1"), escaped("-5"), escaped("- and"), escaped("'=x"), escaped("it's")
    ("'=1+1", '-5', "'- and", "''=x", "it's")
    """
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell) else cell


def unescape_cell(cell: str) -> str:
    """What `escaped` made a cell of.

    >>> unescaped("'=1+1"), unescaped("''=x"), unescaped("-5"), unescaped("'tis")
    ('=1+1', "'=x", '-5', "'tis")
    """
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
