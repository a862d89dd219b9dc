"""Import of records into a database: a whole study, or the records added to its folder since the last import."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from finecomb.collection.database import rows, tables
from finecomb.collection.database.connection import Transaction
from finecomb.collection.database.tables import named_sql_placeholder
from finecomb.core.errors import Problem, StudyError
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Document, Record, Settings
from finecomb.core.study import StudyItem

_VISIBLE_FIELDS = {"text", "context", "segments", "data"}
"""Document fields that annotators see. They must not change once a document is annotated."""


def import_records(transaction: Transaction, study: int, items: Iterable[StudyItem]) -> None:
    """Add new records. Existing records stay unchanged, except documents and protocols without annotations.

    Changes to annotated documents and protocols in use are errors, which are raised together.
    """
    taking = _RecordImporter(transaction, study)
    for item in items:
        taking.import_record(item)
    # List all protocols in the settings, as when reading a folder
    _, body = taking.transaction.fetch_first(_SELECT_SETTINGS, study=taking.study) or ("", "{}")
    settings = Settings.model_validate_json(body)
    missing = tuple(id for id in taking.known["protocol"] if id not in settings.protocols)
    if missing:
        taking._write_settings(settings.model_copy(update={"protocols": settings.protocols + missing}), None)
    if taking.problems:
        raise StudyError(taking.problems)


def _record_bodies_statement(table: sa.Table) -> Any:
    return sa.select(table.c.id, table.c.body).where(table.c.study == named_sql_placeholder("study"))


def _build_insert_statement(table: sa.Table, names: Iterable[str]) -> Any:
    return sa.insert(table).values({name: named_sql_placeholder(name) for name in names})


_INSERT_BY_TABLE = {
    table.name: _build_insert_statement(
        table, [column.name for column in table.columns if column.name not in ("key", "held")]
    )
    for table in (tables.protocol, tables.document, tables.annotator, tables.entry)
}
_INSERT_ANNOTATION = _build_insert_statement(
    tables.annotation, [column.name for column in tables.annotation.columns if column.name != "key"]
).returning(tables.annotation.c.key)
_SELECT_USED_IDS = {
    name: sa.select(tables.annotation.c[name])
    .where(tables.annotation.c.study == named_sql_placeholder("study"))
    .distinct()
    for name in ("document", "protocol")
}
_SELECT_ANNOTATION_IDS = sa.select(tables.annotation.c.id).where(
    tables.annotation.c.study == named_sql_placeholder("study")
)
_UPDATE_BY_TABLE = {
    table.name: sa.update(table)
    .values(body=named_sql_placeholder("body"))
    .where(table.c.study == named_sql_placeholder("study"), table.c.id == named_sql_placeholder("of"))
    for table in (tables.protocol, tables.document)
}
_SELECT_SETTINGS = sa.select(tables.study.c.imported, tables.study.c.settings).where(
    tables.study.c.key == named_sql_placeholder("study")
)
_UPDATE_SETTINGS = (
    sa.update(tables.study)
    .values(imported=named_sql_placeholder("imported"), settings=named_sql_placeholder("settings"))
    .where(tables.study.c.key == named_sql_placeholder("study"))
)


class _RecordImporter:
    """Import of records into one study, with the errors found so far."""

    def __init__(self, transaction: Transaction, study: int) -> None:
        self.transaction = transaction
        self.study = study
        self.problems: list[Problem] = []
        self.known: dict[str, dict[str, str]] = {
            table.name: dict(transaction.fetch_all(_record_bodies_statement(table), study=study))
            for table in (tables.protocol, tables.document, tables.annotator)
        }
        self.used = {
            name: {id for (id,) in transaction.fetch_all(_SELECT_USED_IDS[name], study=study)}
            for name in _SELECT_USED_IDS
        }
        self.annotations = {id for (id,) in transaction.fetch_all(_SELECT_ANNOTATION_IDS, study=study)}

    def import_record(self, item: StudyItem) -> None:
        match item:
            case Annotation():
                if item.id not in self.annotations:
                    unset = dict.fromkeys(("number", "lease"))
                    columns = rows.annotation_row(item)
                    (key,) = self.transaction.fetch_first(_INSERT_ANNOTATION, study=self.study, **unset, **columns) or (
                        None,
                    )
                    for kind, id, body in rows.annotation_entries(item):
                        self.transaction.execute(
                            _INSERT_BY_TABLE["entry"],
                            study=self.study,
                            annotation=key,
                            kind=kind,
                            id=id,
                            version=1,
                            body=body,
                        )
                    self.annotations.add(item.id)
            case Document():
                self._add_or_replace("document", item.id, item)
            case Protocol():
                self._add_or_replace("protocol", item.id, item)
            case Annotator():
                if item.id not in self.known["annotator"]:
                    self._insert("annotator", item.id, rows.annotator_row(item))
            case Settings():
                # Apply only the settings that were edited in the folder since the last import
                imported, current = self.transaction.fetch_first(_SELECT_SETTINGS, study=self.study) or ("{}", "{}")
                before = Settings.model_validate_json(imported)
                edited = {
                    name: value
                    for name in Settings.model_fields
                    if (value := getattr(item, name)) != getattr(before, name)
                }
                self._write_settings(Settings.model_validate_json(current).model_copy(update=edited), item)

    def _add_or_replace(self, kind: str, id: str, record: Record) -> None:
        body, old = record.to_json(), self.known[kind].get(id)
        if old is None:
            self._insert(kind, id, {"id": id, "body": body})
        elif old != body:
            # Other fields, such as the metadata, may change because annotators do not see them.
            if id in self.used[kind] and (
                not isinstance(record, Document)
                or Document.model_validate_json(old).model_dump(include=_VISIBLE_FIELDS)
                != record.model_dump(include=_VISIBLE_FIELDS)
            ):
                self.problems.append(Problem(_CHANGED_MESSAGES[kind], kind=kind, id=id))
            self.transaction.execute(_UPDATE_BY_TABLE[kind], study=self.study, of=id, body=body)

    def _insert(self, kind: str, id: str, columns: Mapping[str, object]) -> None:
        self.transaction.execute(_INSERT_BY_TABLE[kind], study=self.study, place=len(self.known[kind]), **columns)
        self.known[kind][id] = str(columns["body"])

    def _write_settings(self, settings: Settings, imported: Settings | None) -> None:
        old, _ = self.transaction.fetch_first(_SELECT_SETTINGS, study=self.study) or ("{}", "{}")
        text = imported.to_json() if imported else old
        self.transaction.execute(_UPDATE_SETTINGS, study=self.study, settings=settings.to_json(), imported=text)


_CHANGED_MESSAGES = {
    "document": "the text was changed after it was annotated, so its marks would no longer fit; "
    "give the changed text a new ID",
    "protocol": "the protocol was changed after it was used; increase its version and keep the old file",
}
