"""Records to rows and back: what goes in comes out."""

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
from finecomb.collection.database.tables import bind_parameter
from finecomb.collection.database.unreadable_rows import RowReader
from finecomb.collection.task_meta import TaskMeta
from finecomb.core.records import Annotation, Annotator, Mark

EntryKind = Literal["mark", "unit", "answers", "decision"]
"""Of an entry: one thing that an annotator did in a task."""
TEXT_ENTRY_ID = "text"
"""The id of the one entry with answers about the whole text."""


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """An entry as it is in the database."""

    kind: EntryKind
    id: str
    version: int
    body: str | None


@dataclass(frozen=True, slots=True)
class RejectedChange:
    """A change that was not made, and why."""

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
    """In words, where the code does not say enough."""


_RECORD_COLUMNS = ("id", "document", "annotator", "protocol", "round", "phase", "status", "started", "submitted")
_ENTRY_FIELDS = {"marks", "units", "answers"}


def annotator_row(annotator: Annotator) -> dict[str, object]:
    """The columns of an annotator."""
    return {
        "id": annotator.id,
        "kind": annotator.kind,
        "condition": annotator.condition,
        "cell": annotator.cell,
        "excluded": int(annotator.excluded is not None),
        "body": annotator.to_json(),
    }


def annotation_row(annotation: Annotation) -> dict[str, object]:
    """The columns of an annotation, without what is kept in its entries."""
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
    """Kind, id and body of everything inside an annotation, in order."""
    for mark in annotation.marks:
        yield "mark", mark.id, mark_body(mark)
    counts: dict[str, int] = {}
    for unit in annotation.units:
        id = f"{unit.start}-{unit.end}"
        counts[id] = counts.get(id, 0) + 1
        yield "unit", id if counts[id] == 1 else f"{id}#{counts[id]}", unit.to_json()
    found_none = {"no_errors": True} if _is_confirmed_error_free(annotation) else {}
    if annotation.answers or found_none:
        yield "answers", TEXT_ENTRY_ID, dump_json({"answers": dict(annotation.answers)} | found_none)


def _is_confirmed_error_free(annotation: Annotation) -> bool:
    """Whether it says in `meta`, as annotations that were made here do, that nothing was found."""
    return TaskMeta.from_meta(annotation.meta).no_errors


def mark_body(mark: Mark) -> str:
    """A mark as its entry keeps it: without its id, which is the entry's."""
    return mark.model_dump_json(exclude_defaults=True, exclude={"id"})


def mark_from_body(id: str, body: str) -> Mark:
    """The mark that an entry keeps."""
    return Mark.model_validate({"id": id, **from_json(body)})


def dump_json(value: object) -> str:
    """JSON in one line."""
    return to_json(value).decode()


def iso_timestamp(seconds: float) -> str:
    """A time of the server's clock as records have it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


_ANNOTATION = tables.annotation.c
ANNOTATION_COLUMNS = (
    *(_ANNOTATION[name] for name in ("key", *_RECORD_COLUMNS, "about", "active", "rest")),
    *(_ANNOTATION[name] for name in ("excluded", "number", "lease")),
)
_COLUMN_NAMES = tuple(column.name for column in ANNOTATION_COLUMNS)
_SELECT_UNORDERED = sa.select(*ANNOTATION_COLUMNS).where(_ANNOTATION.study == bind_parameter("study"))
_SELECT_ENTRIES = (
    sa.select(tables.entry.c.annotation, tables.entry.c.kind, tables.entry.c.id, tables.entry.c.body)
    .where(tables.entry.c.body.is_not(None))
    .order_by(tables.entry.c.annotation, tables.entry.c.key)
)
_SELECT_ANNOTATIONS = _SELECT_UNORDERED.order_by(_ANNOTATION.key)
_SELECT_ALL_ENTRIES = _SELECT_ENTRIES.where(tables.entry.c.study == bind_parameter("study"))


def read_all_annotations(transaction: Transaction, study: int, reader: RowReader | None = None) -> Iterator[Annotation]:
    """Every annotation of a study that can be read, in the order they came."""
    rows = transaction.run(_SELECT_ANNOTATIONS, study=study)
    entries = transaction.run(_SELECT_ALL_ENTRIES, study=study)
    return _assemble_annotations(rows, entries, reader or RowReader())


def read_matching_annotations(transaction: Transaction, study: int, only: sa.ColumnElement[bool]) -> list[Annotation]:
    """The annotations for which a condition on their columns holds, as far as they can be read."""
    chosen = sa.select(_ANNOTATION.key).where(_ANNOTATION.study == study, only)
    rows = transaction.run(_SELECT_ANNOTATIONS.where(only), study=study)
    entries = transaction.run(_SELECT_ENTRIES.where(tables.entry.c.annotation.in_(chosen)))
    return list(_assemble_annotations(rows, entries, RowReader()))


def _assemble_annotations(rows: Iterable[Row], entries: Iterable[Row], reader: RowReader) -> Iterator[Annotation]:
    """Join rows and entries, both in the order of annotations."""
    groups = itertools.groupby(entries, key=lambda row: row[0])
    key, group = next(groups, (None, iter(())))
    for row in rows:
        inside: list[Row] = []
        if key == row[0]:
            inside = [entry[1:] for entry in group]
            key, group = next(groups, (None, iter(())))
        annotation = reader.read_record("annotation", row[1], functools.partial(_annotation_from_row, row, inside))
        if annotation is not None:
            yield annotation


def _annotation_from_row(row: Row, inside: Iterable[Row]) -> Annotation:
    return assemble_annotation(dict(zip(_COLUMN_NAMES, row, strict=True)), inside)


def assemble_annotation(row: Mapping[str, Any], entries: Iterable[Row]) -> Annotation:
    """One annotation from its row and the kind, id and body of its entries.

    Pieces of JSON are put together and read once, which is several times as fast as reading each.
    """
    parts: dict[EntryKind, list[tuple[str, str]]] = {"mark": [], "unit": [], "answers": [], "decision": []}
    for kind, id, body in entries:
        parts[kind].append((id, body))
    if row["number"]:  # judged here, in any order
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
