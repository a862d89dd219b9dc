"""One bad byte harms one record, and a damaged page harms the rows on it."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import finecomb as fc
from finecomb import formats
from finecomb.collection.database.location import parse_location
from finecomb.collection.database.salvage import find_page_damage
from finecomb.collection.database.store import open_store
from finecomb.core.errors import FinecombError
from tests.databases import Client
from tests.test_cli import refused, run

SECRET_TEXT = "the the"


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A served study in a folder, with its database."""
    fc.write(fc.demo(), tmp_path / "study")
    fc.links(tmp_path / "study", new=1)
    return tmp_path / "study"


def spoil(study: Path, table: str, column: str, row: int = 1) -> str:
    """Put the byte FF into one value, and return the ID of the row."""
    with closing(sqlite3.connect(study / "study.db")) as connection:
        connection.text_factory = bytes
        wanted = f"SELECT rowid, {column} FROM {table} WHERE {column} IS NOT NULL AND length({column}) > 4"
        number, value = connection.execute(f"{wanted} LIMIT 1 OFFSET {row}").fetchone()
        spoiled = value[:4] + b"\xff" + value[5:]
        connection.execute(f"UPDATE {table} SET {column} = CAST(? AS TEXT) WHERE rowid = ?", (spoiled, number))
        connection.commit()
        names = [row[1].decode() for row in connection.execute(f"PRAGMA table_info({table})")]
        name = connection.execute(f"SELECT id FROM {table} WHERE rowid = ?", (number,)).fetchone()[0]
        assert "id" in names
    return str(name.decode("utf-8", "replace"))


PLACES = [("document", "body"), ("annotator", "body"), ("entry", "body"), ("annotation", "rest"), ("entry", "id")]


@pytest.mark.parametrize(("table", "column"), PLACES)
def test_one_bad_byte_is_named_left_out_and_repaired(study: Path, table: str, column: str, tmp_path: Path) -> None:
    before = fc.stats(study / "study.db")
    assert before
    spoil(study, table, column)
    read = formats.read(study / "study.db")
    assert any("cannot be read and is skipped" in note for note in read.notes)
    copy = fc.backup(study, output=tmp_path / "copy.db")
    assert fc.verify_backup(copy)
    run("convert", study / "study.db", tmp_path / "converted")
    report = fc.repair(study)
    assert report
    assert report.aside is not None
    assert r"\udcff" in report.aside.read_text()
    assert not [note for note in formats.read(study / "study.db").notes if "cannot be read" in note]
    assert not fc.repair(study)


@pytest.mark.parametrize("command", ["stats", "check", "repair"])
def test_no_message_about_a_bad_byte_quotes_the_record(study: Path, command: str) -> None:
    spoil(study, "entry", "body")
    with closing(sqlite3.connect(study / "study.db")) as connection:
        connection.text_factory = bytes
        bodies = [body for (body,) in connection.execute("SELECT body FROM entry") if body and b"\xff" in body]
    assert len(bodies) == 1
    quoted = re.findall(rb'"quotes":\["([^"]+)"', bodies[0])
    result = run(command, study / "study.db")
    assert "Traceback" not in result.output
    assert all(quote.decode() not in result.output for quote in quoted)


@pytest.mark.parametrize(("table", "column"), PLACES[:4])
def test_pages_are_served_despite_a_bad_byte(study: Path, table: str, column: str) -> None:
    spoil(study, table, column)
    store = open_store(parse_location(study / "study.db"))
    try:
        owner = Client(store).sign_in_researcher()
        for path in ("overview", "documents", "annotators", "settings", "audit", "runs", "export?format=jsonl"):
            assert owner.get(f"/api/admin/{path}").status_code < 500, path
        assert owner.get("/health").json() == {"status": "ok"}
    finally:
        store.close()


def test_rows_of_damaged_pages_are_salvaged_one_by_one(study: Path) -> None:
    file = study / "study.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        rows = connection.execute("SELECT count(*) FROM entry").fetchone()[0]
        size = connection.execute("PRAGMA page_size").fetchone()[0]
        root = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'entry'").fetchone()[0]
    content = file.read_bytes()
    pages = [content[start : start + size] for start in range(0, len(content), size)]
    assert pages[root - 1][0] == 5  # an inner page of a table, whose cells begin with the numbers of other pages
    cell = int.from_bytes(pages[root - 1][14:16])
    page = int.from_bytes(pages[root - 1][cell : cell + 4]) - 1
    assert pages[page][0] == 13  # a page with rows
    damaged_rows = int.from_bytes(pages[page][3:5])
    with file.open("r+b") as stream:
        stream.seek(page * size)
        stream.write(b"\xee" * size)
    assert find_page_damage(file)
    message = refused("convert", file, study / "converted")
    assert "finecomb repair" in message
    report = fc.repair(study)
    assert len(report.lost) >= 1
    assert "table entry" in report.lost[0]
    assert not find_page_damage(file)
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT count(*) FROM entry").fetchone()[0] == rows - damaged_rows
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    assert len(formats.read(file).documents) == 16
    assert list(study.glob("study.damaged-*.db"))


def test_repair_leaves_nothing_next_to_a_file_that_is_no_study(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a study")
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute("CREATE TABLE t (a)")
    for name in ("notes.txt", "other.db"):
        with pytest.raises(FinecombError, match="no study"):
            fc.repair(tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.txt", "other.db"]


def test_health_fails_when_nothing_can_be_written(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(parse_location(study / "study.db"))
    try:
        client = Client(store)
        assert client.get("/health").status_code == 200
        monkeypatch.setattr("finecomb.server.metrics._WRITE_CHECK_SECONDS", 0)
        with closing(sqlite3.connect(study / "study.db")) as other:
            other.execute("CREATE TRIGGER full BEFORE INSERT ON attempt BEGIN SELECT RAISE(ABORT, 'disk is full'); END")
        assert client.get("/health").status_code == 503
    finally:
        store.close()
