"""Repairing a study: a stored row that makes no record is mended where that loses nothing, else set aside in a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import sqlalchemy as sa
from pydantic import ValidationError
from pydantic_core import from_json

from finecomb.collection.database import rows, tables
from finecomb.collection.database.backup import atomic_private_file, back_up, backup_path
from finecomb.collection.database.connection import Database, Transaction
from finecomb.collection.database.studies import find_study_key_and_name
from finecomb.collection.database.tables import bind_parameter
from finecomb.collection.database.unreadable_rows import READ_ERRORS, RowReader, describe_row_error
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Document, Record, Settings

RepairOutcome = Literal["mended", "set aside"]
_A, _E, _C = tables.annotation.c, tables.entry.c, tables.change.c
_TABLE_BY_KIND: dict[str, tuple[sa.Table, type[Record]]] = {
    "protocol": (tables.protocol, Protocol),
    "document": (tables.document, Document),
    "annotator": (tables.annotator, Annotator),
}


@dataclass(frozen=True, slots=True)
class RepairedRow:
    """A row that could not be read, and what became of it."""

    kind: str
    id: str
    outcome: RepairOutcome
    why: str


@dataclass(slots=True)
class RepairResult:
    """What was done to a study, and the files that hold what was there before."""

    rows: list[RepairedRow] = field(default_factory=list)
    backup: Path | None = None
    aside: Path | None = None


def repair(database: Database) -> RepairResult:
    """Mend or set aside every row that cannot be read; nothing is touched where all can be.

    The whole database is backed up first. Rows as they were are written to a file of their own.
    """
    result = RepairResult()
    with database.read_transaction() as transaction:
        key, _ = find_study_key_and_name(transaction, database.place)
        if not any(_find_unreadable_rows(transaction, key)):
            return result
    result.backup = backup_path(database.place, "before-repair")
    back_up(database, result.backup)
    with database.write_transaction() as transaction:
        repairer = _StudyRepairer(transaction, key)
        repairer.run()
        result.rows = repairer.done
        result.aside = backup_path(database.place, "set-aside").with_suffix(".jsonl")
        with atomic_private_file(result.aside) as file:
            file.write_text("".join(f"{rows.dump_json(line)}\n" for line in repairer.lines), encoding="utf-8")
    return result


def _find_unreadable_rows(transaction: Transaction, key: int) -> Iterator[object]:
    """Whatever of a study cannot be read."""
    reader = RowReader()
    (settings,) = transaction.one(_SELECT_SETTINGS, study=key) or ("{}",)
    reader.read_record("settings", "", lambda: Settings.model_validate_json(settings))
    for kind, (table, record) in _TABLE_BY_KIND.items():
        for _ in reader.read_records(kind, record, transaction.run(_record_bodies_statement(table), study=key)):
            pass
    for _ in reader.drop_dangling_annotations(rows.read_all_annotations(transaction, key, reader)):
        pass
    yield from reader.unreadable


_SELECT_SETTINGS = sa.select(tables.study.c.settings).where(tables.study.c.key == bind_parameter("study"))


def _record_bodies_statement(table: sa.Table) -> sa.Select[Any]:
    return sa.select(table.c.id, table.c.body).where(table.c.study == bind_parameter("study"))


class _StudyRepairer:
    """One pass over a study, in the transaction that changes it."""

    def __init__(self, transaction: Transaction, study: int) -> None:
        self.transaction = transaction
        self.study = study
        self.done: list[RepairedRow] = []
        self.lines: list[dict[str, Any]] = []

    def run(self) -> None:
        self._repair_settings()
        lost = {kind: set(self._repair_table(kind)) for kind in _TABLE_BY_KIND}
        gone: set[str] = set()
        for row in self.transaction.all(_SELECT_ANNOTATIONS, study=self.study):
            values = dict(zip((column.name for column in rows.ANNOTATION_COLUMNS), row, strict=True))
            named = next((kind for kind in _TABLE_BY_KIND if values[kind] in lost[kind]), "")
            if named or values["about"] in gone:
                why = f"it names the {named or 'annotation'} {values[named or 'about']!r}, which was set aside"
                self._set_aside_annotation(values, why)
                gone.add(values["id"])
            elif not self._repair_annotation(values):
                gone.add(values["id"])

    def _record_outcome(self, kind: str, id: str, outcome: RepairOutcome, why: str) -> None:
        self.done.append(RepairedRow(kind, id, outcome, why))

    def _save_original(self, table: str, **columns: Any) -> None:
        self.lines.append({"table": table, **columns})

    def _repair_settings(self) -> None:
        (body,) = self.transaction.one(_SELECT_SETTINGS, study=self.study) or ("{}",)
        if (why := _find_record_problem(Settings, body)) is None:
            return
        self._save_original("study", settings=body)
        settings = _repair_record(Settings, body) or Settings()
        mine = tables.study.c.key == self.study
        self.transaction.run(sa.update(tables.study).values(settings=settings.to_json()).where(mine))
        self._record_outcome("settings", "", "mended", why)

    def _repair_table(self, kind: str) -> Iterator[str]:
        """Go through a table of bodies; yields the ids that were set aside."""
        table, record = _TABLE_BY_KIND[kind]
        for id, body in self.transaction.all(_record_bodies_statement(table), study=self.study):
            if (why := _find_record_problem(record, body)) is None:
                continue
            self._save_original(kind, id=id, body=body)
            new = _repair_record(record, body) if kind != "protocol" else None  # which nobody may have worked with
            new = new or (self._rebuild_annotator(id) if kind == "annotator" else None)
            row = (table.c.study == self.study, table.c.id == id)
            if new is not None:
                self.transaction.run(sa.update(table).values(body=new.to_json()).where(*row))
            else:
                self.transaction.run(sa.delete(table).where(*row))
                yield id
            self._record_outcome(kind, id, "set aside" if new is None else "mended", why)

    def _rebuild_annotator(self, id: str) -> Annotator:
        """Somebody's record with what the table's own columns say."""
        columns = (tables.annotator.c.kind, tables.annotator.c.condition)
        row = (tables.annotator.c.study == self.study, tables.annotator.c.id == id)
        kind, condition = self.transaction.one(sa.select(*columns).where(*row)) or ("human", "")
        return Annotator(id=id, kind=kind, condition=condition)

    # --- annotations -------------------------------------------------------------------------------------------

    def _repair_annotation(self, row: dict[str, Any]) -> bool:
        """Mend an annotation, or set it aside; whether it is still there."""
        entries = self.transaction.all(_SELECT_ENTRIES, annotation=row["key"])
        if (why := _find_annotation_problem(row, entries)) is None:
            return True
        entries = self._repair_entries(row, entries)
        new = _repair_annotation_row(row)
        if _find_annotation_problem(new, entries) is not None:
            self._set_aside_annotation(row, why)
            return False
        if new != row:
            self._save_original("annotation", **row)
            values = {name: new[name] for name in ("rest", "active", "started", "submitted")}
            self.transaction.run(sa.update(tables.annotation).values(**values).where(_A.key == row["key"]))
        self._record_outcome("annotation", row["id"], "mended", why)
        return True

    def _repair_entries(self, row: dict[str, Any], entries: list[Any]) -> list[Any]:
        """The entries that can be read; the others are set aside and count as deleted."""
        bare = _repair_annotation_row(row)
        readable = []
        for entry in entries:
            if (why := _find_annotation_problem(bare, [entry])) is None or _find_annotation_problem(
                bare, []
            ) is not None:
                readable.append(entry)
                continue
            kind, id, body = entry
            self._save_original("entry", annotation=row["id"], kind=kind, id=id, body=body)
            one = (_E.annotation == row["key"], _E.kind == kind, _E.id == id)
            self.transaction.run(sa.update(tables.entry).values(body=sa.null(), version=_E.version + 1).where(*one))
            self._record_outcome(kind, id, "set aside", why)
        return readable

    def _set_aside_annotation(self, row: dict[str, Any], why: str) -> None:
        self._save_original("annotation", **row)
        for kind, id, body in self.transaction.all(_SELECT_ENTRIES, annotation=row["key"]):
            self._save_original("entry", annotation=row["id"], kind=kind, id=id, body=body)
        self.transaction.run(sa.delete(tables.change).where(_C.annotation == row["key"]))
        self.transaction.run(sa.delete(tables.entry).where(_E.annotation == row["key"]))
        self.transaction.run(sa.delete(tables.annotation).where(_A.key == row["key"]))
        self._record_outcome("annotation", row["id"], "set aside", why)


_SELECT_ANNOTATIONS = sa.select(*rows.ANNOTATION_COLUMNS).where(_A.study == bind_parameter("study")).order_by(_A.key)
_SELECT_ENTRIES = (
    sa.select(_E.kind, _E.id, _E.body)
    .where(_E.annotation == bind_parameter("annotation"), _E.body.is_not(None))
    .order_by(_E.key)
)


def _find_record_problem(record: type[Record], body: str) -> str | None:
    """Why a body is not the record that it should be; None where it is."""
    try:
        record.model_validate_json(body)
    except READ_ERRORS as error:
        return describe_row_error(error)
    return None


def _find_annotation_problem(row: Mapping[str, Any], entries: Iterable[Any]) -> str | None:
    """Why a row and its entries make no annotation; None where they do."""
    try:
        rows.assemble_annotation(row, entries)
    except READ_ERRORS as error:
        return describe_row_error(error)
    return None


def _repair_record(record: type[Record], body: str) -> Record | None:
    """The record without the optional fields that are wrong; None where that is not enough."""
    try:
        value = from_json(body)
        return record.model_validate(_drop_invalid_fields(record, value))
    except READ_ERRORS:
        return None


def _drop_invalid_fields(record: type[Record], value: dict[str, Any]) -> dict[str, Any]:
    try:
        record.model_validate(value)
    except ValidationError as error:
        wrong = {problem["loc"][0] for problem in error.errors() if problem["loc"]}
        return {name: part for name, part in value.items() if name not in wrong}
    return value


_PLACEHOLDER_FIELDS = {"id": "id", "document": "document", "annotator": "annotator", "protocol": "protocol"}


def _repair_annotation_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """An annotation's row without times and other optional fields that are wrong."""
    new = dict(row)
    for column, name in (("active", "active_seconds"), ("started", "started"), ("submitted", "submitted")):
        if new[column] is not None and name not in _drop_invalid_fields(
            Annotation, {**_PLACEHOLDER_FIELDS, name: new[column]}
        ):
            new[column] = None
    try:
        rest = _drop_invalid_fields(Annotation, {**_PLACEHOLDER_FIELDS, **from_json(new["rest"])})
    except READ_ERRORS:
        return new
    new["rest"] = rows.dump_json({name: value for name, value in rest.items() if name not in _PLACEHOLDER_FIELDS})
    return new
