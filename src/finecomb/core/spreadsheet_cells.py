"""Escaping of CSV cells that a spreadsheet would evaluate as formulas."""

from __future__ import annotations

import re

_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def escape_cell(cell: str) -> str:
    """Escape a cell that a spreadsheet would evaluate, with a leading apostrophe; numbers are unchanged.

    >>> escape_cell("=1+1"), escape_cell("-5"), escape_cell("- and"), escape_cell("'=x"), escape_cell("it's")
    ("'=1+1", '-5', "'- and", "''=x", "it's")
    """
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell) else cell


def unescape_cell(cell: str) -> str:
    """Reverse `escape_cell`.

    >>> unescape_cell("'=1+1"), unescape_cell("''=x"), unescape_cell("-5"), unescape_cell("'tis")
    ('=1+1', "'=x", '-5', "'tis")
    """
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
