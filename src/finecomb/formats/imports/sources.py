"""Rows of any table or JSON source: CSV, TSV, Excel, JSON, JSON Lines, Parquet, gzip, zip, standard input, DataFrames.

A row is a mapping from field names to values. A row that cannot be read is a `BadRow`, so that the reader can either
stop or keep the others. Files are read as a stream; only JSON files with a single large object are held in memory.
"""

from __future__ import annotations

import csv
import io
import itertools
import struct
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

import polars as pl
from pydantic_core import from_json

from finecomb.core.errors import FormatError, ParameterError, did_you_mean, param, shorten
from finecomb.core.guarded_json import load_json
from finecomb.core.spreadsheet_cells import unescape_cell
from finecomb.engine.guarded_files import BoundedGzipFile, load_archive, load_workbook
from finecomb.formats.imports.paths import Path as DataPath
from finecomb.formats.imports.paths import RowInfo, item_at, to_plain
from finecomb.formats.imports.uima_cas import FEATURE_STRUCTURES, rows_from_json, rows_from_xmi
from finecomb.formats.source_files import _JsonStream

STANDARD_INPUT = "-"
HEAD_BYTES = 1 << 16
"""Bytes that are read to detect encoding, delimiter and layout."""
_MAX_PARSED_BYTES = 1 << 26
"""A JSON list above this size is read item by item."""
_PARQUET_BATCH = 2_000
_DATA_SUFFIXES = (".csv", ".tsv", ".xlsx", ".json", ".jsonl", ".ndjson", ".parquet")
_ROW_LIST_NAMES = ("rows", "data", "examples", "samples", "records", "results", "items", "documents", "instances")
_DELIMITERS = ",;\t|"


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that cannot be read, with the reason in one line."""

    message: str


Row = Mapping[str, Any]
NumberedRow = tuple[RowInfo, Row | BadRow]


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """How to read files: encoding, sheet, delimiter, column names of a table without header, and path to the rows."""

    encoding: str = ""
    sheet: str = ""
    delimiter: str = ""
    header: tuple[str, ...] = ()
    rows: str = ""


@dataclass
class RowSource:
    """Rows of one file or object, which are read once, and notes on how they were read."""

    name: str
    """Name for messages."""
    open: Callable[[RowSource], Iterator[NumberedRow]]
    unit: str = "line"
    """Word for the number of a row: `line`, `row` or `record`."""
    notes: list[str] = field(default_factory=list)
    label_names: dict[str, list[str]] = field(default_factory=dict)
    """Names of integer labels by column, as stored in Parquet files of Hugging Face."""
    is_table: bool = False
    """True for CSV and Excel, whose cells are texts."""

    def rows(self) -> Iterator[NumberedRow]:
        """Iterate over the rows."""
        return self.open(self)

    def where(self, info: RowInfo) -> str:
        """Return the location of a row for messages: `rows.csv line 12`."""
        return f"{self.name} {self.unit} {info.number:,}"


# --- objects ---------------------------------------------------------------------------------------------------------


def rows_from_object(value: Any, name: str = "table") -> RowSource:
    """Return the rows of a Polars or pandas DataFrame, a Hugging Face dataset, a list of dicts or a single dict."""
    if isinstance(value, pl.DataFrame):
        rows: Iterable[Mapping[str, Any]] = value.iter_rows(named=True)
    elif isinstance(value, pl.LazyFrame):
        rows = value.collect().iter_rows(named=True)
    elif hasattr(value, "to_dict") and hasattr(value, "columns"):  # pandas, an optional package
        rows = value.to_dict(orient="records")
    elif hasattr(value, "column_names") and hasattr(value, "with_format"):  # datasets.Dataset
        plain = value.with_format(None)
        if isinstance(value.column_names, dict):
            rows = itertools.chain.from_iterable(plain[split] for split in plain)
        else:
            rows = plain
        return RowSource(name, _iterate_objects(rows), "row", label_names=_dataset_label_names(value))
    elif hasattr(value, "samples") and hasattr(value, "eval"):  # inspect_ai.log.EvalLog
        rows = [resolve_attachments(to_plain(sample)) for sample in value.samples or ()]
    elif isinstance(value, Mapping):
        rows = [value]
    elif isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(row, Mapping) for row in value):
        rows = value
    else:
        kinds = "a path, a DataFrame, a list of dicts, a datasets.Dataset or an inspect_ai log"
        raise ParameterError(f"expected {kinds}, found {type(value).__name__}", parameter="source")
    return RowSource(name, _iterate_objects(rows), "row")


def _iterate_objects(rows: Iterable[Mapping[str, Any]]) -> Callable[[RowSource], Iterator[NumberedRow]]:
    def iterate(source: RowSource) -> Iterator[NumberedRow]:
        for number, row in enumerate(rows, 1):
            yield RowInfo(number, Path(source.name).stem), to_plain(dict(row))

    return iterate


def _dataset_label_names(dataset: Any) -> dict[str, list[str]]:
    features = dataset.features if not isinstance(dataset.column_names, dict) else next(iter(dataset.values())).features
    return {name: list(feature.names) for name, feature in features.items() if hasattr(feature, "names")}


# --- files -----------------------------------------------------------------------------------------------------------


def open_files(paths: Sequence[Path], options: SourceOptions) -> list[RowSource]:
    """Return the rows of files and folders; a folder gives its data files, and a note names those that are not data."""
    sources: list[RowSource] = []
    for path in paths:
        if str(path) == STANDARD_INPUT:
            sources.append(_open_bytes(sys.stdin.buffer.read(), "standard input", "stdin", options))
        elif path.is_dir():
            sources += _open_folder(path, options)
        elif not path.exists():
            near = sorted(other.name for other in path.parent.iterdir()) if path.parent.is_dir() else []
            raise FormatError(f"{path}: no such file or folder{did_you_mean(path.name, near) if near else ''}")
        else:
            sources += _open_file(path, options)
    return sources


def _open_folder(path: Path, options: SourceOptions) -> list[RowSource]:
    files = sorted(file for file in path.rglob("*") if file.is_file() and not file.name.startswith("."))
    data = [file for file in files if file.name.lower().removesuffix(".gz").endswith(_DATA_SUFFIXES)]
    if not data:
        raise FormatError(f"{path}: contains no data files ({', '.join(_DATA_SUFFIXES)})")
    sources = [source for file in data for source in _open_file(file, options)]
    strays = [str(file.relative_to(path)) for file in files if file not in data]
    if strays:
        listed = ", ".join(strays[:5]) + (", ..." if len(strays) > 5 else "")
        sources[0].notes.append(f"{path}: {len(strays)} other files were not read: {listed}")
    return sources


def _open_file(path: Path, options: SourceOptions) -> list[RowSource]:
    if path.is_fifo():  # opening one waits for a writer that may never come
        raise FormatError(f"{path}: is a pipe, not a file; pass `-` to read standard input")
    with _report_read_errors(path), path.open("rb") as file:
        magic = file.read(4)
    if magic == b"PAR1":
        return [_open_parquet(path)]
    if magic[:2] == b"PK":
        with _report_read_errors(path):
            archive = load_archive(path)
        names = [info.filename for info in archive.infolist() if not info.is_dir()]
        if "xl/workbook.xml" in names:
            return [_open_workbook(path, options)]
        if "header.json" in names or "_journal/start.json" in names:
            return [_open_inspect_log(archive, names, path)]
        members = [name for name in names if name.lower().endswith(_DATA_SUFFIXES)]
        if not members:
            raise FormatError(f"{path}: the archive contains no data files; it has {', '.join(names[:5])}")
        return [
            _open_bytes(read_archive_member(archive, name), f"{path.name}/{name}", Path(name).stem, options)
            for name in members
        ]
    if options.sheet:
        raise ParameterError(f"{param('sheet')} applies only to Excel workbooks", parameter="sheet", hint="omit it")
    if magic[:2] == b"\x1f\x8b":
        stem = Path(path.name.removesuffix(".gz")).stem
        return [_open_text(lambda: cast(IO[bytes], BoundedGzipFile(path)), str(path), stem, options)]
    if magic == b"\x28\xb5\x2f\xfd":
        return [_open_bytes(decompress_zstd(path.read_bytes()), str(path), Path(path.stem).stem, options)]
    return [_open_text(lambda: path.open("rb"), str(path), path.stem, options, path.stat().st_size)]


@contextmanager
def _report_read_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror or error}") from None
    except zipfile.BadZipFile as error:
        raise FormatError(f"{path}: cannot be read as a zip archive: {error}") from None


def _open_bytes(content: bytes, name: str, stem: str, options: SourceOptions) -> RowSource:
    if content[:2] == b"\x1f\x8b":
        content = BoundedGzipFile(fileobj=io.BytesIO(content)).read()
    return _open_text(lambda: io.BytesIO(content), name, stem, options, len(content))


def read_archive_member(archive: zipfile.ZipFile, name: str) -> bytes:
    """Read a file of a zip archive, also if it is compressed with Zstandard, which `zipfile` reads since Python 3.14.

    Parameters
    ----------
    archive : ZipFile
        The archive, opened from a path or a seekable file.
    name : str
        Name of the member.
    """
    info = archive.getinfo(name)
    try:
        return archive.read(name)
    except NotImplementedError:
        if info.compress_type != 93:
            raise FormatError(f"{archive.filename}: {name}: unknown compression {info.compress_type}") from None
    except (zipfile.BadZipFile, EOFError, ValueError) as error:
        raise FormatError(f"{archive.filename}: {name}: damaged: {error}") from None
    file = archive.fp
    assert file is not None
    file.seek(info.header_offset)
    header = file.read(30)
    name_length, extra_length = struct.unpack("<HH", header[26:30])
    file.seek(info.header_offset + 30 + name_length + extra_length)
    content = decompress_zstd(file.read(info.compress_size))
    if zipfile.crc32(content) != info.CRC:  # type: ignore[attr-defined]
        raise FormatError(f"{archive.filename}: {name}: damaged: the checksum differs")
    return content


def decompress_zstd(content: bytes) -> bytes:
    """Decompress Zstandard data: with Python 3.14 or later its own module, otherwise with the decoder of Polars.

    Polars reads compressed CSV files. A table with one column, no header and no quotes is the text itself.
    """
    try:
        from compression import zstd  # type: ignore[import-not-found]
    except ImportError:
        pass
    else:
        return bytes(zstd.decompress(content))
    try:
        lines = pl.read_csv(
            content, separator="\x01", quote_char=None, has_header=False, infer_schema=False, new_columns=["line"]
        )
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        raise FormatError(f"cannot be read as Zstandard data: {shorten(str(error), 80)}") from None
    return "\n".join(lines["line"].fill_null("")).encode()


def _open_inspect_log(archive: zipfile.ZipFile, names: Sequence[str], path: Path) -> RowSource:
    """Return the samples of a log of inspect_ai, which is a zip archive with one JSON file per sample."""
    header = "header.json" if "header.json" in names else "_journal/start.json"
    status = from_json(read_archive_member(archive, header)).get("status", "unfinished")
    samples = [name for name in names if name.startswith("samples/") and name.endswith(".json")]

    def read(source: RowSource) -> Iterator[NumberedRow]:
        for number, name in enumerate(samples, 1):
            try:
                sample = from_json(read_archive_member(archive, name), allow_inf_nan=True)
            except ValueError as error:
                yield RowInfo(number, path.stem), BadRow(f"{name}: invalid JSON: {error}")
                continue
            yield RowInfo(number, path.stem), resolve_attachments(sample)

    notes = [] if status == "success" else [f"{path}: the run did not finish; its status is {status!r}"]
    return RowSource(str(path), read, "sample", notes)


def resolve_attachments(sample: dict[str, Any]) -> dict[str, Any]:
    """Return a sample of inspect_ai with `attachment://` references in its input and output replaced by their text."""
    attachments = sample.get("attachments") or {}

    def resolve(value: Any) -> Any:
        if isinstance(value, str) and value.startswith("attachment://"):
            return attachments.get(value.removeprefix("attachment://"), value)
        if isinstance(value, list):
            return [resolve(item) for item in value]
        return {key: resolve(item) for key, item in value.items()} if isinstance(value, dict) else value

    return {**sample, **{name: resolve(sample[name]) for name in ("input", "output") if name in sample and attachments}}


# --- encodings -------------------------------------------------------------------------------------------------------


def detect_encoding(head: bytes) -> tuple[str, str]:
    """Return the encoding of a file from its first bytes, and a note if it is neither UTF-8 nor marked.

    A file in which most bytes are UTF-8 and some are not is read as UTF-8, so that the others are reported by line.

    >>> detect_encoding("café".encode())[0], detect_encoding("café".encode("cp1252"))[0]
    ('utf-8-sig', 'cp1252')
    """
    for mark, encoding in (
        (b"\xef\xbb\xbf", "utf-8-sig"),
        (b"\xff\xfe\x00\x00", "utf-32"),
        (b"\x00\x00\xfe\xff", "utf-32"),
        (b"\xff\xfe", "utf-16"),
        (b"\xfe\xff", "utf-16"),
    ):
        if head.startswith(mark):
            return encoding, "" if encoding == "utf-8-sig" else f"read as {encoding.upper()}, by its byte order mark"
    if len(head) > 3 and head[1::2].count(0) > len(head) // 4:
        return "utf-16-le", "read as UTF-16 without a byte order mark"
    if len(head) > 3 and head[::2].count(0) > len(head) // 4:
        return "utf-16-be", "read as UTF-16 without a byte order mark"
    text = head.decode("utf-8", "surrogateescape")
    broken = sum("\udc80" <= character <= "\udcff" for character in (text[:-3] if len(head) >= HEAD_BYTES else text))
    valid = sum(character > "\x7f" for character in text) - broken
    if broken and broken >= valid:
        return "cp1252", f"is not UTF-8; read as Windows-1252, use {param('encoding')} if this is wrong"
    return "utf-8-sig", ""


def _open_text(
    open_bytes: Callable[[], IO[bytes]], name: str, stem: str, options: SourceOptions, size: int = 0
) -> RowSource:
    """Return the rows of a text file: JSON, JSON Lines or a table, decided by its first characters."""
    with open_bytes() as file:
        head = file.read(HEAD_BYTES)
    notes: list[str] = []
    encoding = options.encoding
    if not encoding:
        encoding, note = detect_encoding(head)
        notes += [f"{name}: {note}"] if note else []
    try:
        start = head.decode(encoding, "surrogateescape" if encoding.startswith("utf-8") else "ignore")
    except LookupError:
        raise ParameterError(f"{param('encoding')}: unknown encoding {encoding!r}", parameter="encoding") from None
    errors = "surrogateescape" if encoding.startswith("utf-8") else "replace"

    def open_stream() -> IO[str]:
        return io.TextIOWrapper(open_bytes(), encoding, errors, newline="")

    first = start.lstrip()[:1]
    if not first:
        raise FormatError(f"{name}: the file is empty")
    if first == "<" and "omg.org/XMI" in start:

        def read_xmi(source: RowSource) -> Iterator[NumberedRow]:
            with open_stream() as file:
                rows = rows_from_xmi(file.read(), name, stem)
                yield from ((RowInfo(number, stem), row) for number, row in enumerate(rows, 1))

        return RowSource(name, read_xmi, "view", notes)
    if first == "{" and _has_json_lines(start, name):
        return RowSource(name, lambda source: _read_json_lines(source, open_stream, stem), notes=notes)
    if first in "[{" and not options.header:
        is_long = size > _MAX_PARSED_BYTES and first == "["
        reader = _stream_json_list if is_long else _read_json_file
        return RowSource(name, lambda source: reader(source, open_stream, stem, options), "record", notes=notes)
    delimiter = options.delimiter or detect_delimiter(start)
    return RowSource(
        name,
        lambda source: _read_table(source, open_stream, stem, delimiter, options.header),
        notes=notes,
        is_table=True,
    )


def _has_json_lines(start: str, name: str) -> bool:
    """Return True if a text that begins with `{` has one object per line."""
    lines = [line for line in start.splitlines() if line.strip()]
    try:
        from_json(lines[0].strip(), allow_inf_nan=True)
    except ValueError:
        # a first line longer than the head, or an object over several lines
        is_cut = len(lines) == 1 and len(start) >= HEAD_BYTES // 4
        return is_cut and name.lower().removesuffix(".gz").endswith((".jsonl", ".ndjson"))
    return len(lines) > 1 or name.lower().removesuffix(".gz").endswith((".jsonl", ".ndjson"))


# --- JSON ------------------------------------------------------------------------------------------------------------


def _read_json_lines(source: RowSource, open_stream: Callable[[], IO[str]], stem: str) -> Iterator[NumberedRow]:
    with open_stream() as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            info = RowInfo(number, stem)
            try:
                value = from_json(line, allow_inf_nan=True)
            except ValueError as error:
                yield info, BadRow(_encoding_problem(line) or f"invalid JSON: {error}")
                continue
            if isinstance(value, dict):
                yield info, value
            else:
                yield info, BadRow(f"expected an object, found {shorten(line, 40)!r}")


def _encoding_problem(text: str) -> str:
    """Return the problem of a text that has bytes in another encoding; empty if it has none."""
    byte = next((ord(character) - 0xDC00 for character in text if "\udc80" <= character <= "\udcff"), None)
    if byte is None:
        return ""
    return f"byte 0x{byte:02x} is not UTF-8; save the file as UTF-8 or pass {param('encoding')}"


def _stream_json_list(
    source: RowSource, open_stream: Callable[[], IO[str]], stem: str, options: SourceOptions
) -> Iterator[NumberedRow]:
    """Yield the objects of a large list, one by one."""
    with open_stream() as file:
        window = _JsonStream(file, Path(source.name))
        window.expect("[")
        number = 0
        while window.peek() != "]":
            if number:
                window.expect(",")
            number += 1
            value = window.read_value()
            yield RowInfo(number, stem), value if isinstance(value, dict) else BadRow("expected an object")


def _read_json_file(
    source: RowSource, open_stream: Callable[[], IO[str]], stem: str, options: SourceOptions
) -> Iterator[NumberedRow]:
    with open_stream() as file:
        text = file.read()
    try:
        value = from_json(text, allow_inf_nan=True)
    except ValueError as error:
        # A file named .json can contain JSON lines whose first line is a list or longer than the head.
        if text.lstrip().startswith("{") and "\n{" in text.replace("\r", ""):
            yield from _read_json_lines(source, lambda: io.StringIO(text), stem)
            return
        raise FormatError(f"{source.name}: invalid JSON: {_encoding_problem(text) or error}") from None
    if isinstance(value, dict) and FEATURE_STRUCTURES in value:
        yield from ((RowInfo(number, stem), row) for number, row in enumerate(rows_from_json(value, stem), 1))
        return
    for number, row in enumerate(find_rows(value, options.rows, source), 1):
        info = RowInfo(number, stem)
        yield info, row if isinstance(row, dict) else BadRow(f"expected an object, found {shorten(str(row), 40)!r}")


def find_rows(value: Any, path: str, source: RowSource) -> list[Any]:
    """Return the rows inside a JSON value: a list of objects, a table of columns and data, or an object of objects.

    An object without such a list is a single row. With an object of objects, each row has its name as `@name`.
    """
    if path in ("@whole", "."):
        return [value]
    if path in ("{}", "{}@"):
        return _named_rows(value, keeps_value=path.endswith("@"))
    if path.startswith("[]."):
        outer = value if isinstance(value, list) else []
        return [row for item in outer for row in find_rows(item, path[3:], source)]
    if path:
        inner = value
        for name in path.removesuffix("[]").split("."):
            inner = item_at(inner, name)
        if inner is None:
            raise FormatError(f"{source.name}: has no rows at {path!r}")
        return find_rows(inner, "", source) if not isinstance(inner, list) else inner
    if isinstance(value, list):
        return value
    if not isinstance(value, dict):
        raise FormatError(f"{source.name}: expected a list or an object, found {shorten(str(value), 40)!r}")
    columns, data = value.get("columns"), value.get("data")
    if isinstance(columns, list) and isinstance(data, list) and all(isinstance(cells, list) for cells in data):
        return [dict(zip(map(str, columns), cells, strict=False)) for cells in data]  # W&B tables, pandas' split
    lists = list(_object_lists(value))
    if lists:
        name, rows = max(lists, key=lambda pair: (pair[0].rpartition(".")[2] in _ROW_LIST_NAMES, len(pair[1])))
        source.notes.append(f"{source.name}: rows are in {name!r}")
        return rows
    inner_objects = [item for item in value.values() if isinstance(item, dict)]
    if len(inner_objects) > 1 and len(inner_objects) >= 0.8 * len(value):
        source.notes.append(f"{source.name}: each field of the object is a row; its name is '@name'")
        return _named_rows(value)
    return [value]


def _named_rows(value: Any, keeps_value: bool = False) -> list[Any]:
    if not isinstance(value, dict):
        return []
    return [
        {"@name": name, **(row if isinstance(row, dict) and not keeps_value else {"@value": row})}
        for name, row in value.items()
    ]


def _object_lists(value: dict[str, Any], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, list[Any]]]:
    """Yield the lists of objects in an object by path, down to three levels, not inside of other lists."""
    for name, item in value.items():
        if isinstance(item, list) and item and all(isinstance(member, dict) for member in item):
            yield prefix + name, item
        elif isinstance(item, dict) and depth < 3:
            yield from _object_lists(item, f"{prefix}{name}.", depth + 1)


# --- tables ----------------------------------------------------------------------------------------------------------


def detect_delimiter(start: str) -> str:
    r"""Return the delimiter of a table: the one that splits the first lines into most cells, equally many per line.

    >>> detect_delimiter("a;b\n1,5;2\n3;4\n"), detect_delimiter("a\tb\n")
    (';', '\t')
    """
    best, delimiter = (0.0, 0), ","
    for candidate in _DELIMITERS:
        try:
            counts = [len(cells) for cells in itertools.islice(csv.reader(io.StringIO(start), delimiter=candidate), 20)]
        except csv.Error:
            continue
        complete = counts[:-1] if len(counts) > 2 else counts
        if not complete or complete[0] < 2:
            continue
        same = sum(count == complete[0] for count in complete) / len(complete)
        if (same, complete[0]) > best:
            best, delimiter = (same, complete[0]), candidate
    return delimiter


def _read_table(
    source: RowSource, open_stream: Callable[[], IO[str]], stem: str, delimiter: str, header: tuple[str, ...]
) -> Iterator[NumberedRow]:
    csv.field_size_limit(2**31 - 1)
    with open_stream() as file:
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        names: list[str] = list(header)
        first, is_ours = 1, False
        while True:
            try:
                cells = next(reader, None)
            except csv.Error as error:
                opened = _quote_opening_line(open_stream, delimiter, first)
                raise FormatError(
                    f"{source.name} line {opened}: the quotation mark that opens here is not closed correctly "
                    f"(line {reader.line_num}: {error}); close it, or double quotation marks inside a cell"
                ) from None
            if cells is None:
                break
            info = RowInfo(reader.line_num, stem)
            if not names:
                names = _unique_names(cells, source)
                is_ours = tuple(names[:2]) == ("document", "text")
            elif any(cell.strip() for cell in cells):
                yield info, _table_row(names, cells, is_ours)
            first = reader.line_num + 1
    if not names:
        raise FormatError(f"{source.name}: has no header; expected column names in the first line")


def _table_row(names: Sequence[str], cells: Sequence[str], is_ours: bool) -> Row | BadRow:
    if any(cell.strip() for cell in cells[len(names) :]):
        return BadRow(f"has {len(cells)} cells; the header has {len(names)}")
    row = {}
    for name, cell in zip(names, cells, strict=False):
        if not cell.isascii() and (problem := _encoding_problem(cell)):
            return BadRow(problem)
        row[name] = (unescape_cell(cell) if is_ours else cell) if cell != "" else None
    return row


def _unique_names(cells: Sequence[Any], source: RowSource) -> list[str]:
    """Return the column names of a header; empty and repeated names get a number."""
    names: list[str] = []
    for number, cell in enumerate(cells, 1):
        name = str(cell).strip() if cell not in (None, "") else f"column {number}"
        repeats = sum(other == name or other.startswith(f"{name} (") for other in names)
        names.append(f"{name} ({repeats + 1})" if repeats else name)
        if repeats:
            source.notes.append(f"{source.name}: column {name!r} occurs again; it is called {names[-1]!r} here")
    return names


def _quote_opening_line(open_stream: Callable[[], IO[str]], delimiter: str, first: int) -> int:
    """Return the line at which the last quoted cell opens in the row that begins at line `first`."""
    opened, line, is_quoted, at_start = first, first, False, True
    with open_stream() as file:
        for text in itertools.islice(file, first - 1, None):
            position = 0
            while position < len(text):
                character = text[position]
                if is_quoted:
                    if character == '"':
                        if text[position + 1 : position + 2] == '"':
                            position += 1
                        elif text[position + 1 : position + 2] in (delimiter, "\r", "\n", ""):
                            is_quoted = False
                        else:
                            return opened  # text after a closing quotation mark
                elif character == '"' and at_start:
                    is_quoted, opened = True, line
                at_start = not is_quoted and character in (delimiter, "\n")
                position += 1
            line += 1
    return opened


def _open_workbook(path: Path, options: SourceOptions) -> RowSource:
    from finecomb.formats.xlsx_table import cell_text

    def read(source: RowSource) -> Iterator[NumberedRow]:
        try:
            book = load_workbook(path, read_only=True, data_only=True)
        except Exception as error:
            raise FormatError(f"{path}: cannot be read as an Excel workbook: {shorten(str(error), 100)}") from None
        try:
            sheet = _choose_sheet(book, source, options.sheet)
            sheet.reset_dimensions()
            names: list[str] = []
            for number, values in enumerate(sheet.iter_rows(values_only=True), 1):
                cells = [cell_text(value) for value in values]
                while cells and not cells[-1].strip():
                    cells.pop()
                if not cells:
                    continue  # blank rows also occur above the header
                if not names:
                    names = _unique_names(cells, source)
                    is_ours = tuple(names[:2]) == ("document", "text")
                    continue
                yield RowInfo(number, path.stem), _table_row(names, cells, is_ours)
            if not names:
                raise FormatError(f"{path}: sheet {sheet.title!r} is empty")
        finally:
            book.close()

    return RowSource(str(path), read, "row", is_table=True)


def _choose_sheet(book: Any, source: RowSource, wanted: str) -> Any:
    titles = [sheet.title for sheet in book.worksheets]
    if wanted:
        if wanted in titles:
            return book[wanted]
        if wanted.isdigit() and 1 <= int(wanted) <= len(titles):
            return book.worksheets[int(wanted) - 1]
        raise ParameterError(
            f"{source.name}: unknown sheet {wanted!r}{did_you_mean(wanted, titles)}", parameter="sheet"
        )
    if len(titles) > 1:
        others = ", ".join(titles[1:])
        source.notes.append(
            f"{source.name}: sheet {titles[0]!r} was read; select others ({others}) with {param('sheet')}"
        )
    return book.worksheets[0]


def _open_parquet(path: Path) -> RowSource:
    try:
        frame = pl.scan_parquet(path)
        schema = frame.collect_schema()
        stored = load_json(pl.read_parquet_metadata(path).get("huggingface", "{}"))
        features = stored.get("info", {}).get("features", {})
    except (pl.exceptions.PolarsError, OSError, ValueError, AttributeError) as error:
        raise FormatError(f"{path}: cannot be read as Parquet: {shorten(str(error), 100)}") from None
    label_names = {
        name: list(feature["names"])
        for name, feature in features.items()
        if isinstance(feature, dict) and feature.get("_type") == "ClassLabel" and name in schema
    }

    def read(source: RowSource) -> Iterator[NumberedRow]:
        number = 0
        while True:
            batch = frame.slice(number, _PARQUET_BATCH).collect()
            for row in batch.iter_rows(named=True):
                number += 1
                yield RowInfo(number, path.stem), to_plain(row)
            if len(batch) < _PARQUET_BATCH:
                return

    return RowSource(str(path), read, "row", label_names=label_names)


# --- joins -----------------------------------------------------------------------------------------------------------


def join_rows(source: RowSource, name: str, here: DataPath, others: Mapping[str, Any]) -> RowSource:
    """Return a source whose rows have a field `name` with the row of another file that has the same key."""

    def read(joined: RowSource) -> Iterator[NumberedRow]:
        for info, row in source.rows():
            if isinstance(row, BadRow):
                yield info, row
            else:
                yield info, {**row, name: _joined_value(row, here, others, info)}

    return RowSource(source.name, read, source.unit, source.notes, source.label_names, source.is_table)


def _joined_value(row: Row, here: DataPath, others: Mapping[str, Any], info: RowInfo) -> Any:
    """Return the joined row, or one per item if the key is inside a list or object."""
    if not here.depth:
        return others.get(_key_text(here, row, info))
    positions = here.iterate(row, (), info) or []
    return {str(position[-1]): others.get(str(here.get(row, position, info))) for position in positions}


def _key_text(path: DataPath, row: Row, info: RowInfo) -> str:
    parts = [DataPath(part) for part in path.text.split(" + ")] if " + " in path.text else [path]
    return "/".join(str(part.get(row, (), info)) for part in parts)


def index_rows(source: RowSource, key: DataPath, many: bool = False) -> dict[str, Any]:
    """Return the rows of a source by the value of a key; with `many`, a list of rows per key."""
    rows: dict[str, Any] = {}
    for info, row in source.rows():
        if not isinstance(row, BadRow):
            name = _key_text(key, row, info)
            if many:
                rows.setdefault(name, []).append(row)
            else:
                rows[name] = row
    return rows
