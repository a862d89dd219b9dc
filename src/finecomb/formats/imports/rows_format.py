"""The format `rows`: any table, JSON file or log, read with a recognised import map or guessed roles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from finecomb.core.errors import FinecombError
from finecomb.core.records import Document, Note
from finecomb.core.study import StudyItem
from finecomb.formats import csv_table, xlsx_table
from finecomb.formats.base import Format, Options
from finecomb.formats.imports.guess import find_mark_lists, guess_roles
from finecomb.formats.imports.import_map import parse_role_pairs
from finecomb.formats.imports.importer import RowStream, find_folder_map, plan_import, read_plan, recognise_map
from finecomb.formats.imports.reader import ReaderOptions
from finecomb.formats.imports.sources import SourceOptions, open_files
from finecomb.formats.mark_table import OTHER_PREFIX, map_column_names

_TABLE_SUFFIXES = (".csv", ".tsv", ".xlsx")
_OTHER_SUFFIXES = (".json", ".jsonl", ".ndjson", ".parquet", ".gz", ".zip", ".eval", ".xmi")
_LOSSY_ROLES = frozenset(["text", "id", "annotator", "start", "end", "quote", "label", "severity", "explanation"])


def read(path: Path, options: Options, documents: Mapping[str, Document] | None = None) -> Iterator[StudyItem]:
    """Read the records of a file; `documents` are those of a study, if the file has only their IDs."""
    if documents is None and options.columns and _is_mark_table(path, options):
        table = xlsx_table if path.name.lower().endswith(".xlsx") else csv_table
        yield from table.read(path, options)
        return
    plan = plan_import(path, roles=parse_role_pairs(options.columns), has_texts=documents is not None)
    choices = ReaderOptions(
        options.protocol, options.annotator, no_row="unread", repeats=options.repeats, documents=documents
    )
    reader, items = read_plan(plan, choices)
    yield from items
    for why, count in (reader.summary.left_out + reader.summary.unplaced).items():
        verb = "left out" if why in reader.summary.left_out else "kept without spans"
        yield Note(text=f"{count:,} {verb}: {why}")
    if reader.is_sheet and not plan.mapping.no_row:
        yield Note(text="texts without rows of an annotator count as not read; `finecomb import` has a choice")


def _is_mark_table(path: Path, options: Options) -> bool:
    """Return True if a table has the standard columns once its columns are renamed as the user asked."""
    if not path.name.lower().endswith(_TABLE_SUFFIXES):
        return False
    try:
        rows = RowStream(open_files([path], SourceOptions())).head_rows
        map_column_names(list(rows[0]) if rows else [], options.columns, path)
    except FinecombError:
        return False
    return True


def sniff(path: Path) -> bool:
    """Return True if the first rows can be read, and no more specific format reads all of their fields."""
    name = path.name.lower()
    try:
        if path.is_dir():
            return find_folder_map(path) is not None or _is_parquet_data(path)
        if not name.endswith((*_TABLE_SUFFIXES, *_OTHER_SUFFIXES)) or not path.is_file():
            return False
        rows = RowStream(open_files([path], SourceOptions())).head_rows
    except (FinecombError, OSError, ValueError, KeyError):
        return False
    if not rows:
        return False
    if not name.endswith(_TABLE_SUFFIXES):
        return True
    return has_unread_columns(list(rows[0]), rows, path)


def _is_parquet_data(path: Path) -> bool:
    files = [file for file in path.rglob("*.parquet") if file.is_file()]
    return bool(files) and not (path / "documents.parquet").exists()


def has_unread_columns(header: list[str], rows: list[Mapping[str, object]], path: Path) -> bool:
    """Return True if a table has columns with texts or marks under names that the reader of mark tables ignores."""
    try:
        ours = map_column_names(header, {}, path)
    except FinecombError:
        return True
    roles, lists = guess_roles(rows, False, {})
    columns = [column.strip('"') for role, column in roles.items() if role in _LOSSY_ROLES]
    has_marks = bool(lists) or any("[]" in column for column in columns)
    standard = {our for our in ours.values() if not our.startswith(OTHER_PREFIX)}
    is_lossy = any(
        ours.get(column, "").startswith(OTHER_PREFIX) and role not in standard
        for role, column in ((role, path_.strip('"')) for role, path_ in roles.items())
        if role in ("start", "end", "quote", "label", "annotator")
    )
    return has_marks or is_lossy


def reads_more_than_texts(path: Path) -> bool:
    """Return True if JSON lines have marks, or are those of a program that has an import map."""
    try:
        rows = RowStream(open_files([path], SourceOptions())).head_rows
    except (FinecombError, OSError, ValueError):
        return False
    return bool(find_mark_lists(rows)) or recognise_map(rows) is not None


FORMAT = Format(
    "rows",
    "a table, JSON file or log (see `finecomb import`)",
    read,
    sniff=sniff,
    options=frozenset(["columns", "protocol", "annotator", "repeats"]),
)
