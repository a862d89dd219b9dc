"""Tests of unreadable rows, which never prevent the rest of a study from being read."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

import finecomb as fc
from finecomb.cli import app
from finecomb.collection.database import tables
from finecomb.collection.database.connection import Database
from finecomb.collection.database.incremental_read import refresh_snapshot
from finecomb.collection.database.location import DATABASE_FILENAME, StudyLocation, parse_location
from finecomb.collection.database.repair import repair_study
from finecomb.collection.database.store import open_store, read_study_records
from finecomb.core.records import Annotation, Note
from tests.databases import KINDS, Client, FakeClock, demo_items, new_study_location, open_test_store

DAMAGING_STATEMENTS = {
    "a negative time": "UPDATE annotation SET rest = '{\"seconds\":-7198.9}' WHERE id = :id",
    "a negative active time": "UPDATE annotation SET active = -3.5 WHERE id = :id",
    "a time that is none": "UPDATE annotation SET started = 'yesterday' WHERE id = :id",
    "no JSON": "UPDATE annotation SET rest = '{\"meta\":' WHERE id = :id",
    "an unknown status": "UPDATE annotation SET status = 'lost' WHERE id = :id",
    "a mark without spans": "UPDATE entry SET body = '{\"label\":null}' WHERE kind = 'mark' AND id = :mark",
}


@pytest.fixture
def served(tmp_path: Path) -> tuple[StudyLocation, Annotation]:
    """Return the demo study in a file, and one of its annotations with a mark."""
    study = fc.demo()
    victim = next(annotation for annotation in study.iter_annotations() if annotation.marks)
    where = parse_location(tmp_path / DATABASE_FILENAME)
    with open_test_store(where, list(study.items()), FakeClock()):
        pass
    return where, victim


def damage_row(where: StudyLocation, statement: str, victim: Annotation) -> None:
    assert where.file is not None
    with closing(sqlite3.connect(where.file)) as connection:
        changed = connection.execute(statement, {"id": victim.id, "mark": victim.marks[0].id}).rowcount
        connection.commit()
    assert changed == 1


@pytest.mark.parametrize("statement", DAMAGING_STATEMENTS.values(), ids=DAMAGING_STATEMENTS)
def test_a_bad_annotation_is_left_out_and_named(served: tuple[StudyLocation, Annotation], statement: str) -> None:
    where, victim = served
    damage_row(where, statement, victim)
    items = list(read_study_records(where))
    readable = {item.id for item in items if isinstance(item, Annotation)}
    assert readable == {annotation.id for annotation in fc.demo().iter_annotations()} - {victim.id}
    (note,) = [item for item in items if isinstance(item, Note)]
    assert repr(victim.id) in note.text
    assert "finecomb repair" in note.text
    assert note.is_error


@pytest.mark.parametrize("statement", DAMAGING_STATEMENTS.values(), ids=DAMAGING_STATEMENTS)
def test_the_server_reads_the_rest(served: tuple[StudyLocation, Annotation], statement: str) -> None:
    where, victim = served
    damage_row(where, statement, victim)
    store = open_store(where)
    try:
        assert Client(store).sign_in_researcher().get("/api/admin/overview").status_code == 200
        first = refresh_snapshot(store)
        assert len(refresh_snapshot(store, first).study.annotations) == len(list(fc.demo().iter_annotations())) - 1
    finally:
        store.close()


def test_check_names_it_and_the_other_commands_go_on(served: tuple[StudyLocation, Annotation]) -> None:
    where, victim = served
    damage_row(where, DAMAGING_STATEMENTS["a negative time"], victim)
    checked = CliRunner().invoke(app, ["check", str(where.file)])
    assert checked.exit_code == 1
    assert repr(victim.id) in checked.output
    for command in ("stats", "agree"):
        assert CliRunner().invoke(app, [command, str(where.file)]).exit_code == 0


@pytest.mark.parametrize("kind", ["document", "annotator"])
def test_what_names_a_bad_row_is_left_out_with_it(served: tuple[StudyLocation, Annotation], kind: str) -> None:
    where, victim = served
    id = getattr(victim, kind)
    assert where.file is not None
    with closing(sqlite3.connect(where.file)) as connection:
        connection.execute(f"UPDATE {kind} SET body = '[' WHERE id = ?", (id,))
        connection.commit()
    study = fc.read(where.file)
    assert id not in study.annotations[kind].to_list()
    assert len(study.annotations) > 0
    frame = {"document": study.documents, "annotator": study.annotators}[kind]
    assert id not in frame["id"].to_list()


@pytest.mark.parametrize("statement", DAMAGING_STATEMENTS.values(), ids=DAMAGING_STATEMENTS)
def test_repair_mends_or_sets_aside_after_a_backup(served: tuple[StudyLocation, Annotation], statement: str) -> None:
    where, victim = served
    damage_row(where, statement, victim)
    database = Database(where)
    result = repair_study(database)
    again = repair_study(database)
    database.close()
    assert not again.rows
    assert again.backup is None
    assert {row.why for row in result.rows}
    assert where.file is not None
    assert result.backup is not None
    assert result.aside is not None
    assert [file.stat().st_mode & 0o777 for file in (result.backup, result.aside)] == [0o600, 0o600]
    assert victim.id in result.aside.read_text("utf-8") or victim.marks[0].id in result.aside.read_text("utf-8")
    study = fc.read(where.file)
    assert not study.notes
    is_gone = victim.id not in study.annotations["id"].to_list()
    assert is_gone == (statement in (DAMAGING_STATEMENTS["no JSON"], DAMAGING_STATEMENTS["an unknown status"]))
    marks = {mark.id for annotation in study.iter_annotations() for mark in annotation.marks}
    assert (victim.marks[0].id in marks) == (not is_gone and "entry" not in statement)


def test_repair_leaves_a_sound_study_as_it_is(served: tuple[StudyLocation, Annotation]) -> None:
    where, _ = served
    assert where.file is not None
    before = sorted(path.name for path in where.file.parent.iterdir())
    result = CliRunner().invoke(app, ["repair", str(where.file)])
    assert result.exit_code == 0
    assert "nothing changed" in result.output
    assert sorted(path.name for path in where.file.parent.iterdir() if not path.name.endswith(".lock")) == before


def test_the_command_says_what_became_of_it(served: tuple[StudyLocation, Annotation]) -> None:
    where, victim = served
    damage_row(where, DAMAGING_STATEMENTS["a negative time"], victim)
    result = CliRunner().invoke(app, ["repair", str(where.file)])
    assert result.exit_code == 0, result.output
    assert f"annotation {victim.id!r}: repaired: seconds" in result.output
    assert CliRunner().invoke(app, ["check", str(where.file)]).exit_code == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_clock_that_is_set_back_stores_nothing_that_cannot_be_read(kind: str, tmp_path: Path) -> None:
    clock = FakeClock()
    with open_test_store(new_study_location(kind, tmp_path), demo_items(), clock) as store:
        reader = Client(store).join_study()
        task = reader.next_task()
        clock.now -= 7200
        assert reader.save(task["id"], "answers", {"no_errors": True}, active=30)[0] == 200
        assert reader.finish(task["id"], active=40)[0] == 200
        (annotation,) = store.read_annotations(tables.annotation.c.id == task["id"])
        assert annotation.seconds == 0
        assert annotation.active_seconds == 0
        assert annotation.submitted == annotation.started
        assert annotation.meta["clock_back"] == 7200
        assert Client(store).sign_in_researcher().get("/api/admin/overview").status_code == 200


def test_a_clock_that_is_set_forward_lets_work_go_on(tmp_path: Path) -> None:
    clock = FakeClock()
    with open_test_store(new_study_location("sqlite", tmp_path), demo_items(), clock) as store:
        reader = Client(store).join_study()
        task = reader.next_task()
        clock.now += 5 * 24 * 3600
        reader.submit_without_errors(task["id"], active=30)
        (annotation,) = store.read_annotations(tables.annotation.c.id == task["id"])
        assert annotation.active_seconds == 30
        assert annotation.seconds == 5 * 24 * 3600
