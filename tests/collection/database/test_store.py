"""Tests of a study in a database: records are stored and read back unchanged."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from hypothesis import given, settings

import finecomb as fc
from finecomb import formats
from finecomb.collection.database import backup, migrations, rows, tables
from finecomb.collection.database.connection import Database, Transaction
from finecomb.collection.database.location import DATABASE_FILENAME, StudyLocation, parse_location
from finecomb.collection.database.store import Store, migrate_database, read_study_records
from finecomb.collection.database.writer import Writer
from finecomb.core.errors import FinecombError, StudyError
from finecomb.core.records import Annotation, Annotator, Document, Settings
from finecomb.core.study import Study, StudyItem
from tests.databases import KINDS, FakeClock, new_study_location, open_test_store
from tests.strategies import PROTOCOL, studies


@pytest.fixture(params=KINDS)
def where(request: pytest.FixtureRequest, tmp_path: Path) -> StudyLocation:
    return new_study_location(request.param, tmp_path)


def store_and_read_back(where: StudyLocation, items: list[StudyItem]) -> Study:
    with open_test_store(where, items, FakeClock()) as store:
        return store.read_study()


# --- round trip --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@given(items=studies())
@settings(max_examples=25)
def test_what_goes_in_comes_out(kind: str, items: list[StudyItem], tmp_path_factory: pytest.TempPathFactory) -> None:
    where = new_study_location(kind, tmp_path_factory.mktemp("study"))
    assert store_and_read_back(where, items) == Study.from_items(items)
    assert Study.from_items(read_study_records(where)) == Study.from_items(items)


FULL_ANNOTATION = Annotation.model_validate(
    {
        "id": "full",
        "document": "d",
        "annotator": "a",
        "protocol": PROTOCOL.id,
        "round": 3,
        "about": "other",
        "phase": "qualification",
        "status": "excluded",
        "marks": [
            {"id": "m", "spans": [[0, 1]], "quotes": ["x"], "label": None, "answers": {"sure": True, "severity": 1}}
        ],
        "units": [{"start": 0, "end": 1}, {"start": 0, "end": 1, "seconds": 0.25, "scores": {"red": 0.5}}],
        "answers": {"rating": 2.0, "several": ["a", "b"]},
        "made_from": ["other"],
        "readers": 3,
        "excluded": {"by": "ann", "reason": "test", "when": "2026-01-31T09:30:00.123456Z"},
        "started": "0001-01-01T00:00:00Z",
        "submitted": "9999-12-31T23:59:59.999999Z",
        "seconds": 0.1,
        "active_seconds": 0,
        "meta": {"no_errors": True, "nested": {"a": [1, 1.0, None, "😀"]}},
    }
)


def test_every_field_of_an_annotation_comes_back(where: StudyLocation) -> None:
    other = Annotation(id="other", document="d", annotator="a", protocol=PROTOCOL.id)
    items: list[StudyItem] = [
        Settings(),
        PROTOCOL,
        Document(id="d", text="x"),
        Annotator(id="a", kind="human"),
        other,
        FULL_ANNOTATION,
    ]
    with open_test_store(where, items, FakeClock()) as store:
        assert store.read_annotations(tables.annotation.c.id == "full") == [FULL_ANNOTATION]


def test_that_nothing_was_found_can_be_taken_back_after_a_move(where: StudyLocation) -> None:
    draft = FULL_ANNOTATION.model_copy(update={"answers": {}, "about": None, "status": "draft", "excluded": None})
    entries = [(kind, body) for kind, _, body in rows.annotation_entries(draft)]
    assert entries[-1] == ("answers", '{"answers":{},"no_errors":true}')
    items: list[StudyItem] = [Settings(), PROTOCOL, Document(id="d", text="x"), Annotator(id="a", kind="human"), draft]
    with open_test_store(where, items, FakeClock()) as store:
        assert store.read_annotations(tables.annotation.c.id == "full") == [draft]


def test_a_folder_and_its_database_are_read_together(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    fc.write(fc.demo(), folder)
    before = fc.read(folder)
    with open_test_store(parse_location(folder / DATABASE_FILENAME), list(before.items()), FakeClock()):
        pass
    assert fc.read(folder) == before
    with (folder / "documents.jsonl").open("a", encoding="utf-8") as file:
        file.write(Document(id="later", text="New.").to_json() + "\n")
    assert [*before.documents["id"], "later"] == list(fc.read(folder).documents["id"])
    with pytest.raises(FinecombError, match="contains collected annotations"):
        fc.write(before, folder, force=True)


@pytest.mark.parametrize("target", ["parquet", "csv", "folder"])
def test_a_database_converts_like_any_other_format(where: StudyLocation, target: str, tmp_path: Path) -> None:
    store_and_read_back(where, list(fc.demo().items()))
    source = where.file or Path(f"{where.url.replace('+psycopg', '')}#{where.study}")
    ending = {"parquet": ".parquet", "csv": ".csv", "folder": ""}[target]
    formats.convert(source, tmp_path / f"out{ending}")
    assert len(fc.read(tmp_path / f"out{ending}").marks) == len(fc.demo().marks)


# --- second import -----------------------------------------------------------------------------------------------


def minimal_study(**document: Any) -> list[StudyItem]:
    return [Settings(title="one"), PROTOCOL, Document(**({"id": "d", "text": "abc"} | document))]


ANNOTATOR_AND_ANNOTATION: list[StudyItem] = [
    Annotator(id="a", kind="human"),
    Annotation(id="n", document="d", annotator="a", protocol=PROTOCOL.id),
]


def test_a_text_that_changed_under_marks_is_refused(where: StudyLocation) -> None:
    store_and_read_back(where, [*minimal_study(), *ANNOTATOR_AND_ANNOTATION])
    with pytest.raises(StudyError, match="'d': the text was changed after it was annotated"):
        store_and_read_back(where, minimal_study(text="other"))
    assert store_and_read_back(where, minimal_study(meta={"model": "m"})).document("d").meta == {"model": "m"}


def test_a_text_that_nobody_worked_on_may_change(where: StudyLocation) -> None:
    store_and_read_back(where, minimal_study())
    assert store_and_read_back(where, minimal_study(text="other")).document("d").text == "other"


def test_a_protocol_in_use_is_frozen(where: StudyLocation) -> None:
    changed = PROTOCOL.model_copy(update={"title": "Other"})
    store_and_read_back(where, minimal_study())
    assert store_and_read_back(where, [Settings(), changed]).protocols[PROTOCOL.id].title == "Other"
    store_and_read_back(where, [Settings(), changed, *ANNOTATOR_AND_ANNOTATION])
    with pytest.raises(StudyError, match="increase its version"):
        store_and_read_back(where, [Settings(), PROTOCOL])


def test_new_records_are_added_and_old_ones_stay(where: StudyLocation) -> None:
    store_and_read_back(where, [*minimal_study(), *ANNOTATOR_AND_ANNOTATION])
    again = [
        *minimal_study(),
        Document(id="e", text="e"),
        Annotator(id="a", kind="llm"),
        Annotator(id="b", kind="human"),
    ]
    found = store_and_read_back(where, again)
    assert list(found.documents["id"]) == ["d", "e"]
    assert dict(zip(found.annotators["id"], found.annotators["kind"], strict=True)) == {"a": "human", "b": "human"}
    assert len(found.annotations) == 1


def test_settings_edited_in_the_folder_are_taken_over_field_by_field(where: StudyLocation) -> None:
    from finecomb.collection import researcher_actions_storage

    with open_test_store(where, [Settings(title="one", seed=1), PROTOCOL], FakeClock()) as store:
        changed = store.head.settings.model_copy(update={"annotators": 7})
        store.run_study_change_sync(researcher_actions_storage.update_settings, "ann", changed)
    with open_test_store(where, [Settings(title="two", seed=1), PROTOCOL], FakeClock()) as store:
        assert (store.head.settings.title, store.head.settings.annotators) == ("two", 7)
        assert store.head.settings.protocols == (PROTOCOL.id,)


def test_the_key_of_an_annotation_is_unique_in_the_database(where: StudyLocation) -> None:
    store_and_read_back(where, [*minimal_study(), *ANNOTATOR_AND_ANNOTATION])
    twin = Annotation(id="twin", document="d", annotator="a", protocol=PROTOCOL.id)
    with pytest.raises(Exception, match=r"(?i)unique"):
        store_and_read_back(where, [twin])
    assert len(Study.from_items(read_study_records(where)).annotations) == 1


def test_one_database_holds_many_studies(where: StudyLocation) -> None:
    first, second = (
        StudyLocation(where.url, f"{where.study}1", where.file),
        StudyLocation(where.url, f"{where.study}2", where.file),
    )
    store_and_read_back(first, minimal_study())
    store_and_read_back(second, minimal_study(text="other"))
    assert Study.from_items(read_study_records(first)).document("d").text == "abc"
    assert Study.from_items(read_study_records(second)).document("d").text == "other"
    with pytest.raises(FinecombError, match="unknown study"):
        list(read_study_records(StudyLocation(where.url, "nobody", where.file)))
    if where.file:
        with pytest.raises(FinecombError, match=r"contains 2 studies .*; add #NAME to select one"):
            list(read_study_records(where))
        assert Study.from_items(formats.stream_records(Path(f"{where.file}#1"))).document("d").text == "abc"


# --- tables ------------------------------------------------------------------------------------------------------


def test_migrations_make_exactly_the_tables(where: StudyLocation) -> None:
    store_and_read_back(where, minimal_study())
    engine = Database(where).create_engine()
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), tables.metadata) == []
    engine.dispose()


def test_a_pending_migration_is_run_after_a_backup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = parse_location(tmp_path / DATABASE_FILENAME)
    store_and_read_back(where, minimal_study())
    database = Database(where)
    assert migrate_database(database) is None
    real = migrations.latest_version()
    monkeypatch.setattr(migrations, "latest_version", lambda: "next")
    monkeypatch.setattr(migrations, "upgrade", lambda _: None)
    saved = migrate_database(database)
    database.close()
    monkeypatch.setattr(migrations, "latest_version", lambda: real)
    assert saved is not None
    assert Study.from_items(read_study_records(parse_location(saved))) == Study.from_items(read_study_records(where))


def test_a_database_of_a_later_finecomb_is_refused(tmp_path: Path) -> None:
    where = parse_location(tmp_path / DATABASE_FILENAME)
    store_and_read_back(where, minimal_study())
    with Database(where).write_transaction() as transaction:
        transaction.execute_sql("UPDATE alembic_version SET version_num = 'future'")
    with pytest.raises(FinecombError, match="upgrade Finecomb to the version that wrote the"):
        store_and_read_back(where, minimal_study())
    with pytest.raises(FinecombError, match="upgrade Finecomb to the version that wrote the"):
        list(read_study_records(where))


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0 and then nonsense", b"no database at all"])
def test_what_is_no_study_is_said_in_words(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(content)
    with pytest.raises(FinecombError, match=r"cannot be opened|contains no study"):
        list(read_study_records(parse_location(tmp_path / "x.db")))


# --- backup ------------------------------------------------------------------------------------------------------


def test_a_backup_is_a_file_and_can_be_put_back(where: StudyLocation, tmp_path: Path) -> None:
    whole = store_and_read_back(where, [*fc.demo(readers=2).items()])
    other = replace(where, study=f"{where.study}-other")
    store_and_read_back(other, minimal_study())
    target = tmp_path / "backup.db"
    with backup.open_and_migrate_database(where) as database:
        backup.back_up_database(database, target)
        with pytest.raises(FinecombError, match="already exists"):
            backup.back_up_database(database, target)
    if where.file:
        assert len(
            Study.from_items(read_study_records(StudyLocation(parse_location(target).url, "study", target))).marks
        ) == len(whole.marks)
    else:
        assert Study.from_items(read_study_records(parse_location(target))) == whole, (
            "of PostgreSQL, only the study that was named"
        )
    with pytest.raises(FinecombError, match="pass force to replace it"):
        backup.restore_backup(target, where)
    fresh = parse_location(tmp_path / "fresh.db") if where.file else replace(where, study=f"{where.study}-fresh")
    assert backup.restore_backup(target, fresh) is None
    assert Study.from_items(read_study_records(replace(fresh, study=fresh.study or "study"))) == whole
    assert list(Study.from_items(read_study_records(other)).documents["id"]) == ["d"]


@pytest.mark.parametrize("kind", KINDS)
def test_restoring_keeps_what_was_there(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    where = new_study_location(kind, tmp_path)
    before = store_and_read_back(where, minimal_study())
    with backup.open_and_migrate_database(where) as database:
        backup.back_up_database(database, tmp_path / "old.db")
    after = store_and_read_back(where, [*minimal_study(), *ANNOTATOR_AND_ANNOTATION])
    kept = backup.restore_backup(tmp_path / "old.db", where, force=True)
    assert kept is not None
    assert Study.from_items(read_study_records(where)) == before
    name = where.study or "study"
    assert Study.from_items(read_study_records(StudyLocation(f"sqlite+pysqlite:///{kept}", name, kept))) == after


# --- the writer --------------------------------------------------------------------------------------------------


@pytest.fixture
def store(where: StudyLocation) -> Iterator[Store]:
    with open_test_store(where, minimal_study(), FakeClock()) as store:
        yield store


def test_a_failing_change_does_not_hurt_those_beside_it(store: Store) -> None:
    def title(_: Store, transaction: Transaction, text: str) -> str:
        transaction.execute(
            sa.update(tables.study)
            .values(settings=Settings(title=text).to_json())
            .where(tables.study.c.key == store.key)
        )
        if text == "bad":
            raise FinecombError("no")
        return text

    answers: dict[str, Any] = {}
    ready = threading.Barrier(9)

    def ask(text: str) -> None:
        ready.wait()
        try:
            answers[text + str(len(answers))] = store.run_job_sync(title, text)
        except FinecombError as error:
            answers[text] = str(error)

    threads = [threading.Thread(target=ask, args=(text,)) for text in ["good"] * 8 + ["bad"]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers["bad"] == "no"
    assert sum(value == "good" for value in answers.values()) == 8
    store.reload_study_state()
    assert store.head.settings.title == "good"


def test_nobody_is_told_before_the_commit(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """When a commit fails, all its jobs report the failure, and the next change works again."""
    writer = Writer(store.database)
    real, broken = Transaction.execute_sql, [True]

    def command(self: Transaction, sql: str) -> None:
        if sql == "COMMIT" and broken:
            broken.clear()
            raise OSError("disk full")
        real(self, sql)

    monkeypatch.setattr(Transaction, "execute_sql", command)
    statement = sa.update(tables.study).values(state="paused").where(tables.study.c.key == store.key)
    with pytest.raises(OSError, match="disk full"):
        writer.run_job_sync(lambda transaction: transaction.execute(statement))
    assert read_state(store) == "open"
    writer.run_job_sync(lambda transaction: transaction.execute(statement) and None)
    writer.close()
    assert read_state(store) == "paused"


def read_state(store: Store) -> str:
    store.reload_study_state()
    return store.head.state
