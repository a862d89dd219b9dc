"""Conversion between records and database rows."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import sqlalchemy as sa
from pydantic_core import from_json, to_json

from finecomb.collection.database import tables
from finecomb.collection.database.connection import Row, Transaction
from finecomb.collection.database.tables import named_sql_placeholder
from finecomb.collection.database.unreadable_rows import RowReader
from finecomb.collection.task_meta import TaskMeta
from finecomb.core.records import Annotation, Annotator, Mark

EntryKind = Literal["mark", "unit", "answers", "decision"]
"""Kind of entry. An entry is a single item that an annotator saved in a task."""
TEXT_ENTRY_ID = "text"
"""ID of the entry that holds the answers about the whole text."""


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """Entry as stored in the database."""

    kind: EntryKind
    id: str
    version: int
    body: str | None


@dataclass(frozen=True, slots=True)
class RejectedChange:
    """Change that was rejected, and the reason."""

    code: Literal[
        "not-found",
        "not-allowed",
        "conflict",
        "finished",
        "lease-over",
        "incomplete",
        "refused",
        "paused",
        "closed",
        "overtaken",
    ]
    stored: StoredEntry | None = None
    missing: tuple[str, ...] = ()
    say: str = ""
    """Message for the annotator, when the code is not specific enough."""


_RECORD_COLUMNS = ("id", "document", "annotator", "protocol", "round", "phase", "status", "started", "submitted")
_ENTRY_FIELDS = {"marks", "units", "answers"}


def annotator_row(annotator: Annotator) -> dict[str, object]:
    """Return an annotator as a mapping of column values."""
    return {
        "id": annotator.id,
        "kind": annotator.kind,
        "condition": annotator.condition,
        "cell": annotator.cell,
        "excluded": int(annotator.excluded is not None),
        "body": annotator.to_json(),
    }


def annotation_row(annotation: Annotation) -> dict[str, object]:
    """Return an annotation, without its entries, as a mapping of column values."""
    value = annotation.model_dump(mode="json", exclude_defaults=True, exclude=_ENTRY_FIELDS)
    columns = {name: value.pop(name, None) for name in _RECORD_COLUMNS}
    if _is_confirmed_error_free(annotation):
        value["meta"].pop("no_errors")
    return columns | {
        "round": annotation.round,
        "about": value.pop("about", ""),
        "phase": annotation.phase,
        "status": annotation.status,
        "excluded": int(annotation.excluded is not None or annotation.status == "excluded"),
        "active": value.pop("active_seconds", None),
        "rest": dump_json(value),
    }


def annotation_entries(annotation: Annotation) -> Iterator[tuple[EntryKind, str, str]]:
    """Yield the kind, ID and JSON body of each entry of an annotation, in order."""
    for mark in annotation.marks:
        yield "mark", mark.id, mark_to_body(mark)
    counts: dict[str, int] = {}
    for unit in annotation.units:
        id = f"{unit.start}-{unit.end}"
        counts[id] = counts.get(id, 0) + 1
        yield "unit", id if counts[id] == 1 else f"{id}#{counts[id]}", unit.to_json()
    found_none = {"no_errors": True} if _is_confirmed_error_free(annotation) else {}
    if annotation.answers or found_none:
        yield "answers", TEXT_ENTRY_ID, dump_json({"answers": dict(annotation.answers)} | found_none)


def _is_confirmed_error_free(annotation: Annotation) -> bool:
    """Return whether `meta` states that the annotator confirmed that the text has no errors."""
    return TaskMeta.from_meta(annotation.meta).no_errors


def mark_to_body(mark: Mark) -> str:
    """Return the JSON of a mark without its ID, which is stored in the entry."""
    return mark.model_dump_json(exclude_defaults=True, exclude={"id"})


def mark_from_body(id: str, body: str) -> Mark:
    """Parse the mark in the body of an entry."""
    return Mark.model_validate({"id": id, **from_json(body)})


def dump_json(value: object) -> str:
    """Return a value as single-line JSON."""
    return to_json(value).decode()


def iso_timestamp(seconds: float) -> str:
    """Format a time in seconds as ISO 8601 in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


_ANNOTATION = tables.annotation.c
ANNOTATION_COLUMNS = (
    *(_ANNOTATION[name] for name in ("key", *_RECORD_COLUMNS, "about", "active", "rest")),
    *(_ANNOTATION[name] for name in ("excluded", "number", "lease")),
)
_COLUMN_NAMES = tuple(column.name for column in ANNOTATION_COLUMNS)
_SELECT_UNORDERED_ANNOTATIONS = sa.select(*ANNOTATION_COLUMNS).where(
    _ANNOTATION.study == named_sql_placeholder("study")
)
_SELECT_ENTRIES = (
    sa.select(tables.entry.c.annotation, tables.entry.c.kind, tables.entry.c.id, tables.entry.c.body)
    .where(tables.entry.c.body.is_not(None))
    .order_by(tables.entry.c.annotation, tables.entry.c.key)
)
_SELECT_ANNOTATIONS = _SELECT_UNORDERED_ANNOTATIONS.order_by(_ANNOTATION.key)
_SELECT_ALL_ENTRIES = _SELECT_ENTRIES.where(tables.entry.c.study == named_sql_placeholder("study"))


def read_all_annotations(transaction: Transaction, study: int, reader: RowReader | None = None) -> Iterator[Annotation]:
    """Yield all readable annotations of a study in order of creation."""
    rows = transaction.execute(_SELECT_ANNOTATIONS, study=study)
    entries = transaction.execute(_SELECT_ALL_ENTRIES, study=study)
    return _assemble_annotations(rows, entries, reader or RowReader())


def read_matching_annotations(transaction: Transaction, study: int, only: sa.ColumnElement[bool]) -> list[Annotation]:
    """Return the readable annotations whose columns match a condition."""
    chosen = sa.select(_ANNOTATION.key).where(_ANNOTATION.study == study, only)
    rows = transaction.execute(_SELECT_ANNOTATIONS.where(only), study=study)
    entries = transaction.execute(_SELECT_ENTRIES.where(tables.entry.c.annotation.in_(chosen)))
    return list(_assemble_annotations(rows, entries, RowReader()))


def _assemble_annotations(rows: Iterable[Row], entries: Iterable[Row], reader: RowReader) -> Iterator[Annotation]:
    """Join annotation rows with their entries. Both must be sorted by annotation."""
    groups = itertools.groupby(entries, key=lambda row: row[0])
    key, group = next(groups, (None, iter(())))
    for row in rows:
        inside: list[Row] = []
        if key == row[0]:
            inside = [entry[1:] for entry in group]
            key, group = next(groups, (None, iter(())))
        fields = dict(zip(_COLUMN_NAMES, row, strict=True))
        annotation = reader.read_record("annotation", row[1], functools.partial(assemble_annotation, fields, inside))
        if annotation is not None:
            yield annotation


def assemble_annotation(row: Mapping[str, Any], entries: Iterable[Row]) -> Annotation:
    """Build one annotation from its row and the kind, ID and body of its entries.

    The JSON fragments are concatenated and parsed once, which is several times faster than parsing each one.
    """
    parts: dict[EntryKind, list[tuple[str, str]]] = {"mark": [], "unit": [], "answers": [], "decision": []}
    for kind, id, body in entries:
        parts[kind].append((id, body))
    if row["number"]:  # units saved on the server may be in any order
        parts["unit"].sort(key=lambda unit: [int(edge) for edge in unit[0].split("-")])
    rest = row["rest"]
    values = {name: row[name] for name in _RECORD_COLUMNS if row[name] is not None}
    values |= {"about": row["about"]} if row["about"] else {}
    values |= {"active_seconds": row["active"]} if row["active"] is not None else {}
    for _, body in parts["answers"]:
        answers = from_json(body)
        values["answers"] = answers["answers"]
        rest = _rest_json_with_meta(rest, no_errors=True) if answers.get("no_errors") else rest
    if parts["decision"]:
        rest = _rest_json_with_meta(rest, decisions={id: from_json(body) for id, body in parts["decision"]})
    marks = ",".join(f'{{"id":{dump_json(id)},{body[1:]}' for id, body in parts["mark"])
    units = ",".join(body for _, body in parts["unit"])
    more = "" if rest == "{}" else f",{rest[1:-1]}"
    return Annotation.model_validate_json(f'{dump_json(values)[:-1]},"marks":[{marks}],"units":[{units}]{more}}}')


def _rest_json_with_meta(rest: str, **more: object) -> str:
    value = from_json(rest)
    return dump_json(value | {"meta": value.get("meta", {}) | more})
