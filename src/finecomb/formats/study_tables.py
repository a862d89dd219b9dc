"""Tables of a study: frames are written to and read from files in batches to limit memory."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import polars as pl
from pydantic import ValidationError

from finecomb.core import frames
from finecomb.core.errors import FormatError, did_you_mean, shorten
from finecomb.core.protocol_yaml import explain_validation_error
from finecomb.core.records import Annotation, Annotator, Document
from finecomb.core.study import StudyItem

T = TypeVar("T")
TableRecord = Document | Annotator | Annotation

BATCH_ROWS = 20_000
"""Maximum number of rows of a frame in memory at a time."""


# --- writing -------------------------------------------------------------------------------------------------------


class StudyTableWriter:
    """Writer of records; it writes a Parquet file per batch, then joins the files of each frame."""

    def __init__(self, place: Path, batch: int = BATCH_ROWS) -> None:
        self.place, self.batch, self.count = place, batch, 0
        self.rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in frames.COLUMNS_BY_FRAME}
        place.mkdir()

    def add_record(self, item: TableRecord) -> None:
        """Add one record."""
        match item:
            case Document():
                self.rows["documents"].append(frames.document_row(item))
            case Annotator():
                self.rows["annotators"].append(frames.annotator_row(item))
            case Annotation():
                self.rows["annotations"].append(frames.annotation_row(item))
                self.rows["marks"] += [frames.mark_row(mark, item) for mark in item.marks]
                self.rows["units"] += [frames.unit_row(unit, item) for unit in item.units]
        if any(len(rows) >= self.batch for rows in self.rows.values()):
            self._flush()

    def _flush(self) -> None:
        for name, rows in self.rows.items():
            if rows or not self.count:  # the first part is written even if empty, to keep the columns
                frames.build_frame(frames.COLUMNS_BY_FRAME[name], rows).write_parquet(
                    self.place / f"{name}-{self.count:06d}.parquet"
                )
            rows.clear()
        self.count += 1

    def finish(self, target: Path) -> None:
        """Write `documents.parquet` and the other tables to the folder `target`, and remove the parts."""
        self._flush()
        for name in frames.COLUMNS_BY_FRAME:
            parts = sorted(self.place.glob(f"{name}-*.parquet"))
            pl.scan_parquet(parts).sink_parquet(target / f"{name}.parquet", row_group_size=self.batch)
        shutil.rmtree(self.place)


def write_table(pieces: Iterable[pl.DataFrame], file: Path, columns: frames.ColumnSpecs) -> None:
    """Write a table from batches, holding one batch in memory at a time."""
    place = file.with_suffix(".parts")
    place.mkdir()
    frames.build_frame(columns, []).write_parquet(place / "000000.parquet")
    for number, piece in enumerate(pieces, 1):
        piece.write_parquet(place / f"{number:06d}.parquet")
    pl.scan_parquet(sorted(place.glob("*.parquet"))).sink_parquet(file, row_group_size=BATCH_ROWS)
    shutil.rmtree(place)


# --- reading -------------------------------------------------------------------------------------------------------


def conform_to_schema(table: pl.LazyFrame, name: str, where: str) -> pl.LazyFrame:
    """Return `table` with the columns and types of the frame `name`; one error lists all columns that do not match."""
    columns = table.collect_schema()
    wanted = pl.Schema(frames.polars_schema(frames.COLUMNS_BY_FRAME[name]))
    missing = [
        f"column {column_name!r} is missing{did_you_mean(column_name, columns)}"
        for column_name in wanted
        if column_name not in columns
    ]
    unknown = [
        f"column {column_name!r} is unknown{did_you_mean(column_name, wanted)}"
        for column_name in columns
        if column_name not in wanted
    ]
    mistyped = [
        f"column {column_name!r}: expected {kind}, found {columns[column_name]}"
        for column_name, kind in wanted.items()
        if column_name in columns and not _is_lossless_cast(columns[column_name], kind)
    ]
    if slips := [*missing, *unknown, *mistyped]:
        raise FormatError("\n".join(f"{where}: {slip}" for slip in slips))
    ordered = table.select(wanted.names())
    return ordered if columns == wanted else ordered.cast(wanted)


def _is_lossless_cast(kind: pl.DataType, wanted: pl.DataType) -> bool:
    """Return True if one type can be cast to the other without loss; a column of nulls has no type of its own."""
    if kind == wanted or kind == pl.Null:
        return True
    if isinstance(kind, pl.Datetime) and isinstance(wanted, pl.Datetime):
        return kind.time_zone == wanted.time_zone
    return (kind.is_integer() and wanted.is_numeric()) or (kind.is_float() and wanted.is_float())


def read_records(
    tables: Mapping[str, pl.LazyFrame], where: Callable[[str], str], batch: int = BATCH_ROWS
) -> Iterator[StudyItem]:
    """Read documents, annotators and annotations from a study's frames; `where` returns the file of a frame."""
    for part in _iter_batches(tables["documents"], batch):
        yield from _build_records(part, frames.iter_documents, Document, where("documents"))
    for part in _iter_batches(tables["annotators"], batch):
        yield from _build_records(part, frames.iter_annotators, Annotator, where("annotators"))
    placed = {"marks": 0, "units": 0}
    for part in _iter_batches(tables["annotations"], batch):
        mine = pl.col("annotation").is_in(part["id"].implode())
        rows = {name: tables[name].filter(mine).collect(engine="streaming") for name in placed}
        for name, frame in rows.items():
            placed[name] += len(frame)
        yield from _build_annotations(part, rows["marks"], rows["units"], where)
    for name, count in placed.items():
        total = tables[name].select(pl.len()).collect().item()
        if total != count:
            raise FormatError(
                f"{where(name)}: {total - count:,} rows refer to an annotation that is not in {where('annotations')}; "
                "add the annotations or remove the rows"
            )


def _iter_batches(table: pl.LazyFrame, batch: int) -> Iterator[pl.DataFrame]:
    offset = 0
    while len(part := table.slice(offset, batch).collect(engine="streaming")):
        yield part
        offset += batch


def _build_annotations(
    annotations: pl.DataFrame, marks: pl.DataFrame, units: pl.DataFrame, where: Callable[[str], str]
) -> Iterator[Annotation]:
    try:
        yield from list(frames.iter_annotations(annotations, marks, units))
    except (ValueError, TypeError):
        none = annotations.clear(), marks.clear(), units.clear()
        _check_rows(marks, lambda row: frames.iter_annotations(none[0], row, none[2]), where("marks"))
        _check_rows(units, lambda row: frames.iter_annotations(none[0], none[1], row), where("units"))
        yield from _build_records(
            annotations, lambda row: frames.iter_annotations(row, none[1], none[2]), Annotation, where("annotations")
        )
        raise


def _check_rows(frame: pl.DataFrame, make: Callable[[pl.DataFrame], Iterable[T]], where: str) -> None:
    for _ in _build_records(frame, make, Annotation, where):
        pass


def _build_records(
    frame: pl.DataFrame, make: Callable[[pl.DataFrame], Iterable[T]], kind: Any, where: str
) -> Iterator[T]:
    """Build the records of a frame; if one is invalid, the error names the first invalid row."""
    try:
        yield from list(make(frame))
    except (ValueError, TypeError):
        for row in frame.iter_slices(1):
            try:
                list(make(row))
            except ValidationError as error:
                id = row.item(0, 0)
                lines = [f"{where}: row {id!r}: {explain_validation_error(slip, kind)}" for slip in error.errors()]
                raise FormatError("\n".join(lines)) from None
            except (ValueError, TypeError) as error:
                raise FormatError(f"{where}: row {row.item(0, 0)!r}: {shorten(str(error), 100)}") from None
        raise
