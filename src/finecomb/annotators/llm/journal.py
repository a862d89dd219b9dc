"""The journal of a run: every request and reply in one file that only grows, on disk before anything counts as done."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from finecomb.annotators.llm.chat import ChatMessage, ChatReply
from finecomb.core.records import Record, Time

JOURNAL_FILE = "journal.jsonl"


class PrefixEntry(Record):
    """Messages that many requests begin with, written once."""

    kind: Literal["head"] = "head"
    id: str
    """By which requests name it."""
    messages: tuple[ChatMessage, ...]


class CallEntry(Record):
    """A call that is about to be made; until its outcome is there, it may have been paid."""

    kind: Literal["call"] = "call"
    hash: str
    """Of the request."""
    attempt: int
    """1 for the first."""
    document: str
    head: str
    """Id of the messages that the request begins with."""
    message: str
    """The last message."""
    reserved: float = 0.0
    """The most that it can cost."""
    when: Time


class ReplyEntry(Record):
    """A reply, as it came."""

    kind: Literal["reply"] = "reply"
    hash: str
    reply: ChatReply
    cost: float = 0.0
    seconds: float = 0.0
    when: Time
    cached: bool = False
    """Whether it was taken over from another run, at no cost."""


class FailureEntry(Record):
    """A call without a reply."""

    kind: Literal["failure"] = "failure"
    hash: str
    why: str
    cost: float = 0.0
    """The most that it can have cost, where the endpoint may have worked on it."""
    when: Time


Entry = PrefixEntry | CallEntry | ReplyEntry | FailureEntry
_ENTRY_ADAPTER: TypeAdapter[Entry] = TypeAdapter(Annotated[Entry, Field(discriminator="kind")])


@dataclass(frozen=True, slots=True)
class JournalContent:
    """What a journal says when it is opened again."""

    replies: Mapping[str, ReplyEntry] = field(default_factory=dict)
    """By the hash of the request; of two for one request the first counts."""
    failures: Mapping[str, FailureEntry] = field(default_factory=dict)
    """The last one of each request that has no reply."""
    heads: frozenset[str] = frozenset()
    spent: float = 0.0
    """What replies and failures cost, and the most that calls without an outcome can have cost."""

    @classmethod
    def from_entries(cls, entries: Iterable[Entry]) -> JournalContent:
        """What the entries add up to."""
        replies: dict[str, ReplyEntry] = {}
        failures: dict[str, FailureEntry] = {}
        heads: set[str] = set()
        open_: dict[str, list[float]] = {}
        spent = 0.0
        for entry in entries:
            match entry:
                case PrefixEntry():
                    heads.add(entry.id)
                case CallEntry():
                    open_.setdefault(entry.hash, []).append(entry.reserved)
                case ReplyEntry():
                    replies.setdefault(entry.hash, entry)
                case FailureEntry():
                    failures[entry.hash] = entry
            if isinstance(entry, FailureEntry | ReplyEntry):
                spent += entry.cost
                if open_.get(entry.hash) and not _is_cached_reply(entry):
                    open_[entry.hash].pop()  # a call before it that a crash cut short may have been paid as well
        unanswered = {hash: entry for hash, entry in failures.items() if hash not in replies}
        return cls(replies, unanswered, frozenset(heads), spent + sum(map(sum, open_.values())))


def _is_cached_reply(entry: FailureEntry | ReplyEntry) -> bool:
    return isinstance(entry, ReplyEntry) and entry.cached


def read_entries(path: Path) -> Iterator[Entry]:
    """The entries of a journal; a last line that was cut off by a crash is left out."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            try:
                yield _ENTRY_ADAPTER.validate_json(line)
            except ValidationError:
                if line.endswith(b"\n"):
                    raise


class Journal:
    """Appends entries; `add` returns when they are on disk. Entries that wait together are synced together."""

    def __init__(self, folder: Path | None) -> None:
        self.path = folder / JOURNAL_FILE if folder else None
        self._file: IO[bytes] | None = None
        self._waiting: list[tuple[bytes, asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None
        self.content = JournalContent.from_entries(read_entries(self.path)) if self.path else JournalContent()
        self.heads = set(self.content.heads)

    def open(self) -> None:
        """Open the file for appending; half a line at its end is cut off first."""
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.path.open("ab")
        whole = _complete_byte_count(self.path)
        if whole < self._file.tell():
            self._file.truncate(whole)

    async def add(self, *entries: Entry) -> None:
        """Write entries and wait until they are on disk."""
        if self._file is None:
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        lines = b"".join(entry.model_dump_json(exclude_defaults=False).encode() + b"\n" for entry in entries)
        self._waiting.append((lines, done))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_all())
        await done

    async def _write_all(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                await asyncio.to_thread(self._write, b"".join(lines for lines, _ in batch))
            except OSError as error:
                for _, done in batch:
                    if not done.done():
                        done.set_exception(error)
            else:
                for _, done in batch:
                    if not done.done():
                        done.set_result(None)

    def _write(self, lines: bytes) -> None:
        assert self._file is not None
        self._file.write(lines)
        self._file.flush()
        os.fsync(self._file.fileno())

    async def close(self) -> None:
        """Finish what is being written and let go of the file."""
        if self._writer is not None:
            await self._writer
        if self._file is not None:
            self._file.close()
            self._file = None


def _complete_byte_count(path: Path) -> int:
    """Bytes up to the last line end."""
    with path.open("rb") as file:
        return file.read().rfind(b"\n") + 1


def cached_replies(runs: Path) -> dict[str, ReplyEntry]:
    """Every reply in the journals of a study's runs, by the hash of its request."""
    replies: dict[str, ReplyEntry] = {}
    for path in sorted(runs.glob(f"*/{JOURNAL_FILE}")):
        for entry in read_entries(path):
            if isinstance(entry, ReplyEntry):
                replies.setdefault(entry.hash, entry)
    return replies
