"""Repair of a study: unreadable rows are fixed where possible, and otherwise moved to a file."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import sqlalchemy as sa
from pydantic import ValidationError
from pydantic_core import from_json

from finecomb.collection.database import migrations, rows, tables
from finecomb.collection.database.backup import atomic_private_file, back_up_database, new_backup_path
from finecomb.collection.database.connection import Database, Transaction
from finecomb.collection.database.location import StudyLocation
from finecomb.collection.database.salvage import LostRows, find_page_damage, salvage_database
from finecomb.collection.database.studies import find_study_key_and_name
from finecomb.collection.database.tables import named_sql_placeholder
from finecomb.collection.database.unreadable_rows import READ_ERRORS, RowReader, describe_row_error
from finecomb.core.errors import FinecombError
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Document, Record, Settings

RepairOutcome = Literal["repaired", "set aside"]
_A, _E, _C = tables.annotation.c, tables.entry.c, tables.change.c
_TABLE_BY_KIND: dict[str, tuple[sa.Table, type[Record]]] = {
    "protocol": (tables.protocol, Protocol),
    "document": (tables.document, Document),
    "annotator": (tables.annotator, Annotator),
}


@dataclass(frozen=True, slots=True)
class RepairedRow:
    """Unreadable row, and the outcome of its repair."""

    kind: str
    id: str
    outcome: RepairOutcome
    why: str


@dataclass(slots=True)
class RepairResult:
    """Outcome of a repair: the repaired rows, and the files with the original data."""

    rows: list[RepairedRow] = field(default_factory=list)
    backup: Path | None = None
    aside: Path | None = None
    lost: list[LostRows] = field(default_factory=list)
    """Rows on damaged pages of a SQLite file, which could not be salvaged."""
    damaged: Path | None = None
    """The damaged SQLite file, if its pages had to be salvaged."""


def require_study(location: StudyLocation) -> None:
    """Raise an error if there is no study at a location, before anything is written next to it."""
    if location.file is None or find_page_damage(location.file):
        is_sqlite = True
        if location.file is not None:
            with location.file.open("rb") as file:
                is_sqlite = file.read(16) == b"SQLite format 3\0"
        if not is_sqlite:
            raise FinecombError(f"{location}: not a SQLite database, so it holds no study")
        return
    database = Database(location, readonly=True)
    try:
        if not migrations.current_version(database):
            raise FinecombError(f"{location}: contains no study")
    finally:
        database.close()


def replace_damaged_file(location: StudyLocation) -> tuple[list[LostRows], Path | None]:
    """Replace a SQLite file with damaged pages by one with its readable rows. Return the lost rows and the old file."""
    file = location.file
    if file is None or not find_page_damage(file):
        return [], None
    damaged = new_backup_path(location, "damaged")
    with atomic_private_file(file.with_name(f"{file.name}.salvaged")) as temporary:
        temporary.unlink()
        lost = salvage_database(file, temporary)
    salvaged = file.with_name(f"{file.name}.salvaged")
    for suffix in ("", "-wal", "-shm"):
        part = file.with_name(f"{file.name}{suffix}")
        if part.exists():
            part.replace(damaged.with_name(f"{damaged.name}{suffix}"))
    salvaged.replace(file)
    return lost, damaged


def repair_study(database: Database) -> RepairResult:
    """Repair or set aside all rows that cannot be read. If every row can be read, nothing is changed.

    The database is backed up first, and the original rows are written to a separate file.
    """
    result = RepairResult()
    with database.read_transaction() as transaction:
        key, _ = find_study_key_and_name(transaction, database.place)
        reader = RowReader()
        (settings,) = transaction.fetch_first(_SELECT_SETTINGS, study=key) or ("{}",)
        reader.read_record("settings", "", lambda: Settings.model_validate_json(settings))
        for kind, (table, record) in _TABLE_BY_KIND.items():
            bodies = transaction.execute(_record_bodies_statement(table), study=key)
            deque(reader.read_records(kind, record, bodies), maxlen=0)
        deque(reader.drop_dangling_annotations(rows.read_all_annotations(transaction, key, reader)), maxlen=0)
    if not reader.unreadable:
        return result
    result.backup = new_backup_path(database.place, "before-repair")
    back_up_database(database, result.backup)
    with database.write_transaction() as transaction:
        repairer = _StudyRepairer(transaction, key)
        repairer.run()
        result.rows = repairer.done
        result.aside = new_backup_path(database.place, "set-aside").with_suffix(".jsonl")
        with atomic_private_file(result.aside) as file:
            # ASCII, because invalid bytes are kept as escapes such as \\udcff
            file.write_text("".join(f"{json.dumps(line)}\n" for line in repairer.lines), encoding="ascii")
    return result


_SELECT_SETTINGS = sa.select(tables.study.c.settings).where(tables.study.c.key == named_sql_placeholder("study"))


def _record_bodies_statement(table: sa.Table) -> sa.Select[Any]:
    return sa.select(table.c.id, table.c.body).where(table.c.study == named_sql_placeholder("study"))


class _StudyRepairer:
    """Repairer of one study, within a transaction."""

    def __init__(self, transaction: Transaction, study: int) -> None:
        self.transaction = transaction
        self.study = study
        self.done: list[RepairedRow] = []
        self.lines: list[dict[str, Any]] = []

    def run(self) -> None:
        (body,) = self.transaction.fetch_first(_SELECT_SETTINGS, study=self.study) or ("{}",)
        if (problem := _find_record_problem(Settings, body)) is not None:
            self._save_original("study", settings=body)
            settings = _repair_record(Settings, body) or Settings()
            mine = tables.study.c.key == self.study
            self.transaction.execute(sa.update(tables.study).values(settings=settings.to_json()).where(mine))
            self._record_outcome("settings", "", "repaired", problem)
        lost = {kind: set(self._repair_table(kind)) for kind in _TABLE_BY_KIND}
        gone: set[str] = set()
        for row in self.transaction.fetch_all(_SELECT_ANNOTATIONS, study=self.study):
            values = dict(zip((column.name for column in rows.ANNOTATION_COLUMNS), row, strict=True))
            named = next((kind for kind in _TABLE_BY_KIND if values[kind] in lost[kind]), "")
            if named or values["about"] in gone:
                why = f"it refers to {named or 'annotation'} {values[named or 'about']!r}, which was set aside"
                self._set_aside_annotation(values, why)
                gone.add(values["id"])
            elif not self._repair_annotation(values):
                gone.add(values["id"])

    def _record_outcome(self, kind: str, id: str, outcome: RepairOutcome, why: str) -> None:
        self.done.append(RepairedRow(kind, id, outcome, why))

    def _save_original(self, table: str, **columns: Any) -> None:
        self.lines.append({"table": table, **columns})

    def _repair_table(self, kind: str) -> Iterator[str]:
        """Repair the records of a table, and yield the IDs of the records that were set aside."""
        table, record = _TABLE_BY_KIND[kind]
        for id, body in self.transaction.fetch_all(_record_bodies_statement(table), study=self.study):
            if (why := _find_record_problem(record, body)) is None:
                continue
            self._save_original(kind, id=id, body=body)
            # A protocol is never altered, because annotations may depend on it.
            new = _repair_record(record, body) if kind != "protocol" else None
            row = (table.c.study == self.study, _equals_text(table.c.id, id))
            if new is None and kind == "annotator":
                columns = sa.select(tables.annotator.c.kind, tables.annotator.c.condition).where(*row)
                known_kind, condition = self.transaction.fetch_first(columns) or ("human", "")
                new = Annotator(id=id, kind=known_kind, condition=condition)
            if new is not None:
                self.transaction.execute(sa.update(table).values(body=new.to_json()).where(*row))
            else:
                self.transaction.execute(sa.delete(table).where(*row))
                yield id
            self._record_outcome(kind, id, "set aside" if new is None else "repaired", why)

    # --- annotations -------------------------------------------------------------------------------------------

    def _repair_annotation(self, row: dict[str, Any]) -> bool:
        """Repair an annotation or set it aside, and return whether it was kept in the study.

        Entries that cannot be read are set aside and count as deleted.
        """
        entries = self.transaction.fetch_all(_SELECT_ENTRIES, annotation=row["key"])
        if (why := _find_annotation_problem(row, entries)) is None:
            return True
        new, readable = _repair_annotation_row(row), []
        is_row_readable = _find_annotation_problem(new, []) is None
        for kind, id, body in entries:
            problem = _find_annotation_problem(new, [(kind, id, body)])
            if problem is None or not is_row_readable:
                readable.append((kind, id, body))
                continue
            self._save_original("entry", annotation=row["id"], kind=kind, id=id, body=body)
            mine = (_E.annotation == row["key"], _E.kind == kind, _equals_text(_E.id, id))
            self.transaction.execute(
                sa.update(tables.entry).values(body=sa.null(), version=_E.version + 1).where(*mine)
            )
            self._record_outcome(kind, id, "set aside", problem)
        if _find_annotation_problem(new, readable) is not None:
            self._set_aside_annotation(row, why)
            return False
        if new != row:
            self._save_original("annotation", **row)
            values = {name: new[name] for name in ("rest", "active", "started", "submitted")}
            self.transaction.execute(sa.update(tables.annotation).values(**values).where(_A.key == row["key"]))
        self._record_outcome("annotation", row["id"], "repaired", why)
        return True

    def _set_aside_annotation(self, row: dict[str, Any], why: str) -> None:
        self._save_original("annotation", **row)
        for kind, id, body in self.transaction.fetch_all(_SELECT_ENTRIES, annotation=row["key"]):
            self._save_original("entry", annotation=row["id"], kind=kind, id=id, body=body)
        self.transaction.execute(sa.delete(tables.change).where(_C.annotation == row["key"]))
        self.transaction.execute(sa.delete(tables.entry).where(_E.annotation == row["key"]))
        self.transaction.execute(sa.delete(tables.annotation).where(_A.key == row["key"]))
        self._record_outcome("annotation", row["id"], "set aside", why)


_SELECT_ANNOTATIONS = (
    sa.select(*rows.ANNOTATION_COLUMNS).where(_A.study == named_sql_placeholder("study")).order_by(_A.key)
)
_SELECT_ENTRIES = (
    sa.select(_E.kind, _E.id, _E.body)
    .where(_E.annotation == named_sql_placeholder("annotation"), _E.body.is_not(None))
    .order_by(_E.key)
)


def _equals_text(column: sa.Column[Any], text: str) -> sa.ColumnElement[bool]:
    """Return the condition that a column has a text, which may contain invalid bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return column == sa.cast(sa.literal(text.encode("utf-8", "surrogateescape"), sa.LargeBinary), sa.Text)
    return column == text


def _find_record_problem(record: type[Record], body: str) -> str | None:
    """Return the reason why a JSON body is not a valid record, or None when it is valid."""
    try:
        record.model_validate_json(body)
    except READ_ERRORS as error:
        return describe_row_error(error)
    return None


def _find_annotation_problem(row: Mapping[str, Any], entries: Iterable[Any]) -> str | None:
    """Return the reason why a row and its entries do not form a valid annotation, or None when they do."""
    try:
        rows.assemble_annotation(row, entries)
    except READ_ERRORS as error:
        return describe_row_error(error)
    return None


def _repair_record(record: type[Record], body: str) -> Record | None:
    """Return the record without its invalid optional fields, or None when it is still invalid without them."""
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
    """Return the row of an annotation without invalid times or other invalid optional fields."""
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
