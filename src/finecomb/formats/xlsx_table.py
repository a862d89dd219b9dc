"""Excel workbooks with one mark per row in the first sheet."""

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
from finecomb.engine.guarded_files import load_workbook
from finecomb.formats.base import Format, Options
from finecomb.formats.mark_table import TABLE_FEATURES
from finecomb.formats.mark_table_reader import TABLE_OPTIONS, NumberedRow, read_records
from finecomb.formats.mark_table_writer import build_table

MAX_CELL_LENGTH = 32_767
"""Maximum characters (UTF-16 units) per cell in Excel."""
MAX_ROWS = 1_048_576
_NUMBER_COLUMNS = frozenset(["round", "start", "end", "votes", "readers", "antecedent_start", "antecedent_end"])
_FORBIDDEN_CHARACTERS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_ALTERNATIVE_HINT = "write .csv or a study folder instead"


def read(path: Path, options: Options) -> Iterator[StudyItem]:
    """Read documents, annotators and annotations from the first sheet."""

    def rows() -> Iterator[NumberedRow]:
        return _read_rows(path)

    return read_records(rows, path, options)


def _read_rows(path: Path) -> Iterator[NumberedRow]:
    values = _read_values(path)
    header = [cell_text(value).strip() for value in next(values, ())]
    while header and not header[-1]:
        header.pop()
    named = [name for name in header if name]
    if repeated := [name for name in named if named.count(name) > 1]:
        raise FormatError(f"{path}:1: column {repeated[0]!r} occurs more than once; rename the others")
    for number, row in enumerate(values, 2):
        cells = [cell_text(value) for value in row]
        if any(cells[len(header) :]):
            raise FormatError(
                f"{path}:{number}: this row has more cells than the header, which has {len(header)}; "
                "remove the extra cells"
            )
        if any(cells):
            yield number, dict.fromkeys(header, "") | dict(zip(header, cells, strict=False))


def _read_values(path: Path) -> Iterator[tuple[Any, ...]]:
    """Yield the values of each row; any error that the parser raises for a damaged workbook becomes a `FormatError`."""
    if not path.is_file():
        raise FormatError(f"{path}: {'is a folder; expected a workbook' if path.is_dir() else 'no such file'}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            book = load_workbook(path, read_only=True, data_only=True)
        sheet = book.worksheets[0]
        sheet.reset_dimensions()
        yield from sheet.iter_rows(values_only=True)
        book.close()
    except Exception as error:
        raise FormatError(f"{path}: cannot be read as an Excel workbook: {shorten(str(error), 100)}") from None


def cell_text(value: Any) -> str:
    """Return a cell as text, with numbers, booleans and dates formatted as in a CSV file."""
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


_ESCAPE_CODE = re.compile(r"_x([0-9A-Fa-f]{4})_")  # escape codes for characters that XML would change, e.g. _x000D_


@dataclass
class _CellProblems:
    """Counts of cells that Excel cannot store unchanged."""

    cut: list[str] = field(default_factory=list)
    """Locations of truncated texts."""
    control: int = 0
    """Number of cells with control characters."""

    def notes(self) -> list[str]:
        cut = f"{len(self.cut):,} cells exceed Excel's maximum of {MAX_CELL_LENGTH:,} characters and were truncated"
        control = f"{self.control:,} cells contain control characters, which Excel shows as codes such as _x0007_"
        first = f" (the first in {self.cut[0]}); {_ALTERNATIVE_HINT} to keep all" if self.cut else ""
        return [*([cut + first] if self.cut else []), *([control] if self.control else [])]


def write(items: Iterable[StudyItem], path: Path, options: Options) -> list[str]:
    """Write one sheet and return notes; a text that looks like a formula is stored as text."""
    import openpyxl

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("marks")
    sheet.freeze_panes = "A2"
    strained = _CellProblems()
    try:
        with build_table(items) as (columns, rows):
            sheet.append([_build_cell(sheet, "", name, 1, strained) for name in columns])
            for number, cells in enumerate(rows, 2):
                if number > MAX_ROWS:
                    raise FormatError(f"Excel supports at most {MAX_ROWS:,} rows; {_ALTERNATIVE_HINT}")
                sheet.append([_build_cell(sheet, name, cells.get(name, ""), number, strained) for name in columns])
    except BaseException:
        sheet.close()  # otherwise openpyxl later warns about a sheet left open
        raise
    book.save(path)
    return strained.notes()


def _build_cell(sheet: Any, column: str, text: str, row: int, strained: _CellProblems) -> Any:
    if not text:
        return None
    if column in _NUMBER_COLUMNS:
        return int(text)
    from openpyxl.cell import WriteOnlyCell

    cell = WriteOnlyCell(sheet, _encode_cell_text(text, f"row {row}, column {column!r}", strained))
    cell.data_type = "s"  # also if it begins with '=', so that a text is never evaluated as a formula
    return cell


def _encode_cell_text(text: str, where: str, strained: _CellProblems) -> str:
    """Encode a text for a workbook: control characters as codes, truncated to Excel's maximum length."""
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
