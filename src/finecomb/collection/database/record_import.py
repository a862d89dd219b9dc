"""Taking records into a database: a whole study at first, later what its folder has got since."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from finecomb.collection.database import rows, tables
from finecomb.collection.database.connection import Transaction
from finecomb.collection.database.tables import bind_parameter
from finecomb.core.errors import Problem, StudyError
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Document, Record, Settings
from finecomb.core.study import StudyItem

_VISIBLE_FIELDS = ("text", "context", "segments", "data")
"""What annotators may see of a document, and so must not change under their marks."""


def import_records(transaction: Transaction, study: int, items: Iterable[StudyItem]) -> None:
    """Add what is new. What is there already stays as it is, except texts and protocols nobody worked with yet.

    A text or protocol that changed after work was done with it is refused; all such problems are raised together.
    """
    taking = _RecordImporter(transaction, study)
    for item in items:
        taking.import_record(item)
    taking.add_missing_protocols()
    if taking.problems:
        raise StudyError(taking.problems)


def _record_bodies_statement(table: sa.Table) -> Any:
    return sa.select(table.c.id, table.c.body).where(table.c.study == bind_parameter("study"))


def _build_insert_statement(table: sa.Table, names: Iterable[str]) -> Any:
    return sa.insert(table).values({name: bind_parameter(name) for name in names})


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
    name: sa.select(tables.annotation.c[name]).where(tables.annotation.c.study == bind_parameter("study")).distinct()
    for name in ("document", "protocol")
}
_SELECT_ANNOTATION_IDS = sa.select(tables.annotation.c.id).where(tables.annotation.c.study == bind_parameter("study"))
_UPDATE_BY_TABLE = {
    table.name: sa.update(table)
    .values(body=bind_parameter("body"))
    .where(table.c.study == bind_parameter("study"), table.c.id == bind_parameter("of"))
    for table in (tables.protocol, tables.document)
}
_SELECT_SETTINGS = sa.select(tables.study.c.imported, tables.study.c.settings).where(
    tables.study.c.key == bind_parameter("study")
)
_UPDATE_SETTINGS = (
    sa.update(tables.study)
    .values(imported=bind_parameter("imported"), settings=bind_parameter("settings"))
    .where(tables.study.c.key == bind_parameter("study"))
)


class _RecordImporter:
    """What is known while records go by."""

    def __init__(self, transaction: Transaction, study: int) -> None:
        self.transaction = transaction
        self.study = study
        self.problems: list[Problem] = []
        self.known: dict[str, dict[str, str]] = {
            table.name: dict(transaction.all(_record_bodies_statement(table), study=study))
            for table in (tables.protocol, tables.document, tables.annotator)
        }
        self.used = {
            name: {id for (id,) in transaction.all(_SELECT_USED_IDS[name], study=study)} for name in _SELECT_USED_IDS
        }
        self.annotations = {id for (id,) in transaction.all(_SELECT_ANNOTATION_IDS, study=study)}

    def import_record(self, item: StudyItem) -> None:
        match item:
            case Annotation():
                if item.id not in self.annotations:
                    self._add_annotation(item)
            case Document():
                self._add_or_replace("document", item.id, item)
            case Protocol():
                self._add_or_replace("protocol", item.id, item)
            case Annotator():
                if item.id not in self.known["annotator"]:
                    self._insert("annotator", item.id, rows.annotator_row(item))
            case Settings():
                self._merge_settings(item)

    def add_missing_protocols(self) -> None:
        """Name protocols that the settings do not, as a folder does."""
        _, body = self.transaction.one(_SELECT_SETTINGS, study=self.study) or ("", "{}")
        settings = Settings.model_validate_json(body)
        missing = tuple(id for id in self.known["protocol"] if id not in settings.protocols)
        if missing:
            self._write_settings(settings.model_copy(update={"protocols": settings.protocols + missing}), None)

    def _add_or_replace(self, kind: str, id: str, record: Record) -> None:
        body, old = record.to_json(), self.known[kind].get(id)
        if old is None:
            self._insert(kind, id, {"id": id, "body": body})
        elif old != body:
            if id in self.used[kind] and _has_annotator_visible_changes(old, record):
                self.problems.append(Problem(_CHANGED_MESSAGES[kind], kind=kind, id=id))
            self.transaction.run(_UPDATE_BY_TABLE[kind], study=self.study, of=id, body=body)

    def _insert(self, kind: str, id: str, columns: Mapping[str, object]) -> None:
        self.transaction.run(_INSERT_BY_TABLE[kind], study=self.study, place=len(self.known[kind]), **columns)
        self.known[kind][id] = str(columns["body"])

    def _add_annotation(self, annotation: Annotation) -> None:
        unset = dict.fromkeys(("number", "lease"))
        columns = rows.annotation_row(annotation)
        (key,) = self.transaction.one(_INSERT_ANNOTATION, study=self.study, **unset, **columns) or (None,)
        for kind, id, body in rows.annotation_entries(annotation):
            self.transaction.run(
                _INSERT_BY_TABLE["entry"], study=self.study, annotation=key, kind=kind, id=id, version=1, body=body
            )
        self.annotations.add(annotation.id)

    def _merge_settings(self, settings: Settings) -> None:
        """Settings that were edited in the folder since they were last read are taken over, field by field."""
        imported, current = self.transaction.one(_SELECT_SETTINGS, study=self.study) or ("{}", "{}")
        before = Settings.model_validate_json(imported)
        edited = {
            name: value for name in Settings.model_fields if (value := getattr(settings, name)) != getattr(before, name)
        }
        self._write_settings(Settings.model_validate_json(current).model_copy(update=edited), settings)

    def _write_settings(self, settings: Settings, imported: Settings | None) -> None:
        old, _ = self.transaction.one(_SELECT_SETTINGS, study=self.study) or ("{}", "{}")
        text = imported.to_json() if imported else old
        self.transaction.run(_UPDATE_SETTINGS, study=self.study, settings=settings.to_json(), imported=text)


_CHANGED_MESSAGES = {
    "document": "its text was changed after work was done on it, and marks would no longer fit; "
    "give the changed text an id of its own",
    "protocol": "was changed after work was done with it; count its version up and keep the old file",
}


def _has_annotator_visible_changes(old: str, new: Record) -> bool:
    """Whether annotators could notice."""
    if not isinstance(new, Document):
        return True
    before = Document.model_validate_json(old)
    return any(getattr(before, name) != getattr(new, name) for name in _VISIBLE_FIELDS)
