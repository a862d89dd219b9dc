"""Attacks on a running server that had not been tried: header limits, session fixation, timing, tabs, locks."""

from __future__ import annotations

import contextlib
import gc
import hmac
import shutil
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pytest
import sqlalchemy as sa

import finecomb as fc
from finecomb.annotators.detectors.model_folder import ARRAYS_FILE
from finecomb.collection import access_storage
from finecomb.collection.database import migrations
from finecomb.collection.database.connection import Database
from finecomb.collection.database.location import StudyLocation, parse_location
from finecomb.collection.database.serving_lock import StudyInUseError, hold_study_lock
from finecomb.collection.database.store import Store, open_store, read_study_records
from finecomb.core.errors import FinecombError
from finecomb.core.records import Document
from finecomb.core.study import Study
from finecomb.engine.guarded_files import load_arrays, load_weights
from finecomb.server.connections import MAX_HEADER_BYTES
from tests.databases import Client, FakeClock, demo_items, new_postgresql_database, new_study_location, open_test_store
from tests.server.annotators.test_routes import mark_body, read_stored_annotation
from tests.server.test_connections import running


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with open_test_store(new_study_location("sqlite", tmp_path), demo_items(), FakeClock()) as store:
        yield store


@pytest.mark.parametrize("line", [b"X-Long: " + b"a" * 4 * MAX_HEADER_BYTES, b"X-Many: a\r\n" * MAX_HEADER_BYTES])
def test_headers_are_limited(store: Store, line: bytes) -> None:
    with running(store) as port, socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(b"GET /api/me HTTP/1.1\r\nHost: 127.0.0.1\r\n" + line)
        answer = b""
        with contextlib.suppress(ConnectionError):
            while chunk := connection.recv(4096):
                answer += chunk
        assert answer == b"" or answer.startswith(b"HTTP/1.1 431")
        with socket.create_connection(("127.0.0.1", port), timeout=30) as other:
            other.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            assert b" 200 " in other.recv(4096)


def test_a_session_is_made_at_sign_in_and_never_taken_from_the_browser(store: Store) -> None:
    attacker = Client(store).join_study()
    cookies = dict(attacker.cookies.items())
    victim = Client(store)
    for name, value in cookies.items():
        victim.cookies.set(name, value)
    person = Client(store).join_study().get("/api/me").json()["annotator"]
    token = store.run_job_sync(access_storage.create_link_token, "annotator", person)
    assert victim.post(f"/api/join/{token}").json()["annotator"] == person
    assert attacker.get("/api/me").json()["annotator"] != person
    made_up = Client(store)
    for name in cookies:
        made_up.cookies.set(name, "chosen.by-the-attacker")
    assert made_up.get("/api/me").status_code == 401


def test_codes_and_signatures_are_compared_in_constant_time(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A timing measurement would be noise on a shared machine, so the comparison itself is watched."""
    compared: list[tuple[Any, Any]] = []
    compare = hmac.compare_digest

    def watch(left: Any, right: Any) -> bool:
        compared.append((left, right))
        return compare(left, right)

    client = Client(store).join_study()
    monkeypatch.setattr(hmac, "compare_digest", watch)
    store.sessions.clear()
    client.headers["X-Finecomb-Token"] = "wrong"
    assert client.post("/api/next").status_code == 403
    assert len(compared) == 2  # the cookie's signature and the CSRF token


def test_two_tabs_that_were_offline_lose_nothing_silently(store: Store) -> None:
    """Both tabs edit one mark and add one each; when they are online again, the later edit is told of the earlier."""
    first = Client(store).join_study()
    task = first.next_task()
    assert first.save(task["id"], "marks/shared", mark_body(task))[0] == 200
    second = Client(store)
    second.cookies.update(first.cookies)
    second.headers.update(first.headers)
    for tab, end in ((first, 6), (second, 7)):
        assert tab.save(task["id"], f"marks/own-{end}", mark_body(task, end=end))[0] == 200
    assert first.save(task["id"], "marks/shared", mark_body(task, end=8), base=1, change="c1")[0] == 200
    for _ in range(2):  # a retry is told the same
        code, answer = second.save(task["id"], "marks/shared", mark_body(task, end=9), base=1, change="c2")
        assert (code, answer["code"]) == (409, "conflict")
    stored = {mark.id: mark.spans[0].end for mark in read_stored_annotation(store, task["id"]).marks}
    assert stored == {"shared": 8, "own-6": 6, "own-7": 7}


def test_a_second_server_is_refused_through_a_symbolic_link(tmp_path: Path) -> None:
    fc.write(fc.demo(readers=2), tmp_path / "study")
    fc.links(tmp_path / "study", new=1)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "other.db").symlink_to(tmp_path / "study" / "study.db")
    with (
        hold_study_lock(parse_location(tmp_path / "study" / "study.db"), "serve"),
        pytest.raises(StudyInUseError, match="in use by"),
        hold_study_lock(parse_location(tmp_path / "elsewhere" / "other.db"), "serve"),
    ):
        pass


class Killed(BaseException):
    """A process that ends in the middle of a migration."""


@dataclass
class KillingEngine:
    """Engine factory of a database that kills the migration after a number of statements."""

    database: Database
    after: int
    statements: int = 0

    def create(self) -> sa.Engine:
        engine = Database.create_engine(self.database)
        sa.event.listen(engine, "after_cursor_execute", self._count)
        return engine

    def _count(self, *_: object) -> None:
        self.statements += 1
        if self.statements == self.after:
            raise Killed


def upgrade_killed_after(place: StudyLocation, statements: int) -> bool:
    """Upgrade a database, and return whether it was killed before the end."""
    database = Database(place)
    database.create_engine = KillingEngine(database, statements).create  # type: ignore[method-assign]
    try:
        migrations.upgrade(database)
    except Killed:
        return True
    finally:
        database.close()
        gc.collect()  # a killed process holds no connection
    return False


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_migration_killed_at_any_statement_is_repeated_from_the_start(kind: str, tmp_path: Path) -> None:
    place = parse_location(tmp_path / "study.db" if kind == "sqlite" else f"{new_postgresql_database()}#study")
    database, oldest = Database(place), migrations.READABLE_VERSIONS[0]
    migrations.upgrade(database, oldest)
    statements = 1
    while upgrade_killed_after(place, statements):
        assert migrations.current_version(database) == oldest
        statements += 1
    assert statements > 3
    assert migrations.current_version(database) == migrations.latest_version()
    database.close()
    store = open_store(place, list(fc.demo(readers=2).items()))
    records = list(read_study_records(store.database.place))
    store.close()
    assert len(records) > 20


def test_no_cell_of_a_workbook_is_a_formula(tmp_path: Path) -> None:
    texts = ["=1+1", "+cmd", "@SUM(A1)", "-2+3", '=HYPERLINK("http://x")']
    documents = [Document(id=f"d{number}", text=text) for number, text in enumerate(texts)]
    fc.write(Study.from_items(documents), tmp_path / "t.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "t.xlsx").worksheets[0]
    assert {cell.data_type for row in sheet.iter_rows() for cell in row if cell.value is not None} <= {"s", "n", "b"}
    assert [document.text for document in fc.read(tmp_path / "t.xlsx").iter_documents()] == texts


def _npz(path: Path, header: bytes) -> Path:
    import zipfile

    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", header)
    return path


MALICIOUS_ARRAYS = {
    "huge": b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (999999999999999,), }".ljust(128),
    "code": b"\x93NUMPY\x01\x00v\x00__import__('os').system('touch ran')".ljust(128),
    "object": b"\x93NUMPY\x01\x00v\x00{'descr': '|O', 'fortran_order': False, 'shape': (1,), }".ljust(128),
    "cut": b"\x93NUM",
    "negative": b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (-5,), }".ljust(128),
}


@pytest.mark.parametrize("name", MALICIOUS_ARRAYS)
def test_malicious_arrays_are_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="is not a file of arrays"):
        load_arrays(_npz(tmp_path / ARRAYS_FILE, MALICIOUS_ARRAYS[name]))
    assert not (tmp_path / "ran").exists()
    np.savez(tmp_path / "fine.npz", a=np.arange(3))
    assert load_arrays(tmp_path / "fine.npz")["a"].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "content", [b"", b"\xff" * 64, (2**62).to_bytes(8, "little") + b"{", b"\x02" + bytes(7) + b"[]"]
)
def test_malicious_weights_are_refused(content: bytes, tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    (tmp_path / "weights.safetensors").write_bytes(content)
    with pytest.raises((ValueError, FinecombError)):
        load_weights(tmp_path / "weights.safetensors", "spans")


def test_a_link_in_a_study_folder_is_not_exported(tmp_path: Path) -> None:
    """Reading follows links as any program does; nothing of another file is copied into a converted study."""
    fc.write(fc.demo(readers=2), tmp_path / "study")
    secret = tmp_path / "secret.txt"
    secret.write_text("TOP-SECRET")
    (tmp_path / "study" / "notes.txt").symlink_to(secret)
    fc.convert(tmp_path / "study", tmp_path / "copy")
    fc.report(tmp_path / "study", output=tmp_path / "report", draws=10)
    for folder in ("copy", "report"):
        for path in (tmp_path / folder).rglob("*"):
            assert not path.is_symlink()
            assert not (path.is_file() and b"TOP-SECRET" in path.read_bytes())
    shutil.rmtree(tmp_path / "copy")
