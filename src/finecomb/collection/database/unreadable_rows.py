"""Rows that do not make a record any more: each is left out and named, and the rest of the study is read."""

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
"""What goes wrong when a row is read that our own code would not have written."""


@dataclass(frozen=True, slots=True)
class UnreadableRow:
    """A row of the database that makes no record."""

    kind: str
    """`settings`, `protocol`, `document`, `annotator` or `annotation`."""
    id: str
    why: str

    def __str__(self) -> str:
        """For people."""
        what = f"{self.kind} {self.id!r}" if self.id else f"the {self.kind}"
        return (
            f"{what} in the database cannot be read and is left out: {self.why}; "
            "`finecomb repair` mends it or sets it aside"
        )


_REFERENCE_FIELD_BY_KIND = {
    "document": "document",
    "annotator": "annotator",
    "protocol": "protocol",
    "annotation": "about",
}


class RowReader:
    """Makes records of rows and remembers those that make none."""

    def __init__(self) -> None:
        self.unreadable: list[UnreadableRow] = []
        self._ids: dict[str, set[str]] = {kind: set() for kind in _REFERENCE_FIELD_BY_KIND}

    def read_record(self, kind: str, id: str, make: Callable[[], T]) -> T | None:
        """What `make` returns, or None where the row is not what a record needs."""
        try:
            return make()
        except READ_ERRORS as error:
            self.skip_row(kind, id, describe_row_error(error))
            return None

    def read_records(self, kind: str, of: type[R], rows: Iterable[tuple[str, str]]) -> Iterator[R]:
        """The records of a table's ids and bodies, without those that cannot be read."""
        for id, body in rows:
            try:
                yield of.model_validate_json(body)
            except READ_ERRORS as error:
                self.skip_row(kind, id, describe_row_error(error))

    def skip_row(self, kind: str, id: str, why: str) -> None:
        """Remember a row that is left out, and say so in the log."""
        row = UnreadableRow(kind, id, why)
        log.warning("%s", row)
        self.unreadable.append(row)
        self._ids.setdefault(kind, set()).add(id)

    def drop_dangling_annotations(self, annotations: Iterable[Annotation]) -> Iterator[Annotation]:
        """Annotations without those that name a document, annotator, protocol or annotation that was left out."""
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
                self.skip_row("annotation", annotation.id, f"it names the {kind} {id!r}, which cannot be read")
            else:
                yield annotation

    def notes(self) -> Iterator[Note]:
        """What there is to say, which `finecomb check` counts among the errors."""
        yield from (Note(text=str(row), is_error=True) for row in self.unreadable)


def describe_row_error(error: BaseException) -> str:
    """Why a row makes no record, in one line."""
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        return shorten(f"{where}: {first['msg']}" if where else str(first["msg"]), 200)
    return shorten(f"{type(error).__name__}: {error}", 200)
