"""A restore rehearsal: back up under load, restore elsewhere, and compare every record."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import finecomb as fc
from finecomb.collection.database.backup import back_up_database, restore_backup, verify_backup
from finecomb.collection.database.location import parse_location
from finecomb.collection.database.store import open_store, read_study_records
from finecomb.collection.machine_work_storage import upsert_machine_work
from finecomb.core.records import Annotation, Annotator, Mark
from finecomb.core.span import Span
from finecomb.core.study import StudyItem
from tests.databases import new_study_location

TEXT = "The the sea."


def make_annotation(document: str, number: int, quote: str, protocol: str) -> Annotation:
    mark = Mark(id=f"m{number}", spans=(Span(0, len(quote)),), quotes=(quote,), label="grammar-usage")
    return Annotation(
        id=f"load-{number}", document=document, annotator="load", protocol=protocol, round=number, marks=(mark,)
    )


def records(place: object) -> list[StudyItem]:
    return list(read_study_records(place))  # type: ignore[arg-type]


@pytest.mark.parametrize("source", ["sqlite", "postgresql"])
@pytest.mark.parametrize("target", ["sqlite", "postgresql"])
def test_a_backup_under_load_is_restored_record_by_record(source: str, target: str, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    place = new_study_location(source, tmp_path / "a")
    store = open_store(place, list(fc.demo(readers=2).items()))
    documents = [item for item in records(store.database.place) if type(item).__name__ == "Document"]
    acknowledged: list[str] = []
    stop = threading.Event()

    def save() -> None:
        number = 0
        while not stop.is_set():
            document = documents[number % len(documents)]
            annotation = make_annotation(document.id, number, document.text[:5], store.head.protocol.id)  # type: ignore[union-attr]
            people = [Annotator(id="load", kind="detector")] if number == 0 else []
            store.run_job_sync(upsert_machine_work, people, [annotation])
            acknowledged.append(annotation.id)
            number += 1

    thread = threading.Thread(target=save)
    thread.start()
    try:
        while len(acknowledged) < 30:
            assert thread.is_alive()
            stop.wait(0.01)
        before = list(acknowledged)
        back_up_database(store.database, tmp_path / "backup.db")
    finally:
        stop.set()
        thread.join()
    verify_backup(tmp_path / "backup.db")
    copied = records(parse_location(tmp_path / "backup.db"))
    ids = {item.id for item in copied if isinstance(item, Annotation)}
    assert ids >= set(before)  # everything acknowledged before the backup began
    elsewhere = new_study_location(target, tmp_path / "b")
    restore_backup(tmp_path / "backup.db", elsewhere)
    restored = records(elsewhere)
    assert restored == copied
    store.close()
