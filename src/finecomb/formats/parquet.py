"""A folder of Parquet tables, one per frame of a study, with settings and protocols."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from polars.exceptions import PanicException, PolarsError

from finecomb.core import frames
from finecomb.core.errors import FinecombError, FormatError, shorten
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotator, Note, Settings
from finecomb.core.stored_marks import StoredMarks
from finecomb.core.study import Study, StudyItem
from finecomb.formats import folder, study_tables
from finecomb.formats.base import Format, Options
from finecomb.formats.features import ALL_FEATURES

_READ_ERRORS = (PolarsError, PanicException, OSError)
"""Exceptions that Polars raises for a damaged file; it may panic, which is not a subclass of `Exception`."""


def read(path: Path, options: Options) -> Iterator[StudyItem]:
    """Read settings, protocols, documents, annotators and annotations in batches."""
    if not path.is_dir():
        raise FormatError(f"{path}: not a folder; expected a folder with documents.parquet and the other tables")
    yield folder.read_settings(path)
    yield from folder.read_protocols(path)
    try:
        tables = {name: _scan_table(path / f"{name}.parquet", name) for name in frames.COLUMNS_BY_FRAME}
        yield from study_tables.read_records(tables, lambda name: str(path / f"{name}.parquet"))
    except _READ_ERRORS as error:
        raise FormatError(f"{path}: cannot be read as Parquet: {shorten(str(error), 100)}") from None


def _scan_table(file: Path, name: str) -> pl.LazyFrame:
    if not file.is_file():
        raise FormatError(
            f"{file}: no such file; a study in Parquet requires {', '.join(frames.COLUMNS_BY_FRAME)}, each .parquet"
        )
    try:
        return study_tables.conform_to_schema(pl.scan_parquet(file), name, str(file))
    except _READ_ERRORS as error:
        raise FormatError(f"{file}: not a Parquet file: {shorten(str(error), 100)}") from None


@dataclass(frozen=True, slots=True)
class ScannedStudy:
    """A study whose tables stay on disk."""

    path: Path
    settings: Settings
    protocols: Mapping[str, Protocol]
    tables: Mapping[str, pl.LazyFrame]

    def row_count(self, name: str) -> int:
        """Return the number of rows of a table."""
        return int(self.tables[name].select(pl.len()).collect().item())

    def has_valid_annotators(self) -> bool:
        """Return True if every annotator is a valid record with a unique ID."""
        try:
            ids = [annotator.id for annotator in frames.iter_annotators(self.tables["annotators"].collect())]
        except (ValueError, *_READ_ERRORS):
            return False
        return len(set(ids)) == len(ids)


def scan_study(path: Path) -> ScannedStudy:
    """Open a study in Parquet without reading its tables; their columns are checked."""
    tables = {name: _scan_table(path / f"{name}.parquet", name) for name in frames.COLUMNS_BY_FRAME}
    return ScannedStudy(
        path, folder.read_settings(path), {item.id: item for item in folder.read_protocols(path)}, tables
    )


def scan_unannotated_study(path: Path) -> ScannedStudy | None:
    """Open a study in Parquet without reading it into memory; return None if it has more than texts."""
    if folder.is_study_folder(path) or not is_parquet_folder(path):
        return None
    scanned = scan_study(path)
    if scanned.row_count("annotations"):
        return None
    twice = scanned.tables["documents"].select("id").filter(pl.col("id").is_duplicated()).head(1).collect()
    if len(twice):
        raise FinecombError(f"{path}: duplicate document ID {twice['id'][0]!r}; IDs must be unique")
    return scanned


def read_sealed_study(path: Path) -> Study:
    """Read a sealed study without validation; its marks stay on disk until they are needed."""
    scanned = scan_study(path)
    tables: dict[str, pl.DataFrame] = {}
    try:
        for name in (name for name in scanned.tables if name != "marks"):
            frame = scanned.tables[name].collect()
            # Hold columns with a single distinct value as a constant, which takes no memory
            plain = [column for column in frame if not column.dtype.is_nested()]
            same = [column for column in plain if len(column) > 1 and column.eq_missing(column[0]).all()]
            tables[name] = frame.with_columns(pl.lit(column[0], column.dtype).alias(column.name) for column in same)
    except _READ_ERRORS as error:
        raise FormatError(f"{path}: cannot be read as Parquet: {shorten(str(error), 100)}") from None
    marks = StoredMarks(scanned.tables["marks"])
    return Study(scanned.settings, scanned.protocols, marks=marks, **tables, notes=(), origin=str(path))


def write_study_part(part: Study, path: Path, marks: Iterable[pl.DataFrame]) -> None:
    """Write the frames of a part of a study without building records, and its marks in batches."""
    path.mkdir(parents=True)
    (path / "protocols").mkdir()
    for item in part.protocols.values():
        folder.write_protocol(item, path)
    folder.write_settings(part.settings, part.protocols, path)
    for name in frames.COLUMNS_BY_FRAME:
        if name != "marks":
            getattr(part, name).write_parquet(path / f"{name}.parquet", row_group_size=study_tables.BATCH_ROWS)
    study_tables.write_table(marks, path / "marks.parquet", frames.MARK_COLUMNS)


def write_annotated_study(
    source: ScannedStudy, path: Path, protocol: Protocol, annotator: Annotator, results: Mapping[str, pl.LazyFrame]
) -> None:
    """Write an unannotated study with the marks of one annotator added, without loading the study into memory."""
    path.mkdir(parents=True)
    (path / "protocols").mkdir()
    for item in {**source.protocols, protocol.id: protocol}.values():
        folder.write_protocol(item, path)
    folder.write_settings(source.settings, [*source.protocols, protocol.id], path)
    shutil.copyfile(source.path / "documents.parquet", path / "documents.parquet")
    others = source.tables["annotators"].filter(pl.col("id") != annotator.id)
    annotators = frames.build_frame(frames.ANNOTATOR_COLUMNS, [frames.annotator_row(annotator)]).lazy()
    for name, table in {"annotators": pl.concat([others, annotators]), **results}.items():
        table.sink_parquet(path / f"{name}.parquet", row_group_size=study_tables.BATCH_ROWS)


def write(items: Iterable[StudyItem], path: Path, options: Options) -> None:
    """Write the folder in batches, so that memory does not grow with the study."""
    path.mkdir(parents=True)
    (path / "protocols").mkdir()
    parts = study_tables.StudyTableWriter(path / "parts")
    settings, names = Settings(), []
    for item in items:
        if isinstance(item, Settings):
            settings = item
        elif isinstance(item, Protocol):
            names.append(item.id)
            folder.write_protocol(item, path)
        elif not isinstance(item, Note):
            parts.add_record(item)
    parts.finish(path)
    folder.write_settings(settings, names, path)


def is_parquet_folder(path: Path) -> bool:
    """Return True if `path` is a folder of Parquet tables."""
    return (path / "documents.parquet").is_file() and (path / "annotations.parquet").is_file()


FORMAT = Format(
    "parquet",
    "a folder of Parquet tables",
    read,
    write,
    suffixes=(".parquet",),
    sniff=is_parquet_folder,
    holds=ALL_FEATURES,
)
