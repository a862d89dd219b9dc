"""Simulated people who save as fast as possible, record acknowledgements, and compare them with the database."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2 as httpx
import sqlalchemy as sa
from pydantic_core import from_json

from finecomb import formats
from finecomb.collection.database import tables
from finecomb.collection.database.connection import Database
from finecomb.collection.database.location import StudyLocation
from finecomb.collection.database.studies import find_study_key_and_name
from finecomb.core.records import Settings
from finecomb.core.tokens import word_offsets
from finecomb.server.auth import CSRF_HEADER
from tests.databases import demo_items

_FAILURE_STATUSES = (500, 502, 503)
_RETRY_SECONDS = 0.1  # delay before a failed save is sent again


@dataclass
class Person:
    """Person who saves continually and records what was acknowledged."""

    name: str
    random: random.Random
    cookies: httpx.Cookies = field(default_factory=httpx.Cookies)
    token: str = ""
    task: Any = None
    acknowledged: dict[str, tuple[int, Any]] = field(default_factory=dict)
    """Last acknowledged version and body by mark."""
    saves: int = 0
    """Number of acknowledged saves."""
    tries: int = 0
    """Number of different saves sent."""
    unanswered: tuple[str, Any] | None = None
    """Save in progress."""
    slowest: float = 0

    async def join(self, client: httpx.AsyncClient, token: str) -> None:
        client.cookies.clear()  # each person has their own browser
        answer = await client.post(f"/api/join/{token}")
        assert answer.status_code == 200, answer.text
        self.token, self.cookies = answer.json()["csrf"], answer.cookies
        self.task = (await self.send(client, "POST", "/api/next", None)).json()["task"]
        self.bounds = word_offsets(self.task["text"]).tolist()

    async def send(self, client: httpx.AsyncClient, method: str, path: str, body: Any) -> httpx.Response:
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        return await client.request(method, path, json=body, headers={CSRF_HEADER: self.token, "cookie": cookie})

    async def save(self, client: httpx.AsyncClient) -> bool:
        """Send the pending save again, or the next one, and return whether it was acknowledged."""
        if self.unanswered is None:
            self.unanswered = self._next_change()
            self.tries += 1
        id, change = self.unanswered
        start = time.perf_counter()
        answer = await self.send(client, "PUT", f"/api/tasks/{self.task['id']}/marks/{id}", change)
        if answer.status_code in _FAILURE_STATUSES:
            return False
        assert answer.status_code == 200, answer.text
        assert answer.json() == {"change": change["change"], "version": change["base"] + 1}
        self.slowest = max(self.slowest, time.perf_counter() - start)
        self.acknowledged[id] = change["base"] + 1, change["body"]
        self.saves += 1
        self.unanswered = None
        return True

    def _next_change(self) -> tuple[str, Any]:
        """Return a new mark, a change to a mark, or its deletion."""
        again = self.random.random() < 0.6 and list(self.acknowledged)
        id = self.random.choice(again) if again else f"{self.name}-{len(self.acknowledged)}"
        marked = [body["spans"] for other, (_, body) in self.acknowledged.items() if body and other != id]
        while True:  # a second mark of the same words with the same label is refused
            first = self.random.randrange(60)
            start, end = self.bounds[first][0], self.bounds[first + self.random.randrange(12)][1]
            if [[start, end]] not in marked:
                break
        body = {"spans": [[start, end]], "quotes": [self.task["text"][start:end]], "label": "incoherent"}
        change = None if again and self.random.random() < 0.2 else body
        return id, {"change": uuid.uuid4().hex, "base": self.acknowledged.get(id, (0, None))[0], "body": change}


def make_people(count: int) -> list[Person]:
    """Make people, each with their own random generator."""
    return [Person(f"p{number}", random.Random(number)) for number in range(count)]


def open_client(address: str) -> httpx.AsyncClient:
    """Return a client with connections for all people."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    return httpx.AsyncClient(base_url=address, timeout=60, limits=limits)


async def join_all(address: str, token: str, people: Sequence[Person]) -> None:
    """Sign in all people who are not signed in."""
    async with open_client(address) as browser:
        for person in people:
            if not person.token:
                await person.join(browser, token)


async def save_while(
    address: str, people: Sequence[Person], goes_on: Callable[[], bool], patient: bool = False, pause: float = 0
) -> None:
    """Save as all people while `continue_from` allows it; impatient people stop with the server."""
    async with open_client(address) as browser:
        await asyncio.gather(*(_save_repeatedly(person, browser, goes_on, patient, pause) for person in people))


async def _save_repeatedly(
    person: Person, browser: httpx.AsyncClient, goes_on: Callable[[], bool], patient: bool, pause: float
) -> None:
    await asyncio.sleep(pause * person.random.random())
    while goes_on():
        try:
            done = await person.save(browser)
        except httpx.TransportError:
            if not patient:
                return
            done = False
        await asyncio.sleep(pause if done else _RETRY_SECONDS) if pause or not done else None


def make_countdown(seconds: float) -> Callable[[], bool]:
    """Return a function that tells whether a number of seconds has not passed yet."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() < end


async def resend_unanswered(address: str, people: Sequence[Person]) -> None:
    """Send all pending saves again. Each is applied once, whether or not it had been stored before."""
    goes_on = make_countdown(120)
    async with open_client(address) as browser:
        for person in people:
            while person.unanswered:
                assert goes_on(), "the server did not come back"
                if not await person.save(browser):
                    await asyncio.sleep(_RETRY_SECONDS)


def make_study(folder: Path) -> Path:
    """Make a study with a text for every person."""
    settings, *rest = demo_items()
    assert isinstance(settings, Settings)
    formats.save_records([settings.model_copy(update={"annotators": 1000}), *rest], folder / "study")
    return folder / "study"


# --- comparison --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """Saves of one scenario and what became of them."""

    name: str
    times: int
    """Number of repetitions."""
    tries: int
    acknowledged: int
    lost: int = 0
    doubled: int = 0
    note: str = ""


def measure_outcome(name: str, times: int, where: StudyLocation, people: Sequence[Person], note: str = "") -> Outcome:
    """Compare the saves of people with the database."""
    lost, doubled = count_losses(where, people)
    tries, saves = sum(person.tries for person in people), sum(person.saves for person in people)
    return Outcome(name, times, tries, saves, lost, doubled, note)


def count_losses(where: StudyLocation, people: Sequence[Person]) -> tuple[int, int]:
    """Count acknowledged marks that are missing or different, and saves that were applied more than once."""
    database = Database(where)
    try:
        stored, versions, changes = _read_stored_marks(database, where)
    finally:
        database.close()
    lost = sum(
        not _is_stored(stored.get(id), version, body, person.unanswered is not None and person.unanswered[0] == id)
        for person in people
        for id, (version, body) in person.acknowledged.items()
    )
    return lost, max(0, versions - changes)


def _read_stored_marks(database: Database, where: StudyLocation) -> tuple[dict[str, tuple[int, str | None]], int, int]:
    """Return the marks of a study by ID, the number of entry versions, and the number of changes."""
    entry, change, annotation = tables.entry.c, tables.change.c, tables.annotation.c
    with database.read_transaction() as transaction:
        key, _ = find_study_key_and_name(transaction, where)
        marks = sa.select(entry.id, entry.version, entry.body).where(entry.study == key, entry.kind == "mark")
        rows = transaction.fetch_all(marks)
        (versions,) = transaction.fetch_first(sa.select(sa.func.sum(entry.version)).where(entry.study == key)) or (0,)
        made = (
            sa.select(sa.func.count())
            .select_from(tables.change.join(tables.annotation, change.annotation == annotation.key))
            .where(annotation.study == key, change.version > 0)
        )
        (changes,) = transaction.fetch_first(made) or (0,)
    return {id: (version, body) for id, version, body in rows}, int(versions or 0), int(changes)


def _is_stored(row: tuple[int, str | None] | None, version: int, body: Any, under_way: bool) -> bool:
    """Return whether a mark is stored as acknowledged, allowing for a save in progress."""
    if row is None:
        return False
    stored, text = row
    if stored == version:
        return bool((text and from_json(text)["spans"]) == (body and body["spans"]))
    return under_way and stored == version + 1


def is_database_intact(where: StudyLocation) -> bool:
    """Return whether SQLite's integrity check passes."""
    database = Database(where)
    connection = database.connect()
    try:
        whole = connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return bool(whole and connection.execute("PRAGMA foreign_key_check").fetchall() == [])
    finally:
        connection.close()
        database.close()
