"""Rows that cannot be read as records. They are skipped and reported; the rest of the study is read."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from pydantic import ValidationError

from finecomb.core.errors import shorten
from finecomb.core.records import Annotation, Note, Record

log = logging.getLogger(__name__)
R = TypeVar("R", bound=Record)
T = TypeVar("T")
READ_ERRORS = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""Exceptions raised when reading rows that were not written by Finecomb."""


@dataclass(frozen=True, slots=True)
class UnreadableRow:
    """Row of the database that cannot be read as a record."""

    kind: str
    """Kind of record: `settings`, `protocol`, `document`, `annotator` or `annotation`."""
    id: str
    why: str

    def __str__(self) -> str:
        """Return a message that names the row, the reason and the fix."""
        what = f"{self.kind} {self.id!r}" if self.id else f"the {self.kind}"
        return (
            f"{what} in the database cannot be read and is skipped: {self.why}; "
            "run `finecomb repair` to repair it or set it aside"
        )


_REFERENCE_FIELD_BY_KIND = {
    "document": "document",
    "annotator": "annotator",
    "protocol": "protocol",
    "annotation": "about",
}


class RowReader:
    """Reader that builds records from rows and collects the unreadable ones."""

    def __init__(self) -> None:
        self.unreadable: list[UnreadableRow] = []
        self._ids: dict[str, set[str]] = {kind: set() for kind in _REFERENCE_FIELD_BY_KIND}

    def read_record(self, kind: str, id: str, make: Callable[[], T]) -> T | None:
        """Return the record built by `make`, or None when the row cannot be read."""
        try:
            return make()
        except READ_ERRORS as error:
            self.skip_row(kind, id, describe_row_error(error))
            return None

    def read_records(self, kind: str, of: type[R], rows: Iterable[tuple[str, str]]) -> Iterator[R]:
        """Yield the readable records of a table, given as pairs of ID and JSON body."""
        for id, body in rows:
            try:
                yield of.model_validate_json(body)
            except READ_ERRORS as error:
                self.skip_row(kind, id, describe_row_error(error))

    def skip_row(self, kind: str, id: str, why: str) -> None:
        """Record a row as unreadable, and log a warning."""
        row = UnreadableRow(kind, id, why)
        log.warning("%s", row)
        self.unreadable.append(row)
        self._ids.setdefault(kind, set()).add(id)

    def drop_dangling_annotations(self, annotations: Iterable[Annotation]) -> Iterator[Annotation]:
        """Yield the annotations that do not refer to a skipped document, annotator, protocol or annotation."""
        for annotation in annotations:
            if not self.unreadable:
                yield annotation
                continue
            names = [
                (kind, getattr(annotation, field))
                for kind, field in _REFERENCE_FIELD_BY_KIND.items()
                if getattr(annotation, field) in self._ids[kind]
            ]
            if names:
                kind, id = names[0]
                self.skip_row("annotation", annotation.id, f"it refers to {kind} {id!r}, which cannot be read")
            else:
                yield annotation

    def notes(self) -> Iterator[Note]:
        """Yield a note for each skipped row. `finecomb check` counts each note as an error."""
        yield from (Note(text=str(row), is_error=True) for row in self.unreadable)


def describe_row_error(error: BaseException) -> str:
    """Describe in one line why an error makes a row unreadable."""
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        return shorten(f"{where}: {first['msg']}" if where else str(first["msg"]), 200)
    return shorten(f"{type(error).__name__}: {error}", 200)
