"""Excel workbooks with one mark a row in their first sheet."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

from finecomb.core.errors import FormatError, shorten
from finecomb.core.study import StudyItem
from finecomb.formats.base import Format, Options
from finecomb.formats.mark_table import TABLE_FEATURES
from finecomb.formats.mark_table_records import TABLE_OPTIONS, NumberedRow, read_records
from finecomb.formats.mark_table_rows import build_table

MAX_CELL_LENGTH = 32_767
"""Characters (in UTF-16) that Excel allows in a cell."""
MAX_ROWS = 1_048_576
_NUMBER_COLUMNS = frozenset(["round", "start", "end", "votes", "readers", "antecedent_start", "antecedent_end"])
_FORBIDDEN_CHARACTERS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_ALTERNATIVE_HINT = "write .csv or a study folder instead"


def read(path: Path, options: Options) -> Iterator[StudyItem]:
    """Documents, annotators and annotations of the first sheet."""

    def rows() -> Iterator[NumberedRow]:
        return _read_rows(path)

    return read_records(rows, path, options)


def _read_rows(path: Path) -> Iterator[NumberedRow]:
    values = _read_values(path)
    header = [_cell_text(value).strip() for value in next(values, ())]
    while header and not header[-1]:
        header.pop()
    named = [name for name in header if name]
    if len(set(named)) < len(named):
        raise FormatError(f"{path}:1: a column name is there twice: {', '.join(named)}")
    for number, row in enumerate(values, 2):
        cells = [_cell_text(value) for value in row]
        if any(cells[len(header) :]):
            raise FormatError(f"{path}:{number}: has more cells than the {len(header)} columns of row 1")
        if any(cells):
            yield number, dict.fromkeys(header, "") | dict(zip(header, cells, strict=False))


def _read_values(path: Path) -> Iterator[tuple[Any, ...]]:
    """The values of each row. A damaged workbook can fail anywhere inside the parser, in many ways."""
    if not path.is_file():
        raise FormatError(f"{path}: {'is a folder; expected a workbook' if path.is_dir() else 'no such file'}")
    import openpyxl  # slow to load, and rarely needed

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        sheet = book.worksheets[0]
        sheet.reset_dimensions()
        yield from sheet.iter_rows(values_only=True)
        book.close()
    except Exception as error:
        raise FormatError(f"{path}: cannot be read as an Excel workbook: {shorten(str(error), 100)}") from None


def _cell_text(value: Any) -> str:
    """A cell as text: what Excel keeps as a number, a truth value or a date looks as it would in a CSV file."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer() and abs(value) < 2**53:
            return str(int(value))
        case datetime() | date() | time():
            return value.isoformat()
        case str():
            return _ESCAPE_CODE.sub(lambda match: chr(int(match[1], 16)), value)
        case _:
            return str(value)


_ESCAPE_CODE = re.compile(r"_x([0-9A-Fa-f]{4})_")  # how a workbook keeps what XML would change, e.g. _x000D_


@dataclass
class _CellProblems:
    """What Excel cannot hold as it is, counted while a sheet is filled."""

    cut: list[str] = field(default_factory=list)
    """Where texts were cut."""
    control: int = 0
    """Cells with control characters."""

    def notes(self) -> list[str]:
        cut = (
            f"{len(self.cut):,} cells are longer than the {MAX_CELL_LENGTH:,} characters that Excel allows and were cut"
        )
        control = f"{self.control:,} cells hold control characters, which Excel shows as codes such as _x0007_"
        first = f" (the first in {self.cut[0]}); {_ALTERNATIVE_HINT} to keep all" if self.cut else ""
        return [*([cut + first] if self.cut else []), *([control] if self.control else [])]


def write(items: Iterable[StudyItem], path: Path, options: Options) -> list[str]:
    """Write one sheet; every text stays text, also when it looks like a formula. Returns what there is to say."""
    import openpyxl

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("marks")
    sheet.freeze_panes = "A2"
    strained = _CellProblems()
    try:
        _fill_sheet(sheet, items, strained)
    except BaseException:
        sheet.close()  # else openpyxl complains later about a sheet left open
        raise
    book.save(path)
    return strained.notes()


def _fill_sheet(sheet: Any, items: Iterable[StudyItem], strained: _CellProblems) -> None:
    with build_table(items) as (columns, rows):
        sheet.append([_build_cell(sheet, "", name, 1, strained) for name in columns])
        for number, cells in enumerate(rows, 2):
            if number > MAX_ROWS:
                raise FormatError(f"Excel holds at most {MAX_ROWS:,} rows; {_ALTERNATIVE_HINT}")
            sheet.append([_build_cell(sheet, name, cells.get(name, ""), number, strained) for name in columns])


def _build_cell(sheet: Any, column: str, text: str, row: int, strained: _CellProblems) -> Any:
    if not text:
        return None
    if column in _NUMBER_COLUMNS:
        return int(text)
    from openpyxl.cell import WriteOnlyCell

    cell = WriteOnlyCell(sheet, _encode_cell_text(text, f"row {row}, column {column!r}", strained))
    cell.data_type = "s"  # also where it begins with '=', so that a text can never run as a formula
    return cell


def _encode_cell_text(text: str, where: str, strained: _CellProblems) -> str:
    """A text as a workbook keeps it: control characters as codes, and no more than Excel allows."""
    storable = re.sub(r"_(?=x[0-9A-Fa-f]{4}_)", "_x005F_", text).replace("\r", "_x000D_")
    coded = _FORBIDDEN_CHARACTERS.sub(lambda match: f"_x{ord(match[0]):04X}_", storable)
    strained.control += coded != storable
    if len(coded.encode("utf-16-le")) // 2 <= MAX_CELL_LENGTH:
        return coded
    strained.cut.append(where)
    return re.sub(
        r"_(?:x[0-9A-Fa-f]{0,4})?\Z", "", coded.encode("utf-16-le")[: 2 * MAX_CELL_LENGTH].decode("utf-16-le", "ignore")
    )


FORMAT = Format("xlsx", "an Excel table", read, write, suffixes=(".xlsx",), holds=TABLE_FEATURES, options=TABLE_OPTIONS)
