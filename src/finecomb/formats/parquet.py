"""A folder of Parquet tables, one for each frame of a study, with its settings and protocols beside them."""

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
"""What Polars raises on a damaged file; some damage makes it panic, which is no ordinary exception."""


def read(path: Path, options: Options) -> Iterator[StudyItem]:
    """Settings, protocols, documents, annotators, annotations, a batch at a time."""
    if not path.is_dir():
        raise FormatError(f"{path}: not a folder; expected one with documents.parquet and its like")
    yield folder.read_settings(path)
    yield from folder.read_protocols(path)
    try:
        tables = {name: _scan_table(path / f"{name}.parquet", name) for name in frames.FRAMES}
        yield from study_tables.read_records(tables, lambda name: str(path / f"{name}.parquet"))
    except _READ_ERRORS as error:
        raise FormatError(f"{path}: cannot be read as Parquet: {shorten(str(error), 100)}") from None


def _scan_table(file: Path, name: str) -> pl.LazyFrame:
    if not file.is_file():
        raise FormatError(f"{file}: no such file; a study in Parquet has {', '.join(frames.FRAMES)}, each .parquet")
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
        """Rows of a table."""
        return int(self.tables[name].select(pl.len()).collect().item())

    def has_valid_annotators(self) -> bool:
        """Whether every annotator is a record as it should be, and has an id of its own."""
        try:
            ids = [annotator.id for annotator in frames.iter_annotators(self.tables["annotators"].collect())]
        except (ValueError, *_READ_ERRORS):
            return False
        return len(set(ids)) == len(ids)


def scan_study(path: Path) -> ScannedStudy:
    """A study in Parquet without reading its tables; their columns are checked."""
    tables = {name: _scan_table(path / f"{name}.parquet", name) for name in frames.FRAMES}
    return ScannedStudy(
        path, folder.read_settings(path), {item.id: item for item in folder.read_protocols(path)}, tables
    )


def scan_texts(path: Path) -> ScannedStudy | None:
    """Return a study in Parquet that has texts only, so that it need not be read into memory; None for any other."""
    if folder.is_study_folder(path) or not is_parquet_folder(path):
        return None
    scanned = scan_study(path)
    if scanned.row_count("annotations"):
        return None
    twice = scanned.tables["documents"].select("id").filter(pl.col("id").is_duplicated()).head(1).collect()
    if len(twice):
        raise FinecombError(f"{path}: two documents have the id {twice['id'][0]!r}; ids are unique in a study")
    return scanned


def read_sealed_study(path: Path) -> Study:
    """A sealed study as it is on disk; its marks stay there until they are asked for."""
    scanned = scan_study(path)
    tables = {name: table for name, table in scanned.tables.items() if name != "marks"}
    try:
        read_tables = {name: _compact_constant_columns(table.collect()) for name, table in tables.items()}
    except _READ_ERRORS as error:
        raise FormatError(f"{path}: cannot be read as Parquet: {shorten(str(error), 100)}") from None
    marks = StoredMarks(scanned.tables["marks"])
    return Study(scanned.settings, scanned.protocols, marks=marks, **read_tables, notes=(), origin=str(path))


def _compact_constant_columns(frame: pl.DataFrame) -> pl.DataFrame:
    """The same frame; a column that has one value throughout is held as that value, which takes no memory."""
    plain = [column for column in frame if not column.dtype.is_nested()]
    same = [column for column in plain if len(column) > 1 and column.eq_missing(column[0]).all()]
    return frame.with_columns(pl.lit(column[0], column.dtype).alias(column.name) for column in same)


def write_study_part(part: Study, path: Path, marks: Iterable[pl.DataFrame]) -> None:
    """Write the frames of a part of a study as they are, without a record for each row, and its marks as they come."""
    path.mkdir(parents=True)
    (path / "protocols").mkdir()
    for item in part.protocols.values():
        folder.write_protocol(item, path)
    folder.write_settings(part.settings, part.protocols, path)
    for name in frames.FRAMES:
        if name != "marks":
            getattr(part, name).write_parquet(path / f"{name}.parquet", row_group_size=study_tables.BATCH_ROWS)
    study_tables.write_table(marks, path / "marks.parquet", frames.MARKS)


def write_annotated_study(
    source: ScannedStudy, path: Path, protocol: Protocol, annotator: Annotator, results: Mapping[str, pl.LazyFrame]
) -> None:
    """Write a study that has only texts with what one annotator marked in them, without reading it into memory."""
    path.mkdir(parents=True)
    (path / "protocols").mkdir()
    for item in {**source.protocols, protocol.id: protocol}.values():
        folder.write_protocol(item, path)
    folder.write_settings(source.settings, [*source.protocols, protocol.id], path)
    shutil.copyfile(source.path / "documents.parquet", path / "documents.parquet")
    others = source.tables["annotators"].filter(pl.col("id") != annotator.id)
    own = frames.build_frame(frames.ANNOTATORS, [frames.annotator_row(annotator)]).lazy()
    for name, table in {"annotators": pl.concat([others, own]), **results}.items():
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
            parts.add(item)
    parts.finish(path)
    folder.write_settings(settings, names, path)


def is_parquet_folder(path: Path) -> bool:
    """Whether `path` is a folder of Parquet tables."""
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
