"""Hugging Face `datasets`: a study as a DatasetDict of its frames, and plain datasets of texts as documents."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import polars as pl

from finecomb.core import frames
from finecomb.core.errors import FormatError, shorten
from finecomb.core.optional_packages import import_optional_package
from finecomb.core.protocol import Protocol
from finecomb.core.records import Document, Note, Settings
from finecomb.core.study import Study, StudyItem
from finecomb.formats import study_tables
from finecomb.formats.base import Format, Options
from finecomb.formats.features import ALL_FEATURES
from finecomb.formats.mark_table import OTHER_PREFIX, map_column_names
from finecomb.formats.source_files import JsonObject, build_record, parse_json

STUDY_SPLIT = "study"
"""Split with settings and protocols as JSON, next to one split per non-empty frame."""
_TYPE_BY_KIND: Mapping[str, type[Settings] | type[Protocol]] = {"settings": Settings, "protocol": Protocol}


def from_dataset(dataset: Any, columns: Mapping[str, str] | None = None) -> Study:
    """Build a study from a `Dataset` or `DatasetDict` that `to_dataset` made or that contains plain texts.

    For plain texts, `columns` maps standard names to the dataset's, e.g. `{"text": "generation", "context.prompt":
    "prompt"}`; other columns become meta.
    """
    return Study.from_items(_read_items(dataset, Path("dataset"), columns or {}))


def to_dataset(study: Study) -> Any:
    """Convert a study to a `DatasetDict` without loss: its frames, and a split `study` with settings and protocols."""
    tables = {name: getattr(study, name) for name in frames.COLUMNS_BY_FRAME}
    return _build_dataset_dict(study.settings, study.protocols.values(), tables)


def read(path: Path, options: Options) -> Iterator[StudyItem]:
    """Read the records of a dataset saved with `save_to_disk`."""
    return _read_items(_load_dataset(path), path, options.columns)


def write(items: Iterable[StudyItem], path: Path, options: Options) -> None:
    """Save a DatasetDict of the study's frames."""
    settings, protocols = Settings(), []
    with tempfile.TemporaryDirectory() as place:
        parts = study_tables.StudyTableWriter(Path(place) / "parts")
        for item in items:
            if isinstance(item, Settings):
                settings = item
            elif isinstance(item, Protocol):
                protocols.append(item)
            elif not isinstance(item, Note):
                parts.add_record(item)
        parts.finish(Path(place))
        tables = {name: pl.read_parquet(Path(place) / f"{name}.parquet") for name in frames.COLUMNS_BY_FRAME}
    with _hide_progress_bars():
        _build_dataset_dict(settings, protocols, tables).save_to_disk(str(path))


# --- library -------------------------------------------------------------------------------------------------------


def _import_datasets() -> Any:
    return import_optional_package("a Hugging Face dataset requires", "datasets")


@contextmanager
def _hide_progress_bars() -> Iterator[None]:
    """Disable the library's progress bars."""
    library = _import_datasets()
    bars = not library.utils.are_progress_bars_disabled()
    library.disable_progress_bars()
    try:
        yield
    finally:
        if bars:
            library.enable_progress_bars()


def _load_dataset(path: Path) -> Any:
    """Load a dataset; any error that the library raises for a damaged folder becomes a `FormatError`."""
    library = _import_datasets()
    if not is_saved_dataset(path):
        raise FormatError(
            f"{path}: not a dataset saved with `save_to_disk`; dataset_dict.json or dataset_info.json is missing"
        )
    try:
        with _hide_progress_bars():
            dataset = library.load_from_disk(str(path))
            # Data of damaged Arrow files is mapped without a check, and crashes the libraries that use it.
            for split in dataset.values() if isinstance(dataset, dict) else [dataset]:
                split.data.validate(full=True)
            return dataset
    except Exception as error:
        raise FormatError(f"{path}: cannot be read as a Hugging Face dataset: {shorten(str(error), 100)}") from None


def _build_dataset_dict(settings: Settings, protocols: Iterable[Protocol], tables: Mapping[str, pl.DataFrame]) -> Any:
    library = _import_datasets()
    named = [("settings", settings), *(("protocol", protocol) for protocol in protocols)]
    study = pl.DataFrame({"kind": [kind for kind, _ in named], "json": [item.to_json() for _, item in named]})
    filled = {name: table for name, table in tables.items() if len(table)}  # the library cannot load an empty split
    return library.DatasetDict(
        {name: library.Dataset(table.to_arrow()) for name, table in {STUDY_SPLIT: study, **filled}.items()}
    )


# --- reading -------------------------------------------------------------------------------------------------------


def _read_items(dataset: Any, path: Path, columns: Mapping[str, str]) -> Iterator[StudyItem]:
    splits = dict(dataset) if isinstance(dataset, dict) else {"": dataset}
    if STUDY_SPLIT in splits and {*splits[STUDY_SPLIT].column_names} == {"kind", "json"}:
        yield from _read_study(splits, path)
    else:
        for name, split in splits.items():
            yield from _read_documents(split, name, path, columns)


def _read_study(splits: Mapping[str, Any], path: Path) -> Iterator[StudyItem]:
    def where(name: str) -> str:
        return f"{path}: split {name!r}"

    for number, row in enumerate(splits[STUDY_SPLIT]):
        fields = JsonObject(row, f"{where(STUDY_SPLIT)}: row {number}")
        kind = fields.get("kind", str)
        if kind not in _TYPE_BY_KIND:
            raise fields.build_error(f"'kind': expected {' or '.join(_TYPE_BY_KIND)}, found {shorten(repr(kind), 40)}")
        values = JsonObject(parse_json(fields.get("json", str), fields.where), fields.where)
        yield build_record(_TYPE_BY_KIND[kind], fields.where, **values.value)
    # Apply the dataset's selection and order of rows, which its raw table does not reflect
    tables = {
        name: study_tables.conform_to_schema(
            pl.LazyFrame(pl.from_arrow(splits[name].with_format("arrow")[:])), name, where(name)
        )
        if name in splits
        else frames.build_frame(columns, []).lazy()
        for name, columns in frames.COLUMNS_BY_FRAME.items()
    }
    yield from study_tables.read_records(tables, where)


def _read_documents(split: Any, name: str, path: Path, columns: Mapping[str, str]) -> Iterator[Document]:
    """Yield a document per row of a plain dataset."""
    ours = map_column_names(split.column_names, columns, path)
    for number, row in enumerate(split.with_format(None)):
        where = f"{path}: {f'split {name!r}, ' if name else ''}row {number}"
        cells = {ours[column]: value for column, value in row.items() if column in ours and value is not None}
        id = cells.pop("document", f"{name or path.stem}-{number}")
        text = cells.pop("text", "")
        context = {
            column_name.removeprefix("context."): cells.pop(column_name)
            for column_name in [*cells]
            if column_name.startswith("context.")
        }
        meta = {
            column_name.removeprefix(OTHER_PREFIX).removeprefix("meta."): _to_json_value(value, column_name, where)
            for column_name, value in cells.items()
        }
        meta |= {"split": name} if name and "split" not in meta else {}
        for column_name, value in [("text", text), *context.items()]:
            if not isinstance(value, str):
                raise FormatError(f"{where}: column {column_name!r}: expected text, found {type(value).__name__}")
        yield build_record(Document, where, id=str(id), text=text, context=context, meta=meta)


def _to_json_value(value: Any, column: str, where: str) -> Any:
    """Convert a value so that JSON can store it; times become ISO 8601 strings and NaN becomes null."""
    match value:
        case float() if not math.isfinite(value):
            return None
        case None | bool() | int() | float() | str():
            return value
        case datetime() | date() | time():
            return value.isoformat()
        case list():
            return [_to_json_value(member, column, where) for member in value]
        case dict():
            return {str(name): _to_json_value(member, column, where) for name, member in value.items()}
    kind = type(value).__name__
    raise FormatError(
        f"{where}: column {column.removeprefix(OTHER_PREFIX)!r}: a {kind} cannot be stored; remove the column"
    )


def is_saved_dataset(path: Path) -> bool:
    """Return True if `path` is a folder created by `save_to_disk`."""
    return (path / "dataset_dict.json").is_file() or all(
        (path / name).is_file() for name in ("dataset_info.json", "state.json")
    )


FORMAT = Format(
    "hf",
    "a Hugging Face dataset",
    read,
    write,
    sniff=is_saved_dataset,
    holds=ALL_FEATURES,
    options=frozenset(["columns"]),
)
