"""Reading of source files: text, JSON and tables as streams, with errors that name file, line and field."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal, TypeVar

from pydantic import ValidationError
from pydantic_core import from_json

from finecomb.core.errors import FormatError, ProtocolError, did_you_mean, shorten
from finecomb.core.protocol import Label, Protocol
from finecomb.core.protocol_yaml import explain_validation_error
from finecomb.core.records import Record, Segment
from finecomb.core.spelling import fold_spelling

R = TypeVar("R", bound=Record)


def sibling_names(path: Path) -> list[str]:
    """Return the names of the files in the same folder, sorted, without hidden ones."""
    return sorted(file.name for file in path.parent.iterdir() if file.name[0] != ".") if path.parent.is_dir() else []


def open_text(path: Path) -> IO[str]:
    """Open a UTF-8 file for reading; line endings are kept, and a byte-order mark is dropped."""
    try:
        return path.open(encoding="utf-8-sig", newline="")
    except FileNotFoundError:
        near = sibling_names(path)
        raise FormatError(f"{path}: no such file{did_you_mean(path.name, near) if near else ''}") from None
    except IsADirectoryError:
        raise FormatError(f"{path}: expected a file, found a folder") from None
    except OSError as error:
        raise FormatError(f"{path}: cannot be opened: {error.strerror}") from None


def read_text(path: Path) -> str:
    """Read a UTF-8 file."""
    with open_text(path) as file, report_decoding_errors(path):
        return file.read()


@contextmanager
def report_decoding_errors(path: Path) -> Iterator[None]:
    """Convert a decoding failure into an error that names the file, the line and the byte."""
    try:
        yield
    except UnicodeDecodeError as error:
        byte = error.object[error.start : error.start + 1].hex()
        where = f"{path}{_invalid_line_suffix(path)}"
        raise FormatError(f"{where}: byte 0x{byte} is not UTF-8; save the file as UTF-8") from None


def _invalid_line_suffix(path: Path) -> str:
    """Return `:N` for the first line that is not UTF-8; the decoder's position is relative to a buffered block."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return f":{number}"
    return ""


def iter_nonblank_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line number and text of every line that is not blank."""
    with open_text(path) as file, report_decoding_errors(path):
        for number, line in enumerate(file, 1):
            if line.strip():
                yield number, line


def parse_json(text: str, where: str) -> Any:
    """Parse a JSON value; errors name `where`, line and column. NaN and unpaired surrogates are rejected."""
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise FormatError(f"{where}: invalid JSON: {error}") from None


def stream_json_items(path: Path) -> Iterator[tuple[str | int, Any, int]]:
    """Stream the items of a large JSON array or object: key (index in an array), value, and line where it starts.

    Memory grows with the largest item, not with the file.
    """
    with open_text(path) as file, report_decoding_errors(path):
        window = _JsonStream(file, path)
        opening = window.peek()
        if opening not in ("[", "{"):
            raise window.error(
                f"expected '[' or '{{' at the start, found {repr(opening) if opening else 'an empty file'}"
            )
        window.expect(opening)
        closing = "]" if opening == "[" else "}"
        index = 0
        while window.peek() != closing:
            if index:
                window.expect(",")
            window.peek()
            key: str | int = index
            line = window.line_number()
            if opening == "{":
                if window.peek() != '"':
                    raise window.error(f"expected a name in quotes, found {window.describe_next()}")
                key = window.read_value()
                window.expect(":")
            yield key, window.read_value(), line
            index += 1
        window.expect(closing)
        if window.peek():
            raise window.error(f"expected the end of the file, found {window.peek()!r}")


_WHITESPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


class _JsonStream:
    """Buffered part of a file, with its position."""

    def __init__(self, file: IO[str], path: Path) -> None:
        self.file, self.path = file, path
        self.buffer, self.at, self.line, self.ended = "", 0, 1, False

    def read_more(self) -> None:
        chunk = self.file.read(max(1 << 16, len(self.buffer)))
        self.ended = not chunk
        self.line += self.buffer.count("\n", 0, self.at)
        self.buffer, self.at = self.buffer[self.at :] + chunk, 0

    def peek(self) -> str:
        """Return the next character that is not white space, or an empty string at the end."""
        while True:
            self.at = _WHITESPACE.match(self.buffer, self.at).end()  # type: ignore[union-attr]
            if self.at < len(self.buffer) or self.ended:
                return self.buffer[self.at : self.at + 1]
            self.read_more()

    def describe_next(self) -> str:
        """Describe the next character in an error message: quoted, or `the end of the file`."""
        return repr(self.peek()) if self.peek() else "the end of the file"

    def expect(self, expected: str) -> None:
        if self.peek() != expected:
            raise self.error(f"expected {expected!r}, found {self.describe_next()}")
        self.at += 1

    def read_value(self) -> Any:
        """Read the JSON value at the current position."""
        self.peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self.buffer, self.at)
            except json.JSONDecodeError as error:
                if self.ended:
                    raise self.error(error.msg, error.pos) from None
            except RecursionError:
                raise self.error("nested too deeply", self.at) from None
            except ValueError as error:  # a number with thousands of digits
                raise self.error(str(error).partition(";")[0], self.at) from None
            else:
                if end < len(self.buffer) or self.ended:  # a number at the end of the buffer may continue
                    # raw_decode accepts NaN and unpaired surrogates; the strict parser does not.
                    checked = parse_json(self.buffer[self.at : end], f"{self.path}:{self.line_number()}")
                    self.at = end
                    return checked
                del value
            self.read_more()

    def line_number(self, at: int | None = None) -> int:
        return self.line + self.buffer.count("\n", 0, self.at if at is None else at)

    def error(self, message: str, at: int | None = None) -> FormatError:
        return FormatError(f"{self.path}:{self.line_number(at)}: invalid JSON: {message}")


def build_record(kind: type[R], where: str, /, **values: Any) -> R:
    """Build a record from values in a file; a validation error becomes one line with `where` and the field."""
    try:
        return kind(**values)
    except ValidationError as error:
        raise FormatError(
            "\n".join(f"{where}: {explain_validation_error(slip, kind)}" for slip in error.errors())
        ) from None


class JsonObject:
    """Typed access to a JSON object in a file; errors name the location, the value and the expected type."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise FormatError(f"{where}: expected an object, found {_describe_type(value)}")
        self.value: dict[str, Any] = value
        self.where = where

    def get(self, name: str, kind: type | tuple[type, ...], default: Any = ...) -> Any:
        """Return the value of `name`, of type `kind`; if it is absent or null, return the default or raise an error."""
        value = self.value.get(name)
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if value is None:
            if default is ...:
                raise FormatError(f"{self.where}: {name!r} is missing{did_you_mean(name, self.value)}")
            return default
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            wanted = " or ".join(_TYPE_NAMES.get(type_, type_.__name__) for type_ in kinds)
            raise FormatError(
                f"{self.where}: {name!r}: expected {wanted}, found {_describe_type(value)} {shorten(repr(value), 40)}"
            )
        return value

    def iter_objects(self, name: str, default: Any = ...) -> Iterator[JsonObject]:
        """Yield the objects in the list `name`."""
        for index, value in enumerate(self.get(name, list, default)):
            yield JsonObject(value, f"{self.where}: {name}[{index}]")

    def get_texts(self, name: str) -> list[str]:
        """Return the list of texts `name`."""
        values: list[Any] = self.get(name, list)
        for index, value in enumerate(values):
            if not isinstance(value, str):
                raise self.build_error(f"{name}[{index}]: expected text, found {shorten(repr(value), 40)}")
        return values

    def other_fields(self, *names: str) -> dict[str, Any]:
        """Return all fields except the named ones."""
        return {name: value for name, value in self.value.items() if name not in names and value is not None}

    def build_error(self, message: str) -> FormatError:
        """Return an error that names this object's location."""
        return FormatError(f"{self.where}: {message}")


def build_titled_segments(parts: Iterable[str], titles: Iterable[str], between: str, where: str) -> Iterator[Segment]:
    """Yield the segments of a text that consists of joined parts, each with its title."""
    start = 0
    for part, title in zip(parts, titles, strict=True):
        yield build_record(Segment, where, start=start, end=start + len(part), title=title)
        start += len(part) + len(between)


_TYPE_NAMES: dict[type, str] = {
    str: "text",
    int: "an integer",
    float: "a number",
    list: "a list",
    dict: "an object",
    bool: "true or false",
}


def _describe_type(value: Any) -> str:
    return "null" if value is None else _TYPE_NAMES.get(type(value), type(value).__name__)


def iter_csv_rows(
    path: Path, delimiter: str = ",", quoting: Literal[0, 1, 2, 3] = csv.QUOTE_MINIMAL
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of a table with a header, each with the number of its last line; extra fields are rejected."""
    csv.field_size_limit(2**31 - 1)  # the default limit of 131,072 characters rejects long texts
    with open_text(path) as file, report_decoding_errors(path):
        reader = csv.DictReader(file, delimiter=delimiter, quoting=quoting, restval="", strict=True)
        try:
            names = reader.fieldnames = [name.strip() for name in reader.fieldnames or []]
            if repeated := [name for name in names if names.count(name) > 1]:
                raise FormatError(f"{path}:1: column {repeated[0]!r} occurs more than once; rename the others")
            for row in reader:
                if None in row:
                    literal = quoting == csv.QUOTE_NONE
                    fix = "remove the extra cells" if literal else f"put quotes around cells that contain {delimiter!r}"
                    raise FormatError(
                        f"{path}:{reader.line_num}: this row has more cells than the header, which has "
                        f"{len(names)}; {fix}"
                    )
                yield reader.line_num, row
        except csv.Error as error:
            raise FormatError(
                f"{path}:{reader.line_num}: cannot be read as a table with delimiter {delimiter!r}: {error}"
            ) from None


def read_first_characters(path: Path, size: int = 4096) -> str:
    """Return the first characters of a file for format detection; empty if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(size).decode("utf-8-sig", errors="ignore")
    except OSError:
        return ""


# --- labels ------------------------------------------------------------------------------------------------------


def resolve_label_name(protocol: Protocol, spelling: str, where: str) -> str:
    """Return the name of a label from its spelling in a file; the error for an unknown label begins with `where`."""
    try:
        return protocol.resolve_label(spelling).name
    except ProtocolError as error:
        raise FormatError(f"{where}: {error}") from None


# --- inferred protocols ------------------------------------------------------------------------------------------


def label_slug(name: str) -> str:
    """Convert a spelling to a valid label name: lower case with hyphens.

    >>> label_slug("Not checkable"), label_slug("Non-translation!")
    ('not-checkable', 'non-translation')
    """
    cleaned = re.sub(r"[^a-z0-9._/-]+", "-", fold_spelling(name)).strip("-._/")
    return cleaned or "label-" + "".join(f"{ord(character):x}" for character in name[:8])


def _assign_unique_names(spellings: Iterable[str]) -> dict[str, list[str]]:
    """Assign a distinct name to each spelling; spellings that differ only in case and spacing share a name."""
    same: dict[str, list[str]] = {}
    for spelling in sorted(set(spellings)):
        same.setdefault(fold_spelling(spelling), []).append(spelling)
    named: dict[str, list[str]] = {}
    for folded in sorted(
        same, key=lambda candidate: (label_slug(candidate) != candidate, candidate)
    ):  # spellings that are valid names keep them
        name, number = label_slug(folded), 2
        while name in named:
            name, number = f"{label_slug(folded)}-{number}", number + 1
        named[name] = same[folded]
    return dict(sorted(named.items()))


def normalise_question_name(name: str) -> str:
    """Convert a question's name to a valid one: lower case with underscores.

    >>> normalise_question_name("How severe?"), normalise_question_name("2nd look")
    ('how_severe', 'q_2nd_look')
    """
    cleaned = re.sub(r"[^a-z0-9_]+", "_", name.lower()).strip("_")
    return cleaned if cleaned[:1].isalpha() else f"q_{cleaned}"


def build_implied_protocol(
    name: str, labels: Iterable[str], title: str = "", antecedents: bool = False, **more: Any
) -> Protocol:
    """Build a protocol from the labels in a file that defines none; it has antecedents if the file has any."""
    antecedent = {"antecedent": "optional"} if antecedents else {}
    records = []
    for short, spellings in _assign_unique_names(labels).items():
        aliases = tuple(spelling for spelling in spellings if fold_spelling(spelling) != short)
        records.append(build_record(Label, name, name=short, title=spellings[0], aliases=aliases, **antecedent))
    summary = "Inferred from the labels in the file; their definitions are unknown."
    return Protocol(
        name=label_slug(name),
        version="1",
        title=title or name,
        summary=summary,
        labels=tuple(records),
        unlabelled=True,
        **more,
    )
