"""The source that a format reads: files, JSON and tables as streams, with errors that say file, line and field."""

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
from finecomb.core.protocol_text import explain_validation_error
from finecomb.core.records import Record, Segment
from finecomb.core.spelling import fold_spelling

R = TypeVar("R", bound=Record)


def sibling_names(path: Path) -> list[str]:
    """Names of the files beside a path, in order, hidden ones left out."""
    return sorted(file.name for file in path.parent.iterdir() if file.name[0] != ".") if path.parent.is_dir() else []


def open_text(path: Path) -> IO[str]:
    """Open for reading as UTF-8 (a byte-order mark is dropped), line ends untouched; what goes wrong is said."""
    try:
        return path.open(encoding="utf-8-sig", newline="")
    except FileNotFoundError:
        near = sibling_names(path)
        raise FormatError(f"{path}: no such file{did_you_mean(path.name, near) if near else ''}") from None
    except IsADirectoryError:
        raise FormatError(f"{path}: is a folder; expected a file") from None
    except OSError as error:
        raise FormatError(f"{path}: cannot be opened: {error.strerror}") from None


def read_text(path: Path) -> str:
    """All of a UTF-8 file."""
    with open_text(path) as file, report_decoding_errors(path):
        return file.read()


@contextmanager
def report_decoding_errors(path: Path) -> Iterator[None]:
    """Turn a decoding failure inside into a clear error."""
    try:
        yield
    except UnicodeDecodeError as error:
        byte = error.object[error.start : error.start + 1].hex()
        raise FormatError(
            f"{path}: not UTF-8: byte 0x{byte} at position {error.start} of the part being read; save it as UTF-8"
        ) from None


def json_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Line number and text of every line that is not blank."""
    with open_text(path) as file, report_decoding_errors(path):
        for number, line in enumerate(file, 1):
            if line.strip():
                yield number, line


def parse_json(text: str, where: str) -> Any:
    """A JSON value; refuses what JSON does not allow (NaN, half surrogates) with `where`, and names line and column."""
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise FormatError(f"{where}: not JSON: {error}") from None


def json_items(path: Path) -> Iterator[tuple[str | int, Any, int]]:
    """Stream the items of one big JSON array or object: key (index for an array), value, and the line of its start.

    Memory grows with the largest item, not with the file.
    """
    with open_text(path) as file, report_decoding_errors(path):
        yield from _parse_json_items(file, path)


_WHITESPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


class _JsonStream:
    """The part of a file now in memory, and where it stands."""

    def __init__(self, file: IO[str], path: Path) -> None:
        self.file, self.path = file, path
        self.buffer, self.at, self.line, self.ended = "", 0, 1, False

    def read_more(self) -> None:
        chunk = self.file.read(max(1 << 16, len(self.buffer)))
        self.ended = not chunk
        self.line += self.buffer.count("\n", 0, self.at)
        self.buffer, self.at = self.buffer[self.at :] + chunk, 0

    def peek(self) -> str:
        """The next character that is not white space, or an empty string at the end."""
        while True:
            self.at = _WHITESPACE.match(self.buffer, self.at).end()  # type: ignore[union-attr]
            if self.at < len(self.buffer) or self.ended:
                return self.buffer[self.at : self.at + 1]
            self.read_more()

    def expect(self, expected: str) -> None:
        if self.peek() != expected:
            raise self.error(f"expected {expected!r}, found {self.peek() or 'the end of the file'!r}")
        self.at += 1

    def read_value(self) -> Any:
        """The JSON value that starts here."""
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
                if end < len(self.buffer) or self.ended:  # a number at the edge of the buffer may go on
                    # raw_decode is lenient about NaN and half surrogates; the strict parser is not.
                    checked = parse_json(self.buffer[self.at : end], f"{self.path}:{self.line_number()}")
                    self.at = end
                    return checked
                del value
            self.read_more()

    def line_number(self, at: int | None = None) -> int:
        return self.line + self.buffer.count("\n", 0, self.at if at is None else at)

    def error(self, message: str, at: int | None = None) -> FormatError:
        return FormatError(f"{self.path}:{self.line_number(at)}: not JSON: {message}")


def _parse_json_items(file: IO[str], path: Path) -> Iterator[tuple[str | int, Any, int]]:
    window = _JsonStream(file, path)
    opening = window.peek()
    if opening not in ("[", "{"):
        raise window.error(f"expected '[' or '{{' at the start, found {opening or 'an empty file'!r}")
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
                raise window.error(f"expected a name in quotes, found {window.peek() or 'the end of the file'!r}")
            key = window.read_value()
            window.expect(":")
        yield key, window.read_value(), line
        index += 1
    window.expect(closing)
    if window.peek():
        raise window.error(f"expected the end of the file, found {window.peek()!r}")


def build_record(kind: type[R], where: str, /, **values: Any) -> R:
    """Make a record from values found in a file; a slip becomes one line with `where` and the field."""
    try:
        return kind(**values)
    except ValidationError as error:
        raise FormatError(
            "\n".join(f"{where}: {explain_validation_error(slip, kind)}" for slip in error.errors())
        ) from None


class JsonObject:
    """Typed look-ups in a JSON object found in a file, with errors that say where, what and what was expected."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise FormatError(f"{where}: expected an object, found {_describe_type(value)}")
        self.value: dict[str, Any] = value
        self.where = where

    def get(self, name: str, kind: type | tuple[type, ...], default: Any = ...) -> Any:
        """The value of `name`, of type `kind` (None counts as absent); required when there is no default."""
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
        """The objects in the list called `name`."""
        for index, value in enumerate(self.get(name, list, default)):
            yield JsonObject(value, f"{self.where}: {name}[{index}]")

    def get_texts(self, name: str) -> list[str]:
        """The list of texts called `name`."""
        values: list[Any] = self.get(name, list)
        for index, value in enumerate(values):
            if not isinstance(value, str):
                raise self.error(f"{name}[{index}]: expected text, found {shorten(repr(value), 40)}")
        return values

    def other_fields(self, *names: str) -> dict[str, Any]:
        """Everything but the named ones: what the source has and we do not."""
        return {name: value for name, value in self.value.items() if name not in names and value is not None}

    def error(self, message: str) -> FormatError:
        """An error that stands here."""
        return FormatError(f"{self.where}: {message}")


def titled_segments(parts: Iterable[str], titles: Iterable[str], between: str, where: str) -> Iterator[Segment]:
    """The segments of a text that was joined from parts, each with its title."""
    start = 0
    for part, title in zip(parts, titles, strict=True):
        yield build_record(Segment, where, start=start, end=start + len(part), title=title)
        start += len(part) + len(between)


_TYPE_NAMES: dict[type, str] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "an object",
    bool: "true or false",
}


def _describe_type(value: Any) -> str:
    return "null" if value is None else _TYPE_NAMES.get(type(value), type(value).__name__)


def csv_rows(
    path: Path, delimiter: str = ",", quoting: Literal[0, 1, 2, 3] = csv.QUOTE_MINIMAL
) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number (where the row ends) and row of a table with a header line; a row with too many fields is refused."""
    _lift_field_limit()
    with open_text(path) as file, report_decoding_errors(path):
        reader = csv.DictReader(file, delimiter=delimiter, quoting=quoting, restval="", strict=True)
        try:
            names = reader.fieldnames = [name.strip() for name in reader.fieldnames or []]
            if len(set(names)) < len(names):
                raise FormatError(f"{path}:1: a column name is there twice: {', '.join(names)}")
            for row in reader:
                if None in row:
                    raise FormatError(
                        f"{path}:{reader.line_num}: has more fields than the {len(names)} columns of line 1"
                    )
                yield reader.line_num, row
        except csv.Error as error:
            raise FormatError(
                f"{path}:{reader.line_num}: not a table with {delimiter!r} between fields: {error}"
            ) from None


def _lift_field_limit() -> None:
    csv.field_size_limit(2**31 - 1)  # the default of 131,072 characters refuses long texts


def read_start(path: Path, size: int = 4096) -> str:
    """The first characters of a file for sniffing; empty when it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(size).decode("utf-8-sig", errors="ignore")
    except OSError:
        return ""


# --- labels ------------------------------------------------------------------------------------------------------


def resolve_label(protocol: Protocol, spelling: str, where: str) -> str:
    """The name of the label that a file spells in its own way; `where` begins the message when there is none."""
    try:
        return protocol.resolve_label(spelling).name
    except ProtocolError as error:
        raise FormatError(f"{where}: {error}") from None


# --- protocols that a file implies -------------------------------------------------------------------------------


def slug(name: str) -> str:
    """A label's name in our spelling: lower case with hyphens, only what a name may have.

    >>> slug("Not checkable"), slug("Non-translation!")
    ('not-checkable', 'non-translation')
    """
    cleaned = re.sub(r"[^a-z0-9._/-]+", "-", fold_spelling(name)).strip("-._/")
    return cleaned or "label-" + "".join(f"{ord(character):x}" for character in name[:8])


def _assign_unique_names(spellings: Iterable[str]) -> dict[str, list[str]]:
    """Spellings by a name of their own: those that differ by more than case and spacing never share one."""
    same: dict[str, list[str]] = {}
    for spelling in sorted(set(spellings)):
        same.setdefault(fold_spelling(spelling), []).append(spelling)
    named: dict[str, list[str]] = {}
    for folded in sorted(
        same, key=lambda candidate: (slug(candidate) != candidate, candidate)
    ):  # those that are names already keep them
        name, number = slug(folded), 2
        while name in named:
            name, number = f"{slug(folded)}-{number}", number + 1
        named[name] = same[folded]
    return dict(sorted(named.items()))


def normalise_question_name(name: str) -> str:
    """A question's name in our spelling: lower case with underscores.

    >>> normalise_question_name("How severe?"), normalise_question_name("2nd look")
    ('how_severe', 'q_2nd_look')
    """
    cleaned = re.sub(r"[^a-z0-9_]+", "_", name.lower()).strip("_")
    return cleaned if cleaned[:1].isalpha() else f"q_{cleaned}"


def implied_protocol(
    name: str, labels: Iterable[str], title: str = "", antecedents: bool = False, **more: Any
) -> Protocol:
    """A protocol with the labels that a file uses, and antecedents if it has any, for files that do not say more."""
    antecedent = {"antecedent": "optional"} if antecedents else {}
    records = []
    for short, spellings in _assign_unique_names(labels).items():
        aliases = tuple(spelling for spelling in spellings if fold_spelling(spelling) != short)
        records.append(build_record(Label, name, name=short, title=spellings[0], aliases=aliases, **antecedent))
    summary = "Made from the labels that the file uses; its definitions are not known."
    return Protocol(
        name=slug(name),
        version="1",
        title=title or name,
        summary=summary,
        labels=tuple(records),
        unlabelled=True,
        **more,
    )
