"""`kill -9` under load, for real: whatever was acknowledged is there after a restart, and nothing is there twice."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
import sqlalchemy as sa
from pydantic_core import from_json

from finecomb import formats
from finecomb.core.check import check
from finecomb.core.records import Settings
from finecomb.server.auth import TOKEN
from finecomb.store import tables
from finecomb.store.database import Database
from finecomb.store.location import FILE, place
from finecomb.store.store import open_store
from tests.databases import KINDS, demo_items, server

PEOPLE = 8


@contextmanager
def serving(study: Path, db: str) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """`finecomb serve` as a process of its own: the process, its address and the token of the open link."""
    command = [sys.executable, "-c", "from finecomb.cli import main; main()", "serve", str(study), "--port", "0"]
    process = subprocess.Popen([*command, *(["--db", db] if db else [])], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(4)]
        address, _, token = lines[2].split()[-1].partition("/join/")
        yield process, address, token
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@dataclass
class Reader:
    """Somebody who saves as fast as the server answers, and remembers what was acknowledged."""

    name: str
    cookies: httpx.Cookies = field(default_factory=httpx.Cookies)
    token: str = ""
    task: Any = None
    acknowledged: dict[str, tuple[int, Any]] = field(default_factory=dict)
    """Version and body by mark."""
    unanswered: tuple[str, Any] | None = None
    """The save that was under way when the server died."""
    random: random.Random = field(default_factory=random.Random)

    async def join(self, client: httpx.AsyncClient, token: str) -> None:
        client.cookies.clear()  # each has a browser of their own
        answer = await client.post(f"/api/join/{token}")
        self.token, self.cookies = answer.json()["csrf"], answer.cookies
        self.task = (await self.send(client, "POST", "/api/next", None)).json()["task"]

    async def send(self, client: httpx.AsyncClient, method: str, path: str, body: Any) -> httpx.Response:
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        return await client.request(method, path, json=body, headers={TOKEN: self.token, "cookie": cookie})

    async def save(self, client: httpx.AsyncClient) -> None:
        """The save under way again, or the next one: a new mark, a change of one, or its end."""
        id, change = self.unanswered or self._next_change()
        self.unanswered = id, change
        answer = await self.send(client, "PUT", f"/api/tasks/{self.task['id']}/marks/{id}", change)
        assert answer.status_code == 200, answer.text
        assert answer.json() == {"change": change["change"], "version": change["base"] + 1}
        self.acknowledged[id] = change["base"] + 1, change["body"]
        self.unanswered = None

    def _next_change(self) -> tuple[str, Any]:
        known = self.random.random() < 0.6 and list(self.acknowledged)
        id = self.random.choice(known) if known else f"{self.name}-{len(self.acknowledged)}"
        start, size = self.random.randrange(300), self.random.randrange(5, 80)  # so many that few are the same
        end = start + size
        body = {"spans": [[start, end]], "quotes": [self.task["text"][start:end]], "label": "incoherent"}
        kept = None if known and self.random.random() < 0.2 else body
        return id, {"change": uuid.uuid4().hex, "base": self.acknowledged.get(id, (0, None))[0], "body": kept}


class Killer:
    """Kills the server when so many saves have been acknowledged, while others are under way."""

    def __init__(self, process: subprocess.Popen[str], after: int) -> None:
        self.process = process
        self.left = after

    def count(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.process.send_signal(signal.SIGKILL)


async def work(address: str, token: str, people: list[Reader], killer: Killer) -> None:
    """Everybody saves until the server is dead."""
    async with httpx.AsyncClient(base_url=address, timeout=60) as client:
        for person in people:
            if not person.token:
                await person.join(client, token)
        await asyncio.gather(*(_until_death(person, client, killer) for person in people))


async def _until_death(person: Reader, client: httpx.AsyncClient, killer: Killer) -> None:
    while True:
        try:
            await person.save(client)
        except httpx.TransportError:
            return
        killer.count()


def verify(where: Any, people: list[Reader]) -> None:
    """What the database holds is what was acknowledged, but for at most one save under way per person."""
    database = Database(where)
    entry = tables.entry.c
    with database.reading() as transaction:
        rows = transaction.all(sa.select(entry.id, entry.version, entry.body).where(entry.kind == "mark"))
        found = {id: (version, body) for id, version, body in rows}
        changes = transaction.one(sa.select(sa.func.count()).select_from(tables.change))
        versions = transaction.one(sa.select(sa.func.sum(entry.version)))
    if database.sqlite:
        connection = database.connect()
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        connection.close()
    database.close()
    if database.sqlite:  # the other database holds more studies than ours
        assert changes == versions, "every version was made by exactly one change"
    for person in people:
        for id, (version, body) in person.acknowledged.items():
            assert id in found, f"{id} was acknowledged and is lost"
            stored, text = found[id]
            under_way = person.unanswered is not None and person.unanswered[0] == id
            assert stored == version or (under_way and stored == version + 1)
            if stored == version:
                assert (text and from_json(text)["spans"]) == (body and body["spans"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rounds", [2, pytest.param(50, marks=pytest.mark.long)])
def test_what_was_acknowledged_survives_a_kill(kind: str, rounds: int, tmp_path: Path) -> None:
    settings, *rest = demo_items()
    assert isinstance(settings, Settings)
    study = tmp_path / "study"
    formats.save([settings.model_copy(update={"annotators": 1000}), *rest], study)
    db = f"{server()}#{uuid.uuid4().hex}" if kind == "postgresql" else ""
    where = place(db) if db else place(study / FILE)
    people = [Reader(f"p{number}", random=random.Random(number)) for number in range(PEOPLE)]
    moments = random.Random(rounds)
    for _ in range(rounds):
        with serving(study, db) as (process, address, token):
            asyncio.run(work(address, token, people, Killer(process, moments.randrange(30, 150))))
        verify(where, people)
    with serving(study, db) as (_, address, _):
        asyncio.run(_settle(address, people))
    verify(where, people)
    store = open_store(where, None)
    try:
        assert [problem for problem in check(store.study()) if problem.level == "error"] == []
    finally:
        store.close()


async def _settle(address: str, people: list[Reader]) -> None:
    """Everybody sends what was under way again: it counts once, whether or not it had been kept."""
    async with httpx.AsyncClient(base_url=address, timeout=30) as client:
        for person in people:
            if person.unanswered:
                await person.save(client)
